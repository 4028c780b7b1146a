//! What a circuit breaker did, and when: collected as it happens, read by the view.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

/// One change of a breaker's state.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Since the run began.
    pub(crate) at: Duration,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) why: &'static str,
    /// Where it opened from closed: the count that opened it.
    pub(crate) opened_with: Option<OpenedWith>,
}

/// What a breaker had counted when it opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OpenedWith {
    /// Failures in a row.
    pub(crate) streak: u32,
    /// Attempts in its window.
    pub(crate) calls: u64,
    /// Failures among them.
    pub(crate) failures: u64,
}

/// The changes so far, in order.
#[derive(Debug, Default)]
pub(crate) struct Transitions(Mutex<Vec<Change>>);

impl Transitions {
    /// One more.
    pub(crate) fn push(&self, change: Change) {
        self.lock().push(change);
    }

    /// Adds to the latest opening what the breaker had counted: its event does not say.
    pub(crate) fn count_opening(&self, counted: OpenedWith) {
        if let Some(change) = self.lock().iter_mut().rev().find(|change| change.from == "closed") {
            change.opened_with.get_or_insert(counted);
        }
    }

    /// All of them so far.
    pub(crate) fn all(&self) -> Vec<Change> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Change>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What several breakers did that has not been told yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct News {
    told: Vec<usize>,
}

impl News {
    /// What is new, with the index of its breaker.
    pub(crate) fn read(&mut self, breakers: impl Iterator<Item = Vec<Change>>) -> Vec<(usize, Change)> {
        let mut news = Vec::new();
        for (index, changes) in breakers.enumerate() {
            if self.told.len() <= index {
                self.told.push(0);
            }
            let known = std::mem::replace(&mut self.told[index], changes.len());
            news.extend(changes.into_iter().skip(known).map(|change| (index, change)));
        }
        news.sort_by_key(|(_, change)| change.at);
        news
    }
}
