//! The steps of a scripted operation: what it does with one call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a scripted operation does with one call. A `Result` is one that is returned at once.
pub struct Reply<T, E> {
    pub(super) after: Duration,
    pub(super) action: Action<T, E>,
}

pub(super) enum Action<T, E> {
    Return(Arc<dyn Fn() -> Result<T, E> + Send + Sync>),
    Hang,
    Panic(Arc<str>),
}

impl<T, E> Reply<T, E> {
    fn new(action: Action<T, E>) -> Self {
        Self { after: Duration::ZERO, action }
    }

    /// Returns this value.
    pub fn ok(value: T) -> Self
    where
        T: Clone + Send + Sync + 'static,
    {
        Self::with(move || Ok(value.clone()))
    }

    /// Fails with this error.
    pub fn err(error: E) -> Self
    where
        E: Clone + Send + Sync + 'static,
    {
        Self::with(move || Err(error.clone()))
    }

    /// Returns what this makes, each time anew: for errors that cannot be cloned, as `std::io::Error` cannot.
    pub fn with(make: impl Fn() -> Result<T, E> + Send + Sync + 'static) -> Self {
        Self::new(Action::Return(Arc::new(make)))
    }

    /// Never returns: a limit ends it. If the script is [played](super::ScriptedOperation::play) anew before, it is answered from
    /// that.
    pub fn hang() -> Self {
        Self::new(Action::Hang)
    }

    /// Panics with this message. The panic hook, which would print it, is not called.
    pub fn panic(message: &str) -> Self {
        Self::new(Action::Panic(message.into()))
    }

    /// Takes this long first.
    #[must_use]
    pub fn after(mut self, duration: Duration) -> Self {
        self.after = duration;
        self
    }
}

impl<T, E> From<Result<T, E>> for Reply<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
{
    fn from(result: Result<T, E>) -> Self {
        Self::with(move || result.clone())
    }
}

impl<T, E> Clone for Reply<T, E> {
    fn clone(&self) -> Self {
        let action = match &self.action {
            Action::Return(make) => Action::Return(Arc::clone(make)),
            Action::Hang => Action::Hang,
            Action::Panic(message) => Action::Panic(Arc::clone(message)),
        };
        Self { after: self.after, action }
    }
}

impl<T, E> fmt::Debug for Reply<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match &self.action {
            Action::Return(_) => "return",
            Action::Hang => "hang",
            Action::Panic(_) => "panic",
        };
        f.debug_struct("Reply").field("after", &self.after).field("action", &action).finish()
    }
}
