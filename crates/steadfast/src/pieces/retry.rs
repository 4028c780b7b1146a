//! Retries alone.

use std::fmt;
use std::future::{Future, IntoFuture, Ready, ready};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use steadfast_policy::backoff::Backoff;

use super::nothing_but;
use crate::clock::Clock;
use crate::event::Event;
use crate::guard::{Classified, Classify, Context, ErrorClass, GuardBuilder, GuardError, Transient, WithRetryAfter};

/// Runs an operation again after errors that may pass: three attempts in all, waits of 0.1 s doubling up to 2 s with full
/// jitter, unless told otherwise (11.4).
///
/// Which errors those are has to be said before it can be awaited, with [`transient`](Retry::transient) or
/// [`classify`](Retry::classify): it also says that the operation may be done twice. For one that may not, a mail or a
/// payment, hand the provider the [idempotency key](Context::idempotency_key) of [`retry_with`].
///
/// There is no deadline, no budget and no breaker: a [`timeout`](fn@crate::timeout) around it is the deadline of all
/// attempts and waits; for the others build a [`Guard`](crate::Guard).
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use steadfast::testing::VirtualClock;
/// use steadfast::{retry, timeout};
///
/// // A clock that need not be waited for; without it, `timeout(…, tariff).await`.
/// let clock = VirtualClock::new();
/// let mut replies = vec![Ok(12), Err(io::ErrorKind::ConnectionReset)];
/// let tariff = retry(|| {
///     let reply = replies.pop().unwrap();
///     async move { reply.map_err(io::Error::from) }
/// })
/// .attempts(4)
/// .transient(|error| error.kind() == io::ErrorKind::ConnectionReset)
/// .clock(clock.clone());
/// assert_eq!(clock.run(timeout(Duration::from_secs(30), tariff).clock(clock.clone()))???, 12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Without that word it does not compile:
///
/// ```compile_fail,E0277
/// # async fn example() -> std::io::Result<u32> {
/// steadfast::retry(|| async { Ok(12) }).attempts(4).await
/// # }
/// ```
pub fn retry<'a, F, Fut, T, E>(mut operation: F) -> Retry<'a, impl FnMut(Context) -> Fut + use<'a, F, Fut, T, E>>
where
    F: FnMut() -> Fut + 'a,
    Fut: Future<Output = Result<T, E>>,
{
    retry_with(move |_| operation())
}

/// The same for an operation that is told the number of its attempt, and an idempotency key that is the same for all of
/// them. [`Context::time_left`] has no end.
pub fn retry_with<'a, F, Fut, T, E>(operation: F) -> Retry<'a, F>
where
    F: FnMut(Context) -> Fut + 'a,
    Fut: Future<Output = Result<T, E>>,
{
    let guard = nothing_but("retry").attempts(3).max_retry_after(Duration::from_secs(30));
    Retry { operation, judge: Unsaid, guard, lifetime: PhantomData }
}

/// The same for an operation of a plain thread: it ends with [`call_blocking`](Retry::call_blocking).
///
/// ```
/// use std::io;
/// use steadfast::pieces::retry_blocking;
///
/// # fn main() -> io::Result<()> {
/// // Nothing of this is `Send`, and there is no runtime.
/// let text = std::rc::Rc::new("12".to_owned());
/// let tariff = retry_blocking(|| text.parse::<u32>().map_err(io::Error::other)).transient(|_| true).call_blocking()?;
/// assert_eq!(tariff, 12);
/// # Ok(())
/// # }
/// ```
pub fn retry_blocking<'a, F, T, E>(
    mut operation: F,
) -> Retry<'a, impl FnMut(Context) -> Ready<Result<T, E>> + use<'a, F, T, E>>
where
    F: FnMut() -> Result<T, E> + 'a,
{
    retry_with(move |_| ready(operation()))
}

/// Retries that are being prepared. Made by [`retry`], [`retry_with`], and [`retry_blocking`]; ends with `.await`, with
/// [`call`](Self::call), or with [`call_blocking`](Self::call_blocking).
#[must_use = "nothing is called until it is awaited"]
pub struct Retry<'a, F, J = Unsaid> {
    operation: F,
    judge: J,
    guard: GuardBuilder,
    /// What the operation borrows.
    lifetime: PhantomData<&'a ()>,
}

/// Nobody has said yet which errors may pass.
#[derive(Clone, Copy, Debug)]
pub struct Unsaid;

impl<'a, F> Retry<'a, F> {
    /// Which errors another attempt may fix; another one ends it at once.
    pub fn transient<Fut, T, E, P>(self, transient: P) -> Retry<'a, F, Transient<P>>
    where
        F: FnMut(Context) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        P: Fn(&E) -> bool,
    {
        self.judged_by(Transient(transient))
    }

    /// The same with the wait that an error asks for: those that are [`Transient`](ErrorClass::Transient) or
    /// [`Throttled`](ErrorClass::Throttled) are tried again.
    pub fn classify<Fut, T, E, C>(self, classify: C) -> Retry<'a, F, Classified<C>>
    where
        F: FnMut(Context) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Fn(&E) -> ErrorClass,
    {
        self.judged_by(Classified(classify))
    }
}

impl<'a, F, J> Retry<'a, F, J> {
    fn judged_by<K>(self, judge: K) -> Retry<'a, F, K> {
        Retry { operation: self.operation, judge, guard: self.guard, lifetime: PhantomData }
    }

    /// Tries in all, the first included. 3; at least 1.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.guard = self.guard.attempts(attempts);
        self
    }

    /// The waits between attempts. 0.1 s doubling up to 2 s, full jitter.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.guard = self.guard.backoff(backoff);
        self
    }

    /// Takes the wait that was asked for out of an error that may be retried: it is waited for exactly. To be said after
    /// [`transient`](Self::transient) or [`classify`](Self::classify).
    pub fn retry_after<Fut, T, E, H>(self, hint: H) -> Retry<'a, F, WithRetryAfter<J, H>>
    where
        F: FnMut(Context) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Classify<E>,
        H: Fn(&E) -> Option<Duration>,
    {
        let judge = WithRetryAfter { judge: self.judge, hint };
        Retry { operation: self.operation, judge, guard: self.guard, lifetime: PhantomData }
    }

    /// The longest wait that an error may ask for; one that asks for more ends it. 30 s.
    pub fn max_retry_after(mut self, longest: Duration) -> Self {
        self.guard = self.guard.max_retry_after(longest);
        self
    }

    /// What events and the log call it. `retry`.
    pub fn name(mut self, name: &str) -> Self {
        self.guard = self.guard.named(name);
        self
    }

    /// Another clock than the system's.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.guard = self.guard.clock(clock);
        self
    }

    /// A seed for the jitter, so that a test is the same each time.
    pub fn seed(mut self, seed: u64) -> Self {
        self.guard = self.guard.seed(seed);
        self
    }

    /// Tells of every attempt and retry; as [`ClientBuilder::on_event`](crate::ClientBuilder::on_event).
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.guard = self.guard.on_event(hook);
        self
    }

    /// Runs it: what `.await` does, without its box.
    ///
    /// Cancel safe: dropping the future drops the operation.
    ///
    /// # Errors
    /// The operation's last error, as it is.
    ///
    /// # Panics
    /// With the system clock outside a tokio runtime, or in one without time (`enable_time`), once it has to wait.
    pub async fn call<Fut, T, E>(self) -> Result<T, E>
    where
        F: FnMut(Context) -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        J: Classify<E> + Send,
        T: Send,
        E: Send,
    {
        let Self { mut operation, judge, guard, .. } = self;
        let guard = guard.total_timeout(Duration::MAX).assemble_for_one(|_| {});
        match guard.key("").judged_by(judge).call_with(&mut operation).await {
            Ok(value) => Ok(value),
            Err(GuardError::Operation { error, .. } | GuardError::Limit { last: Some(error), .. }) => Err(error),
            // There is no limit that could have ended it but the end of all time; nothing was called then.
            Err(GuardError::Limit { last: None, .. }) => operation(guard.context_of_one()).await,
        }
    }
}

impl<F, J> Retry<'_, F, J> {
    /// Runs it on this thread, which waits where there is something to wait for.
    ///
    /// # Errors
    /// The operation's last error, as it is. In an event hook nothing is waited for: there is one attempt.
    pub fn call_blocking<T, E>(self) -> Result<T, E>
    where
        F: FnMut(Context) -> Ready<Result<T, E>>,
        J: Classify<E>,
    {
        let Self { mut operation, judge, guard, .. } = self;
        let guard = guard.total_timeout(Duration::MAX).assemble_for_one(|_| {});
        match guard.key("").judged_by(judge).call_blocking_with(|context| operation(context).into_inner()) {
            Ok(value) => Ok(value),
            Err(GuardError::Operation { error, .. } | GuardError::Limit { last: Some(error), .. }) => Err(error),
            // The end of all time, or an event hook, in which nothing may be waited for: once, and no more.
            Err(GuardError::Limit { last: None, .. }) => operation(guard.context_of_one()).into_inner(),
        }
    }
}

impl<'a, F, J, Fut, T, E> IntoFuture for Retry<'a, F, J>
where
    F: FnMut(Context) -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
    J: Classify<E> + Send + 'a,
    T: Send + 'a,
    E: Send + 'a,
{
    type Output = Result<T, E>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.call())
    }
}

impl<F, J> fmt::Debug for Retry<'_, F, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("guard", &self.guard).finish_non_exhaustive()
    }
}
