//! What the breaker hands out: permits and refusals, transitions, and a snapshot. Plain data.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::Time;

/// Whether attempts may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// All of them.
    Closed,
    /// None, until the cool-down is over and a call asks; that call becomes the probe.
    Open,
    /// One, the probe, whose verdict decides.
    HalfOpen,
}

impl State {
    /// The word for it in events, metrics and output: `closed`, `open`, `half_open`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// What made the breaker change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// A streak of failures opened it.
    Streak,
    /// The share of failures in the window opened it.
    Rate,
    /// The probe's success closed it.
    ProbeSucceeded,
    /// The probe's failure opened it again.
    ProbeFailed,
    /// The cool-down was over, and a call became the probe.
    CoolDownOver,
    /// The operator forced it open or closed.
    Forced,
    /// The operator reset it.
    Reset,
    /// Its settings changed, and it started anew.
    Reconfigured,
}

impl Why {
    /// The word for it in events, metrics and output, such as `streak` or `cool_down_over`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Streak => "streak",
            Self::Rate => "rate",
            Self::ProbeSucceeded => "probe_succeeded",
            Self::ProbeFailed => "probe_failed",
            Self::CoolDownOver => "cool_down_over",
            Self::Forced => "forced",
            Self::Reset => "reset",
            Self::Reconfigured => "reconfigured",
        }
    }
}

/// One change of the breaker. `from` and `to` are equal only where an operator forced a state that it was in, or reset
/// one that was forced closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state it left.
    pub from: State,
    /// The state it entered.
    pub to: State,
    /// What made it change.
    pub why: Why,
    /// When.
    pub at: Time,
}

/// How many transitions wait to be asked for; older ones are dropped.
const KEPT: usize = 16;

/// The transitions that nobody has asked for yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct Events(VecDeque<Transition>);

impl Events {
    pub(super) fn push(&mut self, transition: Transition) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(transition);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn pop(&mut self) -> Option<Transition> {
        self.0.pop_front()
    }
}

/// Leave for one attempt. Give it back with [`record`](super::Breaker::record) or [`cancel`](super::Breaker::cancel).
///
/// A permit that is lost holds nothing but the probe's place, and that only until the probe's lease ends.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit is given back by `record` or `cancel`"]
pub struct Permit {
    pub(super) generation: u64,
    pub(super) probe: bool,
}

impl Permit {
    /// Whether this attempt is the probe that decides if the breaker closes.
    pub const fn is_probe(&self) -> bool {
        self.probe
    }
}

/// The breaker refuses: nothing may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rejection {
    /// How long to wait before asking again: what is left of the cool-down, or of the probe's lease. `None` only when
    /// the breaker is forced open, which has no end of its own.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.retry_after {
            Some(wait) => write!(f, "the circuit breaker is open, ask again in {wait:?}"),
            None => f.write_str("the circuit breaker is forced open"),
        }
    }
}

impl Error for Rejection {}

/// The counts at the moment when the breaker left `Closed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Failures in a row.
    pub streak: u32,
    /// Attempts in the window.
    pub calls: u64,
    /// How many of them failed.
    pub failures: u64,
    /// `Streak`, `Rate` or `Forced`.
    pub why: Why,
}

/// The breaker at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSnapshot {
    /// Its state. `Open` until a probe has been taken, even when the cool-down is over.
    pub state: State,
    /// Whether the operator forced it into this state.
    pub forced: bool,
    /// Failures in a row, now.
    pub streak: u32,
    /// Attempts that ended in the window.
    pub calls: u64,
    /// How many of them failed.
    pub failures: u64,
    /// The counts that opened it, until it closes; a failed probe does not change them.
    pub opened_with: Option<Opened>,
    /// What a refused call would be told now; `None` if it would not be refused, or if the breaker is forced open.
    pub retry_after: Option<Duration>,
    /// Not closed, but the next call would be let through, as the probe.
    pub ready_to_probe: bool,
    /// Counts the transitions. A verdict of an older generation decides nothing.
    pub generation: u64,
    /// Verdicts that came too late to decide anything, since the breaker was made.
    pub late_verdicts: u64,
}
