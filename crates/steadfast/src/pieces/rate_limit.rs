//! The rate limit alone.

use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::time::Duration;

use steadfast_policy::line::{LineSnapshot, RateConfig, RateStyle};

use super::enter::{For, try_enter};
use super::{nothing_but, without_deadline};
use crate::clock::Clock;
use crate::config::Problems;
use crate::error::Error;
use crate::event::Event;
use crate::guard::{Guard, GuardBuilder, GuardError};

/// So many starts in a period and key, and in no window of that length more, wherever it begins (6.1). Built once; clones
/// share the state.
///
/// First come, first served within a key; a key without places holds up no other. `""` is the key of whoever has only one.
/// A key is kept while somebody waits in it, and for one period after its last start.
///
/// ```
/// use std::time::Duration;
/// use steadfast::RateLimit;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limit = RateLimit::new(5, Duration::from_secs(60))?;
/// for _ in 0..5 {
///     limit.acquire("tenant-7").await?;
/// }
/// let refused = limit.try_acquire("tenant-7").unwrap_err();
/// assert!(refused.retry_after() > Some(Duration::from_secs(59)));
/// assert!(limit.try_acquire("tenant-8").is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RateLimit(Guard);

impl RateLimit {
    /// At most `starts` in each `period` and key, with the defaults of the [`builder`](Self::builder).
    ///
    /// # Errors
    /// A number or a period outside its bounds.
    pub fn new(starts: u32, period: Duration) -> Result<Self, Problems> {
        Self::builder("rate-limit").limit(starts, period).build()
    }

    /// Sets a limit up. `name` is what errors and events call it.
    pub fn builder(name: &str) -> RateLimitBuilder {
        let rate = RateConfig {
            limit: 1,
            period: Duration::from_secs(1),
            wait: None,
            style: RateStyle::Window,
            max_keys: 10_000,
        };
        RateLimitBuilder { guard: nothing_but(name), rate }
    }

    /// Waits for a place of this key, and takes it.
    ///
    /// Cancel safe: a waiter that is dropped gives its position up, and those behind it move. A place that was taken is not
    /// given back.
    ///
    /// # Errors
    /// [`RateLimited`](crate::ErrorKind::RateLimited), with the time after which there is a place: the wait is longer than
    /// the limit's [`wait`](RateLimitBuilder::wait), or as many keys are in use as are kept.
    ///
    /// # Panics
    /// With the system clock outside a tokio runtime, or in one without time (`enable_time`), once it has to wait.
    pub async fn acquire(&self, key: &str) -> Result<(), Error> {
        self.0.key(key).call(|| ready(Ok::<(), Infallible>(()))).await.map_err(limit_of)
    }

    /// Takes a place of this key if there is one now and nobody waits for it.
    ///
    /// # Errors
    /// [`RateLimited`](crate::ErrorKind::RateLimited), with the time after which there is a place if those who wait take
    /// theirs.
    pub fn try_acquire(&self, key: &str) -> Result<(), Error> {
        // Only the start counts: what was held for it goes at once.
        try_enter(self.0.parts().0, key, For::AStart).map(drop)
    }

    /// Waits for a place of this key, and runs the operation, once.
    ///
    /// Cancel safe, panics: as [`acquire`](Self::acquire). Dropping the future drops the operation.
    ///
    /// # Errors
    /// The operation's own error, or the limit's as for [`acquire`](Self::acquire).
    pub async fn call<T, E, F, Fut>(&self, key: &str, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        self.0.key(key).call(operation).await
    }

    /// Who waits, and how many keys are kept. Taking it changes nothing.
    pub fn snapshot(&self) -> LineSnapshot {
        self.0.snapshot().line
    }

    /// The guard that it is: for a call with a timeout or a fallback of its own, and for
    /// `layer::GuardLayer`.
    pub fn as_guard(&self) -> &Guard {
        &self.0
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("name", &self.0.name()).finish_non_exhaustive()
    }
}

/// Nothing else can have failed.
pub(super) fn limit_of(error: GuardError<Infallible>) -> Error {
    match error.into_operation() {
        Ok(never) => match never {},
        Err(limit) => limit,
    }
}

/// Sets a [`RateLimit`] up. What is not said keeps its default.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct RateLimitBuilder {
    guard: GuardBuilder,
    rate: RateConfig,
}

impl RateLimitBuilder {
    /// So many starts in each period and key. One a second; 1 to 10 000 (evenly spread: to 1 000 000 000), the period above
    /// zero and at most a day.
    pub fn limit(mut self, starts: u32, period: Duration) -> Self {
        (self.rate.limit, self.rate.period) = (starts, period);
        self
    }

    /// Whether a rested key may use a whole window at once, or starts are spread evenly. A window.
    pub fn style(mut self, style: RateStyle) -> Self {
        self.rate.style = style;
        self
    }

    /// The longest wait for a place; what it cannot hold is refused at once, zero without any wait. Unset: as long as it
    /// takes; at most a day.
    pub fn wait(mut self, longest: Duration) -> Self {
        self.rate.wait = Some(longest);
        self
    }

    /// How many keys beside `""` are kept at once; while all are in use, a further one is refused. 10 000; zero counts as 1.
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.rate.max_keys = keys;
        self
    }

    /// Another clock than the system's.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.guard = self.guard.clock(clock);
        self
    }

    /// Tells of every start and refusal; as [`ClientBuilder::on_event`](crate::ClientBuilder::on_event).
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.guard = self.guard.on_event(hook);
        self
    }

    /// The limit.
    ///
    /// # Errors
    /// Every value outside its bounds, all at once.
    pub fn build(self) -> Result<RateLimit, Problems> {
        without_deadline(self.guard.rate_limit(self.rate), |_| {}).map(RateLimit)
    }
}
