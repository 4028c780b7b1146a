//! What befalls an upstream, and when. Plain data.
//!
//! A trigger is an effect, a time, and on what it falls: all replicas or one, all requests, a share of them, or some of the
//! calls for ever. A pulse makes it come and go; a stagger moves it from replica to replica. So a blip is an answer of 503
//! with a pulse, flapping the same with a longer one, and a rolling deploy is a restart with a stagger.

use std::time::Duration;

use steadfast::policy::Time;

use super::upstream::FAST;

/// One thing that happens to an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// What.
    pub effect: Effect,
    /// When it begins, from the start of the run.
    pub from: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// It comes and goes within that time; `None`: it is there all the time.
    pub pulse: Option<Pulse>,
    /// By how much later it befalls each next replica. Default zero: all at once.
    pub stagger: Duration,
    /// The only replica it befalls, counted from 0; `None`: all.
    pub replica: Option<usize>,
    /// Which requests it falls on.
    pub of: Of,
    /// Which upstream of a chain: 0 is the one that the clients call.
    pub hop: usize,
}

/// It is there for `lasts` at a time, beginning every `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// From one beginning to the next. Above zero.
    pub every: Duration,
    /// How long each time.
    pub lasts: Duration,
}

/// Which requests an effect falls on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Of {
    /// All.
    #[default]
    All,
    /// This share of all attempts, each drawn by itself: noise.
    Attempts(f64),
    /// This share of all calls, with every attempt of theirs: routes that always fail. In thousandths; a finer share is
    /// rounded.
    Calls(f64),
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// Work goes on at this share of full speed, also what has begun already. 0: it stands still, and the backlog stays.
    Slow {
        /// 0 to any number; 1 is full speed.
        speed: f64,
    },
    /// Requests are answered with this status at once, and cost no work.
    Answer {
        /// The status, 100 to 599.
        status: u16,
        /// How long the answer takes.
        after: Duration,
        /// What its `Retry-After` says, in whole seconds, rounded up; `None`: it has none.
        retry_after: Option<Duration>,
    },
    /// Requests are served in full, and then answered with this status.
    Costly {
        /// The status.
        status: u16,
    },
    /// Connections are refused.
    Refuse {
        /// How long the refusal takes.
        after: Duration,
    },
    /// Connections do not come about, and nothing says so: `connect_timeout` ends them.
    Unreachable,
    /// Requests are taken and never answered; they are no work and no backlog.
    Hang,
    /// Where the trigger (each pulse of it) begins, every request in flight is reset: those that wait, those being served,
    /// those that hang.
    Reset,
    /// The replica is down, then up again, and cold if the model says so. Meanwhile connections to it are refused.
    Restart {
        /// Whether it first ends what it has, or resets it.
        graceful: bool,
    },
    /// The clients call so many times as often. Falls on no replica, only on an open workload or one with thinking time.
    Load {
        /// 0 to any number; 1 changes nothing.
        factor: f64,
    },
}

impl Effect {
    /// 503 after 1 ms.
    pub const DOWN: Self = Self::Answer { status: 503, after: FAST, retry_after: None };
    /// Refused after 1 ms.
    pub const REFUSED: Self = Self::Refuse { after: FAST };
    /// Work stands still.
    pub const FROZEN: Self = Self::Slow { speed: 0.0 };

    /// Whether it meets requests one by one, as they come.
    pub(super) fn meets_requests(self) -> bool {
        matches!(self, Self::Answer { .. } | Self::Costly { .. } | Self::Refuse { .. } | Self::Unreachable | Self::Hang)
    }
}

impl Trigger {
    /// The effect on everything, from `from` on, for `lasts`.
    pub fn new(effect: Effect, from: Duration, lasts: Duration) -> Self {
        let (pulse, stagger, replica, of, hop) = (None, Duration::ZERO, None, Of::All, 0);
        Self { effect, from, lasts, pulse, stagger, replica, of, hop }
    }

    /// The upstream's load is brought to `to` of its capacity by more calls, where it was `load`.
    pub fn brownout(load: f64, to: f64, from: Duration, lasts: Duration) -> Self {
        Self::new(Effect::Load { factor: to / load }, from, lasts)
    }

    /// Only now and then.
    #[must_use]
    pub fn pulsing(mut self, every: Duration, lasts: Duration) -> Self {
        self.pulse = Some(Pulse { every, lasts });
        self
    }

    /// Each next replica by so much later.
    #[must_use]
    pub fn staggered(mut self, by: Duration) -> Self {
        self.stagger = by;
        self
    }

    /// Only on one replica.
    #[must_use]
    pub fn on_replica(mut self, replica: usize) -> Self {
        self.replica = Some(replica);
        self
    }

    /// Only on some requests.
    #[must_use]
    pub fn of(mut self, of: Of) -> Self {
        self.of = of;
        self
    }

    /// On an upstream further down a chain.
    #[must_use]
    pub fn at_hop(mut self, hop: usize) -> Self {
        self.hop = hop;
        self
    }

    /// Whether it falls on this replica at any time.
    pub(super) fn falls_on(&self, replica: usize) -> bool {
        self.replica.is_none_or(|only| only == replica)
    }

    /// The `n`th time at which it is there for this replica: from, inclusive, and to, exclusive.
    pub(super) fn window(&self, replica: usize, n: u32) -> Option<(Time, Time)> {
        let later = self.stagger.saturating_mul(u32::try_from(replica).unwrap_or(u32::MAX));
        let first = Time::ZERO + self.from + later;
        let end = first + self.lasts;
        let (from, to) = match self.pulse {
            None if n == 0 => (first, end),
            None => return None,
            Some(pulse) => {
                let from = first + pulse.every.saturating_mul(n);
                (from, (from + pulse.lasts).min(end))
            }
        };
        (from < to && from < end).then_some((from, to))
    }

    /// When it is over for the last replica of so many.
    pub(super) fn over(&self, replicas: usize) -> Duration {
        let last = self.replica.unwrap_or(replicas.saturating_sub(1));
        let later = self.stagger.saturating_mul(u32::try_from(last).unwrap_or(u32::MAX));
        self.from.saturating_add(self.lasts).saturating_add(later)
    }
}
