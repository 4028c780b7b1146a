//! A client that calls several hosts through a transport of its own, with a guard for each host.
//!
//! Five situations: failures that pass are retried; a 404 is not; a dead host is not called any more, and the others are;
//! it is called again once it has recovered; the limit on calls per second waits. Nothing is sent and nothing sleeps: the
//! transport plays a script, and the clock is virtual.
//!
//! `cargo run -p steadfast --example resilient_client`
//!
//! For plain HTTP there is [`steadfast::ServiceClient`], which knows by itself what may be repeated and what a status
//! means. This is the way for a transport that you have already.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast::config::Problems;
use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::BreakerConfig;
use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::report::WaitReason;
use steadfast::testing::{Stalled, VirtualClock};
use steadfast::{Guard, GuardError, Report, Served};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// How a request fails. The client below decides which of these another attempt may fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// A 5xx answer: the host's trouble.
    Server(u16),
    /// A 4xx answer: our mistake, and the same one the next time.
    Client(u16),
    /// The connection was reset.
    Connection,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(status) | Self::Client(status) => write!(f, "the host answered {status}"),
            Self::Connection => f.write_str("the connection was reset"),
        }
    }
}

impl Error for Failed {}

/// A good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
}

/// What a host does with one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Answers with this status.
    Status(u16),
    /// Resets the connection.
    Reset,
}

/// Plays a script for each host; its last step repeats.
pub(crate) struct FakeTransport {
    scripts: Mutex<HashMap<String, VecDeque<Step>>>,
    calls: Mutex<Vec<String>>,
}

impl FakeTransport {
    pub(crate) fn new<const N: usize>(scripts: [(&str, &[Step]); N]) -> Arc<Self> {
        let transport = Self { scripts: Mutex::default(), calls: Mutex::default() };
        for (host, steps) in scripts {
            transport.play(host, steps);
        }
        Arc::new(transport)
    }

    /// Plays these steps from the next request on.
    pub(crate) fn play(&self, host: &str, steps: &[Step]) {
        lock(&self.scripts).insert(host.to_owned(), steps.iter().copied().collect());
    }

    /// How many requests reached this host.
    pub(crate) fn calls_to(&self, host: &str) -> usize {
        lock(&self.calls).iter().filter(|url| host_of(url) == host).count()
    }

    async fn send(&self, url: &str) -> Result<Response, Failed> {
        lock(&self.calls).push(url.to_owned());
        match self.next_step(host_of(url)) {
            Step::Reset => Err(Failed::Connection),
            Step::Status(status) if status >= 500 => Err(Failed::Server(status)),
            Step::Status(status) if status >= 400 => Err(Failed::Client(status)),
            Step::Status(status) => Ok(Response { status }),
        }
    }

    fn next_step(&self, host: &str) -> Step {
        let mut scripts = lock(&self.scripts);
        // A host that nobody knows resets every connection.
        let Some(steps) = scripts.get_mut(host) else { return Step::Reset };
        let next = if steps.len() > 1 { steps.pop_front() } else { steps.front().copied() };
        next.unwrap_or(Step::Reset)
    }
}

/// How a call of the client fails.
#[derive(Debug)]
pub(crate) enum GetError {
    /// The call itself: by the host's last answer, or by a limit.
    Call(GuardError<Failed>),
    /// The guard's settings are wrong.
    Settings(Problems),
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Settings(problems) => problems.fmt(f),
        }
    }
}

impl Error for GetError {}

/// The client: one transport, and a guard for each host, made when the host is first called.
///
/// A guard remembers: how often its host failed, how many calls started in the last second. So it is made once and kept; a
/// guard per request would never see enough to open.
pub(crate) struct ResilientClient {
    transport: Arc<FakeTransport>,
    guards: Mutex<HashMap<String, Guard>>,
    clock: VirtualClock,
}

impl ResilientClient {
    pub(crate) fn new(transport: Arc<FakeTransport>, clock: VirtualClock) -> Self {
        Self { transport, guards: Mutex::default(), clock }
    }

    /// What holds for every host.
    fn guard_for(&self, host: &str) -> Result<Guard, GetError> {
        let mut guards = lock(&self.guards);
        if let Some(guard) = guards.get(host) {
            return Ok(guard.clone());
        }
        let guard = Guard::http(host)
            // The deadline: retries, waits and all. Nothing here can be without one.
            .total_timeout(Duration::from_secs(30))
            .attempt_timeout(Duration::from_secs(5))
            // 0.2 s, 0.4 s, 0.8 s, each with up to 0.1 s on top, so that a fleet does not come back in step.
            .attempts(4)
            .backoff(Backoff {
                base: Duration::from_millis(200),
                factor: 2.0,
                max: Duration::from_secs(5),
                jitter: Jitter::Additive,
                jitter_max: Duration::from_millis(100),
            })
            .breaker(BreakerConfig { failures: 3, cool_down: Duration::from_secs(30), ..BreakerConfig::default() })
            // Every attempt takes a place, a retry too: the host counts requests, not calls.
            .rate_limit(RateConfig {
                limit: 5,
                period: Duration::from_secs(1),
                wait: None,
                style: RateStyle::Window,
                max_keys: 1,
            })
            // A service leaves these two out: time is the system's, and jitter is random.
            .clock(self.clock.clone())
            .seed(7)
            .build()
            .map_err(GetError::Settings)?;
        guards.insert(host.to_owned(), guard.clone());
        Ok(guard)
    }

    /// Fetches `url`, and tells how it went: [`Served`] has the report beside the response.
    pub(crate) async fn get(&self, url: &str) -> Result<Served<Response>, GetError> {
        let guard = self.guard_for(host_of(url))?;
        guard
            // What is retried is what counts against the host: a 404 does neither. An open breaker is never retried; that
            // need not be said.
            .transient(|failed| matches!(failed, Failed::Server(_) | Failed::Connection))
            .serve(|_| self.transport.send(url))
            .await
            .map_err(GetError::Call)
    }
}

pub(crate) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The waits before retries, or for a place of the rate limit, in seconds.
pub(crate) fn waits(report: &Report, reason: WaitReason) -> Vec<f64> {
    let of_reason = report.waits().iter().filter(|wait| wait.reason == reason);
    of_reason.map(|wait| (wait.duration.as_secs_f64() * 100.0).round() / 100.0).collect()
}

/// The whole program.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let clock = VirtualClock::new();
    let transport = FakeTransport::new([
        ("api.example.com", &[Step::Status(503), Step::Reset, Step::Status(200)]),
        ("down.example.com", &[Step::Status(503)]),
        ("missing.example.com", &[Step::Status(404)]),
    ]);
    let client = ResilientClient::new(Arc::clone(&transport), clock.clone());
    let get = |url: &str| -> Result<Result<Served<Response>, GetError>, Stalled> { clock.run(client.get(url)) };

    // 1. Failures that pass are retried, after waits that grow.
    let served = get("https://api.example.com/users")??;
    writeln!(out, "retried twice, waits: {:?}", waits(served.report(), WaitReason::Backoff))?;

    // 2. A 404 is our own mistake: it comes back as it is, at once, and says nothing about the host.
    if let Err(error) = get("https://missing.example.com/x")? {
        let requests = transport.calls_to("missing.example.com");
        writeln!(out, "404 raised without retrying: {error}, {requests} request")?;
    }

    // 3. Three failures in a row open the breaker of the dead host. The third wait would have been in vain, and is not
    //    waited. The next call fails at once, with nothing sent; other hosts have breakers of their own.
    if let Err(GetError::Call(error)) = get("https://down.example.com/a")? {
        let wait = error.retry_after().unwrap_or_default().as_secs();
        writeln!(out, "circuit for down.example.com open, retry in {wait}s")?;
    }
    let before = transport.calls_to("down.example.com");
    if let Err(error) = get("https://down.example.com/b")? {
        let sent = transport.calls_to("down.example.com") - before;
        writeln!(out, "  the next call: {error}, {sent} sent")?;
    }
    writeln!(out, "  api.example.com answers {}", get("https://api.example.com/users")??.value().status)?;

    // 4. After its recovery time one trial call is let through. It is answered, and closes the circuit.
    transport.play("down.example.com", &[Step::Status(200)]);
    clock.advance(Duration::from_secs(31));
    if get("https://down.example.com/c")??.value().status == 200 {
        writeln!(out, "circuit closed again after recovery")?;
    }

    // 5. The rate limit waits where its places are used up: it does not fail, and nobody overtakes.
    let mut waited = Vec::new();
    for page in 0..7 {
        let served = get(&format!("https://api.example.com/page/{page}"))??;
        waited.extend(waits(served.report(), WaitReason::RateLimit));
    }
    writeln!(out, "rate limit waited: {waited:?}")?;
    Ok(())
}
