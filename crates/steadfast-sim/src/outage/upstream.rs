//! What an upstream is made of: replicas behind a balancer, workers, a queue, a service time. Plain data.

use std::time::Duration;

/// A modelled upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamModel {
    /// How many replicas it has. At least 1.
    pub replicas: usize,
    /// Which of them a request goes to.
    pub balancer: Balancer,
    /// After how long the balancer leaves out a replica that is down (it is being restarted); `None`: never.
    pub health_check: Option<Duration>,
    /// How many requests one replica serves at once. At least 1.
    pub workers: usize,
    /// How many requests wait at one replica at the most, beside those being served; `None`: any number. One more is
    /// answered 503 after [`FAST`].
    pub queue: Option<usize>,
    /// Which of the waiting requests is served next.
    pub discipline: Discipline,
    /// How long serving one takes at full speed.
    pub service: ServiceTime,
    /// What becomes of requests that nobody waits for any more.
    pub dead_work: DeadWork,
    /// How it is slower for a while after a restart; `None`: it is not.
    pub cold: Option<Cold>,
    /// How fast it lets itself be called; `None`: as fast as anybody likes.
    pub rate_limit: Option<RateLimiter>,
}

/// How long an answer takes that costs the upstream nothing: a 503 of a full queue, a 429.
pub const FAST: Duration = Duration::from_millis(1);

impl UpstreamModel {
    /// One replica with one worker and an unbounded queue, first in, first out, which serves dead work in full: of all
    /// upstreams the one that recovers worst.
    pub fn new(service: ServiceTime) -> Self {
        Self {
            replicas: 1,
            balancer: Balancer::Random,
            health_check: None,
            workers: 1,
            queue: None,
            discipline: Discipline::Fifo,
            service,
            dead_work: DeadWork::Served,
            cold: None,
            rate_limit: None,
        }
    }

    /// How many requests a second it can serve at full speed.
    pub fn capacity(&self) -> f64 {
        let servers = self.replicas as f64 * self.workers as f64;
        servers / self.service.mean().as_secs_f64()
    }
}

/// Which replica a request goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancer {
    /// Any, drawn anew for each attempt.
    #[default]
    Random,
    /// One after the other.
    RoundRobin,
    /// The one with the fewest requests that are not answered yet, as the balancer sees it; of equal ones the next in
    /// turn. A replica that fails at once looks idle to it.
    LeastBusy,
}

/// Which of the waiting requests is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out.
    #[default]
    Fifo,
    /// Last in, first out.
    Lifo,
}

/// What becomes of requests whose caller has gone (its timeout passed, or it was dropped).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadWork {
    /// They are served in full, and the answer is thrown away.
    #[default]
    Served,
    /// Those that still wait are skipped; one that is being served is served in full.
    Skipped,
    /// All of them end at once, whether they wait or are being served.
    Cancelled,
}

/// A cold cache: slower for a while after a restart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cold {
    /// The speed meanwhile, as a share of full speed. Above 0.
    pub speed: f64,
    /// For how long.
    pub lasts: Duration,
}

/// A limit on requests in fixed windows, counted over all replicas. One too many is answered 429 after [`FAST`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimiter {
    /// So many requests a window.
    pub limit: u32,
    /// How long a window is. Windows follow each other from the start of the run.
    pub period: Duration,
    /// Whether every client has a limit of its own, or all share one.
    pub per_client: bool,
    /// How the upstream says when to come back.
    pub tells: Tells,
}

/// What a limited upstream puts into its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tells {
    /// Nothing.
    Nothing,
    /// `Retry-After` on a 429, in whole seconds, rounded up.
    #[default]
    RetryAfter,
    /// `RateLimit` and `RateLimit-Policy` on every answer, as the draft of the HTTP working group has them.
    RateLimit,
}

/// How long serving a request takes at full speed.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceTime {
    /// Exponential, with this mean.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// Always the same.
    Fixed(Duration),
    /// Lognormal: most are near the median, a few take much longer.
    LogNormal {
        /// Half of all take longer.
        median: Duration,
        /// One in a hundred takes longer. Not below the median.
        p99: Duration,
    },
    /// Each drawn from this list, for times that were measured.
    Drawn(Vec<Duration>),
    /// In this order, one for each request that reaches a replica's workers or queue, over and over: to replay the same
    /// times elsewhere.
    Replayed(Vec<Duration>),
}

/// The 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_347_874_040_841;

impl ServiceTime {
    /// The mean.
    pub fn mean(&self) -> Duration {
        match self {
            Self::Exponential { mean } | Self::Fixed(mean) => *mean,
            Self::LogNormal { median, p99 } => {
                let sigma = sigma(*median, *p99);
                Duration::try_from_secs_f64(median.as_secs_f64() * (sigma * sigma / 2.0).exp()).unwrap_or(Duration::MAX)
            }
            Self::Drawn(list) | Self::Replayed(list) => {
                let sum: Duration = list.iter().sum();
                sum / u32::try_from(list.len().max(1)).unwrap_or(u32::MAX)
            }
        }
    }

    /// The next service time in nanoseconds. `served` counts the requests before it.
    pub(super) fn next(&self, random: &mut fastrand::Rng, served: u64) -> f64 {
        match self {
            Self::Exponential { mean } => nanos(*mean) * exponential(random),
            Self::Fixed(time) => nanos(*time),
            Self::LogNormal { median, p99 } => nanos(*median) * (sigma(*median, *p99) * normal(random)).exp(),
            Self::Drawn(list) if list.is_empty() => 0.0,
            Self::Drawn(list) => list.get(random.usize(0..list.len())).copied().map_or(0.0, nanos),
            Self::Replayed(list) => {
                let turn = usize::try_from(served).unwrap_or(0).checked_rem(list.len()).unwrap_or(0);
                list.get(turn).copied().map_or(0.0, nanos)
            }
        }
    }
}

fn sigma(median: Duration, p99: Duration) -> f64 {
    (p99.as_secs_f64() / median.as_secs_f64()).ln() / Z99
}

fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

/// Exponential with mean 1.
pub(super) fn exponential(random: &mut fastrand::Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

/// Standard normal (Box and Muller).
fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (2.0 * exponential(random)).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}
