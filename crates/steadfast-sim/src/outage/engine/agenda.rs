//! What is going to happen, in order: by instant, and then by when it was put down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use steadfast::policy::Time;

/// One thing to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A worker is done, if it still is at the piece of work that had this turn.
    Done { replica: usize, turn: u64 },
    /// A trigger's nth time begins or ends for a replica.
    Edge { trigger: usize, replica: usize, n: u32, begins: bool },
    /// A replica's cache is warm.
    Warm { replica: usize },
}

#[derive(Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Reverse<(Time, u64, What)>>,
    turn: u64,
}

impl Agenda {
    /// Puts it down for `at`, and returns its turn, which no other has. `what` is told its turn.
    pub(super) fn put(&mut self, at: Time, what: impl FnOnce(u64) -> What) -> u64 {
        self.turn += 1;
        self.entries.push(Reverse((at, self.turn, what(self.turn))));
        self.turn
    }

    /// A turn that nothing on the agenda has.
    pub(super) fn skip(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.entries.peek().map(|Reverse((at, _, _))| *at)
    }

    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Time, What)> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        self.entries.pop().map(|Reverse((at, _, what))| (at, what))
    }
}
