//! Runs trials on several threads: each trial of each seed once, by whichever thread is free. Which one changes nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Failure;
use crate::check::{Check, Results};
use crate::figures::Trial;

/// Runs everything that these checks need, for all seeds, so many at a time. `progress` is told how many of how many runs
/// are done, from any thread.
///
/// # Errors
/// The first run that could not be made.
pub fn run(
    checks: &[Check],
    seeds: &[u64],
    jobs: usize,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<Results, Failure> {
    let trials: BTreeSet<Trial> = checks.iter().flat_map(Check::trials).collect();
    let runs: Vec<(Trial, u64)> =
        trials.into_iter().flat_map(|trial| seeds.iter().map(move |seed| (trial, *seed))).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(Ok(Results::new()));
    let work = || {
        while let Some((trial, seed)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = trial.run(*seed);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            match (results.as_mut(), outcome) {
                (Ok(results), Ok(figures)) => {
                    results.insert((*trial, *seed), figures);
                }
                (Ok(_), Err(failure)) => *results = Err(format!("{trial:?}, seed {seed}: {failure}").into()),
                (Err(_), _) => return,
            }
            drop(results);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, runs.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}
