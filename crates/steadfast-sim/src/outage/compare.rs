//! Several policies and several seeds: the same outage for all of them, side by side.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::policy::Policy;
use super::results::Run;
use super::run::RunError;
use super::simulation::Simulation;

impl Simulation {
    /// Runs every policy with every seed: by policy, and then by seed, in the order in which they are given. Runs go on up
    /// to `threads` threads at once, each run on one, which changes nothing about what they show.
    ///
    /// # Errors
    /// The first [`RunError`], in that order.
    pub fn run_all(
        &self,
        policies: &[Policy],
        seeds: &[u64],
        threads: NonZero<usize>,
    ) -> Result<Vec<Vec<Run>>, RunError> {
        let jobs: Vec<(&Policy, u64)> =
            policies.iter().flat_map(|policy| seeds.iter().map(move |seed| (policy, *seed))).collect();
        let next = AtomicUsize::new(0);
        let done: Vec<Mutex<Option<Result<Run, RunError>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let (Some((policy, seed)), Some(place)) = (jobs.get(number), done.get(number)) else { return };
                let run = self.run(policy, *seed);
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.get().min(jobs.len()) {
                scope.spawn(work);
            }
            work();
        });
        let runs = done.into_iter().filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner));
        let mut runs = runs.collect::<Result<Vec<Run>, RunError>>()?.into_iter();
        Ok(policies.iter().map(|_| runs.by_ref().take(seeds.len()).collect()).collect())
    }
}

/// How a figure is spread over several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The mean; 0 of none.
    pub mean: f64,
    /// The smallest; 0 of none.
    pub min: f64,
    /// The largest; 0 of none.
    pub max: f64,
}

impl Spread {
    /// Of these figures.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let (mut sum, mut count, mut min, mut max) = (0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY);
        for figure in figures {
            (sum, count) = (sum + figure, count + 1.0);
            (min, max) = (figure.min(min), figure.max(max));
        }
        if count == 0.0 { Self::default() } else { Self { mean: sum / count, min, max } }
    }
}
