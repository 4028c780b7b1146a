//! The one source of time of a client or guard.
//!
//! The system clock reads tokio's `Instant`, which works without a runtime and follows a test that paused tokio's time.
//! Under the feature `testing` a clock can be virtual, and stands still until a test moves it; or it can skip our sleeps.

use std::time::{Duration, SystemTime};

use steadfast_policy::Time;
use tokio::time::Instant;

#[cfg(feature = "testing")]
use crate::testing::{FastClock, LimitSwitch, VirtualClock, ambient};

/// Tells the time since its origin, and the time of the wall (for HTTP dates only).
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System {
        origin: Instant,
    },
    #[cfg(feature = "testing")]
    Virtual(VirtualClock),
    #[cfg(feature = "testing")]
    Fast(FastClock),
}

impl Clock {
    /// The system's clock, with its origin now. Under the feature `testing`, while a `testing::fake_clock` or a
    /// `testing::fast_mode` lives on this thread, its clock.
    pub fn system() -> Self {
        #[cfg(feature = "testing")]
        if let Some(clock) = ambient::clock() {
            return clock;
        }
        Self(Source::System { origin: Instant::now() })
    }

    /// Time since the origin.
    pub fn now(&self) -> Time {
        match &self.0 {
            Source::System { origin } => Time::ZERO + origin.elapsed(),
            #[cfg(feature = "testing")]
            Source::Virtual(clock) => clock.now(),
            #[cfg(feature = "testing")]
            Source::Fast(clock) => clock.now(),
        }
    }

    /// The time of the wall, which an HTTP date is compared with.
    pub fn wall(&self) -> SystemTime {
        match &self.0 {
            Source::System { .. } => SystemTime::now(),
            #[cfg(feature = "testing")]
            Source::Virtual(clock) => clock.wall(),
            #[cfg(feature = "testing")]
            Source::Fast(clock) => clock.wall(),
        }
    }

    /// The tokio instant of `at`; `None` beyond the range of the system's clock, and for a virtual one.
    pub(crate) fn instant(&self, at: Time) -> Option<Instant> {
        match &self.0 {
            Source::System { origin } => origin.checked_add(at.since(Time::ZERO)),
            #[cfg(feature = "testing")]
            Source::Virtual(_) => None,
            #[cfg(feature = "testing")]
            Source::Fast(clock) => clock.instant(at),
        }
    }

    /// The virtual clock, where it is one.
    #[cfg(feature = "testing")]
    pub(crate) fn as_virtual(&self) -> Option<&VirtualClock> {
        match &self.0 {
            Source::Virtual(clock) => Some(clock),
            Source::System { .. } | Source::Fast(_) => None,
        }
    }

    /// The clock that skips sleeps, where it is one.
    #[cfg(feature = "testing")]
    pub(crate) fn as_fast(&self) -> Option<&FastClock> {
        match &self.0 {
            Source::Fast(clock) => Some(clock),
            Source::System { .. } | Source::Virtual(_) => None,
        }
    }

    /// What switches the rate limits off that are on this clock.
    #[cfg(feature = "testing")]
    pub(crate) fn limits(&self) -> Option<&LimitSwitch> {
        match &self.0 {
            Source::System { .. } => None,
            Source::Virtual(clock) => Some(clock.limits()),
            Source::Fast(clock) => Some(clock.limits()),
        }
    }

    /// The seed of what is built on this clock without one of its own. Only a test's clock has one.
    pub(crate) fn seed(&self) -> Option<u64> {
        #[cfg(feature = "testing")]
        if let Source::Virtual(clock) = &self.0 {
            return clock.seed();
        }
        None
    }

    /// A sleep that has ended, as it was asked for. Only a test's clock keeps it.
    pub(crate) fn note_sleep(&self, asked: Duration) {
        #[cfg(feature = "testing")]
        if let Source::Virtual(clock) = &self.0 {
            clock.note_sleep(asked);
        }
        let _ = asked;
    }

    /// Waits until `at`.
    ///
    /// Cancel safe: dropping the future only forgets the wait.
    ///
    /// # Panics
    /// With the system clock outside a tokio runtime, or in one without time (`enable_time`), as every tokio timer does.
    pub async fn wait_until(&self, at: Time) {
        let asked = at.since(self.now());
        let mut timer = std::pin::pin!(crate::timer::Timer::new());
        std::future::poll_fn(|cx| timer.as_mut().poll_sleep(cx, self, at)).await;
        self.note_sleep(asked);
    }

    /// Waits until `at` as a limit on somebody else's work: a test's clock neither skips it nor moves for it.
    ///
    /// Cancel safe, panics: as [`wait_until`](Self::wait_until).
    pub async fn limit(&self, at: Time) {
        let mut timer = std::pin::pin!(crate::timer::Timer::new());
        std::future::poll_fn(|cx| timer.as_mut().poll_until(cx, self, at)).await;
    }

    /// Waits for `duration`; see [`wait_until`](Self::wait_until).
    pub async fn wait(&self, duration: Duration) {
        self.wait_until(self.now() + duration).await;
    }
}

/// The work of a script: it takes the time of its clock, and is nobody's sleep.
#[cfg(feature = "testing")]
impl Clock {
    pub(crate) async fn work(&self, duration: Duration) {
        let at = self.now() + duration;
        let mut timer = std::pin::pin!(crate::timer::Timer::new());
        std::future::poll_fn(|cx| timer.as_mut().poll_work(cx, self, at)).await;
    }
}

#[cfg(feature = "testing")]
impl From<FastClock> for Clock {
    fn from(clock: FastClock) -> Self {
        Self(Source::Fast(clock))
    }
}

#[cfg(feature = "testing")]
impl From<VirtualClock> for Clock {
    fn from(clock: VirtualClock) -> Self {
        Self(Source::Virtual(clock))
    }
}
