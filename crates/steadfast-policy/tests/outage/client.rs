//! One client: its retry budget and its circuit breaker, the shipped ones or those they are compared with.

use steadfast_policy::breaker::{Breaker, BreakerConfig, Permit, State};
use steadfast_policy::budget::{Budget, BudgetConfig};
use steadfast_policy::{Time, Verdict};

use super::seed_breaker::SeedBreaker;
use super::world::Nanos;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BreakerRule {
    Off,
    Shipped,
    /// The plain rule: five in a row, or half of the window.
    Seed,
}

/// The rules that every client of a run goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rules {
    /// `None`: no retries at all.
    pub(crate) budget: Option<BudgetConfig>,
    pub(crate) breaker: BreakerRule,
}

impl Rules {
    pub(crate) const NO_RETRY: Self = Self { budget: None, breaker: BreakerRule::Off };

    /// The shipped budget, no breaker.
    pub(crate) fn shipped_budget() -> Self {
        Self { budget: Some(BudgetConfig::default()), ..Self::NO_RETRY }
    }

    /// The ceiling alone, no breaker.
    pub(crate) fn seed_budget() -> Self {
        Self { budget: Some(BudgetConfig { gate: false, ..BudgetConfig::default() }), ..Self::NO_RETRY }
    }

    pub(crate) fn with_ratio(self, ratio: f64) -> Self {
        Self { budget: self.budget.map(|budget| BudgetConfig { ratio, ..budget }), ..self }
    }

    pub(crate) fn with_breaker(self, breaker: BreakerRule) -> Self {
        Self { breaker, ..self }
    }
}

pub(crate) struct Client {
    pub(crate) budget: Option<Budget>,
    pub(crate) guard: Guard,
}

impl Client {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { budget: rules.budget.map(Budget::new), guard: Guard::new(rules.breaker) }
    }
}

pub(crate) enum Guard {
    Off,
    Shipped(Box<Breaker>),
    Seed(Box<SeedBreaker>),
}

/// Leave for one attempt.
pub(crate) enum Pass {
    Free,
    Shipped(Permit),
    Seed(u32),
}

impl Guard {
    fn new(rule: BreakerRule) -> Self {
        match rule {
            BreakerRule::Off => Self::Off,
            BreakerRule::Shipped => Self::Shipped(Box::new(Breaker::new(BreakerConfig::default()))),
            BreakerRule::Seed => Self::Seed(Box::new(SeedBreaker::new())),
        }
    }

    pub(crate) fn try_acquire(&mut self, now: Nanos) -> Option<Pass> {
        match self {
            Self::Off => Some(Pass::Free),
            Self::Shipped(breaker) => breaker.try_acquire(Time::from_nanos(now)).ok().map(Pass::Shipped),
            Self::Seed(breaker) => breaker.try_acquire(now).map(Pass::Seed),
        }
    }

    pub(crate) fn record(&mut self, now: Nanos, pass: Pass, verdict: Verdict) {
        match (self, pass) {
            (Self::Shipped(breaker), Pass::Shipped(permit)) => breaker.record(Time::from_nanos(now), permit, verdict),
            (Self::Seed(breaker), Pass::Seed(generation)) => {
                breaker.record(now, generation, verdict != Verdict::Success);
            }
            _ => {}
        }
    }

    /// 2.10: not worth the wait.
    pub(crate) fn would_refuse_at(&self, now: Nanos, at: Nanos) -> bool {
        match self {
            Self::Off => false,
            Self::Shipped(breaker) => breaker.would_refuse_at(Time::from_nanos(now), Time::from_nanos(at)),
            Self::Seed(breaker) => breaker.would_refuse_at(at),
        }
    }

    pub(crate) fn is_open(&self, now: Nanos) -> bool {
        match self {
            Self::Off => false,
            Self::Shipped(breaker) => breaker.state(Time::from_nanos(now)) == State::Open,
            Self::Seed(breaker) => breaker.is_open(),
        }
    }
}
