//! What happens in every call: time passes, leases end, places ripen, slots are granted.
//!
//! A call is [`Line::arrive`], then its own event, then [`Line::settle`]. Between calls it holds that
//!
//! - nobody who has a place waits while a slot is free;
//! - in each key's queue the waiters who have a place are in front, and the line knows since when they have it;
//! - of each key, the calendar has the time at which the next one gets its place by itself, if that can be known;
//! - the first waiter for a slot, and the first for a place in each key, will ask in time or are listed as woken.

use std::time::Duration;

use super::places::Estimate;
use super::slots::{Slot, Start};
use super::waiters::{Stage, Waiter};
use super::{Entry, HANDOVER, Line, Refusal, Ticket, rate_limited};
use crate::Time;

impl Line {
    /// Time passes: who got a place by that alone has had it since the very moment, however late this call is.
    pub(super) fn arrive(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        while let Some(&(at, key)) = self.calendar.first() {
            if at > self.now {
                break;
            }
            self.ripen(key, at);
        }
        self.now
    }

    /// Ends what is over, then grants what can be granted, first come first served.
    pub(super) fn settle(&mut self) {
        if self.is_quiet(self.now) {
            return;
        }
        self.end_leases();
        self.end_deadlines();
        while self.slots.has_free() {
            let Some(ticket) = self.waiters.eligible.pop_first() else { break };
            self.grant(ticket);
        }
        self.keys.drop_idle(self.now, &self.rate);
        self.wake_changed();
    }

    /// Nobody waits, no lease is over at `now`, and no key is idle: what nearly every call finds. Then no time that passes
    /// and nothing that is given back means anything to anybody.
    #[inline]
    pub(super) fn is_quiet(&self, now: Time) -> bool {
        let is_quiet = self.waiters.all.is_empty()
            && self.changed.is_empty()
            && now < self.slots.soonest_bound()
            && !self.keys.is_any_idle(now, &self.rate);
        debug_assert!(!is_quiet || self.calendar.is_empty(), "the calendar is of those who wait");
        is_quiet
    }

    fn end_leases(&mut self) {
        let mut uncollected = std::mem::take(&mut self.uncollected);
        self.slots.reclaim(self.now, &mut uncollected);
        for (ticket, start) in uncollected.drain(..) {
            self.waiters.leaves_line(ticket, Stage::Out);
            self.unstamp(start);
        }
        self.uncollected = uncollected;
    }

    fn end_deadlines(&mut self) {
        while let Some(&(deadline, ticket)) = self.waiters.deadlines.first() {
            if deadline > self.now {
                break;
            }
            self.leave_queue(ticket);
            self.waiters.leaves_line(ticket, Stage::Out);
        }
    }

    fn grant(&mut self, ticket: u64) {
        let Some(&waiter) = self.waiters.all.get(&ticket) else { return };
        let Stage::Slot { limit } = waiter.stage else { return };
        // The first of all keys is the first of its own.
        let key = &mut self.keys[waiter.key];
        key.queue.pop_front();
        key.eligible -= 1;
        let start = self.stamp(waiter.key);
        let lease = self.grant_lapses(limit, waiter.deadline);
        let slot = self.slots.reserve(ticket, start, lease);
        self.waiters.leaves_line(ticket, Stage::Granted { slot });
        self.waiters.woken.insert(ticket);
        self.schedule(waiter.key);
    }

    /// When a grant made now to a waiter with these limits lapses, unless the waiter asks before.
    fn grant_lapses(&self, limit: Time, deadline: Time) -> Time {
        limit.max(self.now + HANDOVER).min(deadline)
    }

    /// Counts a start of the key now.
    pub(super) fn stamp(&mut self, key: u32) -> Start {
        if self.rate.is_unlimited() {
            // A key that is left over from a limit that there was goes with its last waiter.
            self.keys.drop_unused(key);
            return Start { key: None, at: self.now };
        }
        self.keys.stamp(key, self.now, &self.rate);
        Start { key: Some(key), at: self.now }
    }

    /// Takes a start back. If its key has been dropped since, the one in its stead has none of that time.
    pub(super) fn unstamp(&mut self, start: Start) {
        if let Some(key) = start.key {
            self.keys[key].places.unstamp(start.at);
            self.ripen(key, self.now);
        }
    }

    /// Lets the waiters of a key who have a place by now wait for a slot, since the moment in which they got it, but not
    /// since before `floor`.
    pub(super) fn ripen(&mut self, index: u32, floor: Time) {
        loop {
            let key = &mut self.keys[index];
            let Some(&ticket) = key.queue.get(key.eligible) else { break };
            let Some(at) = key.places.opens(key.eligible, &self.rate) else { break };
            if at > self.now {
                break;
            }
            key.eligible += 1;
            self.waiters.now_needs_slot(ticket, at.max(floor) + self.slot_wait);
            self.changed.push(ticket);
        }
        self.schedule(index);
    }

    /// Enters in the calendar when the next waiter of the key gets a place, and notes that it may have to know.
    pub(super) fn schedule(&mut self, index: u32) {
        let key = &mut self.keys[index];
        let next = key.queue.get(key.eligible).copied();
        let ripens = next.and_then(|_| key.places.opens(key.eligible, &self.rate));
        let entered = std::mem::replace(&mut key.ripens, ripens);
        if entered != ripens {
            if let Some(at) = entered {
                self.calendar.remove(&(at, index));
            }
            if let Some(at) = ripens {
                self.calendar.insert((at, index));
            }
        }
        self.changed.extend(next);
    }

    /// Takes a waiter out of its key's queue, so that those behind it move up.
    fn leave_queue(&mut self, ticket: u64) {
        let Some(index) = self.waiters.all.get(&ticket).map(|waiter| waiter.key) else { return };
        let key = &mut self.keys[index];
        if let Ok(position) = key.queue.binary_search(&ticket) {
            key.queue.remove(position);
            if position < key.eligible {
                key.eligible -= 1;
            }
            self.ripen(index, self.now);
            self.keys.drop_unused(index);
        }
    }

    /// Forgets a waiter, and gives back all that it has.
    pub(super) fn remove(&mut self, ticket: u64) {
        let Some(stage) = self.waiters.all.get(&ticket).map(|waiter| waiter.stage) else { return };
        match stage {
            Stage::Place | Stage::Slot { .. } => {
                self.leave_queue(ticket);
                self.waiters.leaves_line(ticket, Stage::Out);
            }
            Stage::Granted { slot } => {
                let start = self.slots.vacate(slot);
                self.unstamp(start);
            }
            Stage::Out => {}
        }
        self.waiters.remove(ticket);
    }

    /// Admits a waiter to which a slot was handed over, unless its deadline has come.
    pub(super) fn collect(&mut self, now: Time, ticket: u64) -> Option<Slot> {
        let waiter = self.waiters.all.get(&ticket)?;
        let Stage::Granted { slot } = waiter.stage else { return None };
        if now >= waiter.deadline {
            return None;
        }
        let slot = self.slots.collect(slot, waiter.deadline);
        self.waiters.remove(ticket);
        Some(slot)
    }

    /// Why a waiter that has just not been admitted can wait no longer.
    pub(super) fn refusal(&self, now: Time, ticket: u64) -> Option<Refusal> {
        let Some(waiter) = self.waiters.all.get(&ticket) else { return Some(Refusal::Deadline) };
        match waiter.stage {
            _ if now >= waiter.deadline => Some(Refusal::Deadline),
            Stage::Place => {
                let estimate = self.estimate(waiter.key, ticket).at;
                let is_too_late = estimate > waiter.place_limit || estimate >= waiter.deadline;
                is_too_late.then(|| rate_limited(now, estimate))
            }
            Stage::Slot { limit } => (now >= limit).then_some(Refusal::BulkheadFull),
            // It was granted a slot, and did not take it within its wait.
            Stage::Granted { .. } | Stage::Out => Some(Refusal::BulkheadFull),
        }
    }

    /// Tells a waiter when to ask again.
    pub(super) fn still_queued(&mut self, ticket: u64) -> Entry {
        self.slots.soonest();
        let asks_at = self.must_ask_at(ticket);
        if let Some(waiter) = self.waiters.all.get_mut(&ticket) {
            waiter.asks_at = asks_at;
        }
        self.waiters.woken.remove(&ticket);
        Entry::Queued(Ticket(ticket), asks_at)
    }

    /// The latest time at which a waiter in line must ask again; earlier if `soonest` of the slots is not exact.
    fn must_ask_at(&self, ticket: u64) -> Time {
        let Some(waiter) = self.waiters.all.get(&ticket) else { return self.now };
        let own = match waiter.stage {
            Stage::Place => self.place_asks_at(waiter, ticket),
            Stage::Slot { limit } => limit.min(self.lapse_before(ticket)),
            Stage::Granted { .. } | Stage::Out => self.now,
        };
        own.min(waiter.deadline).min(self.slots.soonest_bound())
    }

    /// When a waiter for a place must ask again: when it has its place, as far as can be told. While the one whose place
    /// it is to have is kept waiting by the slots, its own moves away as time passes; then it must ask when the estimate
    /// passes its limits, and is woken before if the other starts.
    fn place_asks_at(&self, waiter: &Waiter, ticket: u64) -> Time {
        let estimate = self.estimate(waiter.key, ticket);
        if !estimate.moves {
            return estimate.at;
        }
        let first_beyond = estimate.at.until(waiter.place_limit).saturating_add(Duration::from_nanos(1));
        self.now + first_beyond.min(estimate.at.until(waiter.deadline))
    }

    /// The earliest that a grant can lapse which the waiter before this one may yet get. Asking then, this one is in time
    /// to take the slot over, without having been told of the grant.
    fn lapse_before(&self, ticket: u64) -> Time {
        let before = self.waiters.eligible.range(..ticket).next_back();
        let waiter = before.and_then(|before| self.waiters.all.get(before));
        waiter.map_or(Time::MAX, |waiter| match waiter.stage {
            Stage::Slot { limit } => self.grant_lapses(limit, waiter.deadline),
            _ => Time::MAX,
        })
    }

    pub(super) fn estimate(&self, key: u32, ticket: u64) -> Estimate {
        let key = &self.keys[key];
        let rank = key.queue.binary_search(&ticket).unwrap_or(0);
        key.places.estimate(self.now, rank, &self.rate)
    }

    /// Lists those who must ask earlier than they said they would.
    fn wake_changed(&mut self) {
        self.changed.extend(self.waiters.eligible.first());
        let mut changed = std::mem::take(&mut self.changed);
        for ticket in changed.drain(..) {
            let Some(asks_at) = self.waiters.all.get(&ticket).map(|waiter| waiter.asks_at) else { continue };
            // Only if the cheap answer says so is the exact one worth looking for.
            if self.must_ask_at(ticket) < asks_at {
                self.slots.soonest();
                if self.must_ask_at(ticket) < asks_at {
                    self.waiters.woken.insert(ticket);
                }
            }
        }
        self.changed = changed;
    }
}
