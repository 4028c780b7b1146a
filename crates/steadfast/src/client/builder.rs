//! Makes the client of one upstream, from code or from validated settings.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::HeaderValue;
use http::header::{ACCEPT_ENCODING, HOST};
use steadfast_http::Rules as StatusRules;
use steadfast_http::headers::{CallHeaders, InvalidHeader, Layers};
use steadfast_policy::backoff::{Backoff, Jitter};
use steadfast_policy::breaker::BreakerConfig;
use steadfast_policy::budget::BudgetConfig;
use steadfast_policy::line::{LineConfig, RateConfig, RateStyle};
use steadfast_policy::retry::RetryRules;

use super::exchange::{Assessment, AttemptParts, HookFuture, Hooks};
use super::{BuildError, Handle, ServiceClient, Shared};
use crate::clock::Clock;
use crate::config::keys::with_keys;
use crate::config::{Profile, Settings, SettingsBuilder};
use crate::error::BoxError;
use crate::event::{Event, EventHook};
use crate::transport::decode::Codings;
use crate::transport::{Exchange, HttpVersion, Pool, PoolConfig, Proxy, Resolve, SystemResolver, Transport};
use crate::upstream::{Rules, Setup, Upstream};

/// Sets a [`ServiceClient`] up. Each key of the configuration is a method of the same name, with the same default and
/// the same bounds; mistakes are reported by [`build`](Self::build), all at once. A [`profile`](Self::profile) fills in what
/// no setter sets, whichever was called first.
#[must_use = "a builder does nothing until it is built"]
pub struct ClientBuilder {
    settings: Source,
    parts: Parts,
    clock: Clock,
    seed: Option<u64>,
    events: EventHook,
}

/// What a client is made of beside its settings; a reload makes it of the same again.
#[derive(Clone)]
pub(crate) struct Parts {
    transport: Option<Arc<dyn Exchange>>,
    resolver: Arc<dyn Resolve>,
    hooks: Hooks,
}

enum Source {
    Builder(Box<SettingsBuilder>),
    /// Of a configuration, and the keys that were set here all the same.
    Ready(Box<Settings>, Vec<&'static str>),
}

macro_rules! delegate_keys {
    ($($(#[doc = $meaning:literal])+ $name:ident: $input:ty = $kind:expr;)+) => {
        impl ClientBuilder {
            $($(#[doc = $meaning])+
            pub fn $name(self, value: $input) -> Self {
                self.map(stringify!($name), |settings| settings.$name(value))
            })+
        }
    };
}
with_keys!(delegate_keys);

impl ClientBuilder {
    pub(crate) fn new(base_url: &str) -> Self {
        Self::with(Source::Builder(Box::new(SettingsBuilder::new(base_url))))
    }

    /// A builder over settings that are validated already: those of a configuration file. Its keys are fixed: setting one
    /// here is an error of [`build`](Self::build).
    pub fn from_settings(settings: Settings) -> Self {
        Self::with(Source::Ready(Box::new(settings), Vec::new()))
    }

    fn with(settings: Source) -> Self {
        Self {
            settings,
            parts: Parts { transport: None, resolver: Arc::new(SystemResolver), hooks: Hooks::default() },
            clock: Clock::system(),
            seed: None,
            events: EventHook::default(),
        }
    }

    fn map(mut self, key: &'static str, change: impl FnOnce(SettingsBuilder) -> SettingsBuilder) -> Self {
        self.settings = match self.settings {
            Source::Builder(settings) => Source::Builder(Box::new(change(*settings))),
            Source::Ready(settings, mut fixed) => {
                if !fixed.contains(&key) {
                    fixed.push(key);
                }
                Source::Ready(settings, fixed)
            }
        };
        self
    }

    /// The upstream's name, in errors, events and snapshots. The host of the URL, unless set.
    pub fn name(self, name: &str) -> Self {
        self.map("name", |settings| settings.name(name))
    }

    /// Adds one header to every request; the weakest of all that a call carries.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.map("headers", |settings| settings.header(name, value))
    }

    /// Sends through this transport instead of the pool.
    pub fn transport(mut self, transport: impl Exchange) -> Self {
        self.parts.transport = Some(Arc::new(transport));
        self
    }

    /// Sends through this tower service instead of the pool: `transport(ServiceTransport::new(service))`. See
    /// [`transport::service`](crate::transport::service) for what its errors mean, and which limits apply.
    #[cfg(feature = "tower")]
    pub fn service<S>(self, service: S) -> Self
    where
        crate::transport::ServiceTransport<S>: Exchange,
    {
        self.transport(crate::transport::ServiceTransport::new(service))
    }

    /// Resolves names in this way instead of asking the system.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.parts.resolver = Arc::new(resolver);
        self
    }

    /// Another clock than the system's. The pool's own timeouts stay on the system's clock.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// A seed for the jitter, so that a test is the same each time.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Tells of every transition, attempt, retry and refusal. Called on the calling task, outside of every lock: the hook
    /// may take snapshots. One that panics is noted in the log, and the call goes on. One that holds a clone of the client
    /// keeps it alive for ever.
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.events = self.events.with(hook);
        self
    }

    /// Judges responses: for APIs that answer 200 with an error inside. The head and the whole body are there to look at;
    /// of a response that is read as it comes ([`send_streaming`](crate::RequestBuilder::send_streaming)) the body is empty.
    pub fn classify(
        mut self,
        assess: impl Fn(&http::response::Parts, &bytes::Bytes) -> Assessment + Send + Sync + 'static,
    ) -> Self {
        self.parts.hooks.assess = Some(Arc::new(assess));
        self
    }

    /// Changes the headers of each attempt right before it is sent: to sign it, or to set a token that is fresh. An
    /// error ends the call, with nothing sent.
    pub fn before_attempt(
        self,
        hook: impl Fn(AttemptParts<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.before_attempt_async(move |parts| Box::pin(std::future::ready(hook(parts))))
    }

    /// The same for a hook that has to wait; its time counts as the attempt's.
    pub fn before_attempt_async(
        mut self,
        hook: impl for<'a> Fn(AttemptParts<'a>) -> HookFuture<'a> + Send + Sync + 'static,
    ) -> Self {
        self.parts.hooks.before_attempt = Some(Arc::new(hook));
        self
    }

    /// The client. Nothing is connected before the first call.
    ///
    /// # Errors
    /// [`BuildError`]: every setting outside its bounds, or that a configuration fixes; roots of trust that cannot be loaded;
    /// a proxy that cannot be used.
    pub fn build(self) -> Result<ServiceClient, BuildError> {
        let (live, parts) = self.assemble(|_| {})?;
        let handle = Arc::new(Handle {
            upstream: Arc::clone(&live.upstream),
            live: ArcSwap::from_pointee(live),
            parts,
            reloading: Mutex::new(()),
        });
        #[cfg(feature = "metrics")]
        crate::telemetry::metrics::observe(&handle);
        Ok(ServiceClient(handle))
    }

    /// What a client or a layer consists of. `adjust` has the last word on how the policies are set up.
    #[cfg_attr(not(feature = "metrics"), expect(unused_mut, reason = "metrics count under the client's name"))]
    pub(crate) fn assemble(mut self, adjust: impl FnOnce(&mut Setup)) -> Result<(Shared, Parts), BuildError> {
        let settings = match self.settings {
            Source::Builder(builder) => builder.build().map_err(BuildError::Settings)?,
            Source::Ready(settings, fixed) if fixed.is_empty() => *settings,
            Source::Ready(settings, fixed) => return Err(BuildError::of_fixed(&settings.name, fixed)),
        };
        let mut setup = Setup {
            breaker: breaker_config(&settings),
            budget: budget_config(&settings),
            line: line_config(&settings),
            seed: self.seed.or_else(|| self.clock.seed()),
            is_part: false,
            family: None,
        };
        adjust(&mut setup);
        let name = Arc::from(settings.name.as_str());
        #[cfg(feature = "metrics")]
        self.events.count_in(crate::telemetry::metrics::meter(&name));
        let upstream = Arc::new(Upstream::new(name, setup, self.clock, self.events));
        let live = self.parts.make(&upstream, settings, None)?;
        upstream.allow_calls_of(live.rules.total_timeout);
        Ok((live, self.parts))
    }
}

impl Parts {
    /// Everything that these settings put in force. What carried requests `before` goes on doing so, where nothing that
    /// it was made from differs. Changes nothing that is in force.
    pub(crate) fn make(
        &self,
        upstream: &Arc<Upstream>,
        settings: Settings,
        before: Option<&Shared>,
    ) -> Result<Shared, BuildError> {
        let name = || settings.name.clone();
        let config = pool_config(&settings);
        let same = before.filter(|before| pool_config(&before.settings) == config);
        let transport = match (&self.transport, same) {
            (Some(custom), _) => Transport::Custom(Arc::clone(custom)),
            (None, Some(same)) => same.transport.clone(),
            (None, None) => {
                let pool = Pool::new(config, Arc::clone(&self.resolver));
                Transport::Pool(pool.map_err(|error| BuildError::of_pool(&settings.name, error))?)
            }
        };
        let headers = plain_headers(&settings, transport.host());
        let headers = headers.map_err(|source| BuildError::Headers { upstream: name(), source })?;
        Ok(Shared {
            upstream: Arc::clone(upstream),
            transport,
            rules: call_rules(&settings),
            statuses: StatusRules { retry: settings.retry_statuses, breaker: settings.breaker_statuses },
            plain_headers: Arc::new(headers),
            codings: codings(&settings),
            slow_after: slow_after(&settings),
            hooks: self.hooks.clone(),
            settings: Arc::new(settings),
        })
    }
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("custom_transport", &self.parts.transport.is_some())
            .finish_non_exhaustive()
    }
}

fn call_rules(settings: &Settings) -> Rules {
    Rules {
        total_timeout: settings.total_timeout,
        attempt_timeout: settings.attempt_timeout,
        timeout_evidence: settings.breaker_timeout_evidence,
        retry: RetryRules {
            attempts: settings.retries.saturating_add(1),
            backoff: Backoff {
                base: settings.backoff_base,
                factor: settings.backoff_factor,
                max: settings.backoff_max,
                jitter: settings.jitter,
                jitter_max: settings.jitter_max,
            },
            max_retry_after: settings.max_retry_after,
            retry_after_jitter: settings.retry_after_jitter,
        },
    }
}

pub(crate) fn breaker_config(settings: &Settings) -> BreakerConfig {
    BreakerConfig {
        failures: settings.breaker_failures,
        failure_rate: settings.breaker_failure_rate,
        minimum_calls: settings.breaker_minimum_calls,
        window: settings.breaker_window,
        cool_down: settings.breaker_cool_down,
        cool_down_start: settings.breaker_cool_down_start,
        probe_lease: settings.total_timeout,
    }
}

pub(crate) fn budget_config(settings: &Settings) -> BudgetConfig {
    BudgetConfig {
        ratio: settings.retry_budget_ratio,
        min_per_second: settings.retry_budget_min_per_second,
        gate: settings.retry_budget_gate,
    }
}

pub(crate) fn line_config(settings: &Settings) -> LineConfig {
    LineConfig {
        slots: settings.max_concurrent,
        slot_wait: settings.bulkhead_wait,
        rate: settings.rate_limit.map(|limit| RateConfig {
            limit,
            period: settings.rate_limit_period,
            wait: settings.rate_limit_wait,
            style: settings.rate_limit_style,
            max_keys: 1,
        }),
    }
}

fn pool_config(settings: &Settings) -> PoolConfig {
    let url = &settings.base_url;
    let mut config = PoolConfig::new(url.is_https(), url.host(), url.port());
    config.connect_timeout = settings.connect_timeout;
    config.read_timeout = settings.read_timeout;
    config.write_timeout = settings.write_timeout;
    config.pool_timeout = settings.pool_timeout;
    config.idle_timeout = settings.idle_timeout;
    config.max_connection_age = settings.max_connection_age;
    config.max_connections = settings.max_concurrent as usize;
    config.tls.platform_roots = settings.tls_platform_roots;
    config.tls.extra_roots.clone_from(&settings.tls_roots);
    config.tls.only_extra_roots = settings.tls_roots_only;
    config.tls.identity.clone_from(&settings.tls_identity);
    config.tls.identity_key.clone_from(&settings.tls_identity_key);
    config.tls.server_name.clone_from(&settings.tls_server_name);
    config.proxy.clone_from(&settings.proxy);
    config.http_version = settings.http_version;
    config.ping_interval = settings.http2_ping_interval;
    config.ping_timeout = settings.http2_ping_timeout;
    config
}

/// The codings that are asked for, and decoded when they come.
fn codings(settings: &Settings) -> Codings {
    let mut codings = Codings::NONE;
    (codings.gzip, codings.brotli, codings.zstd) = (settings.gzip, settings.brotli, settings.zstd);
    codings
}

/// What every call has; the weakest layer of its headers.
fn plain_headers(settings: &Settings, host: Option<&HeaderValue>) -> Result<CallHeaders, InvalidHeader> {
    let mut configured = settings.headers.clone();
    if let Some(host) = host {
        // Here and not with each request, and where a hook that signs can see it.
        configured.entry(HOST).or_insert_with(|| host.clone());
    }
    if let Some(accept) = codings(settings).accept() {
        configured.entry(ACCEPT_ENCODING).or_insert(accept);
    }
    CallHeaders::of_upstream(&Layers {
        user_agent: Some(&settings.user_agent),
        configured: Some(&configured),
        deadline_header: settings.deadline_header.as_ref(),
        ..Layers::default()
    })
}

/// Half of the smallest timeout as configured: a head that comes later is a slow answer.
fn slow_after(settings: &Settings) -> Duration {
    let attempt = settings.attempt_timeout.unwrap_or(Duration::MAX);
    attempt.min(settings.read_timeout).min(settings.total_timeout) / 2
}

#[cfg(test)]
mod tests;
