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

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::BreakerConfig;
use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::testing::{FakeClock, ScriptedOperation, fake_clock};
use steadfast::{Guard, GuardBuilder, GuardError, Guards, NoGuard};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock()).await
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

/// Stands for the transport that you have. It plays a script for each host, whose last step repeats.
pub(crate) struct Transport(HashMap<String, ScriptedOperation<u16, Failed>>);

/// A step of a script: a status, or a connection that fails.
pub(crate) type Step = Result<u16, Failed>;

impl Transport {
    pub(crate) fn new<const N: usize>(clock: &FakeClock, scripts: [(&str, &[Step]); N]) -> Self {
        let host =
            |(host, steps): (&str, &[Step])| (host.to_owned(), ScriptedOperation::new(clock, steps.iter().copied()));
        Self(scripts.into_iter().map(host).collect())
    }

    /// The script of this host.
    pub(crate) fn host(&self, host: &str) -> Option<&ScriptedOperation<u16, Failed>> {
        self.0.get(host)
    }

    /// How many requests reached this host.
    pub(crate) fn calls_to(&self, host: &str) -> usize {
        self.host(host).map_or(0, ScriptedOperation::calls)
    }

    async fn send(&self, url: &str) -> Result<u16, Failed> {
        self.host(host_of(url)).ok_or(Failed::Connection)?.call().await
    }
}

/// How a call of the client fails.
#[derive(Debug)]
pub(crate) enum GetError {
    /// The call itself: by the host's last answer, or by a limit.
    Call(GuardError<Failed>),
    /// There is no guard for the host: too many hosts at once.
    NoGuard(NoGuard),
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::NoGuard(error) => error.fmt(f),
        }
    }
}

impl Error for GetError {}

/// The client: one transport, and a guard for each host, made when the host is first called.
///
/// A guard remembers: how often its host failed, how many calls started in the last second. So it is kept; a guard per
/// request would never see enough to open. The number of hosts is bounded, and the one that was not called for the longest
/// is forgotten first.
pub(crate) struct ResilientClient {
    pub(crate) transport: Transport,
    guards: Guards,
}

impl ResilientClient {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { transport, guards: Guards::with(guard_for) }
    }

    /// Fetches `url`, and brings the status of a good answer.
    pub(crate) async fn get(&self, url: &str) -> Result<u16, GetError> {
        let guard = self.guards.get(host_of(url)).map_err(GetError::NoGuard)?;
        guard
            // What is retried is what counts against the host: a 404 does neither. An open breaker is never retried; that
            // need not be said.
            .transient(|failed| matches!(failed, Failed::Server(_) | Failed::Connection))
            .call(|| self.send(url))
            .await
            .map_err(GetError::Call)
    }

    async fn send(&self, url: &str) -> Result<u16, Failed> {
        match self.transport.send(url).await? {
            status if status >= 500 => Err(Failed::Server(status)),
            status if status >= 400 => Err(Failed::Client(status)),
            status => Ok(status),
        }
    }
}

/// What holds for every host.
fn guard_for(host: &str) -> GuardBuilder {
    Guard::http(host)
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
}

fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// What the clock slept, in seconds.
fn seconds(sleeps: &[Duration]) -> Vec<f64> {
    sleeps.iter().map(|sleep| (sleep.as_secs_f64() * 100.0).round() / 100.0).collect()
}

/// The whole program.
pub(crate) async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // Waits are instant and recorded, and jitter is the same each time. A service leaves this line out, and nothing else.
    let clock = fake_clock().seed(7);
    let client = ResilientClient::new(Transport::new(
        &clock,
        [
            ("api.example.com", &[Ok(503), Err(Failed::Connection), Ok(200)]),
            ("down.example.com", &[Ok(503)]),
            ("missing.example.com", &[Ok(404)]),
        ],
    ));

    // 1. Failures that pass are retried, after waits that grow.
    client.get("https://api.example.com/users").await?;
    writeln!(out, "retried twice, waits: {:?}", seconds(&clock.sleeps()))?;

    // 2. A 404 is our own mistake: it comes back as it is, at once, and says nothing about the host.
    if let Err(error) = client.get("https://missing.example.com/x").await {
        let requests = client.transport.calls_to("missing.example.com");
        writeln!(out, "404 raised without retrying: {error}, {requests} request")?;
    }

    // 3. Three failures in a row open the breaker of the dead host. The third wait would have been in vain, and is not
    //    waited. The next call fails at once, with nothing sent; other hosts have breakers of their own.
    if let Err(GetError::Call(error)) = client.get("https://down.example.com/a").await {
        let wait = error.retry_after().unwrap_or_default().as_secs();
        writeln!(out, "circuit for down.example.com open, retry in {wait}s")?;
    }
    let before = client.transport.calls_to("down.example.com");
    if let Err(error) = client.get("https://down.example.com/b").await {
        let sent = client.transport.calls_to("down.example.com") - before;
        writeln!(out, "  the next call: {error}, {sent} sent")?;
    }
    writeln!(out, "  api.example.com answers {}", client.get("https://api.example.com/users").await?)?;

    // 4. After its recovery time one trial call is let through. It is answered, and closes the circuit.
    if let Some(host) = client.transport.host("down.example.com") {
        host.play([Ok(200)]);
    }
    clock.advance(Duration::from_secs(31));
    if client.get("https://down.example.com/c").await? == 200 {
        writeln!(out, "circuit closed again after recovery")?;
    }

    // 5. The rate limit waits where its places are used up: it does not fail, and nobody overtakes.
    clock.clear();
    for page in 0..7 {
        client.get(&format!("https://api.example.com/page/{page}")).await?;
    }
    writeln!(out, "rate limit waited: {:?}", seconds(&clock.sleeps()))?;
    Ok(())
}
