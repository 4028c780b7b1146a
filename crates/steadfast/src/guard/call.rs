//! One call of a guard: what its caller chooses, and the last word.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast_http::CallContext;

use super::classify::{Asked, Classified, Classify, ErrorClass, Transient, Unclassified, WithRetryAfter};
use super::context::Context;
use super::error::GuardError;
use super::operation::ClosureOperation;
use super::served::{Fallback, FallbackValue, FallbackWith, NoFallback, Served};
use super::{Guard, Guarded};
use crate::call::{Call, Finished, Options};
use crate::degraded::{self, Degraded};
use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::report::{Ended, Outcome, Report};

/// A call of a [`Guard`] that is being prepared: which errors may be retried, whose rate limit it counts in, how long it may
/// take, what is served instead.
///
/// It ends with [`call`](Self::call), [`call_with`](Self::call_with), or [`serve`](Self::serve).
#[must_use = "nothing is called until the last word: call, call_with, or serve"]
#[derive(Clone, Copy)]
pub struct GuardCall<'a, J = Unclassified, B = NoFallback> {
    pub(super) guard: &'a Guard,
    pub(super) options: Options<'a>,
    pub(super) judge: J,
    pub(super) fallback: B,
}

impl<'a> GuardCall<'a> {
    pub(super) fn new(guard: &'a Guard) -> Self {
        let options = Options {
            key: "",
            timeout: None,
            deadline: None,
            inherited: None,
            of_task: true,
            timeout_is_evidence: true,
            bell: None,
        };
        Self { guard, options, judge: Unclassified, fallback: NoFallback }
    }
}

impl<'a, J, B> GuardCall<'a, J, B> {
    /// Which errors another attempt may fix: they count against the dependency and may be retried. Another error passes
    /// through after one attempt, and is no verdict (11.2).
    ///
    /// It also says that the operation may be run again: an attempt that took longer than
    /// [`attempt_timeout`](super::GuardBuilder::attempt_timeout) is.
    pub fn transient<E, P: Fn(&E) -> bool>(self, transient: P) -> GuardCall<'a, Transient<P>, B> {
        self.judged_by(Transient(transient))
    }

    /// The same in full: what each error means.
    pub fn classify<E, C: Fn(&E) -> ErrorClass>(self, classify: C) -> GuardCall<'a, Classified<C>, B> {
        self.judged_by(Classified(classify))
    }

    pub(crate) fn judged_by<K>(self, judge: K) -> GuardCall<'a, K, B> {
        GuardCall { guard: self.guard, options: self.options, judge, fallback: self.fallback }
    }

    /// Takes the wait that the dependency asked for out of an error that may be retried: it is waited for exactly, if it is
    /// not longer than [`max_retry_after`](super::GuardBuilder::max_retry_after) and the deadline allow. To be said after
    /// [`transient`](Self::transient) or [`classify`](Self::classify).
    pub fn retry_after<E, H: Fn(&E) -> Option<Duration>>(self, hint: H) -> GuardCall<'a, WithRetryAfter<J, H>, B> {
        let judge = WithRetryAfter { judge: self.judge, hint };
        GuardCall { guard: self.guard, options: self.options, judge, fallback: self.fallback }
    }

    /// Whose rate limit this call counts in: a tenant, a host. `""` unless set.
    pub fn key(mut self, key: &'a str) -> Self {
        self.options.key = key;
        self
    }

    /// A deadline of this call's own. It can only shorten the guard's.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(self.options.timeout.map_or(timeout, |known| known.min(timeout)));
        self
    }

    /// The deadline of the request being served. It can only shorten the guard's, and an attempt that it cuts counts
    /// against the dependency only if it had time enough to be answered (1.5).
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.options.deadline = Some(self.options.deadline.map_or(deadline, |known| known.min(deadline)));
        self
    }

    /// The request being served: what is left of its deadline limits this call, as with [`deadline`](Self::deadline).
    /// Unless given, that of the task, where it has one: see [`context`](crate::context).
    pub fn context(mut self, context: &CallContext) -> Self {
        let inherited = context.time_left().map(|left| self.guard.0.upstream.clock.now() + left);
        self.options.of_task = false;
        self.options.inherited = self.options.inherited.into_iter().chain(inherited).min();
        self
    }

    /// What is served where the call brings nothing: because a limit refused or ended it, or because the dependency failed
    /// to the last attempt. A permanent error, which is an answer, passes through. What was served instead is marked as
    /// degraded (11.5): see [`serve`](Self::serve) and [`degraded`](crate::degraded).
    pub fn fallback<T>(self, value: T) -> GuardCall<'a, J, FallbackValue<T>> {
        self.or_else(FallbackValue(value))
    }

    /// The same, made when it is needed, of the error that the call would have ended with.
    pub fn fallback_with<T, E, F>(self, fallback: F) -> GuardCall<'a, J, FallbackWith<F>>
    where
        F: FnOnce(&GuardError<E>) -> T,
    {
        self.or_else(FallbackWith(fallback))
    }

    fn or_else<C>(self, fallback: C) -> GuardCall<'a, J, C> {
        GuardCall { guard: self.guard, options: self.options, judge: self.judge, fallback }
    }

    /// Runs the operation.
    ///
    /// Cancel safe: dropping the future drops the operation and gives everything back.
    ///
    /// # Errors
    /// The operation's own last error, or the limit that ended the call; with a fallback only a permanent error.
    ///
    /// # Panics
    /// With the system clock outside a tokio runtime, or in one without time (`enable_time`), once something has to be
    /// waited for.
    // No future of its own around the other's, which would be moved once more.
    #[inline]
    pub fn call<T, E, F, Fut>(self, mut operation: F) -> impl Future<Output = Result<T, GuardError<E>>>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        J: Classify<E> + Send,
        B: Fallback<T, E> + Send,
        T: Send,
        E: Send,
    {
        self.call_with(move |_| operation())
    }

    /// Runs the operation, which is told the number of its attempt, the time that is left, and the call's idempotency key.
    ///
    /// Cancel safe, errors, panics: as [`call`](Self::call).
    ///
    /// # Errors
    /// See [`call`](Self::call).
    // No `async fn`, which would move its arguments once more when it begins.
    pub fn call_with<T, E, F, Fut>(self, operation: F) -> impl Future<Output = Result<T, GuardError<E>>>
    where
        F: FnMut(Context) -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        J: Classify<E> + Send,
        B: Fallback<T, E> + Send,
        T: Send,
        E: Send,
    {
        async move {
            let guarded = &*self.guard.0;
            let mut operation = guarded.operation(operation, self.judge);
            let mut call = Call::begin(&guarded.upstream, &guarded.rules, &self.options);
            let finished = call.run(&mut operation).await;
            if let Some(Ok(value)) = finished.response {
                return Ok(value);
            }
            let error = guarded.error(finished, call.kind(), call.report());
            if !B::EXISTS {
                return Err(error);
            }
            guarded.instead(&operation.judge, self.fallback, error).map(|(value, _)| value)
        }
    }

    /// Runs the operation, and tells how the value came: every attempt and wait, and whether it is the fallback's.
    ///
    /// Cancel safe, errors, panics: as [`call`](Self::call).
    ///
    /// # Errors
    /// See [`call`](Self::call).
    pub async fn serve<T, E, F, Fut>(self, operation: F) -> Result<Served<T>, GuardError<E>>
    where
        F: FnMut(Context) -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        J: Classify<E> + Send,
        B: Fallback<T, E> + Send,
        T: Send,
        E: Send,
    {
        let Self { guard, options, judge, fallback } = self;
        let guarded = &*guard.0;
        let mut operation = guarded.operation(operation, judge);
        let mut call = Call::begin(&guarded.upstream, &guarded.rules, &options);
        let finished = call.run(&mut operation).await;
        let report = call.report();
        if let Some(Ok(value)) = finished.response {
            return Ok(Served { value, degraded: None, report });
        }
        let error = guarded.error(finished, call.kind(), report.clone());
        let (value, degraded) = guarded.instead(&operation.judge, fallback, error)?;
        Ok(Served { value, degraded: Some(degraded), report })
    }
}

/// Without its key, which may be a secret.
impl<J, B> fmt::Debug for GuardCall<'_, J, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardCall")
            .field("guard", self.guard)
            .field("timeout", &self.options.timeout)
            .finish_non_exhaustive()
    }
}

impl Guarded {
    pub(super) fn operation<F, J>(&self, operation: F, judge: J) -> ClosureOperation<F, Asked<J>> {
        ClosureOperation { operation, judge: Asked::new(judge), slow_after: self.slow_after, key: self.keys.next() }
    }

    /// What a call that brought no value ends with.
    fn error<T, E>(&self, finished: Finished<Result<T, E>>, kind: ErrorKind, report: Report) -> GuardError<E> {
        self.error_of(finished.failure.and_then(|failure| failure.err()), kind, report)
    }

    /// 11.3: an open breaker is never an operation's error, even where it opened on this very call; nor is an attempt that
    /// we cut.
    pub(super) fn error_of<E>(&self, last: Option<E>, kind: ErrorKind, report: Report) -> GuardError<E> {
        let ended = report.ended();
        let is_own = kind == ErrorKind::Unreachable
            && ended != Ended::CircuitOpen
            && report.attempts().last().is_some_and(|last| last.outcome == Outcome::Error);
        match last {
            Some(error) if is_own => {
                let upstream = Arc::clone(&self.upstream.name);
                GuardError::Operation { upstream, error, report: Box::new(report) }
            }
            last => {
                let kind = if ended == Ended::CircuitOpen { ErrorKind::CircuitOpen } else { kind };
                GuardError::Limit { error: Error::new(kind, &self.upstream.name, report), last }
            }
        }
    }

    /// The fallback's value, marked and told of; or the error.
    pub(super) fn instead<T, E, J, B>(
        &self,
        judge: &Asked<J>,
        fallback: B,
        cause: GuardError<E>,
    ) -> Result<(T, Degraded), GuardError<E>>
    where
        B: Fallback<T, E>,
    {
        // An operation's error that ends the call is the last that the judge was asked about.
        if matches!(cause, GuardError::Operation { .. }) && judge.said_permanent() {
            return Err(cause);
        }
        let degraded = Degraded::of(&self.upstream.name, cause.report());
        let value = fallback.instead(cause)?;
        degraded::note(degraded.clone());
        self.upstream
            .events
            .emit(|| Event::Degraded { upstream: self.upstream.name.clone(), reason: degraded.reason() });
        Ok((value, degraded))
    }
}
