//! The bulkhead's slots: a slab of leases.
//!
//! A slot that is taken has an end, so that nothing that is never polled again can hold one for ever. Each slot counts
//! how often it was freed; a token of an earlier holding is recognised by that and ignored.

use crate::Time;

/// The right to have one attempt in flight. Give it back with [`Line::release`](super::Line::release); until then it
/// counts, at the longest to the deadline that the attempt entered with.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a slot that is not released is lost until the deadline"]
pub struct Slot {
    index: u32,
    generation: u64,
}

/// The start that a slot was taken for: what has to be taken back if nothing was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// None where nothing limited it, and nothing was counted.
    pub(super) key: Option<u32>,
    pub(super) at: Time,
}

/// No slot, or no key.
const NONE: u32 = u32::MAX;
/// In place of a link: taken by an attempt.
const ATTEMPT: u32 = NONE - 1;
/// In place of a link: handed over to a waiter that has not asked since.
const WAITER: u32 = NONE - 2;

/// One slot. Two of them fill a line of the processor's cache: where threads share the line, few slots are in use at once,
/// and each is handed from one to the other.
#[derive(Debug)]
#[repr(align(32))]
struct Lease {
    /// Counts how often it was taken and freed: odd while it is taken.
    generation: u64,
    ends: Time,
    /// The start that it was taken for; its key, or [`NONE`].
    at: Time,
    key: u32,
    /// While it is free: the one that was freed before it. While it is taken: by whom.
    link: u32,
}

impl Lease {
    #[inline]
    fn is_taken(&self) -> bool {
        self.generation % 2 == 1
    }
}

// In this order in memory: first what every admission writes.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Slots {
    /// No lease ends earlier. Exact unless one that ended then has been given back since.
    soonest: Time,
    taken: u32,
    /// The free slots are a list through the leases, so that an admission touches no memory but its own lease's.
    last_freed: u32,
    limit: u32,
    is_exact: bool,
    leases: Vec<Lease>,
    /// The waiters to whom slots were handed over.
    handed_over: Vec<(u32, u64)>,
}

impl Slots {
    pub(super) fn new(limit: u32) -> Self {
        Self {
            soonest: Time::MAX,
            taken: 0,
            last_freed: NONE,
            limit,
            is_exact: true,
            leases: Vec::new(),
            handed_over: Vec::new(),
        }
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// A smaller limit takes no slot away; none is given until enough have been given back.
    pub(super) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    #[inline]
    pub(super) fn has_free(&self) -> bool {
        self.taken < self.limit
    }

    /// Takes a slot for an attempt. There must be a free one.
    #[inline]
    pub(super) fn take(&mut self, start: Start, ends: Time) -> Slot {
        let index = self.occupy(start, ends, ATTEMPT);
        self.token(index)
    }

    /// Takes a slot for a waiter, who is to [`collect`](Self::collect) it. There must be a free one.
    pub(super) fn reserve(&mut self, ticket: u64, start: Start, ends: Time) -> u32 {
        let index = self.occupy(start, ends, WAITER);
        self.handed_over.push((index, ticket));
        index
    }

    #[inline]
    fn occupy(&mut self, start: Start, ends: Time, by: u32) -> u32 {
        debug_assert!(self.has_free(), "the caller has looked");
        let index = if self.last_freed == NONE { self.add_free() } else { self.last_freed };
        let lease = &mut self.leases[index as usize];
        self.last_freed = std::mem::replace(&mut lease.link, by);
        lease.generation += 1;
        lease.ends = ends;
        lease.at = start.at;
        lease.key = start.key.unwrap_or(NONE);
        self.soonest = self.soonest.min(ends);
        self.taken += 1;
        index
    }

    /// One more slot than there ever were at once.
    #[cold]
    fn add_free(&mut self) -> u32 {
        let index = self.leases.len() as u32;
        self.leases.push(Lease { generation: 0, ends: Time::ZERO, at: Time::ZERO, key: NONE, link: NONE });
        index
    }

    /// The waiter takes over what was reserved for it.
    pub(super) fn collect(&mut self, index: u32, ends: Time) -> Slot {
        self.handed_over.retain(|(slot, _)| *slot != index);
        let lease = &mut self.leases[index as usize];
        self.is_exact &= lease.ends > self.soonest;
        lease.link = ATTEMPT;
        lease.ends = ends;
        self.token(index)
    }

    /// Moves the end of an attempt's lease; false if this holding of it is over.
    pub(super) fn lease_until(&mut self, slot: &Slot, ends: Time) -> bool {
        let Some(lease) = self.leases.get_mut(slot.index as usize) else { return false };
        if lease.generation != slot.generation || lease.link != ATTEMPT {
            return false;
        }
        self.is_exact &= lease.ends > self.soonest;
        lease.ends = ends;
        self.soonest = self.soonest.min(ends);
        true
    }

    /// Frees the slot; `None` if this holding of it is over.
    #[inline]
    pub(super) fn release(&mut self, slot: Slot) -> Option<Start> {
        let lease = self.leases.get(slot.index as usize)?;
        (lease.generation == slot.generation).then(|| self.vacate(slot.index))
    }

    /// Frees a slot that is taken, by whomever.
    #[inline]
    pub(super) fn vacate(&mut self, index: u32) -> Start {
        let lease = &mut self.leases[index as usize];
        self.is_exact &= lease.ends > self.soonest;
        lease.generation += 1;
        let by = std::mem::replace(&mut lease.link, self.last_freed);
        self.last_freed = index;
        self.taken -= 1;
        let start = Start { key: (lease.key != NONE).then_some(lease.key), at: lease.at };
        if by == WAITER {
            self.handed_over.retain(|(slot, _)| *slot != index);
        }
        start
    }

    /// Frees every slot whose lease is over, and lists the waiters who had not collected theirs.
    pub(super) fn reclaim(&mut self, now: Time, uncollected: &mut Vec<(u64, Start)>) {
        if now < self.soonest {
            return;
        }
        for index in 0..self.leases.len() as u32 {
            let lease = &self.leases[index as usize];
            if !lease.is_taken() || now < lease.ends {
                continue;
            }
            let waiter = self.handed_over.iter().find(|(slot, _)| *slot == index).copied();
            let start = self.vacate(index);
            uncollected.extend(waiter.map(|(_, ticket)| (ticket, start)));
        }
        self.is_exact = false;
        self.soonest();
    }

    /// No start is counted any more, so none can be taken back.
    pub(super) fn forget_starts(&mut self) {
        for lease in &mut self.leases {
            lease.key = NONE;
        }
    }

    /// When the first lease ends.
    pub(super) fn soonest(&mut self) -> Time {
        if !self.is_exact {
            let taken = self.leases.iter().filter(|lease| lease.is_taken());
            self.soonest = taken.map(|lease| lease.ends).min().unwrap_or(Time::MAX);
            self.is_exact = true;
        }
        self.soonest
    }

    /// The same or earlier, without looking.
    #[inline]
    pub(super) fn soonest_bound(&self) -> Time {
        self.soonest
    }

    /// How many are taken by leases that are not over.
    pub(super) fn in_use(&self, now: Time) -> u32 {
        let taken = self.leases.iter().filter(|lease| lease.is_taken() && now < lease.ends);
        taken.count() as u32
    }

    #[inline]
    fn token(&self, index: u32) -> Slot {
        Slot { index, generation: self.leases[index as usize].generation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_soonest_lease_is_looked_for_again() {
        let start = Start { key: None, at: Time::ZERO };
        let mut slots = Slots::new(3);
        let soon = slots.reserve(7, start, Time::from_secs(1));
        let later = slots.reserve(8, start, Time::from_secs(2));
        let last = slots.take(start, Time::from_secs(3));
        assert!(slots.release(last).is_some());
        let _held = slots.collect(later, Time::from_secs(4));
        assert!(slots.is_exact, "none of these was the soonest");
        let _held = slots.collect(soon, Time::from_secs(5));
        assert!(!slots.is_exact);
        assert_eq!(slots.soonest_bound(), Time::from_secs(1));
        assert_eq!(slots.soonest(), Time::from_secs(4));
    }
}
