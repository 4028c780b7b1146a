//! What is known of a finished call, and the line of JSON it becomes.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{Ms, WaitMs};

/// One finished call.
#[derive(Debug)]
pub(crate) struct Record {
    /// What machines are told.
    pub(crate) line: Line,
    /// From the call's start to its end.
    pub(crate) elapsed: Duration,
    /// How the command would end if this were the last call.
    pub(crate) exit: Exit,
    /// The error in words, where there was one.
    pub(crate) message: Option<String>,
    /// The response's body.
    pub(crate) body: Option<Bytes>,
}

/// The line of one call. The order of the fields is part of the format.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    /// Its number, from 1, in order of start.
    pub(crate) call: u64,
    pub(crate) upstream: String,
    pub(crate) method: String,
    /// The response's status; `null` where an error came instead.
    pub(crate) status: Option<u16>,
    /// The error's kind; `null` where a response came.
    pub(crate) error: Option<&'static str>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) waits: Vec<Wait>,
    /// Why the call ended.
    pub(crate) ended: &'static str,
    /// When a new call makes sense, where that is known; rounded up.
    pub(crate) retry_after_ms: Option<u64>,
    /// The circuit breaker after the call.
    pub(crate) breaker: &'static str,
}

/// One attempt.
#[derive(Debug, Serialize)]
pub(crate) struct Attempt {
    pub(crate) attempt: u32,
    /// Since the start of the call.
    pub(crate) start_ms: Ms,
    pub(crate) duration_ms: Ms,
    /// The status, or what went wrong.
    pub(crate) outcome: Cow<'static, str>,
    /// Whether anything of the request can have reached the upstream.
    pub(crate) sent: &'static str,
}

/// One wait.
#[derive(Debug, Serialize)]
pub(crate) struct Wait {
    pub(crate) ms: WaitMs,
    pub(crate) reason: &'static str,
}

impl Line {
    /// The status or the error, as a key of the summary.
    pub(crate) fn outcome(&self) -> Cow<'static, str> {
        match (self.status, self.error) {
            (Some(status), _) => Cow::Owned(status.to_string()),
            (None, error) => Cow::Borrowed(error.unwrap_or("unknown")),
        }
    }
}
