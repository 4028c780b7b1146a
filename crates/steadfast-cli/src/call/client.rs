//! The one client that all calls of a run share, and the translation of what it returns.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Instant;

use steadfast::report::{AttemptRecord, WaitRecord};
use steadfast::transport::{TlsFailure, TransportError};
use steadfast::{Error, ErrorKind, Report, RequestBuilder, Response, ServiceClient, StreamingResponse};

use super::plan::{Plan, Request, Target};
use super::record::{Attempt, Line, Record, Wait};
use crate::exit::Exit;
use crate::output::{self, WaitMs, ceil_ms};
use crate::settings;

/// Makes the calls.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    client: ServiceClient,
    request: Arc<Request>,
    upstream: String,
    method: String,
    fail: bool,
}

impl Caller {
    /// The client that the plan asks for; what stands in the way is said on standard error.
    pub(crate) fn new(plan: &Plan) -> Result<Self, Exit> {
        let loader = match &plan.target {
            Target::Configured { file, table, env_prefix } => {
                settings::from_file(file.as_deref(), table.as_deref(), env_prefix)
            }
            Target::Url { base_url } => settings::from_url(&plan.upstream, base_url),
        };
        let config = settings::load(loader, &plan.upstream, &plan.settings).map_err(|problems| {
            settings::report_call(&problems, &plan.target.path(&plan.upstream), &plan.settings);
            Exit::Config
        })?;
        settings::warn(&config);
        let clients = settings::clients(&config).map_err(|unusable| {
            unusable.report(&plan.settings);
            Exit::Config
        })?;
        let client = clients.client(&plan.upstream).map_err(|error| {
            let exit = complain(&error, Exit::Usage);
            if matches!(&plan.target, Target::Configured { file: None, .. }) {
                output::note(
                    "note: no --config was given, and there is no steadfast.toml here; only the environment was read",
                );
            }
            exit
        })?;
        Ok(Self {
            client,
            upstream: plan.upstream.clone(),
            method: plan.request.method.to_string(),
            request: Arc::new(plan.request.clone()),
            fail: plan.fail,
        })
    }

    /// The request, ready to be sent.
    fn request(&self) -> RequestBuilder {
        let mut request = self.client.request(self.request.method.clone(), &self.request.path);
        for (name, value) in &self.request.headers {
            request = request.header(name.clone(), value.clone());
        }
        if let Some(body) = &self.request.body {
            request = request.body(body.clone());
        }
        if let Some(key) = &self.request.idempotency_key {
            request = request.idempotency_key(key);
        }
        if let Some(retry) = self.request.retry {
            request = request.retry(retry);
        }
        if let Some(timeout) = self.request.timeout {
            request = request.timeout(timeout);
        }
        request
    }

    /// Makes the call, and hands its response over as soon as the head is there.
    pub(crate) async fn stream(&self) -> Result<StreamingResponse, Error> {
        self.request().send_streaming().await
    }

    /// How the command ends after a response with this status.
    pub(crate) fn exit_of_status(&self, status: u16) -> Exit {
        if self.fail && status >= 400 { Exit::Failed } else { Exit::Ok }
    }

    /// Makes call number `call`.
    pub(crate) async fn call(self, call: u64) -> Record {
        let request = self.request();
        let began = Instant::now();
        let result = request.send().await;
        let elapsed = began.elapsed();
        match result {
            Ok(response) => self.responded(call, &response).into_record(elapsed),
            Err(error) => self.failed(call, &error).into_record(elapsed),
        }
    }

    /// Closes the client's connections.
    pub(crate) async fn close(&self) {
        self.client.close().await;
    }

    fn responded(&self, call: u64, response: &Response) -> Ending {
        let status = response.status().as_u16();
        Ending {
            line: Line { status: Some(status), ..self.line(call, response.report()) },
            exit: self.exit_of_status(status),
            message: None,
            body: Some(response.bytes().clone()),
        }
    }

    fn failed(&self, call: u64, error: &Error) -> Ending {
        let line = Line { error: Some(error.kind().name()), ..self.line(call, error.report()) };
        Ending { line, exit: exit_of(error.kind()), message: Some(in_words(error)), body: None }
    }

    fn line(&self, call: u64, report: &Report) -> Line {
        let attempt = |attempt: &AttemptRecord| Attempt {
            attempt: attempt.number,
            start_ms: attempt.start.into(),
            duration_ms: attempt.duration.into(),
            outcome: attempt.outcome.name(),
            sent: attempt.sent.name(),
        };
        let wait = |wait: &WaitRecord| Wait { ms: WaitMs(wait.duration.into()), reason: wait.reason.name() };
        Line {
            call,
            upstream: self.upstream.clone(),
            method: self.method.clone(),
            status: None,
            error: None,
            attempts: report.attempts().map(attempt).collect(),
            waits: report.waits().iter().map(wait).collect(),
            ended: report.ended().name(),
            retry_after_ms: report.retry_after().map(ceil_ms),
            breaker: self.client.snapshot().breaker.state.name(),
        }
    }
}

/// A call's end before its duration is added.
struct Ending {
    line: Line,
    exit: Exit,
    message: Option<String>,
    body: Option<bytes::Bytes>,
}

impl Ending {
    fn into_record(self, elapsed: std::time::Duration) -> Record {
        Record { line: self.line, elapsed, exit: self.exit, message: self.message, body: self.body }
    }
}

/// How the command ends after such an error.
pub(super) fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::CircuitOpen => Exit::CircuitOpen,
        ErrorKind::BulkheadFull => Exit::BulkheadFull,
        ErrorKind::Timeout => Exit::Timeout,
        ErrorKind::Unreachable => Exit::Unreachable,
        ErrorKind::RateLimited => Exit::RateLimited,
        ErrorKind::InvalidRequest => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// The error, and what lies behind it: its own text names no cause, and whoever calls from a terminal looks for one.
pub(super) fn in_words(error: &Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(behind) = cause {
        let text = behind.to_string();
        // The transport's error is the kind that the words name already; others end with the text of what is behind them.
        if !behind.is::<TransportError>() && !words.ends_with(&text) {
            words.push_str(": ");
            words.push_str(&text);
        }
        // Behind its sentence is the TLS library's own way to say the same.
        cause = if behind.is::<TlsFailure>() { None } else { behind.source() };
    }
    words
}

fn complain(error: &dyn std::error::Error, exit: Exit) -> Exit {
    output::note(&format!("error: {error}"));
    exit
}
