//! How a guarded call fails: by the operation's own error, or by a limit of ours. The two are never mixed up (11.3).

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::classify::ErrorClass;
use crate::error::{BoxError, Error, ErrorKind};
use crate::report::Report;

/// How a guarded call fails.
#[derive(Debug)]
#[non_exhaustive]
pub enum GuardError<E> {
    /// The operation's own last error, as it is.
    Operation {
        /// The dependency's name.
        upstream: Arc<str>,
        /// The error.
        error: E,
        /// Every attempt and wait.
        report: Box<Report>,
    },
    /// A limit ended the call: deadline, attempt timeout, open breaker, full bulkhead, rate limit.
    Limit {
        /// Which, and what happened before.
        error: Error,
        /// The operation's last error before that, if it had one.
        last: Option<E>,
    },
}

impl<E> GuardError<E> {
    /// The dependency's name.
    pub fn upstream(&self) -> &str {
        match self {
            Self::Operation { upstream, .. } => upstream,
            Self::Limit { error, .. } => error.upstream(),
        }
    }

    /// Every attempt and wait.
    pub fn report(&self) -> &Report {
        match self {
            Self::Operation { report, .. } => report,
            Self::Limit { error, .. } => error.report(),
        }
    }

    /// The limit that ended the call, if it was one.
    pub fn limit(&self) -> Option<ErrorKind> {
        match self {
            Self::Operation { .. } => None,
            Self::Limit { error, .. } => Some(error.kind()),
        }
    }

    /// When it makes sense to call again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.report().retry_after()
    }

    /// The operation's last error, whatever ended the call.
    pub fn operation(&self) -> Option<&E> {
        match self {
            Self::Operation { error, .. } => Some(error),
            Self::Limit { last, .. } => last.as_ref(),
        }
    }

    /// What it means to a guard around the one that it comes from: a limit what [`ErrorClass::of_limit`] says, an error of
    /// the operation what `operation` says. So an open breaker further in is not retried further out, nor held against
    /// the outer breaker.
    ///
    /// ```
    /// # use std::io;
    /// # use steadfast::{ErrorClass, Guard, GuardError};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let region = Guard::builder("region").attempts(3).build()?;
    /// let mailer = Guard::builder("mail").attempts(1).build()?;
    /// mailer.force_open();
    /// let refused = region
    ///     .classify(|error: &GuardError<io::Error>| error.class(|_| ErrorClass::TRANSIENT))
    ///     .call(|| mailer.call(|| async { Ok::<_, io::Error>(()) }))
    ///     .await
    ///     .unwrap_err();
    /// assert_eq!(refused.report().attempt_count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn class(&self, operation: impl FnOnce(&E) -> ErrorClass) -> ErrorClass {
        match self {
            Self::Operation { error, .. } => operation(error),
            Self::Limit { error, .. } => ErrorClass::of_limit(error),
        }
    }

    /// The operation's own error if that ended the call, for code that is told of it alone.
    ///
    /// # Errors
    /// The limit that ended the call.
    pub fn into_operation(self) -> Result<E, Error> {
        match self {
            Self::Operation { error, .. } => Ok(error),
            Self::Limit { error, .. } => Err(error),
        }
    }
}

impl<E: Into<BoxError>> GuardError<E> {
    /// One boxed error: the operation's own, unwrapped, or the limit's [`Error`] with the operation's last one as its
    /// source. For operations whose error is boxed already, which cannot be the source of another type's.
    pub fn into_box(self) -> BoxError {
        match self {
            Self::Operation { error, .. } => error.into(),
            Self::Limit { error, last } => Box::new(error.with_source(last.map(Into::into))),
        }
    }
}

impl<E: fmt::Display> fmt::Display for GuardError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation { error, .. } => error.fmt(f),
            Self::Limit { error, .. } => error.fmt(f),
        }
    }
}

impl<E: StdError + 'static> StdError for GuardError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Operation { error, .. } => error.source(),
            Self::Limit { error, last: None } => error.source(),
            Self::Limit { last, .. } => last.as_ref().map(|last| last as &(dyn StdError + 'static)),
        }
    }
}
