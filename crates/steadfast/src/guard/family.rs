//! One guard for each key: a host, a tenant (11.8).
//!
//! A breaker for all hosts of a kind lets one that is down take the others with it; one per request sees nothing. So each
//! key has a guard of its own, made when it is first asked for and found again by every later call.
//!
//! Keys often come from outside, so their number is bounded, and room is made by forgetting the guard that nobody has asked
//! for the longest. Forgotten is only one that no clone is out of, in which nothing runs, waits, or is held, no start counts
//! in a rate limit, and whose breaker is closed and not forced: failures that have not opened it go too, and what the retry
//! budget has counted. Where nothing can be forgotten, a further key is refused ([`NoGuard::Full`]).
//!
//! A host that was down when it was last called keeps an open breaker, and with it its place, as nothing but a call finds out
//! whether it is back. Where hosts come and go, say how long that is worth remembering:
//! [`forget_open_after`](Guards::forget_open_after).
//!
//! Looking for room takes no longer the more keys there are: at most [`LOOKS`] guards are looked at, and those that are in
//! use count as asked for just now.

mod kept;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_policy::Time;
use steadfast_policy::breaker::{BreakerSnapshot, State};

use self::kept::Kept;
use super::{Guard, GuardBuilder};
use crate::config::Problems;
use crate::snapshot::Snapshot;

/// The longest key, in bytes: a host's name has at most 253 (RFC 1035, section 2.3.4).
pub const LONGEST_KEY: usize = 1_024;

/// How many guards are looked at for one that can be forgotten.
pub const LOOKS: usize = 64;

/// One [`Guard`] for each key, made on demand and bounded in number. Clones share them.
///
/// ```
/// use std::io;
/// use steadfast::{Guard, Guards};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hosts = Guards::new(Guard::http("webhooks").attempts(4))?;
///
/// hosts.get("shop.example")?.force_open();
/// let deliver = || async { Ok::<_, io::Error>(202) };
/// assert!(hosts.get("shop.example")?.call(deliver).await.is_err());
/// assert_eq!(hosts.get("blog.example")?.call(deliver).await?, 202);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Guards(Arc<Family>);

type Make = dyn Fn(&str) -> GuardBuilder + Send + Sync;

struct Family {
    make: Box<Make>,
    shelf: Mutex<Shelf>,
    closed: AtomicBool,
}

/// What is kept, and how much of it.
struct Shelf {
    kept: Kept,
    max_keys: usize,
    forget_open_after: Duration,
}

/// Why there is no guard for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoGuard {
    /// As many keys are in use as are kept.
    Full {
        /// So many.
        max_keys: usize,
    },
    /// The key is longer than [`LONGEST_KEY`].
    KeyTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// What was made for this key is outside of its bounds.
    Invalid(Problems),
    /// The guards were closed.
    Closed,
}

impl Guards {
    /// One guard with these settings for each key, its events and its clock included. Its name is `name/key`, with U+FFFD in
    /// place of a control character. With a seed, each has one that is derived from its key. At most 10 000 keys.
    ///
    /// # Errors
    /// Every setting outside its bounds.
    pub fn new(template: GuardBuilder) -> Result<Self, Problems> {
        template.clone().build()?;
        Ok(Self::with(move |key| template.clone().for_key(key)))
    }

    /// The same where settings or names differ from key to key. `make` is called when a guard is needed, outside of every
    /// lock, and perhaps twice for one key; only one of the two is used.
    pub fn with(make: impl Fn(&str) -> GuardBuilder + Send + Sync + 'static) -> Self {
        Self(Arc::new(Family {
            make: Box::new(make),
            shelf: Mutex::new(Shelf { kept: Kept::default(), max_keys: 10_000, forget_open_after: Duration::MAX }),
            closed: AtomicBool::new(false),
        }))
    }

    /// How many keys are kept at once. 10 000; zero counts as 1. If more are kept already, none is forgotten for that alone.
    #[must_use]
    pub fn max_keys(self, keys: usize) -> Self {
        self.0.shelf().max_keys = keys.max(1);
        self
    }

    /// Lets a guard be forgotten whose breaker is open, once its cool-down is over and nobody has asked for it for so long.
    /// Never, unless set.
    #[must_use]
    pub fn forget_open_after(self, idle: Duration) -> Self {
        self.0.shelf().forget_open_after = idle;
        self
    }

    /// The guard of this key. While its clone is kept, it is not forgotten; for a single call, get it and let it go.
    ///
    /// # Errors
    /// [`NoGuard`]: a new key for which there is no room, or no valid guard.
    pub fn get(&self, key: &str) -> Result<Guard, NoGuard> {
        if self.0.closed.load(Ordering::SeqCst) {
            return Err(NoGuard::Closed);
        }
        if key.len() > LONGEST_KEY {
            return Err(NoGuard::KeyTooLong { bytes: key.len() });
        }
        if let Some(guard) = self.0.shelf().kept.find(key) {
            return Ok(guard);
        }
        let builder = (self.0.make)(key).seeded_by(key);
        #[cfg(feature = "metrics")]
        let builder = builder.or_metrics_name("guards");
        let guard = builder.build().map_err(NoGuard::Invalid)?;
        let mut shelf = self.0.shelf();
        // Closing takes this lock after it has set the flag: either it finds this guard, or it is seen here.
        if self.0.closed.load(Ordering::SeqCst) {
            return Err(NoGuard::Closed);
        }
        // Another thread may have been quicker.
        if let Some(guard) = shelf.kept.find(key) {
            return Ok(guard);
        }
        let forgotten = if shelf.kept.len() < shelf.max_keys { None } else { Some(shelf.make_room()?) };
        shelf.kept.add(key, guard.clone());
        // A guard holds what its user gave it, whose own `drop` must not run under the lock.
        drop(shelf);
        drop(forgotten);
        Ok(guard)
    }

    /// Forgets the guard of this key, whatever its state. Calls that run go on; the next [`get`](Self::get) makes another.
    /// Whether there was one.
    pub fn remove(&self, key: &str) -> bool {
        let removed = self.0.shelf().kept.remove(key);
        removed.is_some()
    }

    /// How many keys have a guard.
    pub fn len(&self) -> usize {
        self.0.shelf().kept.len()
    }

    /// Whether no key has one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The guards as they are now, the one last asked for first; the clones keep them from being forgotten. At most
    /// [`max_keys`](Self::max_keys).
    pub fn iter(&self) -> impl Iterator<Item = Guard> + use<> {
        self.0.shelf().kept.guards().into_iter()
    }

    /// The state of each, as it is. Taking it changes nothing.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.iter().map(|guard| guard.snapshot()).collect()
    }

    /// [`close`](Self::close) on this thread, without a runtime; in an event hook it does not wait.
    pub fn close_blocking(&self) {
        for (guard, limit) in self.refuse_all() {
            guard.ended_blocking(limit);
        }
    }

    /// Refuses new keys and new calls, and waits for the running ones, each of which ends by its deadline (7.7).
    ///
    /// Cancel safe: the guards stay closed; call it again to wait on.
    pub async fn close(&self) {
        for (guard, limit) in self.refuse_all() {
            guard.0.upstream.ended(limit, None).await;
        }
    }

    /// From here on nothing begins. What is there to wait for, and until when: all of them from now on, and not each from
    /// the end of the one before.
    fn refuse_all(&self) -> Vec<(Guard, Time)> {
        self.0.closed.store(true, Ordering::SeqCst);
        let refuse = |guard: Guard| {
            let limit = guard.0.upstream.refuse_new_calls();
            (guard, limit)
        };
        self.iter().map(refuse).collect()
    }
}

impl Family {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn make_room(&mut self) -> Result<Guard, NoGuard> {
        let patience = self.forget_open_after;
        let forgotten = self.kept.forget(LOOKS, |guard, idle| can_be_forgotten(guard, idle >= patience));
        forgotten.ok_or(NoGuard::Full { max_keys: self.max_keys })
    }
}

/// Nobody can take a clone meanwhile: the only one left is the one that is looked at, under the lock. (Metrics that are
/// just being refreshed hold one guard for a moment, which counts as in use then.)
fn can_be_forgotten(guard: &Guard, open_may_go: bool) -> bool {
    let is_alone = Arc::strong_count(&guard.0) == 1 && Arc::strong_count(&guard.0.upstream) == 1;
    is_alone && guard.0.upstream.is_at_rest(|breaker| is_spent(breaker, open_may_go))
}

/// Whether a breaker has nothing to say: closed, or, if an open one may be forgotten, about to find out anyway.
fn is_spent(breaker: &BreakerSnapshot, open_may_go: bool) -> bool {
    !breaker.forced && (breaker.state == State::Closed || (open_may_go && breaker.ready_to_probe))
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, max_keys) = {
            let shelf = self.0.shelf();
            (shelf.kept.len(), shelf.max_keys)
        };
        f.debug_struct("Guards").field("keys", &keys).field("max_keys", &max_keys).finish_non_exhaustive()
    }
}

impl fmt::Display for NoGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { max_keys } => write!(f, "no guard for another key: all {max_keys} that are kept are in use"),
            Self::KeyTooLong { bytes } => {
                write!(f, "no guard for a key of {bytes} bytes: expected at most {LONGEST_KEY}")
            }
            Self::Invalid(_) => f.write_str("no guard for this key: its settings are not valid"),
            Self::Closed => f.write_str("no guard for this key: the guards are closed"),
        }
    }
}

impl std::error::Error for NoGuard {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Invalid(problems) => Some(problems),
            Self::Full { .. } | Self::KeyTooLong { .. } | Self::Closed => None,
        }
    }
}
