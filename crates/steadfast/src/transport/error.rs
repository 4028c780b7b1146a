//! A typed transport error.

use std::error::Error as StdError;
use std::fmt;

use steadfast_http::{Fault, Sent};

use crate::error::{BoxError, Error};

/// Why an attempt got no (whole) response, and whether anything of the request was sent.
#[derive(Debug)]
pub struct TransportError {
    fault: Fault,
    sent: Sent,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl TransportError {
    /// An error of this kind.
    pub fn new(fault: Fault, sent: Sent) -> Self {
        Self { fault, sent, source: None }
    }

    /// The same error with the low-level one behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error, where an earlier exchange of the same attempt may have reached the upstream.
    pub(crate) fn sent_before(mut self) -> Self {
        self.sent = Sent::Unknown;
        self
    }

    /// The same error, unless it is only what came of a request's body that failed.
    pub(crate) fn or_blame(self, failure: Option<Box<dyn StdError + Send + Sync>>) -> Self {
        match failure {
            Some(source) => Self::new(Fault::RequestBody, self.sent).with_source(source),
            None => self,
        }
    }

    /// The low-level error, to be put behind another one.
    pub(crate) fn into_source(self) -> Option<Box<dyn StdError + Send + Sync>> {
        self.source
    }

    /// The refusal of a client or layer of ours further in, if that is what this error is about.
    pub(crate) fn into_refusal(mut self) -> Result<Error, Self> {
        match self.source.take().map(|source| source.downcast::<Error>()) {
            Some(Ok(error)) if error.kind().is_refusal() => Ok(*error),
            Some(Ok(error)) => Err(self.with_source(error as BoxError)),
            Some(Err(other)) => Err(self.with_source(other)),
            None => Err(self),
        }
    }

    /// What went wrong, and in which phase.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// Whether anything of the request can have reached the upstream.
    pub fn sent(&self) -> Sent {
        self.sent
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)
    }
}

impl StdError for TransportError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
