//! Real sockets as a stage: the shipped clients with their pools, in real time, and scripted servers on loopback.
//!
//! A scenario means the same here as in virtual time, but for what a clock that nobody can stop does to figures: see
//! [`Stage::slack`]. A client keeps the `base_url` of its scenario; its names lead to loopback (an address or https is
//! replaced, proxies are not asked). A refused connection is one: the name then leads to an address where nobody listens.
//!
//! Limits: HTTP/1.1. What is refused is decided when a connection is opened, before there is a request to be routed. A stage
//! ends what runs for longer than [`LONGEST_WORK`], with a difference.

mod request;
mod server;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use steadfast::Clock;
use steadfast::config::Config;
use steadfast::transport::{Resolve, ResolveFuture};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, LocalSet};

use super::cast::{Cast, CastError};
use super::model::Scenario;
use super::run::{Outcome, play};
use super::stage::{CallEnd, Slack, Stage, StageError, Ticket, Work};
use super::upstream::Upstream;

/// No work of a scenario is waited for longer.
pub const LONGEST_WORK: Duration = Duration::from_secs(60);
/// What has begun is left alone once nothing new has happened for so long.
const QUIET: Duration = Duration::from_millis(15);
/// It is left alone after so long in any case.
const LONGEST_BEGIN: Duration = Duration::from_millis(300);
/// A machine with better things to do makes everything this much later.
const LATE: Duration = Duration::from_millis(500);
/// On loopback, and nobody listens there.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A stage of sockets.
pub struct SocketStage {
    // The servers end before their runtime.
    tasks: LocalSet,
    runtime: Runtime,
    cast: Cast,
    work: Vec<Option<JoinHandle<Vec<CallEnd>>>>,
}

impl SocketStage {
    /// Everybody of this scenario, with a server for each upstream. To be made outside of a runtime.
    ///
    /// # Errors
    /// [`CastError`]; no socket is to be had.
    pub fn new(scenario: &Scenario) -> Result<Self, CastError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| stage(&error))?;
        let mut listeners = BTreeMap::new();
        for (name, _) in scenario.settings.config().upstreams() {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| stage(&error))?;
            listener.set_nonblocking(true).map_err(|error| stage(&error))?;
            listeners.insert(name.to_owned(), listener);
        }
        let config = loopback(scenario)?;
        let mut ports = BTreeMap::new();
        for (name, listener) in &listeners {
            ports.insert(name.clone(), listener.local_addr().map_err(|error| stage(&error))?);
        }
        let _runtime = runtime.enter();
        let cast = Cast::new(scenario, &config, Clock::system(), move |builder, upstream| {
            match ports.get(upstream.name()).copied() {
                Some(server) => builder.resolver(Leading { upstream: upstream.clone(), server }),
                None => builder,
            }
        })?;
        let tasks = LocalSet::new();
        for (name, upstream) in cast.upstreams() {
            if let Some(listener) = listeners.remove(name) {
                let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| stage(&error))?;
                tasks.spawn_local(server::serve(listener, upstream.clone()));
            }
        }
        drop(_runtime);
        Ok(Self { tasks, runtime, cast, work: Vec::new() })
    }

    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(self.tasks.run_until(future))
    }

    /// Runs until nothing new has happened for a while.
    fn settle(&self) {
        let line = self.cast.line().clone();
        self.run(async move {
            let began = tokio::time::Instant::now();
            let mut happened = usize::MAX;
            while happened != line.len() && began.elapsed() < LONGEST_BEGIN {
                happened = line.len();
                tokio::time::sleep(QUIET).await;
            }
        });
    }
}

/// The scenario's configuration, for clients whose servers are on loopback and speak no TLS.
fn loopback(scenario: &Scenario) -> Result<Config, CastError> {
    let mut urls = BTreeMap::new();
    for (name, upstream) in scenario.settings.config().upstreams() {
        let url = &upstream.settings().base_url;
        // An address is not resolved, and would be called as it is.
        let host = if url.host().parse::<IpAddr>().is_ok() { "upstream.test" } else { url.host() };
        urls.insert(name.to_owned(), format!("http://{host}:{}{}", url.port(), url.prefix()));
    }
    Ok(scenario.settings.config_at(&urls)?)
}

/// Leads every name to the upstream's server; or to nowhere, if that is what its script says.
struct Leading {
    upstream: Upstream,
    server: SocketAddr,
}

impl Resolve for Leading {
    fn resolve<'a>(&'a self, _host: &'a str, _port: u16) -> ResolveFuture<'a> {
        Box::pin(async move {
            let Some(refused) = self.upstream.take_refusal() else { return Ok(vec![self.server]) };
            tokio::time::sleep(refused.reply.after).await;
            Ok(vec![SocketAddr::from((NOWHERE, self.server.port()))])
        })
    }
}

fn stage(error: &io::Error) -> CastError {
    CastError::Stage(format!("no server for the scenario: {error}"))
}

impl Stage for SocketStage {
    fn cast(&self) -> &Cast {
        &self.cast
    }

    fn begin(&mut self, work: Work) -> Ticket {
        self.work.push(Some(self.tasks.spawn_local(work)));
        self.settle();
        Ticket(self.work.len() - 1)
    }

    fn finish(&mut self, ticket: Ticket) -> Result<Vec<CallEnd>, StageError> {
        let Some(work) = self.work.get_mut(ticket.0).and_then(Option::take) else {
            return Err(StageError("this work has been waited for before".to_owned()));
        };
        match self.run(async { tokio::time::timeout(LONGEST_WORK, work).await }) {
            Ok(Ok(ends)) => Ok(ends),
            Ok(Err(error)) => Err(StageError(format!("the calls ended early: {error}"))),
            Err(_) => Err(StageError(format!("the calls go on after {} s", LONGEST_WORK.as_secs()))),
        }
    }

    fn pass(&mut self, duration: Duration) {
        self.run(async { tokio::time::sleep(duration).await });
    }

    fn slack(&self) -> Slack {
        Slack(LATE)
    }

    fn end(&mut self) {
        self.run(async {
            let ended = async {
                while !self.cast.held().is_empty() {
                    tokio::time::sleep(QUIET).await;
                }
            };
            // What is held even then is told of.
            let _ = tokio::time::timeout(LATE, ended).await;
        });
    }
}

impl fmt::Debug for SocketStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketStage").field("cast", &self.cast).finish_non_exhaustive()
    }
}

/// Plays the scenario over sockets, in real time. To be called outside of a runtime.
///
/// # Errors
/// [`CastError`]
pub fn play_over_sockets(scenario: &Scenario) -> Result<Outcome, CastError> {
    Ok(play(scenario, &mut SocketStage::new(scenario)?))
}
