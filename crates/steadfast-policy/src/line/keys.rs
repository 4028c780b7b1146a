//! The keys of the rate limit, bounded in number.
//!
//! A key is kept while it has waiters, and for one window after its last start; then it is as good as new, and dropped.
//! The keys with starts form a list in the order of their last start, so that the one to drop is at its head and neither
//! a start nor a drop searches. A key that the list would drop but that has waiters leaves the list; it is dropped with its
//! last waiter, or comes back with its next start.
//!
//! The key `""` is the one key of a client. It is always there, in front, is never hashed, and is not counted.

use std::collections::{HashMap, VecDeque};

use super::places::{Places, Rate};
use crate::Time;

/// The index of the key `""`.
pub(super) const UNNAMED: u32 = 0;
const NONE: u32 = u32::MAX;

/// How many keys are looked at to tell a refused caller when the next one goes.
const LOOK_AHEAD: usize = 8;

#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Key {
    pub(super) places: Places,
    name: Box<str>,
    /// The tickets of its waiters, in order.
    pub(super) queue: VecDeque<u64>,
    /// So many of them, from the front, have a place; they wait for a slot only.
    pub(super) eligible: usize,
    /// When the next of them gets a place by itself, as entered in the line's calendar.
    pub(super) ripens: Option<Time>,
    last_start: Time,
    is_listed: bool,
    older: u32,
    newer: u32,
}

// In this order in memory: the key of a client that has only one lies beside what every admission writes.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Keys {
    unnamed: Key,
    by_name: HashMap<Box<str>, u32>,
    /// The others, from index 1 on.
    keys: Vec<Key>,
    vacant: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl std::ops::Index<u32> for Keys {
    type Output = Key;

    #[inline]
    fn index(&self, index: u32) -> &Key {
        if index == UNNAMED { &self.unnamed } else { &self.keys[index as usize - 1] }
    }
}

impl std::ops::IndexMut<u32> for Keys {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Key {
        if index == UNNAMED { &mut self.unnamed } else { &mut self.keys[index as usize - 1] }
    }
}

impl Keys {
    pub(super) fn new() -> Self {
        let unnamed = Key::default();
        Self { unnamed, by_name: HashMap::new(), keys: Vec::new(), vacant: Vec::new(), oldest: NONE, newest: NONE }
    }

    /// How many there are beside `""`.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Every index that there is, vacant ones included.
    pub(super) fn indices(&self) -> std::ops::Range<u32> {
        0..self.keys.len() as u32 + 1
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        if name.is_empty() { Some(UNNAMED) } else { self.by_name.get(name).copied() }
    }

    /// Adds a key that is not there. It is dropped by [`drop_unused`](Self::drop_unused) if it gets neither start nor waiter.
    pub(super) fn add(&mut self, name: &str) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.keys.push(Key::default());
            self.keys.len() as u32
        });
        self[index].name = name.into();
        self.by_name.insert(name.into(), index);
        index
    }

    /// Records a start.
    pub(super) fn stamp(&mut self, index: u32, now: Time, rate: &Rate) {
        self[index].places.stamp(now, rate);
        if index != UNNAMED {
            self.unlist(index);
            self[index].last_start = now;
            self.list_as_newest(index);
        }
    }

    /// Records a start of `""` in whose line nobody waits, if it has a place.
    #[inline]
    pub(super) fn stamp_unnamed(&mut self, now: Time, rate: &Rate) -> bool {
        let places = &mut self.unnamed.places;
        let has_place = places.opens(0, rate).is_some_and(|at| at <= now);
        if has_place {
            places.stamp(now, rate);
        }
        has_place
    }

    /// Whether [`drop_idle`](Self::drop_idle) would drop any.
    #[inline]
    pub(super) fn is_any_idle(&self, now: Time, rate: &Rate) -> bool {
        self.oldest != NONE && self[self.oldest].last_start + rate.window <= now
    }

    /// Drops every key that nothing has started in for a window and nobody waits in.
    pub(super) fn drop_idle(&mut self, now: Time, rate: &Rate) {
        while self.is_any_idle(now, rate) {
            let index = self.oldest;
            self.unlist(index);
            self.drop_unused(index);
        }
    }

    /// Drops the key if it has no waiters and no start that still counts.
    pub(super) fn drop_unused(&mut self, index: u32) {
        let key = &mut self[index];
        if index == UNNAMED || key.is_listed || !key.queue.is_empty() {
            return;
        }
        let name = std::mem::take(&mut key.name);
        *key = Key::default();
        self.by_name.remove(&name);
        self.vacant.push(index);
    }

    /// When there is room for another key, if nobody else comes.
    ///
    /// A key with waiters stays for an unknown time; one without is gone a window from now at the latest, so if there is
    /// none among the oldest few, a window is the answer.
    pub(super) fn room_at(&self, now: Time, rate: &Rate) -> Time {
        let mut index = self.oldest;
        for _ in 0..LOOK_AHEAD {
            if index == NONE {
                break;
            }
            if self[index].queue.is_empty() {
                return self[index].last_start + rate.window;
            }
            index = self[index].newer;
        }
        now + rate.window
    }

    /// Whether no start of any key counts any more. The keys without waiters are listed by their last start.
    pub(super) fn are_at_rest(&self, now: Time, rate: &Rate) -> bool {
        let is_over = |start: Time| start + rate.window <= now;
        let newest = self.newest == NONE || is_over(self[self.newest].last_start);
        newest && self[UNNAMED].places.last().is_none_or(is_over)
    }

    fn unlist(&mut self, index: u32) {
        if !self[index].is_listed {
            return;
        }
        let (older, newer) = (self[index].older, self[index].newer);
        match older {
            NONE => self.oldest = newer,
            _ => self[older].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self[newer].older = older,
        }
        self[index].is_listed = false;
    }

    fn list_as_newest(&mut self, index: u32) {
        let newest = self.newest;
        let key = &mut self[index];
        key.is_listed = true;
        (key.older, key.newer) = (newest, NONE);
        match newest {
            NONE => self.oldest = index,
            _ => self[newest].newer = index,
        }
        self.newest = index;
    }
}
