//! The steps of a script: what an upstream does with one request.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use steadfast_http::{Fault, Sent};

/// The pieces of a body that follow the head, each so long after the one before.
#[derive(Clone, Debug, Default)]
pub(super) struct Rest {
    pub(super) pieces: VecDeque<(Duration, Bytes)>,
    pub(super) end: End,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum End {
    #[default]
    Whole,
    Cut(Fault),
    Stall,
}

/// What the upstream does with one request.
#[derive(Clone, Debug)]
pub struct Step {
    pub(super) after: Duration,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Respond { status: u16, headers: Vec<(String, Vec<u8>)>, body: Bytes, rest: Option<Rest> },
    Fail { fault: Fault, sent: Sent },
    Hang,
    Drip { every: Duration },
}

impl Step {
    fn new(action: Action) -> Self {
        Self { after: Duration::ZERO, action }
    }

    /// Answers with this status and an empty body.
    pub fn status(status: u16) -> Self {
        Self::new(Action::Respond { status, headers: Vec::new(), body: Bytes::new(), rest: None })
    }

    /// Refuses the connection: nothing is sent.
    pub fn refuse() -> Self {
        Self::fail(Fault::Connect, Sent::No)
    }

    /// Resets the connection after the request was written.
    pub fn reset() -> Self {
        Self::fail(Fault::Reset, Sent::Unknown)
    }

    /// Fails in this way.
    pub fn fail(fault: Fault, sent: Sent) -> Self {
        Self::new(Action::Fail { fault, sent })
    }

    /// Accepts the request and never answers: the read timeout ends it, or an earlier limit.
    pub fn hang() -> Self {
        Self::new(Action::Hang)
    }

    /// Sends a piece of a body for ever, so that no read timeout ends it.
    pub fn drip(every: Duration) -> Self {
        Self::new(Action::Drip { every })
    }

    /// With this response header; values are bytes, as they are on the wire.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        if let Action::Respond { headers, .. } = &mut self.action {
            headers.push((name.to_owned(), value.as_ref().to_vec()));
        }
        self
    }

    /// With this response body.
    #[must_use]
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        if let Action::Respond { body, .. } = &mut self.action {
            *body = bytes.into();
        }
        self
    }

    /// With one more piece of the body, so long after the one before it. The head comes at once.
    #[must_use]
    pub fn piece(mut self, after: Duration, bytes: impl Into<Bytes>) -> Self {
        if let Some(rest) = self.rest() {
            rest.pieces.push_back((after, bytes.into()));
        }
        self
    }

    /// The body fails in this way after its last piece.
    #[must_use]
    pub fn cut(mut self, fault: Fault) -> Self {
        if let Some(rest) = self.rest() {
            rest.end = End::Cut(fault);
        }
        self
    }

    /// Nothing comes after the last piece, not even the end.
    #[must_use]
    pub fn stall(mut self) -> Self {
        if let Some(rest) = self.rest() {
            rest.end = End::Stall;
        }
        self
    }

    fn rest(&mut self) -> Option<&mut Rest> {
        match &mut self.action {
            Action::Respond { rest, .. } => Some(rest.get_or_insert_default()),
            _ => None,
        }
    }

    /// Whether the upstream gets to see the request.
    pub(super) fn reads(&self) -> bool {
        !matches!(self.action, Action::Fail { sent: Sent::No, .. })
    }

    /// Takes this long first.
    #[must_use]
    pub fn after(mut self, duration: Duration) -> Self {
        self.after = duration;
        self
    }
}
