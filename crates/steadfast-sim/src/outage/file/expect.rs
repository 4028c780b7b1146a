//! What is expected of a policy: figures with their bounds. Every run has to keep to them, whatever its seed.
//!
//! A figure of no calls is none, and keeps to no bounds: an expectation about a phase in which nobody calls is missed.

use std::fmt;
use std::time::Duration;

use steadfast::config::Origin;
use steadfast::config::reading::show_duration;
use steadfast::policy::breaker::State;

use super::fields::Fields;
use crate::outage::{Run, Simulation, Spread};
use crate::scenario::Range;

/// The share of what was in time before the triggers that has to be in time again.
const RECOVERED: f64 = 0.95;
/// For how long it has to be.
const HOLD: Duration = Duration::from_secs(5);

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The share of calls that get a good answer.
    Goodput,
    /// The share of calls that get it in time.
    InTime,
    /// Attempts sent for each call made.
    Amplification,
    /// The share of calls that the client's own limits refuse.
    Refused,
    /// The share of the called upstream's work that is done for nobody.
    Wasted,
    /// Attempts that are sent to the called upstream.
    Requests,
    /// The median of the good answers' times, in seconds.
    P50,
    /// The 99th percentile of the same.
    P99,
    /// How often breakers of the clients open.
    Opened,
    /// How long after the triggers it takes until the share in time is back at 95 % of what it was before, for 5 s; in
    /// seconds.
    Recovery,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Goodput,
        Self::InTime,
        Self::Amplification,
        Self::Refused,
        Self::Wasted,
        Self::Requests,
        Self::P50,
        Self::P99,
        Self::Opened,
        Self::Recovery,
    ];

    /// Its key in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::InTime => "in_time",
            Self::Amplification => "amplification",
            Self::Refused => "refused",
            Self::Wasted => "wasted",
            Self::Requests => "requests",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Opened => "opened",
            Self::Recovery => "recovery",
        }
    }

    /// What it is in the phase of this name; `None`: there is nothing to measure, or for [`Recovery`](Self::Recovery)
    /// nothing was recovered. Times are in seconds.
    pub fn of(self, run: &Run, phase: &str) -> Option<f64> {
        self.of_hop(run, phase, 0)
    }

    /// The same; of [`Requests`](Self::Requests) and [`Wasted`](Self::Wasted), which are about an upstream, those of this one
    /// of the chain.
    pub fn of_hop(self, run: &Run, phase: &str, hop: usize) -> Option<f64> {
        if self == Self::Recovery {
            return run.recovery(RECOVERED, HOLD).map(|took| took.as_secs_f64());
        }
        let phase = run.phase(phase)?;
        let (calls, latency) = (&phase.calls, &phase.latency);
        let server = run.upstream_between(hop, phase.from, phase.to);
        let made = |figure: f64| (calls.offered > 0).then_some(figure);
        let answered = |share: f64| (latency.count() > 0).then(|| latency.quantile(share).as_secs_f64());
        match self {
            Self::Goodput => made(calls.goodput()),
            Self::InTime => made(calls.in_time_share()),
            Self::Amplification => made(calls.amplification()),
            Self::Refused => made(calls.refused() as f64 / calls.offered as f64),
            Self::Wasted => {
                let busy = server.busy.as_secs_f64();
                (busy > 0.0).then(|| server.wasted_work.as_secs_f64() / busy)
            }
            Self::Requests => Some(server.requests as f64),
            Self::P50 => answered(0.5),
            Self::P99 => answered(0.99),
            Self::Opened => {
                let opened = run.breakers.iter().filter(|change| {
                    change.hop == 0 && change.to == State::Open && phase.from <= change.at && change.at < phase.to
                });
                Some(opened.count() as f64)
            }
            Self::Recovery => None,
        }
    }

    /// The figure as people read it.
    pub fn show(self, figure: f64) -> String {
        match self {
            Self::Goodput | Self::InTime | Self::Refused | Self::Wasted => percent(figure),
            Self::Amplification => format!("{figure:.3}"),
            Self::Requests | Self::Opened => {
                if figure.fract() == 0.0 {
                    format!("{figure:.0}")
                } else {
                    format!("{figure:.1}")
                }
            }
            Self::Recovery if figure == 0.0 => "at once".to_owned(),
            Self::P50 | Self::P99 if figure < 1.0 => format!("{:.1} ms", figure * 1_000.0),
            Self::P50 | Self::P99 | Self::Recovery => format!("{figure:.2} s"),
        }
    }

    /// What is said where there is no figure.
    pub fn nothing(self) -> &'static str {
        if self == Self::Recovery { "never" } else { "none" }
    }
}

/// Never rounded up to a hundred what is not, nor down to nothing what is there.
fn percent(share: f64) -> String {
    match share * 100.0 {
        all if all >= 100.0 => "100 %".to_owned(),
        0.0 => "0 %".to_owned(),
        most if most > 99.99 => "99.99 %".to_owned(),
        least if least < 0.01 => "0.01 %".to_owned(),
        between => format!("{between:.2} %"),
    }
}

/// The bounds of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// Of a share or a ratio.
    Number(Range<f64>),
    /// Of a number of things.
    Count(Range<u64>),
    /// Of a time.
    Time(Range<Duration>),
}

impl Expected {
    /// Whether the figure keeps to them; a time is in seconds.
    pub fn holds(&self, figure: f64) -> bool {
        match self {
            Self::Number(range) => range.holds(figure),
            Self::Count(range) => range.holds(figure as u64),
            Self::Time(range) => Duration::try_from_secs_f64(figure).is_ok_and(|figure| range.holds(figure)),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(range) => range.fmt(f),
            Self::Count(range) => range.fmt(f),
            Self::Time(range) => match range.max {
                Some(max) if range.min.is_zero() => write!(f, "..{}", show_duration(max)),
                _ => range.fmt(f),
            },
        }
    }
}

/// One figure of one policy in one phase, and its bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The line of the file that it stands in.
    pub line: usize,
    /// The policy.
    pub policy: String,
    /// The phase.
    pub phase: String,
    /// Which upstream of the chain; 0 is the one that the clients call.
    pub hop: usize,
    /// The figure.
    pub measure: Measure,
    /// Its bounds.
    pub expected: Expected,
}

/// An expectation that did not come about.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// What was expected.
    pub expectation: Expectation,
    /// What was measured, by seed; `None`: there was nothing to measure.
    pub measured: Vec<Option<f64>>,
    /// The seeds whose runs missed it.
    pub seeds: Vec<u64>,
}

impl Expectation {
    /// Those of a table.
    pub(super) fn read(
        fields: &Fields,
        policy: &str,
        phase: &str,
        hop: usize,
        origin: impl Fn(usize) -> Origin,
    ) -> Vec<Self> {
        let expected = |measure: Measure| {
            let key = measure.name();
            let number = fields.value(key).map(Expected::Number);
            let count = || fields.value(key).map(Expected::Count);
            number.or_else(count).or_else(|| fields.value(key).map(Expected::Time))
        };
        let line = |key| match fields.place(key).map(&origin) {
            Some(Origin::File { line, .. }) => line,
            _ => 0,
        };
        let all = Measure::ALL.into_iter().filter_map(|measure| {
            let (line, expected) = (line(measure.name()), expected(measure)?);
            Some(Self { line, policy: policy.to_owned(), phase: phase.to_owned(), hop, measure, expected })
        });
        all.collect()
    }

    /// The keys of a table that make no sense beside each other or in this simulation, and why.
    pub(super) fn conflicts(fields: &Fields, simulation: &Simulation) -> Vec<(&'static str, &'static str)> {
        let mut found = Vec::new();
        if fields.has("recovery") && fields.has("phase") {
            found.push(("recovery", "without `phase`: it is a figure of the whole run"));
        }
        let is_of_upstream = |measure: &Measure| matches!(measure, Measure::Requests | Measure::Wasted);
        if fields.has("upstream") {
            let others = Measure::ALL.into_iter().filter(|measure| !is_of_upstream(measure));
            let others = others.map(Measure::name).filter(|key| fields.has(key));
            found.extend(others.map(|key| (key, "a figure of the calls, not of an `upstream`")));
        }
        if fields.has("recovery") && simulation.triggers.is_empty() {
            found.push(("recovery", "without a trigger there is nothing to recover from"));
        }
        if fields.has("in_time") && simulation.in_time == Duration::MAX {
            found.push(("in_time", "the file says no `in_time`, so that nothing is too late"));
        }
        found
    }

    /// Whether the runs, by policy and seed, miss it.
    pub(super) fn missed(&self, runs: &[Vec<Run>]) -> Option<Missed> {
        let runs = runs.iter().find(|runs| runs.iter().any(|run| run.policy == self.policy))?;
        let measured: Vec<Option<f64>> =
            runs.iter().map(|run| self.measure.of_hop(run, &self.phase, self.hop)).collect();
        let is_missed = |figure: &Option<f64>| figure.is_none_or(|figure| !self.expected.holds(figure));
        let seeds: Vec<u64> =
            runs.iter().zip(&measured).filter(|(_, figure)| is_missed(figure)).map(|(run, _)| run.seed).collect();
        (!seeds.is_empty()).then(|| Missed { expectation: self.clone(), measured, seeds })
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expectation { line, policy, phase, measure, expected, .. } = &self.expectation;
        let there: Vec<f64> = self.measured.iter().flatten().copied().collect();
        let of = if *measure == Measure::Recovery { String::new() } else { format!(" in phase {phase}") };
        write!(f, "line {line}: {policy}: {}{of}: expected {expected}, measured ", measure.name())?;
        match &self.measured[..] {
            [one] => return f.write_str(&one.map_or(measure.nothing().to_owned(), |figure| measure.show(figure))),
            _ if there.is_empty() => f.write_str(measure.nothing())?,
            _ => {
                let Spread { mean, min, max } = Spread::of(there.iter().copied());
                write!(f, "{} ({} to {}", measure.show(mean), measure.show(min), measure.show(max))?;
                if there.len() < self.measured.len() {
                    write!(f, ", {} {}", self.measured.len() - there.len(), measure.nothing())?;
                }
                f.write_str(")")?;
            }
        }
        write!(f, "; missed with {} of {} seeds", self.seeds.len(), self.measured.len())
    }
}
