//! What a guarded call brings, with its story; and what is served instead where it brings nothing.

use super::error::GuardError;
use crate::degraded::Degraded;
use crate::report::Report;

/// A value, how it came, and whether it stands in for another.
#[derive(Clone, Debug)]
#[must_use = "a degraded value should be shown as one"]
pub struct Served<T> {
    pub(super) value: T,
    pub(super) degraded: Option<Degraded>,
    pub(super) report: Report,
}

impl<T> Served<T> {
    /// The value: the operation's, or the fallback's.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }

    /// Which dependency failed and why, if the value is the fallback's (11.5).
    pub fn degraded(&self) -> Option<&Degraded> {
        self.degraded.as_ref()
    }

    /// Whether the value is the fallback's.
    pub fn is_degraded(&self) -> bool {
        self.degraded.is_some()
    }

    /// Every attempt, every wait, and why the call ended.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

/// What is served where a call brings nothing. Made by [`Guard::fallback`](crate::Guard::fallback) and
/// [`Guard::fallback_with`](crate::Guard::fallback_with).
pub trait Fallback<T, E> {
    /// Whether there is one.
    const EXISTS: bool;

    /// The value instead, or the error where there is none.
    ///
    /// # Errors
    /// `cause`, as it came.
    fn instead(self, cause: GuardError<E>) -> Result<T, GuardError<E>>;
}

/// The error is passed on.
#[derive(Clone, Copy, Debug)]
pub struct NoFallback;

impl<T, E> Fallback<T, E> for NoFallback {
    const EXISTS: bool = false;

    fn instead(self, cause: GuardError<E>) -> Result<T, GuardError<E>> {
        Err(cause)
    }
}

/// Always this value.
#[derive(Clone, Copy, Debug)]
pub struct FallbackValue<T>(pub(super) T);

impl<T, E> Fallback<T, E> for FallbackValue<T> {
    const EXISTS: bool = true;

    fn instead(self, _: GuardError<E>) -> Result<T, GuardError<E>> {
        Ok(self.0)
    }
}

/// Whatever the closure makes of the cause.
#[derive(Clone, Copy, Debug)]
pub struct FallbackWith<F>(pub(super) F);

impl<T, E, F: FnOnce(&GuardError<E>) -> T> Fallback<T, E> for FallbackWith<F> {
    const EXISTS: bool = true;

    fn instead(self, cause: GuardError<E>) -> Result<T, GuardError<E>> {
        Ok((self.0)(&cause))
    }
}
