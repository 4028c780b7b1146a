//! `steadfast call` against scripted servers on loopback: the cases of the contract that a caller and an upstream can
//! observe, one test each, named by its case. What is asserted: requests at the server, waits, result, exit status.

mod breaker;
mod bulkhead;
mod connection;
mod output;
mod request;
mod retries;
mod retry_after;
mod server;
mod stream;
mod timeouts;

use serde_json::Value;

use crate::support::{Run, steadfast};

/// A run of `call --output json`: a line per call, and the summary.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) code: i32,
    pub(crate) calls: Vec<Value>,
    pub(crate) summary: Value,
    pub(crate) run: Run,
}

/// Calls this URL, with these keys set and these further arguments.
pub(crate) fn call(url: &str, keys: &[&str], args: &[&str]) -> Called {
    let mut all = vec!["call", "--output", "json", "--url", url];
    for key in keys {
        all.extend(["--set", key]);
    }
    all.extend(args);
    called(steadfast(&all))
}

/// Splits what was printed.
pub(crate) fn called(run: Run) -> Called {
    let mut calls = run.lines();
    let summary = calls.pop().unwrap_or_else(|| panic!("no output: {run:?}"));
    assert_eq!(summary["summary"], true, "{run:?}");
    assert_eq!(summary["calls"], calls.len(), "{run:?}");
    Called { code: run.code, calls, summary, run }
}

impl Called {
    /// The line of the only call.
    pub(crate) fn only(&self) -> &Value {
        assert_eq!(self.calls.len(), 1, "{self:?}");
        &self.calls[0]
    }

    /// The lines in order of the calls' numbers.
    pub(crate) fn by_number(&self) -> Vec<&Value> {
        let mut calls: Vec<_> = self.calls.iter().collect();
        calls.sort_by_key(|call| call["call"].as_u64());
        calls
    }

    /// How many calls ended with this error.
    pub(crate) fn errors(&self, kind: &str) -> usize {
        self.calls.iter().filter(|call| call["error"] == kind).count()
    }

    /// How many calls ended with this status.
    pub(crate) fn statuses(&self, status: u16) -> usize {
        self.calls.iter().filter(|call| call["status"] == status).count()
    }
}

/// The waits of a call for this reason, in milliseconds; it must have no others.
pub(crate) fn waits(call: &Value, reason: &str) -> Vec<f64> {
    let waits = call["waits"].as_array().expect("waits");
    waits
        .iter()
        .map(|wait| {
            assert_eq!(wait["reason"], reason, "{call}");
            wait["ms"].as_f64().expect("milliseconds")
        })
        .collect()
}

/// The outcomes of a call's attempts.
pub(crate) fn outcomes(call: &Value) -> Vec<&str> {
    let attempts = call["attempts"].as_array().expect("attempts");
    attempts.iter().map(|attempt| attempt["outcome"].as_str().expect("an outcome")).collect()
}
