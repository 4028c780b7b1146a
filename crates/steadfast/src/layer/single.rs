//! One policy alone, as a layer.
//!
//! There is one loop, and these are it: the same [`ClientService`] with every other policy set so that it never says
//! anything. The keys are those of the configuration, with the same defaults and bounds.
//!
//! | switched off by | |
//! |---|---|
//! | deadline | 24 hours: the longest that any call may have |
//! | retries | no request may be repeated |
//! | circuit breaker | more failures than there are numbers for |
//! | bulkhead | as many slots as there are numbers for |
//! | rate limit | none |

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steadfast_http::headers::{CallHeaders, Layers};
use steadfast_policy::backoff::Jitter;
use steadfast_policy::breaker::BreakerConfig;
use steadfast_policy::line::{LineConfig, RateStyle};
use tower_layer::Layer;

use super::{ClientLayer, ClientService, Manner, Nowhere};
use crate::client::{BuildError, ClientBuilder};
use crate::clock::Clock;
use crate::event::Event;
use crate::snapshot::Snapshot;
use crate::upstream::Setup;

/// The longest that a call may take (1.3).
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Which policy stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Only {
    Deadline,
    Retry,
    CircuitBreaker,
    Bulkhead,
    RateLimit,
}

impl Only {
    fn builder(name: &str) -> ClientBuilder {
        // Of no use: what is called is up to the service inside.
        ClientBuilder::new("http://layer.invalid").name(name).total_timeout(DAY).read_timeout(DAY)
    }

    fn build(self, builder: ClientBuilder) -> Result<ClientLayer, BuildError> {
        let (mut template, _) = builder.transport(Nowhere).assemble(|setup| self.stay(setup))?;
        let headers = CallHeaders::of_upstream(&Layers::default());
        let invalid = |source| BuildError::Headers { upstream: template.settings.name.clone(), source };
        template.plain_headers = Arc::new(headers.map_err(invalid)?);
        let manner = Manner { retries: self == Self::Retry, decodes: false };
        Ok(ClientLayer::new(template, manner))
    }

    /// Switches every other policy off.
    fn stay(self, setup: &mut Setup) {
        setup.is_part = true;
        if self == Self::CircuitBreaker {
            // A probe in a stack without deadlines may never end; its place then goes to the next call.
            setup.breaker.probe_lease = BreakerConfig::default().probe_lease;
        } else {
            setup.breaker = BreakerConfig { failures: u32::MAX, minimum_calls: u32::MAX, ..BreakerConfig::default() };
        }
        let rate = setup.line.rate.filter(|_| self == Self::RateLimit);
        if self == Self::Bulkhead {
            setup.line.rate = None;
        } else {
            setup.line = LineConfig { slots: u32::MAX, slot_wait: Duration::ZERO, rate };
        }
    }
}

macro_rules! single_policies {
    ($($(#[doc = $meaning:literal])+ $layer:ident, $builder:ident, $only:ident {
        $($(#[doc = $key_meaning:literal])+ $key:ident: $input:ty;)+
    })+) => { $(
        $(#[doc = $meaning])+
        #[derive(Clone, Debug)]
        pub struct $layer(ClientLayer);

        impl $layer {
            /// Sets the layer up. `name` is the upstream's, in errors, events and snapshots.
            pub fn builder(name: &str) -> $builder {
                $builder(Only::builder(name))
            }

            /// The state as it is. Taking it changes nothing.
            pub fn snapshot(&self) -> Snapshot {
                self.0.snapshot()
            }
        }

        impl<S> Layer<S> for $layer
        where
            ClientLayer: Layer<S, Service = ClientService>,
        {
            type Service = ClientService;

            fn layer(&self, inner: S) -> ClientService {
                self.0.layer(inner)
            }
        }

        #[doc = concat!("Sets a [`", stringify!($layer), "`] up; mistakes are reported by [`build`](Self::build), all at once.")]
        #[must_use = "a builder does nothing until it is built"]
        pub struct $builder(ClientBuilder);

        impl $builder {
            $($(#[doc = $key_meaning])+
            pub fn $key(self, value: $input) -> Self {
                Self(self.0.$key(value))
            })+

            /// Another clock than the system's.
            pub fn clock(self, clock: impl Into<Clock>) -> Self {
                Self(self.0.clock(clock))
            }

            /// A seed for the jitter, so that a test is the same each time.
            pub fn seed(self, seed: u64) -> Self {
                Self(self.0.seed(seed))
            }

            /// Tells of every transition, attempt, retry and refusal; as
            /// [`ClientBuilder::on_event`](crate::ClientBuilder::on_event).
            pub fn on_event(self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
                Self(self.0.on_event(hook))
            }

            /// The layer.
            ///
            /// # Errors
            /// [`BuildError`]: every setting outside its bounds, and a name that is none.
            pub fn build(self) -> Result<$layer, BuildError> {
                Only::$only.build(self.0).map($layer)
            }
        }

        impl fmt::Debug for $builder {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($builder)).finish_non_exhaustive()
            }
        }
    )+ };
}

single_policies! {
    /// The deadline alone: a call is over when its time is, its body included, and its service's future is dropped.
    ///
    /// Inside a layer that retries it is a timeout of each attempt; outside of it, the deadline of them all.
    DeadlineLayer, DeadlineLayerBuilder, Deadline {
        /// The whole call: the service's own queueing, the head, the body. 24 h, unless set; above zero and at most that.
        total_timeout: Duration;
    }

    /// Retries alone, with their budget: whether a request may be repeated, whether another attempt can help, when, and
    /// whether retries have been helping at all.
    ///
    /// Put it outside of every other layer that refuses calls; a refusal of ours is not retried. Without a deadline
    /// around it a `Retry-After` is waited for up to `max_retry_after`.
    RetryLayer, RetryLayerBuilder, Retry {
        /// Tries after the first. 2.
        retries: u32;
        /// One attempt as a whole, up to its response's head, or to the end of one that is retried. Unset.
        attempt_timeout: Duration;
        /// Backoff before the first retry. 0.1 s.
        backoff_base: Duration;
        /// Growth of the backoff per retry. 2.
        backoff_factor: f64;
        /// Cap of the backoff. 2 s.
        backoff_max: Duration;
        /// Form of the random part of the backoff. Full.
        jitter: Jitter;
        /// The random part of additive jitter. 0.1 s.
        jitter_max: Duration;
        /// The longest `Retry-After` that is waited for; for more, the response is returned. 30 s.
        max_retry_after: Duration;
        /// Random extra on top of a `Retry-After` wait, for large fleets. 0 s.
        retry_after_jitter: Duration;
        /// Statuses that another attempt can fix. 429, 502, 503, 504.
        retry_statuses: &[u16];
        /// Retries per call, counted over the last ten seconds. 0.2.
        retry_budget_ratio: f64;
        /// Retries per second that a quiet client may always spend. 1.
        retry_budget_min_per_second: f64;
        /// Whether retries that do not help stop being paid for. True.
        retry_budget_gate: bool;
        /// The largest body of a response that is retried, in bytes. 16 MiB.
        max_response_bytes: u64;
    }

    /// The circuit breaker alone. It judges what the service inside returns: put it inside of retries, so that these are
    /// attempts. A probe has 30 s before its place goes to the next call.
    CircuitBreakerLayer, CircuitBreakerLayerBuilder, CircuitBreaker {
        /// The shortest streak of failures that opens the breaker. 5.
        breaker_failures: u32;
        /// The share of failures in the window that opens the breaker. 0.5.
        breaker_failure_rate: f64;
        /// Attempts in the window before the share counts. 20.
        breaker_minimum_calls: u32;
        /// The window over which the share is taken. 30 s.
        breaker_window: Duration;
        /// How long the breaker stays open. 15 s.
        breaker_cool_down: Duration;
        /// How long the first opening lasts, doubling with each failed probe. Unset: `breaker_cool_down`.
        breaker_cool_down_start: Duration;
        /// Statuses that are failures for the breaker. 502, 503, 504.
        breaker_statuses: &[u16];
    }

    /// The bulkhead alone: so many calls at once, from the call to the end of its body. Put it inside of retries, so that a
    /// slot is free during a backoff.
    BulkheadLayer, BulkheadLayerBuilder, Bulkhead {
        /// Calls in flight at once. 50.
        max_concurrent: u32;
        /// The longest wait for a slot; 0 refuses at once. 0.5 s.
        bulkhead_wait: Duration;
    }

    /// The rate limit alone. Put it inside of retries, so that each attempt takes a place.
    RateLimitLayer, RateLimitLayerBuilder, RateLimit {
        /// Calls per `rate_limit_period`. Unset: no limit.
        rate_limit: u32;
        /// The window of the rate limit. 1 s.
        rate_limit_period: Duration;
        /// The longest wait for a place; 0 refuses at once. Unset: as long as it takes.
        rate_limit_wait: Duration;
        /// Bursts of a whole window, or evenly spread. Window.
        rate_limit_style: RateStyle;
    }
}
