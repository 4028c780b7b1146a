//! Who takes part in a scenario: the clients and guards with its settings, and who plays what stands behind them. They are
//! the same on every stage, but for how a client reaches its upstream.

use std::collections::BTreeMap;
use std::fmt;

use steadfast::client::{BuildError, ClientBuilder};
use steadfast::config::{Config, Problems};
use steadfast::policy::Time;
use steadfast::{Clients, Clock, Guard, ServiceClient, Snapshot};
use steadfast_axum::{Readiness, ReadyReport};

use super::model::{Scenario, Script};
use super::operation::Operation;
use super::timeline::TimeLine;
use super::upstream::Upstream;

/// Everybody in a scenario.
#[derive(Debug)]
pub struct Cast {
    pub(super) clock: Clock,
    pub(super) line: TimeLine,
    pub(super) clients: Clients,
    pub(super) upstreams: BTreeMap<String, Upstream>,
    pub(super) guards: BTreeMap<String, Guarded>,
}

/// A guard, and the operation behind it.
#[derive(Clone, Debug)]
pub(super) struct Guarded {
    pub(super) guard: Guard,
    pub(super) operation: Operation,
}

/// Why a scenario cannot be put on a stage.
#[derive(Debug)]
#[non_exhaustive]
pub enum CastError {
    /// A client cannot be made.
    Client(BuildError),
    /// A guard cannot be made.
    Guard(Problems),
    /// The stage itself cannot be set up.
    Stage(String),
}

impl fmt::Display for CastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::Guard(problems) => problems.fmt(f),
            Self::Stage(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CastError {}

impl From<BuildError> for CastError {
    fn from(error: BuildError) -> Self {
        Self::Client(error)
    }
}

impl From<Problems> for CastError {
    fn from(problems: Problems) -> Self {
        Self::Guard(problems)
    }
}

impl Cast {
    /// Everybody in this scenario, on this clock. `config` is the scenario's, or what
    /// [`config_at`](super::Settings::config_at) made of it; `connect` says how a client reaches its upstream.
    ///
    /// # Errors
    /// [`CastError`]: certificates that cannot be read, a guard's settings outside their bounds.
    pub fn new(
        scenario: &Scenario,
        config: &Config,
        clock: Clock,
        connect: impl Fn(ClientBuilder, &Upstream) -> ClientBuilder + Send + Sync + 'static,
    ) -> Result<Self, CastError> {
        let line = TimeLine::default();
        let upstreams: BTreeMap<String, Upstream> = config
            .upstreams()
            .map(|(name, _)| {
                let replies = match scenario.scripts.get(name) {
                    Some(Script::Replies(replies)) => replies.as_slice(),
                    _ => &[],
                };
                (name.to_owned(), Upstream::new(name, replies, clock.clone(), line.clone()))
            })
            .collect();
        let (seed, hook, theirs, on) = (scenario.seed, line.clone(), upstreams.clone(), clock.clone());
        let clients = Clients::with(config, move |name, builder| {
            let (line, clock) = (hook.clone(), on.clone());
            let builder = builder.clock(on.clone()).seed(seed_of(seed, name));
            let builder = builder.on_event(move |event| line.event(clock.now(), event));
            match theirs.get(name) {
                Some(upstream) => connect(builder, upstream),
                None => builder,
            }
        })?;
        let mut guards = BTreeMap::new();
        for (name, _) in config.guards() {
            guards.insert(name.to_owned(), guarded(scenario, config, name, &clock, &line)?);
        }
        Ok(Self { clock, line, clients, upstreams, guards })
    }

    /// The time of the scenario.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// What has happened.
    pub fn line(&self) -> &TimeLine {
        &self.line
    }

    /// The upstreams by name.
    pub fn upstreams(&self) -> impl Iterator<Item = (&str, &Upstream)> {
        self.upstreams.iter().map(|(name, upstream)| (name.as_str(), upstream))
    }

    /// The client of this upstream.
    pub(super) fn client(&self, name: &str) -> Option<ServiceClient> {
        self.clients.client(name).ok()
    }

    /// The state of every upstream and guard.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        let guards = self.guards.values().map(|guarded| guarded.guard.snapshot());
        self.clients.snapshot().into_iter().chain(guards).collect()
    }

    /// The state of one.
    pub(super) fn snapshot(&self, target: &str) -> Option<Snapshot> {
        match self.guards.get(target) {
            Some(guarded) => Some(guarded.guard.snapshot()),
            None => self.client(target).map(|client| client.snapshot()),
        }
    }

    /// How many requests the target has read so far, or how often its operation was called.
    pub(super) fn requests(&self, target: &str) -> usize {
        match (self.upstreams.get(target), self.guards.get(target)) {
            (Some(upstream), _) => upstream.requests(),
            (None, Some(guarded)) => guarded.operation.calls(),
            (None, None) => 0,
        }
    }

    /// What `/ready` would say.
    pub(super) fn ready(&self) -> Option<ReadyReport> {
        let builder = self.guards.values().fold(Readiness::builder(), |builder, guarded| builder.guard(&guarded.guard));
        let readiness = builder.clients(&self.clients).clock(self.clock.clone()).build().ok()?;
        // It has nothing to wait for.
        let mut report = std::pin::pin!(readiness.report());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match report.as_mut().poll(&mut context) {
            std::task::Poll::Ready(report) => Some(report),
            std::task::Poll::Pending => None,
        }
    }

    /// What is still held though everything has ended: nothing must be.
    pub(super) fn held(&self) -> Vec<String> {
        let mut held = Vec::new();
        for snapshot in self.snapshots() {
            let line = snapshot.line;
            if line.in_use > 0 {
                held.push(format!("{}: {} slots are taken", snapshot.upstream, line.in_use));
            }
            if line.queued > 0 {
                held.push(format!("{}: {} calls wait in line", snapshot.upstream, line.queued));
            }
        }
        let upstreams = self.upstreams.iter().map(|(name, upstream)| (name, upstream.in_flight()));
        let guards = self.guards.iter().map(|(name, guarded)| (name, guarded.operation.in_flight()));
        let busy = upstreams.chain(guards).filter(|(_, in_flight)| *in_flight > 0);
        held.extend(busy.map(|(name, in_flight)| format!("{name}: {in_flight} requests go on")));
        held
    }

    /// Has the target play a script from its beginning.
    pub(super) fn play(&self, target: &str, script: &Script) {
        match script {
            Script::Replies(replies) => {
                if let Some(upstream) = self.upstreams.get(target) {
                    upstream.play(replies);
                }
            }
            Script::Answers(answers) => {
                if let Some(guarded) = self.guards.get(target) {
                    guarded.operation.play(answers);
                }
            }
        }
    }
}

fn guarded(
    scenario: &Scenario,
    config: &Config,
    name: &str,
    clock: &Clock,
    line: &TimeLine,
) -> Result<Guarded, Problems> {
    let answers = match scenario.scripts.get(name) {
        Some(Script::Answers(answers)) => answers.as_slice(),
        _ => &[],
    };
    let (hook, on) = (line.clone(), clock.clone());
    let builder = Guard::builder(name).configured(config).clock(clock.clone()).seed(seed_of(scenario.seed, name));
    let guard = builder.on_event(move |event| hook.event(on.now(), event)).build()?;
    Ok(Guarded { guard, operation: Operation::new(name, answers, clock.clone(), line.clone()) })
}

/// Chance of its own for each, whatever the others draw.
fn seed_of(seed: u64, name: &str) -> u64 {
    crate::World::new(seed).seed_of(name)
}
