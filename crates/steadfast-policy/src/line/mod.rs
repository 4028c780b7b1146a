//! When an attempt may start: the bulkhead's slot and the rate limit's place, one line for both.
//!
//! An attempt needs a **slot** (so many may be in flight) and, where a rate limit is set, a **place** of its key (so many
//! may start in a window). Two queues one after the other would waste one while waiting for the other: a waiter that
//! holds a slot blocks a key that has places, and one that holds a place spends a start that never happens. So there is
//! one line, and who waits in it holds nothing.
//!
//! # Rules
//!
//! - Within a key nobody overtakes. A waiter has a place once more places are free in the window that ends now than
//!   waiters are before it. Among the waiters that have one, of all keys, slots go to the first come; a key without
//!   places holds up no other.
//! - Slot and place are given at the same moment, to the waiter itself: who comes later cannot snatch them before the
//!   waiter has woken up. The start is stamped then.
//! - `slot_wait` counts only the time in which nothing but the slot was missing. The time for the place is limited by
//!   `wait`, and by the deadline.
//! - A wait that cannot be held is refused at once, with the time after which it would be worth while.
//! - Whoever leaves, however late, gives back what it had: position, slot, place.
//!
//! # Leases
//!
//! A future that is never polled again must not hold a slot for ever. An admitted attempt has its slot until the deadline
//! that it entered with; a waiter to which one was handed over has it until its own limit (but for [`HANDOVER`] at least),
//! and until its deadline once it has asked. A slot whose lease is over goes to the next, at the next call of anybody.
//! An attempt that nobody can stop moves the end of its lease: [`Line::lease_until`].
//!
//! # Who has to call when
//!
//! The line has no timer. [`Entry::Queued`] says when the waiter is to ask again at the latest; after every call
//! [`Line::next_wake`] names those who should ask now, because they were granted or their time has moved forward. Where
//! many move up, only the one next to get a place is told; those behind it hear when their turn comes, so a leaver wakes
//! one, not a thousand. If all ask when they are told, each is granted at the first possible instant. One that waits and is
//! never polled again can make those behind it as late as they were told before, but no later.
//!
//! Limits of a wait are judged when the waiter asks, and after what can be granted has been: what is there when it asks
//! it gets, up to its deadline.
//!
//! # Costs
//!
//! Admission without waiting is O(1), and allocates nothing once slots and windows have grown; waiting is logarithmic in
//! the number of waiters, or linear in that of slots. Memory is bounded by waiters, slots, and `max_keys` windows.
//!
//! # Example
//!
//! ```
//! use steadfast_policy::Time;
//! use steadfast_policy::line::{Entry, Line, LineConfig};
//!
//! let mut line = Line::new(LineConfig { slots: 1, ..LineConfig::default() });
//! let deadline = Time::from_secs(30);
//! let Entry::Admitted(slot) = line.enter(Time::ZERO, "", deadline) else { unreachable!("it is empty") };
//!
//! let Entry::Queued(ticket, ask_at) = line.enter(Time::ZERO, "", deadline) else { unreachable!("it is full") };
//! assert_eq!(ask_at, Time::from_millis(500));
//!
//! // The slot is handed over at once; the waiter is named, and comes for it.
//! line.release(Time::from_millis(20), slot);
//! assert_eq!(line.next_wake(), Some(ticket));
//! assert!(matches!(line.poll(Time::from_millis(21), ticket), Entry::Admitted(_)));
//! ```

mod config;
mod keys;
mod lease;
mod places;
mod reconfigure;
mod settle;
mod slots;
mod waiters;

use std::collections::BTreeSet;
use std::time::Duration;

pub use self::config::{LineConfig, MAX_WINDOW_LIMIT, RateConfig, RateStyle};
use self::keys::{Keys, UNNAMED};
use self::places::Rate;
pub use self::slots::Slot;
use self::slots::{Slots, Start};
use self::waiters::{Stage, Waiter, Waiters};
use crate::Time;

/// For so long at least a slot that was handed over is kept for the waiter, even if its limit comes sooner: time enough
/// to wake up in. Its deadline is not stretched.
pub const HANDOVER: Duration = Duration::from_millis(10);

/// A position in the line. Given up with [`Line::leave`], unless [`Line::poll`] ended it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What a waiter waits for at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Missing {
    /// A place of its key; it may have to wait for a slot after that.
    Place,
    /// The same, and time alone does not bring it: somebody before it in its key could start, and waits for a slot.
    Turn,
    /// Nothing but a slot.
    Slot,
}

/// The answer to an attempt that wants to start.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an admission that is not released holds a slot until the deadline"]
pub enum Entry {
    /// It may start now; the start has been counted.
    Admitted(Slot),
    /// It waits. It is to ask again at the given instant at the latest, or when [`Line::next_wake`] names it.
    Queued(Ticket, Time),
    /// It may not start, and waits no longer.
    Refused(Refusal),
}

/// Why an attempt may not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No slot came free within `slot_wait`.
    BulkheadFull,
    /// The rate limit has no place within `wait` or before the deadline.
    RateLimited {
        /// When there will be a place, if those before take theirs. Never zero.
        retry_after: Duration,
    },
    /// The deadline has been reached.
    Deadline,
}

/// What the line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSnapshot {
    /// Slots that are taken, by attempts or by waiters to which they were just handed over.
    pub in_use: u32,
    /// Slots that there are; `u32::MAX` where there is no limit. Fewer than are in use after a change of the settings.
    pub slots: u32,
    /// Waiters that have not been granted a slot.
    pub queued: u32,
    /// Keys that are kept, beside `""`.
    pub keys: usize,
}

/// The bulkhead and the rate limit of one upstream.
// In this order in memory: first what every admission writes.
#[derive(Debug)]
#[repr(C)]
pub struct Line {
    /// The latest time that any call has brought.
    now: Time,
    slots: Slots,
    keys: Keys,
    rate: Rate,
    waiters: Waiters,
    slot_wait: Duration,
    /// When the next waiter of which key gets a place by itself.
    calendar: BTreeSet<(Time, u32)>,
    /// Waiters whose time to ask may have moved forward during the present call.
    changed: Vec<u64>,
    /// Scratch for the slots reclaimed during the present call.
    uncollected: Vec<(u64, Start)>,
}

impl Line {
    /// A line in which nobody waits and nothing has started.
    pub fn new(config: LineConfig) -> Self {
        Self {
            now: Time::ZERO,
            slots: Slots::new(config.slots),
            keys: Keys::new(),
            rate: Rate::new(config.rate),
            waiters: Waiters::default(),
            slot_wait: config.slot_wait,
            calendar: BTreeSet::new(),
            changed: Vec::new(),
            uncollected: Vec::new(),
        }
    }

    /// An attempt of `key` wants to start, and would have to be over at `deadline`.
    ///
    /// Without a rate limit `key` says nothing. `""` is the key of whoever has only one.
    #[inline]
    pub fn enter(&mut self, now: Time, key: &str, deadline: Time) -> Entry {
        match self.enter_at_once(self.now.max(now), key, deadline) {
            Some(slot) => Entry::Admitted(slot),
            None => self.enter_in_full(now, key, deadline),
        }
    }

    /// What nearly every call finds, done as the long way would do it: nobody waits, nothing is over, a slot is free, and
    /// a place if one is needed.
    #[inline]
    fn enter_at_once(&mut self, now: Time, key: &str, deadline: Time) -> Option<Slot> {
        if !self.is_quiet(now) || !self.slots.has_free() || now >= deadline {
            return None;
        }
        let key = if self.rate.is_unlimited() {
            None
        } else if key.is_empty() && self.keys.stamp_unnamed(now, &self.rate) {
            Some(UNNAMED)
        } else {
            return None;
        };
        self.now = now;
        Some(self.slots.take(Start { key, at: now }, deadline))
    }

    fn enter_in_full(&mut self, now: Time, key: &str, deadline: Time) -> Entry {
        let now = self.arrive(now);
        self.settle();
        if now >= deadline {
            return Entry::Refused(Refusal::Deadline);
        }
        let key = match self.key_index(key) {
            Ok(index) => index,
            Err(refusal) => return Entry::Refused(refusal),
        };
        let entry = self.enter_key(now, key, deadline);
        self.keys.drop_unused(key);
        entry
    }

    fn key_index(&mut self, key: &str) -> Result<u32, Refusal> {
        if self.rate.is_unlimited() {
            return Ok(UNNAMED);
        }
        if let Some(index) = self.keys.find(key) {
            return Ok(index);
        }
        if self.keys.len() < self.rate.max_keys {
            return Ok(self.keys.add(key));
        }
        let room_at = self.keys.room_at(self.now, &self.rate);
        Err(rate_limited(self.now, room_at))
    }

    fn enter_key(&mut self, now: Time, index: u32, deadline: Time) -> Entry {
        let key = &self.keys[index];
        let rank = key.queue.len();
        let place_limit = self.rate.wait.map_or(Time::MAX, |wait| now + wait);
        let has_place = key.places.opens(rank, &self.rate).is_some_and(|at| at <= now);
        let stage = if has_place {
            // After `settle` a free slot means that nobody waits for one.
            if self.slots.has_free() {
                let start = self.stamp(index);
                return Entry::Admitted(self.slots.take(start, deadline));
            }
            if self.slot_wait.is_zero() {
                return Entry::Refused(Refusal::BulkheadFull);
            }
            Stage::Slot { limit: now + self.slot_wait }
        } else {
            let estimate = key.places.estimate(now, rank, &self.rate).at;
            if estimate > place_limit || estimate >= deadline {
                return Entry::Refused(rate_limited(now, estimate));
            }
            Stage::Place
        };
        let ticket = self.waiters.add(Waiter { key: index, deadline, place_limit, stage, asks_at: Time::MAX });
        let key = &mut self.keys[index];
        key.queue.push_back(ticket);
        key.eligible += usize::from(has_place);
        self.schedule(index);
        // One more behind them brings nobody forward.
        self.changed.clear();
        self.still_queued(ticket)
    }

    /// A waiter asks whether it may start. Anything but [`Entry::Queued`] ends its ticket; one that has ended, or is not
    /// of this line, is answered with [`Refusal::Deadline`].
    ///
    /// A grant counts even if the waiter's limit has passed since, unless it was passed on.
    pub fn poll(&mut self, now: Time, ticket: Ticket) -> Entry {
        let now = self.arrive(now);
        let Ticket(id) = ticket;
        // What was handed over is taken before leases are looked at: a grant beats an expired wait.
        if let Some(slot) = self.collect(now, id) {
            self.settle();
            return Entry::Admitted(slot);
        }
        self.settle();
        if let Some(slot) = self.collect(now, id) {
            return Entry::Admitted(slot);
        }
        match self.refusal(now, id) {
            Some(refusal) => {
                self.remove(id);
                self.settle();
                Entry::Refused(refusal)
            }
            None => self.still_queued(id),
        }
    }

    /// What a waiter waits for, as of the last call.
    pub fn missing(&self, ticket: Ticket) -> Missing {
        match self.waiters.all.get(&ticket.0) {
            Some(&Waiter { stage: Stage::Place, key, .. }) if self.estimate(key, ticket.0).moves => Missing::Turn,
            Some(Waiter { stage: Stage::Place, .. }) => Missing::Place,
            _ => Missing::Slot,
        }
    }

    /// A waiter goes: its position, and slot and place if they had been handed over, pass to the next.
    pub fn leave(&mut self, now: Time, ticket: Ticket) {
        self.arrive(now);
        self.remove(ticket.0);
        self.settle();
    }

    /// An attempt is over. `false` if its lease had ended before and the slot was reclaimed; then nothing happens.
    #[inline]
    pub fn release(&mut self, now: Time, slot: Slot) -> bool {
        if self.is_quiet(self.now.max(now)) {
            self.now = self.now.max(now);
            return self.slots.release(slot).is_some();
        }
        self.release_in_full(now, slot)
    }

    fn release_in_full(&mut self, now: Time, slot: Slot) -> bool {
        self.arrive(now);
        let was_held = self.slots.release(slot).is_some();
        self.settle();
        was_held
    }

    /// An admitted attempt was never sent: its slot comes free, and its start is taken back as if it had never been,
    /// whatever has started since.
    pub fn undo_start(&mut self, now: Time, slot: Slot) {
        self.arrive(now);
        if let Some(start) = self.slots.release(slot) {
            self.unstamp(start);
        }
        self.settle();
    }

    /// The next waiter that should ask now. To be drained after every other call.
    pub fn next_wake(&mut self) -> Option<Ticket> {
        self.waiters.woken.pop_first().map(Ticket)
    }

    /// Whether [`next_wake`](Self::next_wake) would name one.
    #[inline]
    pub fn has_wake(&self) -> bool {
        !self.waiters.woken.is_empty()
    }

    /// Whether nothing would be forgotten with this line: nobody waits, no slot is taken, and no start counts in any
    /// window. Changes nothing.
    pub fn is_at_rest(&self, now: Time) -> bool {
        let now = now.max(self.now);
        self.waiters.all.is_empty() && self.slots.in_use(now) == 0 && self.keys.are_at_rest(now, &self.rate)
    }

    /// The time that the line goes by: `now`, or a later one that any call has brought.
    pub fn time(&self, now: Time) -> Time {
        self.now.max(now)
    }

    /// What the line looks like at `now`. Changes nothing: a lease that is over is not counted, though nobody has been
    /// given its slot yet.
    pub fn snapshot(&self, now: Time) -> LineSnapshot {
        let now = now.max(self.now);
        LineSnapshot {
            in_use: self.slots.in_use(now),
            slots: self.slots.limit(),
            queued: self.waiters.in_line(now),
            keys: self.keys.len(),
        }
    }
}

fn rate_limited(now: Time, at: Time) -> Refusal {
    Refusal::RateLimited { retry_after: now.until(at).max(Duration::from_nanos(1)) }
}
