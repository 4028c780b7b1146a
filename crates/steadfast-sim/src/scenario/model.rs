//! A scenario as data: what is called and how, what stands behind it, and what is expected. Nothing here runs.
//!
//! Everything has been checked by the reader: names are known, of keys that exclude each other one is there, and what is
//! expected fits what is done.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use steadfast::config::{Config, Loader, Problems};
use steadfast::report::WaitReason;
use steadfast::{ErrorClass, ErrorKind};

use super::range::Range;

/// One scenario: a file.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file, as it was named.
    pub file: String,
    /// One sentence that says what is to be seen.
    pub title: String,
    /// Which variant of the file it is, such as `method = GET`; empty if there is but one.
    pub variant: String,
    /// The numbers of the statements and cases that it shows, such as `4.4` and `C22`.
    pub contract: Vec<String>,
    /// Why it is so, in prose.
    pub why: String,
    /// Where all chance comes from.
    pub seed: u64,
    /// The upstreams and guards with their settings.
    pub settings: Settings,
    /// What they play from the beginning, and what a step may have them play, by name.
    pub scripts: BTreeMap<String, Script>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// Where the settings come from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Reads them; the environment is not asked.
    pub(super) loader: Loader,
    /// What it read.
    pub(super) config: Config,
}

impl Settings {
    /// The settings as the scenario says them.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The same with another `base_url` for these upstreams, which real servers on loopback stand behind. A path that is to
    /// stay is part of the URL given.
    ///
    /// # Errors
    /// A URL that cannot be one.
    pub fn config_at(&self, base_urls: &BTreeMap<String, String>) -> Result<Config, Problems> {
        let at = |loader: Loader, (name, url): (&String, &String)| loader.set(name, "base_url", url);
        base_urls.iter().fold(self.loader.clone(), at).load()
    }
}

/// What an upstream or a guarded operation does, request by request. The last one repeats.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Script {
    /// Of an upstream.
    Replies(Vec<Reply>),
    /// Of an operation behind a guard.
    Answers(Vec<Answer>),
}

/// What an upstream does with one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The requests that this is for: all, if it is `None`.
    pub route: Option<Route>,
    /// For so many requests in a row.
    pub times: u32,
    /// How long it takes first.
    pub after: Duration,
    /// What it does then.
    pub act: Act,
}

/// What comes after the wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A response.
    Respond(Respond),
    /// Nothing, for ever, with the request taken.
    Hang,
    /// The connection is refused.
    Refuse,
    /// The connection is reset, before the request was read or after it.
    Reset {
        /// Whether the upstream has read the request by then.
        read: bool,
    },
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub struct Respond {
    /// Its status.
    pub status: u16,
    /// Its headers. In a value, `{date+3s}` and `{date-3s}` stand for the date so long from when it is sent.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Its body.
    pub body: Vec<u8>,
    /// The connection is cut after so many bytes of the body.
    pub cut: Option<usize>,
    /// The head comes, and then a byte of the body each so often, for ever.
    pub drip: Option<Duration>,
}

/// Which requests: of a method, if it has one, and to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method; any, if it is `None`.
    pub method: Option<Method>,
    /// The path; what ends in `/*` stands for all below it.
    pub path: String,
}

impl Route {
    /// Whether a request with this method and path is one of them.
    pub fn fits(&self, method: &Method, path: &str) -> bool {
        let begins = self.path.strip_suffix('*');
        self.method.as_ref().is_none_or(|own| own == method)
            && begins.map_or(path == self.path, |begin| path.starts_with(begin))
    }
}

/// What an operation behind a guard does when it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// For so many calls in a row.
    pub times: u32,
    /// How long it takes first.
    pub after: Duration,
    /// What it brings; `None`: it never ends.
    pub brings: Option<Result<String, OperationError>>,
}

/// The error of a scripted operation: what it says, and what it means to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationError {
    /// Its class.
    pub class: ErrorClass,
}

impl OperationError {
    /// The word for its class.
    pub const fn name(self) -> &'static str {
        match self.class {
            ErrorClass::Transient { .. } => "transient",
            ErrorClass::Throttled { .. } => "throttled",
            ErrorClass::Permanent => "permanent",
            ErrorClass::Refused => "refused",
            _ => "failure",
        }
    }
}

impl std::fmt::Display for OperationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} error", self.name())
    }
}

impl std::error::Error for OperationError {}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// The line that it begins in.
    pub line: usize,
    /// What is done.
    pub action: Action,
    /// What is expected once it is done.
    pub expect: Expect,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Makes calls, and waits for them unless they have a name.
    Call(Box<Call>),
    /// Waits for the calls of this name.
    Await(String),
    /// Lets so much time pass.
    Advance(Duration),
    /// Has an upstream or guard play a script from its beginning.
    Play {
        /// Who.
        target: String,
        /// Which.
        script: String,
    },
    /// Opens the breaker of an upstream or guard until it is reset.
    ForceOpen(String),
    /// Closes it until it is reset.
    ForceClose(String),
    /// Resets it.
    Reset(String),
    /// Closes the client or guard, and waits for what is under way.
    Close(String),
    /// Does nothing but look.
    Look(String),
}

/// Calls that are made.
#[derive(Clone, Debug)]
pub struct Call {
    /// The upstream or guard.
    pub target: String,
    /// What they are called in a later step that waits for them. `None`: this one waits.
    pub name: Option<String>,
    /// How many.
    pub times: u32,
    /// How many of them at once.
    pub concurrent: u32,
    /// The caller gives each up after so long.
    pub cancel_after: Option<Duration>,
    /// The call's own timeout.
    pub timeout: Option<Duration>,
    /// What is left of the deadline of the request being served.
    pub time_left: Option<Duration>,
    /// The headers of the request being served.
    pub inbound: Vec<(HeaderName, HeaderValue)>,
    /// What only an HTTP call has, or only a guard's.
    pub kind: CallKind,
}

/// What only an HTTP call has, or only a guard's.
#[derive(Clone, Debug)]
pub enum CallKind {
    /// An HTTP call.
    Http(HttpCall),
    /// A guard's call.
    Guard(GuardCall),
}

/// What only an HTTP call has.
#[derive(Clone, Debug)]
pub struct HttpCall {
    /// The method.
    pub method: Method,
    /// The path, with its query.
    pub path: String,
    /// Its headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Its body.
    pub body: Option<Vec<u8>>,
    /// Its `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// Whether it may be repeated, whatever its method.
    pub retry: Option<bool>,
    /// Whether the response is handed over at its head, and its body read as it comes.
    pub stream: bool,
    /// Whether an attempt that the deadline cut says something about the upstream.
    pub timeout_is_evidence: bool,
}

/// What only a guard's call has.
#[derive(Clone, Debug)]
pub struct GuardCall {
    /// Whether the guard is told what the operation's errors mean; else each is a failure, and none is retried.
    pub classify: bool,
    /// Whose rate limit it counts in.
    pub rate_limit_key: String,
    /// What is served instead of a value that does not come.
    pub fallback: Option<String>,
}

/// How a call ended, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// A response with this status.
    Status(u16),
    /// Anything else: `ok`, `operation`, `cancelled`, or the kind of an error.
    Word(&'static str),
}

impl Ending {
    /// An operation brought a value, or a fallback stood in for it.
    pub const OK: Self = Self::Word("ok");
    /// An operation's own error.
    pub const OPERATION: Self = Self::Word("operation");
    /// The caller gave it up.
    pub const CANCELLED: Self = Self::Word("cancelled");

    /// A limit ended it.
    pub const fn of_kind(kind: ErrorKind) -> Self {
        Self::Word(kind.name())
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// What is expected once a step is done. What is not said is not looked at.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// How each call ended.
    pub result: Option<Ending>,
    /// How many of the calls ended in each way; no others did.
    pub results: Vec<(Ending, Range<u64>)>,
    /// Requests that the target got to read in this step.
    pub requests: Option<Range<u64>>,
    /// How many attempts each call made.
    pub attempts: Option<Range<u64>>,
    /// How each attempt of each call ended.
    pub outcomes: Option<Vec<String>>,
    /// What each call waited for and how long, in order.
    pub waits: Option<Vec<(WaitReason, Range<Duration>)>>,
    /// Why each call ended, in the word of its report.
    pub ended: Option<String>,
    /// What each call was told of when to come back.
    pub retry_after: Option<Range<Duration>>,
    /// How long each call took.
    pub took: Option<Range<Duration>>,
    /// The text of each call's error.
    pub message: Option<String>,
    /// The body of each response, or the value of each operation.
    pub body: Option<String>,
    /// Whether a fallback stood in.
    pub degraded: Option<bool>,
    /// The target's breaker.
    pub breaker: Option<String>,
    /// The target's attempts that hold a slot.
    pub in_flight: Option<Range<u64>>,
    /// What `/ready` says: its status.
    pub ready: Option<String>,
    /// What `/ready` says of the breakers, in words.
    pub ready_detail: Option<String>,
    /// What every request of this step had.
    pub seen: Option<SeenExpect>,
}

/// What every request had that the target got to read.
#[derive(Clone, Debug, Default)]
pub struct SeenExpect {
    /// Its method.
    pub method: Option<Method>,
    /// Its path, with its query.
    pub path: Option<String>,
    /// Its body.
    pub body: Option<String>,
    /// These headers, each once. `*` in a value stands for anything.
    pub headers: Vec<(HeaderName, String)>,
    /// None of these.
    pub no_headers: Vec<HeaderName>,
}
