//! What scenarios are played on. In virtual time one after the other, as each takes no time at all; over sockets several at
//! once, as most of their time is waiting.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast_sim::scenario::{CastError, Outcome, Scenario, play_in_time, play_over_sockets};

use super::Verdict;

/// How many are played at once over sockets.
const AT_ONCE: usize = 8;

type Print<'a> = &'a mut dyn FnMut(Verdict) -> io::Result<()>;

pub(super) fn in_time(read: impl Iterator<Item = Result<Scenario, Verdict>>, print: Print<'_>) -> io::Result<()> {
    for item in read {
        print(item.map_or_else(|verdict| verdict, |scenario| played(scenario, play_in_time)))?;
    }
    Ok(())
}

/// Prints them in their order once all have been played.
pub(super) fn sockets(read: Vec<Result<Scenario, Verdict>>, print: Print<'_>) -> io::Result<()> {
    let todo: Vec<Mutex<Option<Result<Scenario, Verdict>>>> =
        read.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let done: Vec<Mutex<Option<Verdict>>> = todo.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((item, place)) = nth(&todo, &done, next.fetch_add(1, Ordering::Relaxed)) {
            let item = item.lock().ok().and_then(|mut item| item.take());
            let verdict = item.map(|item| item.map_or_else(|verdict| verdict, over_sockets));
            if let Ok(mut place) = place.lock() {
                *place = verdict;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(todo.len()) {
            scope.spawn(work);
        }
    });
    done.into_iter().filter_map(|place| place.into_inner().ok().flatten()).try_for_each(print)
}

fn nth<'a, A, B>(one: &'a [A], other: &'a [B], index: usize) -> Option<(&'a A, &'a B)> {
    Some((one.get(index)?, other.get(index)?))
}

fn over_sockets(scenario: Scenario) -> Verdict {
    match scenario.virtual_only.clone() {
        Some(why) => Verdict::LeftOut { scenario: Box::new(scenario), why },
        None => played(scenario, play_over_sockets),
    }
}

fn played(scenario: Scenario, play: impl Fn(&Scenario) -> Result<Outcome, CastError>) -> Verdict {
    match play(&scenario) {
        Ok(outcome) => Verdict::Played { outcome, contract: scenario.contract },
        Err(error) => Verdict::Unplayable { file: scenario.file, title: scenario.title, why: error.to_string() },
    }
}
