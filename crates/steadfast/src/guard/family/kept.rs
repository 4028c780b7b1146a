//! The guards that are kept, in the order in which they were last asked for: a list through a slab, so that neither
//! finding one nor forgetting one searches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use steadfast_policy::Time;

use crate::guard::Guard;

const NONE: usize = usize::MAX;

#[derive(Default)]
pub(super) struct Kept {
    by_key: HashMap<Arc<str>, usize>,
    /// `None` where a place is vacant.
    entries: Vec<Option<Entry>>,
    vacant: Vec<usize>,
    ends: Option<Ends>,
}

/// The two ends of the list, if there is anything in it.
#[derive(Clone, Copy)]
struct Ends {
    oldest: usize,
    newest: usize,
}

struct Entry {
    key: Arc<str>,
    guard: Guard,
    /// When it was last asked for, by its own clock.
    asked_at: Time,
    older: usize,
    newer: usize,
}

impl Kept {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The guard of this key, which has been asked for just now.
    pub(super) fn find(&mut self, key: &str) -> Option<Guard> {
        let index = *self.by_key.get(key)?;
        let guard = {
            let entry = self.entries.get_mut(index)?.as_mut()?;
            entry.asked_at = entry.guard.0.upstream.clock.now();
            entry.guard.clone()
        };
        self.bring_to_front(index);
        Some(guard)
    }

    /// Adds a key that is not there.
    pub(super) fn add(&mut self, key: &str, guard: Guard) {
        let key: Arc<str> = Arc::from(key);
        let asked_at = guard.0.upstream.clock.now();
        let entry = Some(Entry { key: Arc::clone(&key), guard, asked_at, older: NONE, newer: NONE });
        let index = self.vacant.pop().unwrap_or(self.entries.len());
        match self.entries.get_mut(index) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        self.by_key.insert(key, index);
        self.link(index);
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Guard> {
        let index = self.by_key.remove(key)?;
        self.unlink(index);
        self.vacant.push(index);
        self.entries.get_mut(index)?.take().map(|entry| entry.guard)
    }

    /// Removes the first, from the one not asked for the longest, that may go, of so many. `may_go` is told for how long
    /// nobody has asked. One that has to stay is not looked at again before all others.
    pub(super) fn forget(&mut self, looks: usize, may_go: impl Fn(&Guard, Duration) -> bool) -> Option<Guard> {
        for _ in 0..looks.min(self.len()) {
            let index = self.ends?.oldest;
            let entry = self.entries.get(index)?.as_ref()?;
            let idle = entry.guard.0.upstream.clock.now().since(entry.asked_at);
            if may_go(&entry.guard, idle) {
                let key = Arc::clone(&entry.key);
                return self.remove(&key);
            }
            self.bring_to_front(index);
        }
        None
    }

    /// All of them, the one last asked for first.
    pub(super) fn guards(&self) -> Vec<Guard> {
        let mut guards = Vec::with_capacity(self.len());
        let mut index = self.ends.map_or(NONE, |ends| ends.newest);
        while let Some(Some(entry)) = self.entries.get(index) {
            guards.push(entry.guard.clone());
            index = entry.older;
        }
        guards
    }

    fn bring_to_front(&mut self, index: usize) {
        if self.ends.is_some_and(|ends| ends.newest != index) {
            self.unlink(index);
            self.link(index);
        }
    }

    fn entry(&mut self, index: usize) -> Option<&mut Entry> {
        self.entries.get_mut(index)?.as_mut()
    }

    fn unlink(&mut self, index: usize) {
        let Some(&mut Entry { older, newer, .. }) = self.entry(index) else { return };
        if let Some(entry) = self.entry(older) {
            entry.newer = newer;
        }
        if let Some(entry) = self.entry(newer) {
            entry.older = older;
        }
        self.ends = self.ends.and_then(|ends| {
            let oldest = if ends.oldest == index { newer } else { ends.oldest };
            let newest = if ends.newest == index { older } else { ends.newest };
            (oldest != NONE).then_some(Ends { oldest, newest })
        });
    }

    /// As the newest.
    fn link(&mut self, index: usize) {
        let before = self.ends.map_or(NONE, |ends| ends.newest);
        if let Some(entry) = self.entry(index) {
            (entry.older, entry.newer) = (before, NONE);
        }
        if let Some(entry) = self.entry(before) {
            entry.newer = index;
        }
        self.ends = Some(Ends { oldest: self.ends.map_or(index, |ends| ends.oldest), newest: index });
    }
}
