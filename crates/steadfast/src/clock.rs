//! The one source of time of a client or guard.
//!
//! The system clock reads tokio's `Instant`, which works without a runtime and follows a test that paused tokio's time.
//! Under the feature `testing` a clock can be virtual: it stands still until a test moves it.

use std::time::{Duration, SystemTime};

use steadfast_policy::Time;
use tokio::time::Instant;

#[cfg(feature = "testing")]
use crate::testing::VirtualClock;

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
}

impl Clock {
    /// The system's clock, with its origin now.
    pub fn system() -> Self {
        Self(Source::System { origin: Instant::now() })
    }

    /// Time since the origin.
    pub fn now(&self) -> Time {
        match &self.0 {
            Source::System { origin } => Time::ZERO + origin.elapsed(),
            #[cfg(feature = "testing")]
            Source::Virtual(clock) => clock.now(),
        }
    }

    /// The time of the wall, which an HTTP date is compared with.
    pub fn wall(&self) -> SystemTime {
        match &self.0 {
            Source::System { .. } => SystemTime::now(),
            #[cfg(feature = "testing")]
            Source::Virtual(clock) => clock.wall(),
        }
    }

    /// The tokio instant of `at`; `None` beyond the range of the system's clock, and for a virtual one.
    pub(crate) fn instant(&self, at: Time) -> Option<Instant> {
        match &self.0 {
            Source::System { origin } => origin.checked_add(at.since(Time::ZERO)),
            #[cfg(feature = "testing")]
            Source::Virtual(_) => None,
        }
    }

    /// The virtual clock, where it is one.
    #[cfg(feature = "testing")]
    pub(crate) fn as_virtual(&self) -> Option<&VirtualClock> {
        match &self.0 {
            Source::System { .. } => None,
            Source::Virtual(clock) => Some(clock),
        }
    }

    /// Waits until `at`.
    ///
    /// Cancel safe: dropping the future only forgets the wait.
    ///
    /// # Panics
    /// With the system clock outside a tokio runtime, or in one without time (`enable_time`), as every tokio timer does.
    pub async fn wait_until(&self, at: Time) {
        let mut timer = std::pin::pin!(crate::timer::Timer::new());
        std::future::poll_fn(|cx| timer.as_mut().poll_until(cx, self, at)).await;
    }

    /// Waits for `duration`; see [`wait_until`](Self::wait_until).
    pub async fn wait(&self, duration: Duration) {
        self.wait_until(self.now() + duration).await;
    }
}

#[cfg(feature = "testing")]
impl From<VirtualClock> for Clock {
    fn from(clock: VirtualClock) -> Self {
        Self(Source::Virtual(clock))
    }
}
