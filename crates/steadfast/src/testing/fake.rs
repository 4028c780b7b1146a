//! Time for the tests of an application: a clock that sleeps move, and a mode in which our own waits take no time.
//!
//! Both are scopes. While one lives, every client, guard and layer whose builder is made on this thread, and is given no
//! other clock, has its clock. So a test says it once, and the code that is tested need not know.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use steadfast_policy::Time;
use tokio::time::Instant;

use super::ambient::Scope;
use super::clock::VirtualClock;
use super::limits::{LimitSwitch, RateLimitsOff};
use crate::clock::Clock;

/// A clock that stands still but for the sleeps of whoever is on it: they end at once, move the clock, and are recorded.
///
/// ```
/// use std::time::Duration;
/// use steadfast::Guard;
/// use steadfast::testing::{ScriptedOperation, fake_clock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let time = fake_clock();
/// let rates = ScriptedOperation::new(&time, [Err("busy"), Ok(3)]);
/// let guard = Guard::http("rates").build()?;
///
/// assert_eq!(guard.transient(|_| true).call(|| rates.call()).await.map_err(|error| error.to_string())?, 3);
/// assert_eq!(rates.calls(), 2);
/// assert_eq!(time.sleeps().len(), 1);
/// assert!(time.sleeps()[0] <= Duration::from_millis(100));
/// # Ok(())
/// # }
/// ```
pub fn fake_clock() -> FakeClock {
    let clock = VirtualClock::fake();
    FakeClock { scope: Scope::new(clock.clone().into()), clock }
}

/// The scope of a [`fake_clock`], and the clock itself: all that a [`VirtualClock`] can do.
///
/// - A *sleep* is a wait that a call asked for itself: a backoff, what `Retry-After` says, the time to a place in the rate
///   limit; and [`Clock::wait`]. It ends at once, as soon as all other tasks of this thread have had a turn; the clock
///   then shows its end.
/// - The work of a [`Script`](super::Script) or a [`ScriptedOperation`](super::ScriptedOperation) takes time of this clock
///   in the same way, and is not recorded. If a limit comes first, the limit ends it.
/// - A limit on anything else (a deadline, an attempt's timeout, the wait for a slot) does not come by itself while
///   somebody's real work goes on. [`advance`](VirtualClock::advance) brings it, and so does
///   [`run`](VirtualClock::run), as soon as its future can go no further.
///
/// Whoever is built on it keeps it beyond the scope. The scope stays on the thread that made it; the clock itself, for
/// other threads and tasks, is [`clock`](Self::clock).
#[must_use = "what is built after the scope has ended has the system's clock"]
pub struct FakeClock {
    clock: VirtualClock,
    scope: Scope,
}

impl FakeClock {
    /// A seed for the jitter and the idempotency keys of everything that is built on this clock without a seed of its own,
    /// so that a test is the same each time.
    pub fn seed(self, seed: u64) -> Self {
        self.clock.set_seed(seed);
        self
    }

    /// Every sleep so far, as it was asked for, in the order in which they ended. One may be zero: a backoff with full
    /// jitter can be.
    pub fn sleeps(&self) -> Vec<Duration> {
        self.clock.sleeps()
    }

    /// Forgets the sleeps so far.
    pub fn clear(&self) {
        self.clock.clear_sleeps();
    }

    /// How long it is since this clock was made.
    pub fn elapsed(&self) -> Duration {
        self.clock.now().since(Time::ZERO)
    }

    /// The clock alone, to be handed to a builder, another thread, or a task.
    pub fn clock(&self) -> VirtualClock {
        self.clock.clone()
    }

    /// Lets every call of this clock pass the rate limit until the returned scope ends. What passes is not counted, and
    /// what was counted before is forgotten.
    pub fn disable_rate_limits(&self) -> RateLimitsOff {
        self.clock.limits().off()
    }
}

impl Deref for FakeClock {
    type Target = VirtualClock;

    fn deref(&self) -> &VirtualClock {
        &self.clock
    }
}

impl From<&FakeClock> for Clock {
    fn from(time: &FakeClock) -> Self {
        time.clock().into()
    }
}

impl fmt::Debug for FakeClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clock, scope } = self;
        f.debug_struct("FakeClock").field("clock", clock).field("scope", scope).finish()
    }
}

/// The system's clock, on which our own sleeps are skipped and not recorded: for tests with real sockets, a database in a
/// container, or code that is not ours. All other time is real: deadlines and timeouts end what hangs.
///
/// ```
/// use std::time::{Duration, Instant};
/// use steadfast::Guard;
/// use steadfast::policy::backoff::{Backoff, Jitter};
/// use steadfast::testing::fast_mode;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let _fast = fast_mode();
/// let minute = Duration::from_secs(60);
/// let backoff = Backoff { base: minute, max: minute, jitter: Jitter::None, ..Backoff::default() };
/// let guard = Guard::job("thumbnails").attempts(3).backoff(backoff).build()?;
///
/// let begun = Instant::now();
/// let error = guard.transient(|_| true).call(|| async { Err::<(), _>("busy") }).await.unwrap_err();
/// assert_eq!(error.report().attempt_count(), 3);
/// assert!(begun.elapsed() < minute, "two minutes of waits were skipped");
/// # Ok(())
/// # }
/// ```
pub fn fast_mode() -> FastMode {
    let clock = FastClock::new();
    FastMode { scope: Scope::new(clock.clone().into()), clock }
}

/// The scope of a [`fast_mode`].
#[must_use = "what is built after the scope has ended waits for real"]
pub struct FastMode {
    clock: FastClock,
    scope: Scope,
}

impl FastMode {
    /// The clock alone, to be handed to a builder.
    pub fn clock(&self) -> Clock {
        self.clock.clone().into()
    }

    /// Moves the clock, so that a breaker's cool-down is over. Limits of calls under way do not notice.
    pub fn advance(&self, duration: Duration) {
        self.clock.skip_to(self.clock.now() + duration);
    }

    /// Lets every call of this clock pass the rate limit: see [`FakeClock::disable_rate_limits`].
    pub fn disable_rate_limits(&self) -> RateLimitsOff {
        self.clock.limits().off()
    }
}

impl From<&FastMode> for Clock {
    fn from(time: &FastMode) -> Self {
        time.clock()
    }
}

impl fmt::Debug for FastMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clock, scope } = self;
        f.debug_struct("FastMode").field("clock", clock).field("scope", scope).finish()
    }
}

/// The system's clock, and what was skipped. Clones are the same clock.
///
/// A limit that was armed before a skip comes when it would have come without it: others' waits do not shorten the time
/// that real work has.
#[derive(Clone, Debug)]
pub(crate) struct FastClock {
    origin: Instant,
    /// In nanoseconds.
    skipped: Arc<AtomicU64>,
    limits: LimitSwitch,
}

impl FastClock {
    fn new() -> Self {
        Self { origin: Instant::now(), skipped: Arc::default(), limits: LimitSwitch::default() }
    }

    fn skipped(&self) -> Duration {
        Duration::from_nanos(self.skipped.load(Ordering::SeqCst))
    }

    fn real(&self) -> Time {
        Time::ZERO + self.origin.elapsed()
    }

    pub(crate) fn now(&self) -> Time {
        self.real() + self.skipped()
    }

    pub(crate) fn wall(&self) -> SystemTime {
        let now = SystemTime::now();
        now.checked_add(self.skipped()).unwrap_or(now)
    }

    /// The instant of `at`, as far as is known now.
    pub(crate) fn instant(&self, at: Time) -> Option<Instant> {
        self.origin.checked_add(at.since(Time::ZERO).saturating_sub(self.skipped()))
    }

    /// Ends a sleep at once. Two that are skipped at once overlap, as they would in real time.
    pub(crate) fn skip_to(&self, at: Time) {
        let missing = at.since(self.real());
        self.skipped.fetch_max(u64::try_from(missing.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    pub(crate) fn limits(&self) -> &LimitSwitch {
        &self.limits
    }
}
