//! Which settings the clients of a run have. A policy is a configuration of the shipped client and nothing else.

use std::fmt;
use std::sync::Arc;

use steadfast::client::BuildError;
use steadfast::config::Settings;
use steadfast::{ClientBuilder, Clock, Event, ServiceClient};

use super::engine::Engine;
use super::link::Link;

/// What the clients of a run are set up with.
#[derive(Clone)]
pub struct Policy {
    /// Its name in results.
    pub name: String,
    /// The settings of each client.
    pub settings: Settings,
    /// Whether the circuit breaker works. Off is the shipped client's `force_close`.
    pub breaker: bool,
    build: Option<Arc<Build>>,
}

type Build = dyn Fn(Member<'_>) -> Result<ServiceClient, BuildError> + Send + Sync;

impl Policy {
    /// The settings as they are.
    pub fn new(name: impl Into<String>, settings: Settings) -> Self {
        Self { name: name.into(), settings, breaker: true, build: None }
    }

    /// No retry, and no circuit breaker. Timeouts and bulkhead are those of `settings`.
    pub fn none(settings: &Settings) -> Self {
        let mut settings = settings.clone();
        settings.retries = 0;
        Self::new("none", settings).without_breaker()
    }

    /// So many retries whatever they do, no budget and no circuit breaker. Timeouts, backoff and bulkhead are those of
    /// `settings`.
    pub fn blind(settings: &Settings, retries: u32) -> Self {
        let mut settings = settings.clone();
        settings.retries = retries;
        settings.retry_budget_ratio = 1_000.0;
        settings.retry_budget_min_per_second = 1_000_000.0;
        settings.retry_budget_gate = false;
        Self::new("blind", settings).without_breaker()
    }

    /// The same with the breaker off.
    #[must_use]
    pub fn without_breaker(mut self) -> Self {
        self.breaker = false;
        self
    }

    /// The same with clients that are built in another way: on a transport of one's own around the
    /// [`Link`](Member::link), with hooks, with other settings for some. Start from [`Member::builder`].
    #[must_use]
    pub fn built_by(
        mut self,
        build: impl Fn(Member<'_>) -> Result<ServiceClient, BuildError> + Send + Sync + 'static,
    ) -> Self {
        self.build = Some(Arc::new(build));
        self
    }

    pub(super) fn build(&self, member: Member<'_>) -> Result<ServiceClient, BuildError> {
        let client = match &self.build {
            Some(build) => build(member)?,
            None => member.builder().build()?,
        };
        if !self.breaker {
            client.force_close();
        }
        Ok(client)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("name", &self.name).field("breaker", &self.breaker).finish_non_exhaustive()
    }
}

/// One client of a fleet that is to be built.
pub struct Member<'a> {
    /// Which of the fleet it is, from 0; of a chain's upstreams, which of its replicas.
    pub number: usize,
    /// Which upstream it calls: 0 is the first of a chain.
    pub hop: usize,
    /// The seed for its chance.
    pub seed: u64,
    /// The policy's settings.
    pub settings: &'a Settings,
    pub(super) clock: &'a Clock,
    pub(super) engine: &'a Engine,
    pub(super) hook: Arc<dyn Fn(&Event) + Send + Sync>,
}

impl Member<'_> {
    /// The clock of the simulated world.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// The way to the modelled upstream: a transport for a client of these settings.
    pub fn link(&self, settings: &Settings) -> Link {
        Link::new(self.engine.clone(), self.clock.clone(), self.number, settings)
    }

    /// What counts the breaker's transitions: to be called from a hook of one's own, where one is set.
    pub fn hook(&self) -> Arc<dyn Fn(&Event) + Send + Sync> {
        Arc::clone(&self.hook)
    }

    /// A builder with the policy's settings, and the clock, seed, link and hook of this member.
    pub fn builder(&self) -> ClientBuilder {
        self.builder_of(self.settings.clone())
    }

    /// The same with other settings.
    pub fn builder_of(&self, settings: Settings) -> ClientBuilder {
        let (link, hook) = (self.link(&settings), self.hook());
        ClientBuilder::from_settings(settings)
            .transport(link)
            .clock(self.clock())
            .seed(self.seed)
            .on_event(move |event| hook(event))
    }
}

impl fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("number", &self.number).field("hop", &self.hop).finish_non_exhaustive()
    }
}
