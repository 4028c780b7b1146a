//! What is simulated: clients, their load, the upstreams, what befalls them, and for how long. Plain data, and its check.

use std::fmt;
use std::time::Duration;

use super::trigger::{Effect, Of, Trigger};
use super::upstream::{ServiceTime, UpstreamModel};
use super::workload::Workload;

/// An outage to be lived through, by the clients of one policy after the other.
///
/// ```
/// use std::time::Duration;
///
/// use steadfast::config::SettingsBuilder;
/// use steadfast_sim::outage::{Effect, Policy, ServiceTime, Simulation, Trigger, UpstreamModel, Workload};
///
/// // 100 clients call an upstream of 1 000/s at 700/s, which answers 503 from second 20 on, for ten seconds.
/// let upstream = UpstreamModel::new(ServiceTime::Exponential { mean: Duration::from_millis(1) });
/// let mut simulation = Simulation::new(upstream, 100, Workload::Open { per_second: 700.0 }, Duration::from_secs(60));
/// simulation.triggers.push(Trigger::new(Effect::DOWN, Duration::from_secs(20), Duration::from_secs(10)));
///
/// let settings = SettingsBuilder::new("http://billing").attempt_timeout(Duration::from_millis(500)).build()?;
/// let run = simulation.run(&Policy::new("as configured", settings.clone()), 1)?;
/// let down = run.between(Duration::from_secs(20), Duration::from_secs(30));
/// assert!(down.amplification() < 0.1, "nearly every call was refused by an open breaker");
///
/// let none = simulation.run(&Policy::none(&settings), 1)?;
/// let down = none.between(Duration::from_secs(20), Duration::from_secs(30));
/// assert_eq!(down.amplification(), 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// How many client processes, each with a budget, a breaker and a bulkhead of its own. At least 1.
    pub clients: usize,
    /// The load they make.
    pub workload: Workload,
    /// The upstream they call, and behind it those of a call chain: each calls the next before it answers.
    pub upstreams: Vec<UpstreamModel>,
    /// Whether a worker of an upstream that calls another waits for it, and serves nobody meanwhile. Default false.
    pub holds_worker: bool,
    /// What happens, and when.
    pub triggers: Vec<Trigger>,
    /// For how long calls are made. The run ends when all of them have ended.
    pub lasts: Duration,
    /// The time at the start that no phase counts. Default zero.
    pub warm_up: Duration,
    /// The length of the intervals in which everything is counted. Default 1 s.
    pub interval: Duration,
    /// A good answer that takes longer than this, from the call's beginning, is too late to be of use. Default: none is.
    pub in_time: Duration,
    /// The stretches of time with figures of their own, latencies among them. Default: before, during and after the
    /// triggers.
    pub phases: Vec<Phase>,
}

/// A stretch of time. Calls belong to it by when they were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its name in results.
    pub name: String,
    /// From, inclusive.
    pub from: Duration,
    /// To, exclusive.
    pub to: Duration,
}

/// So many intervals are counted at the most.
const MOST_INTERVALS: u128 = 1_000_000;

impl Simulation {
    /// Clients that put this load on one upstream, and nothing that befalls it.
    pub fn new(upstream: UpstreamModel, clients: usize, workload: Workload, lasts: Duration) -> Self {
        Self {
            clients,
            workload,
            upstreams: vec![upstream],
            holds_worker: false,
            triggers: Vec::new(),
            lasts,
            warm_up: Duration::ZERO,
            interval: Duration::from_secs(1),
            in_time: Duration::MAX,
            phases: Vec::new(),
        }
    }

    /// When the first trigger begins and when the last is over; `None` without any.
    pub fn trouble(&self) -> Option<(Duration, Duration)> {
        let from = self.triggers.iter().map(|trigger| trigger.from).min()?;
        let replicas = |hop: usize| self.upstreams.get(hop).map_or(1, |model| model.replicas);
        let over = |trigger: &Trigger| match trigger.effect {
            Effect::Load { .. } => trigger.over(1),
            _ => trigger.over(replicas(trigger.hop)),
        };
        let to = self.triggers.iter().map(over).max()?;
        Some((from, to.min(self.lasts)))
    }

    /// The phases that are counted: those that are named, or before, during and after the triggers.
    pub fn phases_in_force(&self) -> Vec<Phase> {
        if !self.phases.is_empty() {
            return self.phases.clone();
        }
        let phase = |name: &str, from, to| Phase { name: name.to_owned(), from, to };
        match self.trouble() {
            None => vec![phase("all", self.warm_up, self.lasts)],
            Some((from, to)) => vec![
                phase("before", self.warm_up.min(from), from),
                phase("during", from, to),
                phase("after", to, self.lasts),
            ],
        }
    }

    pub(super) fn interval_count(&self) -> usize {
        usize::try_from(self.lasts.as_nanos().div_ceil(self.interval.as_nanos().max(1))).unwrap_or(0)
    }

    /// Whether it can be run.
    ///
    /// # Errors
    /// Everything in it that makes no sense, all at once.
    pub fn check(&self) -> Result<(), InvalidSimulation> {
        let mut problems = Problems::default();
        problems.need(self.clients >= 1, "clients", "at least 1", &self.clients);
        problems.need(!self.upstreams.is_empty(), "upstreams", "at least one", &"none");
        problems.need(!self.lasts.is_zero(), "lasts", "above 0s", &self.lasts);
        problems.need(!self.interval.is_zero(), "interval", "above 0s", &self.interval);
        let intervals = self.lasts.as_nanos() / self.interval.as_nanos().max(1);
        let most = "at least a millionth of `lasts`";
        problems.need(intervals <= MOST_INTERVALS, "interval", most, &self.interval);
        check_workload(&self.workload, &mut problems);
        for (hop, model) in self.upstreams.iter().enumerate() {
            check_upstream(model, &format!("upstreams[{hop}]"), &mut problems);
        }
        for (number, trigger) in self.triggers.iter().enumerate() {
            self.check_trigger(trigger, &format!("triggers[{number}]"), &mut problems);
        }
        for (number, phase) in self.phases.iter().enumerate() {
            problems.need(phase.from < phase.to, &format!("phases[{number}].to"), "later than `from`", &phase.to);
        }
        if problems.0.is_empty() { Ok(()) } else { Err(InvalidSimulation { problems: problems.0 }) }
    }

    fn check_trigger(&self, trigger: &Trigger, at: &str, problems: &mut Problems) {
        let at = |key: &str| format!("{at}.{key}");
        problems.need(!trigger.lasts.is_zero(), &at("lasts"), "above 0s", &trigger.lasts);
        if let Some(pulse) = trigger.pulse {
            problems.need(!pulse.every.is_zero(), &at("pulse.every"), "above 0s", &pulse.every);
            let fits = !pulse.lasts.is_zero() && pulse.lasts <= pulse.every;
            problems.need(fits, &at("pulse.lasts"), "above 0s, at most `every`", &pulse.lasts);
        }
        match self.upstreams.get(trigger.hop) {
            None => problems.add(&at("hop"), "an upstream of the chain", &trigger.hop),
            Some(model) => {
                let there = trigger.replica.is_none_or(|replica| replica < model.replicas);
                problems.need(there, &at("replica"), "a replica of the upstream", &trigger.replica);
            }
        }
        let share = match trigger.of {
            Of::All => 1.0,
            Of::Attempts(share) | Of::Calls(share) => share,
        };
        problems.need((0.0..=1.0).contains(&share), &at("of"), "0 to 1", &share);
        let all = trigger.of == Of::All || trigger.effect.meets_requests();
        problems.need(all, &at("of"), "all requests: the effect does not fall on single ones", &trigger.of);
        match trigger.effect {
            Effect::Slow { speed: number } | Effect::Load { factor: number } => {
                problems.need(is_amount(number), &at("effect"), "0 or more", &number);
            }
            Effect::Answer { status, .. } | Effect::Costly { status } => {
                problems.need((200..600).contains(&status), &at("effect.status"), "200 to 599", &status);
            }
            _ => {}
        }
        if matches!(trigger.effect, Effect::Load { .. }) {
            let recorded = matches!(self.workload, Workload::Recorded { .. });
            problems.need(!recorded, &at("effect"), "a workload that is not recorded", &trigger.effect);
            let everywhere = trigger.replica.is_none() && trigger.hop == 0;
            problems.need(everywhere, &at("replica"), "none, and hop 0: load falls on no upstream", &trigger.replica);
        }
    }
}

fn is_amount(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

fn check_workload(workload: &Workload, problems: &mut Problems) {
    match workload {
        Workload::Open { per_second } | Workload::Even { per_second } => {
            let fits = per_second.is_finite() && *per_second > 0.0;
            problems.need(fits, "workload.per_second", "above 0", per_second);
        }
        Workload::Closed { callers, think } => {
            problems.need(!think.is_zero(), "workload.think", "above 0s", think);
            problems.need(*callers >= 1, "workload.callers", "at least 1", callers);
        }
        Workload::Recorded { at } => {
            let sorted = at.is_sorted();
            problems.need(sorted, "workload.at", "instants in order", &"one before the one before it");
        }
    }
}

fn check_upstream(model: &UpstreamModel, at: &str, problems: &mut Problems) {
    let at = |key: &str| format!("{at}.{key}");
    problems.need(model.replicas >= 1, &at("replicas"), "at least 1", &model.replicas);
    problems.need(model.workers >= 1, &at("workers"), "at least 1", &model.workers);
    match &model.service {
        ServiceTime::Exponential { mean } | ServiceTime::Fixed(mean) => {
            problems.need(!mean.is_zero(), &at("service"), "above 0s", mean);
        }
        ServiceTime::LogNormal { median, p99 } => {
            let fits = !median.is_zero() && median <= p99;
            problems.need(fits, &at("service"), "a median above 0s, and a p99 not below it", median);
        }
        ServiceTime::Drawn(list) | ServiceTime::Replayed(list) => {
            problems.need(!list.is_empty(), &at("service"), "at least one time", &"none");
        }
    }
    if let Some(cold) = model.cold {
        let fits = is_amount(cold.speed) && cold.speed > 0.0;
        problems.need(fits, &at("cold.speed"), "above 0", &cold.speed);
    }
    if let Some(limit) = model.rate_limit {
        problems.need(!limit.period.is_zero(), &at("rate_limit.period"), "above 0s", &limit.period);
    }
}

/// What of a simulation makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSimulation {
    /// Every problem: where it is, what was expected, and what is there.
    pub problems: Vec<SimulationProblem>,
}

/// One problem of a [`Simulation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationProblem {
    /// The field, such as `upstreams[0].workers`.
    pub at: String,
    /// What may be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

#[derive(Default)]
struct Problems(Vec<SimulationProblem>);

impl Problems {
    fn need(&mut self, fits: bool, at: &str, expected: &str, found: &dyn fmt::Debug) {
        if !fits {
            self.add(at, expected, found);
        }
    }

    fn add(&mut self, at: &str, expected: &str, found: &dyn fmt::Debug) {
        let (at, expected, found) = (at.to_owned(), expected.to_owned(), format!("{found:?}"));
        self.0.push(SimulationProblem { at, expected, found });
    }
}

impl fmt::Display for InvalidSimulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            let SimulationProblem { at, expected, found } = problem;
            let separator = if number == 0 { "" } else { "\n" };
            write!(f, "{separator}{at}: expected {expected}, found {found}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidSimulation {}
