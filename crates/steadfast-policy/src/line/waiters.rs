//! Who waits, and for what.

use std::collections::{BTreeMap, BTreeSet};

use crate::Time;

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A place, until its `place_limit`.
    Place,
    /// A slot, until the given limit; there has been a place for it since.
    Slot { limit: Time },
    /// Nothing: the slot is reserved for it, and its start is stamped.
    Granted { slot: u32 },
    /// It is no longer in the line, and has not been told yet.
    Out,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) key: u32,
    pub(super) deadline: Time,
    pub(super) place_limit: Time,
    pub(super) stage: Stage,
    /// When it said it would ask again at the latest.
    pub(super) asks_at: Time,
}

/// Tickets are given out in order, so the order of tickets is the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    next: u64,
    pub(super) all: BTreeMap<u64, Waiter>,
    /// Those in [`Stage::Slot`].
    pub(super) eligible: BTreeSet<u64>,
    /// The deadlines of those in line.
    pub(super) deadlines: BTreeSet<(Time, u64)>,
    /// Those who should ask again now.
    pub(super) woken: BTreeSet<u64>,
}

impl Waiters {
    pub(super) fn add(&mut self, waiter: Waiter) -> u64 {
        let ticket = self.next;
        self.next += 1;
        self.deadlines.insert((waiter.deadline, ticket));
        if matches!(waiter.stage, Stage::Slot { .. }) {
            self.eligible.insert(ticket);
        }
        self.all.insert(ticket, waiter);
        ticket
    }

    pub(super) fn remove(&mut self, ticket: u64) -> Option<Waiter> {
        self.woken.remove(&ticket);
        self.all.remove(&ticket)
    }

    /// There is a place for it from now on.
    pub(super) fn now_needs_slot(&mut self, ticket: u64, limit: Time) {
        if let Some(waiter) = self.all.get_mut(&ticket) {
            waiter.stage = Stage::Slot { limit };
            self.eligible.insert(ticket);
        }
    }

    /// The rate limit has become stricter, and there is no place for it yet.
    pub(super) fn needs_place_again(&mut self, ticket: u64) {
        if let Some(waiter) = self.all.get_mut(&ticket) {
            waiter.stage = Stage::Place;
            self.eligible.remove(&ticket);
        }
    }

    /// It is in the line no more.
    pub(super) fn leaves_line(&mut self, ticket: u64, stage: Stage) {
        if let Some(waiter) = self.all.get_mut(&ticket) {
            waiter.stage = stage;
            self.eligible.remove(&ticket);
            self.deadlines.remove(&(waiter.deadline, ticket));
        }
    }

    /// How many are in line at `now`.
    pub(super) fn in_line(&self, now: Time) -> u32 {
        let waiting = self.deadlines.range((now, u64::MAX)..).count();
        u32::try_from(waiting).unwrap_or(u32::MAX)
    }
}
