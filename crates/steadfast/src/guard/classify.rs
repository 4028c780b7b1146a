//! What an operation's error says about the dependency: asked once after each attempt.

use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// What an error of an operation means to the guard (11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The dependency failed, and nobody knows whether trying again is safe: it counts against the dependency, and is
    /// not retried. What every error is to a guard that was told nothing, so that no mail is sent twice.
    Failure,
    /// The dependency failed, and another attempt may fix it: it counts, and may be retried.
    Transient {
        /// The wait that the dependency asked for. `None`: our own backoff.
        retry_after: Option<Duration>,
    },
    /// The dependency is well and asks us to slow down, as HTTP's 429 does: it may be retried, and does not open the
    /// breaker.
    Throttled {
        /// The wait that it asked for. `None`: our own backoff.
        retry_after: Option<Duration>,
    },
    /// It answered, and said no: a mistake of the caller, nothing found. It says nothing about the dependency's health,
    /// is not retried, and passes through.
    Permanent,
    /// A limit further in refused to ask it: nothing was sent, so this is no verdict; and the limit would refuse again,
    /// so it is not retried. A fallback stands in for it.
    Refused,
}

impl ErrorClass {
    /// A transient failure, retried after our own backoff.
    pub const TRANSIENT: Self = Self::Transient { retry_after: None };

    /// What an error of a client or guard of ours means to a guard around it, as to every layer of ours: its refusal
    /// passes through, so that an open breaker further in is never retried (11.3) and opens no other; a deadline that
    /// passed further in, and an upstream that could not be reached, are [`TRANSIENT`](Self::TRANSIENT).
    ///
    /// Whether the work may be done twice is for the caller to know: for what must not be, say [`Failure`](Self::Failure)
    /// in place of a transient one.
    pub fn of_limit(limit: &Error) -> Self {
        match limit.kind() {
            ErrorKind::Timeout | ErrorKind::Unreachable => Self::TRANSIENT,
            ErrorKind::InvalidRequest => Self::Permanent,
            ErrorKind::CircuitOpen | ErrorKind::BulkheadFull | ErrorKind::RateLimited | ErrorKind::Closed => {
                Self::Refused
            }
        }
    }
}

/// Says what an operation's errors mean. Made by [`Guard::transient`](crate::Guard::transient) and
/// [`Guard::classify`](crate::Guard::classify).
pub trait Classify<E> {
    /// Whether anything may be tried again at all; then an attempt that took too long may be, too.
    const RETRIES: bool;

    /// The class of this error.
    fn class(&self, error: &E) -> ErrorClass;
}

/// Nobody said: every error is a failure, and none is retried.
#[derive(Clone, Copy, Debug)]
pub struct Unclassified;

impl<E> Classify<E> for Unclassified {
    const RETRIES: bool = false;

    fn class(&self, _: &E) -> ErrorClass {
        ErrorClass::Failure
    }
}

/// Those that the closure says yes to are transient, all others permanent.
#[derive(Clone, Copy, Debug)]
pub struct Transient<P>(pub(crate) P);

impl<E, P: Fn(&E) -> bool> Classify<E> for Transient<P> {
    const RETRIES: bool = true;

    fn class(&self, error: &E) -> ErrorClass {
        if (self.0)(error) { ErrorClass::TRANSIENT } else { ErrorClass::Permanent }
    }
}

/// The closure says.
#[derive(Clone, Copy, Debug)]
pub struct Classified<C>(pub(crate) C);

impl<E, C: Fn(&E) -> ErrorClass> Classify<E> for Classified<C> {
    const RETRIES: bool = true;

    fn class(&self, error: &E) -> ErrorClass {
        (self.0)(error)
    }
}

/// Takes the wait that the dependency asked for out of the error.
#[derive(Clone, Copy, Debug)]
pub struct WithRetryAfter<J, H> {
    pub(crate) judge: J,
    pub(crate) hint: H,
}

impl<E, J: Classify<E>, H: Fn(&E) -> Option<Duration>> Classify<E> for WithRetryAfter<J, H> {
    const RETRIES: bool = J::RETRIES;

    fn class(&self, error: &E) -> ErrorClass {
        match self.judge.class(error) {
            ErrorClass::Transient { retry_after: None } => ErrorClass::Transient { retry_after: (self.hint)(error) },
            ErrorClass::Throttled { retry_after: None } => ErrorClass::Throttled { retry_after: (self.hint)(error) },
            class => class,
        }
    }
}
