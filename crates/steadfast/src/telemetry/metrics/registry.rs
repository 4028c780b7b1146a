//! Every client and guard that is alive, for the gauges; and which names they are counted under.
//!
//! The registry of a process, as the recorder is the process's. It keeps nobody alive: it holds what a `Weak` holds, and
//! lets go of those that are gone whenever as many have come as there were at the last look. Names are bounded, too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::gauges::Gauges;
use super::handles::Meter;
use crate::snapshot::Snapshot;

/// How many names of upstreams are counted apart from each other. Those that come later count as [`OTHER`]: a program
/// that makes up names must not make time series without end.
pub const MOST_NAMES: usize = 1_000;

/// The name that further ones are counted under.
pub const OTHER: &str = "other";

/// What has gauges: a client, a guard, a layer.
pub(crate) trait Observed: Send + Sync {
    /// Where its calls are counted.
    fn meter(&self) -> Option<&Meter>;

    /// The state now, that of the pool included.
    fn snapshot(&self) -> Snapshot;

    /// The longest that a call may take that begins now.
    fn total_timeout(&self) -> Duration;
}

pub(super) struct Registry {
    names: Mutex<BTreeMap<Arc<str>, Weak<Meter>>>,
    observed: Mutex<Entries>,
    /// What was ever shown, so that what is gone is shown as gone.
    pub(super) shown: Mutex<BTreeMap<Arc<str>, Gauges>>,
}

struct Entries {
    all: Vec<Weak<dyn Observed>>,
    /// How many there may be before those that are gone are looked for.
    room: usize,
}

/// The least number of entries that is worth a look.
const LEAST_ROOM: usize = 64;

pub(super) static REGISTRY: Registry = Registry::new();

impl Registry {
    const fn new() -> Self {
        Self {
            names: Mutex::new(BTreeMap::new()),
            observed: Mutex::new(Entries { all: Vec::new(), room: LEAST_ROOM }),
            shown: Mutex::new(BTreeMap::new()),
        }
    }

    /// A meter under this name, or under [`OTHER`] where there are too many names.
    pub(super) fn meter(&self, name: &Arc<str>) -> Arc<Meter> {
        Meter::new(self.bounded(name))
    }

    /// The same one for all that are alive at a time.
    pub(super) fn shared_meter(&self, name: &Arc<str>) -> Arc<Meter> {
        let name = self.bounded(name);
        let known = || lock(&self.names).get(&name).and_then(Weak::upgrade);
        if let Some(meter) = known() {
            return meter;
        }
        // The recorder is somebody else's code: it is not asked under a lock.
        let meter = Meter::new(Arc::clone(&name));
        let mut names = lock(&self.names);
        match names.get(&name).and_then(Weak::upgrade) {
            // Another thread was quicker.
            Some(known) => known,
            None => {
                names.insert(name, Arc::downgrade(&meter));
                meter
            }
        }
    }

    fn bounded(&self, name: &Arc<str>) -> Arc<str> {
        let mut names = lock(&self.names);
        if let Some((known, _)) = names.get_key_value(name) {
            return Arc::clone(known);
        }
        if names.len() >= MOST_NAMES {
            return Arc::from(OTHER);
        }
        names.insert(Arc::clone(name), Weak::new());
        Arc::clone(name)
    }

    pub(super) fn observe(&self, observed: Weak<dyn Observed>) {
        let mut entries = lock(&self.observed);
        if entries.all.len() >= entries.room {
            entries.all.retain(|entry| entry.strong_count() > 0);
            entries.room = LEAST_ROOM.max(entries.all.len() * 2);
        }
        entries.all.push(observed);
    }

    /// All that may be alive. They are looked at one after the other, and let go of outside of the lock: who lets go of a
    /// client last runs its user's code, and a guard that is held cannot be forgotten.
    pub(super) fn observed(&self) -> Vec<Weak<dyn Observed>> {
        lock(&self.observed).all.clone()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_end_are_counted_as_other() {
        let registry = Registry::new();
        for number in 0..MOST_NAMES {
            let name = Arc::from(format!("tenant-{number}"));
            assert_eq!(*registry.meter(&name).name(), name);
        }
        assert_eq!(&**registry.meter(&Arc::from("one more")).name(), OTHER);
        assert_eq!(&**registry.shared_meter(&Arc::from("and another")).name(), OTHER);
        assert_eq!(&**registry.meter(&Arc::from("tenant-7")).name(), "tenant-7", "who was there before is still known");
        assert_eq!(lock(&registry.names).len(), MOST_NAMES + 1, "these, and the one for all others");
    }

    struct Nothing;

    impl Observed for Nothing {
        fn meter(&self) -> Option<&Meter> {
            None
        }

        fn snapshot(&self) -> Snapshot {
            unreachable!("nobody looks")
        }

        fn total_timeout(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn those_that_are_gone_are_forgotten() {
        let registry = Registry::new();
        let stays = Arc::new(Nothing);
        registry.observe(Arc::downgrade(&stays) as Weak<dyn Observed>);
        for _ in 0..10_000 {
            registry.observe(Arc::downgrade(&Arc::new(Nothing)) as Weak<dyn Observed>);
            assert!(registry.observed().len() <= LEAST_ROOM);
        }
        assert_eq!(registry.observed().iter().filter_map(Weak::upgrade).count(), 1);
    }
}
