//! The deadline alone.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use steadfast_policy::Time;

use crate::clock::Clock;
use crate::timer::Timer;

/// Runs a future for at most so long, from its first poll on; then it is dropped where it stands. `Duration::MAX` never
/// comes.
///
/// Its error is a type of its own, so that a limit of ours is never mistaken for a timeout that the operation itself
/// reports, nor retried as one by something further out (P14). Around [`retry`](super::retry()) it is the deadline of all
/// attempts and waits, within it one of each attempt.
///
/// Cancel safe if `future` is.
///
/// # Panics
/// With the system clock outside a tokio runtime, or in one without time (`enable_time`), once it has to wait.
///
/// ```
/// use std::future::pending;
/// use std::io;
/// use std::time::Duration;
/// use steadfast::testing::VirtualClock;
/// use steadfast::timeout;
///
/// // A clock that need not be waited for; without it, `timeout(…).await`.
/// let clock = VirtualClock::new();
/// let driver = async { Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)) };
/// let theirs = clock.run(timeout(Duration::from_secs(30), driver).clock(clock.clone()))?;
/// assert_eq!(theirs.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
///
/// let ours = clock.run(timeout(Duration::from_secs(30), pending::<io::Result<()>>()).clock(clock.clone()))?;
/// assert_eq!(ours.unwrap_err().after(), Duration::from_secs(30));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn timeout<F: IntoFuture>(after: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout { future: future.into_future(), timer: Timer::new(), clock: Clock::system(), after, limit: None }
}

pin_project! {
    /// A future with a limit. Made by [`timeout`](fn@timeout).
    #[must_use = "a future does nothing until it is awaited"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        timer: Timer<'static>,
        clock: Clock,
        after: Duration,
        limit: Option<Time>,
    }
}

impl<F> Timeout<F> {
    /// Another clock than the system's.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimedOut>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let limit = *this.limit.get_or_insert_with(|| this.clock.now() + *this.after);
        // What is ready in the same poll wins over the timer (0.1).
        if let Poll::Ready(out) = this.future.poll(cx) {
            return Poll::Ready(Ok(out));
        }
        ready!(this.timer.poll_until(cx, this.clock, limit));
        Poll::Ready(Err(TimedOut { after: *this.after }))
    }
}

impl<F> fmt::Debug for Timeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").field("after", &self.after).finish_non_exhaustive()
    }
}

/// The time that [`timeout`](fn@timeout) gave was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimedOut {
    after: Duration,
}

impl TimedOut {
    /// How much time there was.
    pub const fn after(&self) -> Duration {
        self.after
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not done within {:?}", self.after)
    }
}

impl std::error::Error for TimedOut {}
