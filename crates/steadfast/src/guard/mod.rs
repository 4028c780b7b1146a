//! The same protection around any operation: a query, a mail, a call through another library.
//!
//! A guard runs an operation through the very loop that HTTP calls run through, with the same order of limits (11.1).
//! What an HTTP client reads off a response, the caller says: which errors another attempt may fix
//! ([`transient`](Guard::transient)), and what stands in for a value that does not come ([`fallback`](Guard::fallback)).

mod blocking;
mod builder;
mod call;
mod classify;
mod context;
mod error;
mod family;
mod limits;
mod operation;
mod served;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast_http::CallContext;

pub use builder::GuardBuilder;
pub use call::GuardCall;
pub use classify::{Classified, Classify, ErrorClass, Transient, Unclassified, WithRetryAfter};
pub use context::{Context, IdempotencyKey};
pub use error::GuardError;
pub use family::{Guards, LONGEST_KEY, LOOKS, NoGuard};
pub use served::{Fallback, FallbackValue, FallbackWith, NoFallback, Served};

use context::Keys;

use crate::snapshot::Snapshot;
use crate::upstream::{Rules, Upstream};

/// Deadline, retry, circuit breaker, bulkhead and rate limit around any operation. Built once for each dependency; clones
/// share the state.
///
/// ```
/// use std::io;
/// use steadfast::Guard;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tariffs = Guard::http("tariffs").attempts(4).build()?;
///
/// // Without a word on its errors, none is retried.
/// let tariff = tariffs.call(|| async { Ok::<_, io::Error>(12) }).await?;
/// assert_eq!(tariff, 12);
///
/// // Some may be, and where nothing comes an estimate is better than nothing.
/// let served = tariffs
///     .transient(|error: &io::Error| error.kind() == io::ErrorKind::TimedOut)
///     .fallback(10)
///     .serve(|context| async move {
///         println!("attempt {}, {:?} left", context.attempt, context.time_left);
///         Err::<u32, _>(io::Error::other("no tariff for this weight"))
///     })
///     .await;
/// assert!(served.is_err(), "an error that is no trouble of the dependency's passes through");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Guard(Arc<Guarded>);

/// What clones share.
struct Guarded {
    upstream: Arc<Upstream>,
    rules: Rules,
    /// A value that comes later than this is a slow answer to the retry budget.
    slow_after: Duration,
    keys: Keys,
}

impl Guarded {
    fn new(upstream: Arc<Upstream>, rules: Rules, seed: Option<u64>) -> Self {
        let slow_after = rules.attempt_timeout.unwrap_or(rules.total_timeout).min(rules.total_timeout) / 2;
        Self { upstream, rules, slow_after, keys: Keys::new(seed) }
    }
}

impl Guard {
    /// A guard for the dependency of this name, with the defaults: 30 s, 3 attempts for errors that may be retried, the
    /// breaker, the retry budget, 50 at once, no rate limit.
    pub fn builder(name: &str) -> GuardBuilder {
        GuardBuilder::new(name, Duration::from_secs(30))
    }

    /// A guard for HTTP calls of another client: 30 s (11.4).
    pub fn http(name: &str) -> GuardBuilder {
        GuardBuilder::new(name, Duration::from_secs(30))
    }

    /// A guard for queries to a database: 10 s (11.4).
    pub fn database(name: &str) -> GuardBuilder {
        GuardBuilder::new(name, Duration::from_secs(10))
    }

    /// A guard for work in the background: 300 s (11.4).
    pub fn job(name: &str) -> GuardBuilder {
        GuardBuilder::new(name, Duration::from_secs(300))
    }

    /// The dependency's name.
    pub fn name(&self) -> &str {
        &self.0.upstream.name
    }

    /// Runs `operation`; every error counts against the dependency, and none is retried (11.2).
    ///
    /// Cancel safe: dropping the future drops the operation and gives everything back.
    ///
    /// # Errors
    /// The operation's own error, or the limit that ended the call.
    ///
    /// # Panics
    /// With the system clock outside a tokio runtime, or in one without time (`enable_time`), once something has to be
    /// waited for.
    #[inline]
    pub fn call<T, E, F, Fut>(&self, mut operation: F) -> impl Future<Output = Result<T, GuardError<E>>>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        GuardCall::new(self).call_with(move |_| operation())
    }

    /// The same for an operation that is told the number of its attempt, the time that is left, and an idempotency key.
    ///
    /// Cancel safe, errors, panics: as [`call`](Self::call).
    ///
    /// # Errors
    /// See [`call`](Self::call).
    pub async fn call_with<T, E, F, Fut>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut(Context) -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        GuardCall::new(self).call_with(operation).await
    }

    /// A call that tells how its value came: see [`GuardCall::serve`].
    ///
    /// # Errors
    /// See [`call`](Self::call).
    pub async fn serve<T, E, F, Fut>(&self, operation: F) -> Result<Served<T>, GuardError<E>>
    where
        F: FnMut(Context) -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        GuardCall::new(self).serve(operation).await
    }

    /// A call in which errors that `transient` says yes to may be retried: see [`GuardCall::transient`].
    pub fn transient<E, P: Fn(&E) -> bool>(&self, transient: P) -> GuardCall<'_, Transient<P>> {
        GuardCall::new(self).transient(transient)
    }

    /// A call in which `classify` says what each error means: see [`GuardCall::classify`].
    pub fn classify<E, C: Fn(&E) -> ErrorClass>(&self, classify: C) -> GuardCall<'_, Classified<C>> {
        GuardCall::new(self).classify(classify)
    }

    /// A call that counts in this key's rate limit: see [`GuardCall::key`].
    pub fn key<'a>(&'a self, key: &'a str) -> GuardCall<'a> {
        GuardCall::new(self).key(key)
    }

    /// A call with a deadline of its own: see [`GuardCall::timeout`].
    pub fn timeout(&self, timeout: Duration) -> GuardCall<'_> {
        GuardCall::new(self).timeout(timeout)
    }

    /// A call within the deadline of the request being served: see [`GuardCall::deadline`].
    pub fn deadline(&self, deadline: Instant) -> GuardCall<'_> {
        GuardCall::new(self).deadline(deadline)
    }

    /// A call on behalf of the request being served: see [`GuardCall::context`].
    pub fn context(&self, context: &CallContext) -> GuardCall<'_> {
        GuardCall::new(self).context(context)
    }

    /// A call with a value to serve instead: see [`GuardCall::fallback`].
    pub fn fallback<T>(&self, value: T) -> GuardCall<'_, Unclassified, FallbackValue<T>> {
        GuardCall::new(self).fallback(value)
    }

    /// A call with something to serve instead, made of the error: see [`GuardCall::fallback_with`].
    pub fn fallback_with<T, E, F>(&self, fallback: F) -> GuardCall<'_, Unclassified, FallbackWith<F>>
    where
        F: FnOnce(&GuardError<E>) -> T,
    {
        GuardCall::new(self).fallback_with(fallback)
    }

    /// What a guard is made of, for what is built on it.
    pub(crate) fn parts(&self) -> (&Arc<Upstream>, &Rules) {
        (&self.0.upstream, &self.0.rules)
    }

    /// What an operation is told that runs outside of the loop.
    pub(crate) fn context_of_one(&self) -> Context {
        Context { attempt: 1, time_left: Duration::MAX, key: self.0.keys.next() }
    }

    /// The state as it is. Taking it changes nothing.
    pub fn snapshot(&self) -> Snapshot {
        self.0.upstream.snapshot()
    }

    /// Opens the breaker until [`reset_breaker`](Self::reset_breaker): for an operator who knows better.
    pub fn force_open(&self) {
        self.0.upstream.force_open();
    }

    /// Closes the breaker, and lets it ignore every verdict, until [`reset_breaker`](Self::reset_breaker).
    pub fn force_close(&self) {
        self.0.upstream.force_close();
    }

    /// A closed breaker that has seen nothing.
    pub fn reset_breaker(&self) {
        self.0.upstream.reset_breaker();
    }

    /// Refuses new calls, and waits for the running ones (7.7). Each ends by its deadline; one whose future is kept and
    /// never polled is waited for to the latest deadline that it can have, and no longer.
    ///
    /// Cancel safe: the guard stays closed to new calls; call it again to wait on.
    pub async fn close(&self) {
        let limit = self.0.upstream.refuse_new_calls();
        self.0.upstream.ended(limit, None).await;
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("name", &self.0.upstream.name).finish_non_exhaustive()
    }
}
