//! The circuit breaker, by what it says of its transitions, against what the attempts told it.

use steadfast::ErrorKind;
use steadfast::policy::Time;
use steadfast::policy::breaker::{State, Transition, Why};
use steadfast::report::Ended;

use super::facts::{Facts, Moment, Verdict};
use super::{Complaints, Rule};
use crate::log::What;
use crate::plan::{Act, Config};

pub(super) fn check(facts: &Facts<'_>, complaints: &mut Complaints) {
    let mut walk = Walk::new(facts);
    for (place, entry) in facts.log.iter().enumerate() {
        let moment = Moment { place, at: entry.at };
        match &entry.what {
            What::Start { exchange, call, .. } => walk.starts(moment, *exchange, *call, complaints),
            What::Head { exchange, .. } | What::End { exchange, .. } => walk.tells(moment, *exchange, complaints),
            What::Told(transition) => walk.changes(moment, *transition, complaints),
            What::Operator(act) => walk.operates(*act),
            What::Done { call, answer } => {
                let ended = answer.report.ended();
                if ended == Ended::CircuitOpen && answer.kind.is_none_or(|kind| kind == ErrorKind::CircuitOpen) {
                    walk.refuses(moment, *call, complaints);
                }
            }
            What::Sampled(sample) | What::Over(sample) => {
                complaints.unless(sample.breaker == walk.state, Rule::Open, moment.at, None, || {
                    format!("it shows {:?}, and was said to be {:?}", sample.breaker, walk.state)
                });
            }
            _ => {}
        }
    }
}

/// The breaker at one place of the log.
struct Walk<'f, 'a> {
    facts: &'f Facts<'a>,
    config: &'a Config,
    state: State,
    is_forced: bool,
    since: Time,
    /// What was admitted under which number decides only while it is the same.
    generation: u64,
    /// The generation of each exchange, and whether it is a probe.
    admitted: Vec<(u64, bool)>,
    /// Of the present generation.
    streak: u64,
    successes: u64,
    failures: u64,
    /// The exchange that has the probe's place, and until when at the longest.
    probe: Option<(usize, Time)>,
    /// What the probe told, and the breaker has not said yet.
    due: Option<State>,
}

impl<'f, 'a> Walk<'f, 'a> {
    fn new(facts: &'f Facts<'a>) -> Self {
        Self {
            facts,
            config: &facts.plan.configs[0],
            state: State::Closed,
            is_forced: false,
            since: Time::ZERO,
            generation: 0,
            admitted: vec![(0, false); facts.attempts.len()],
            streak: 0,
            successes: 0,
            failures: 0,
            probe: None,
            due: None,
        }
    }

    fn begin_generation(&mut self) {
        self.generation += 1;
        (self.streak, self.successes, self.failures) = (0, 0, 0);
        (self.probe, self.due) = (None, None);
    }

    fn has_probe(&self, now: Time) -> bool {
        self.probe.is_some_and(|(_, lease)| now < lease)
    }

    fn starts(&mut self, moment: Moment, exchange: usize, call: usize, complaints: &mut Complaints) {
        let now = moment.at;
        match self.state {
            State::Open => complaints.about(Rule::Open, now, call, format!("open since {}, and it sends", self.since)),
            State::Closed if !self.is_forced => {
                let is_due = self.successes == 0 && self.streak >= u64::from(self.config.failures);
                complaints.unless(!is_due, Rule::Opening, now, call, || {
                    format!("{} failures in a row from a fresh start have not opened it", self.streak)
                });
            }
            State::HalfOpen => {
                complaints.unless(!self.has_probe(now), Rule::Probe, now, call, || {
                    format!("a second probe: exchange {:?} is still out", self.probe.map(|(exchange, _)| exchange))
                });
                complaints.unless(self.due.is_none(), Rule::Probe, now, call, || {
                    format!("the probe has told, and the breaker is not {:?}", self.due)
                });
                self.generation += 1;
                self.probe = Some((exchange, now + self.config.total));
            }
            State::Closed => {}
        }
        self.admitted[exchange] = (self.generation, self.state == State::HalfOpen);
    }

    /// An exchange has got on; this may be what it tells.
    fn tells(&mut self, moment: Moment, exchange: usize, complaints: &mut Complaints) {
        let attempt = &self.facts.attempts[exchange];
        let (generation, is_probe) = self.admitted[exchange];
        let verdict = self.facts.verdict(attempt, is_probe).filter(|(told, _)| told.place == moment.place);
        let is_over = attempt.end.is_some_and(|(end, _)| end.place == moment.place);
        if generation != self.generation || self.is_forced {
            return;
        }
        let Some((_, verdict)) = verdict else {
            if is_over && self.probe.is_some_and(|(probe, _)| probe == exchange) && self.due.is_none() {
                self.probe = None;
            }
            return;
        };
        if self.state == State::HalfOpen {
            self.probe_tells(moment.at, verdict);
            return;
        }
        complaints.unless(self.state == State::Closed, Rule::Open, moment.at, attempt.call, || {
            "it was admitted while the breaker was open".to_owned()
        });
        match verdict {
            Verdict::Failure => {
                self.streak += 1;
                self.failures += 1;
            }
            Verdict::Success => {
                self.streak = 0;
                self.successes += 1;
            }
            Verdict::Paced => {}
        }
    }

    fn probe_tells(&mut self, now: Time, verdict: Verdict) {
        let Some((_, lease)) = self.probe else { return };
        match verdict {
            Verdict::Failure => self.due = Some(State::Open),
            // One that outlived its lease proves nothing; its place is free.
            Verdict::Success | Verdict::Paced if now > lease => self.probe = None,
            Verdict::Success | Verdict::Paced => self.due = Some(State::Closed),
        }
    }

    fn changes(&mut self, moment: Moment, transition: Transition, complaints: &mut Complaints) {
        let Transition { from, to, why, .. } = transition;
        let now = moment.at;
        complaints.unless(from == self.state, Rule::Open, now, None, || {
            format!("it says that it was {from:?}, and was said to be {:?}", self.state)
        });
        let (holds, rule) = match why {
            Why::Streak => (self.streak >= u64::from(self.config.failures), Rule::Opening),
            Why::Rate => (self.has_rate(), Rule::Opening),
            Why::CoolDownOver => (self.since + self.shortest_cool_down() <= now, Rule::Open),
            Why::ProbeSucceeded => (self.due == Some(State::Closed), Rule::Probe),
            Why::ProbeFailed => (self.due == Some(State::Open), Rule::Probe),
            _ => (true, Rule::Open),
        };
        complaints.unless(holds, rule, now, None, || {
            let Self { streak, successes, failures, since, due, .. } = self;
            let told = format!("a streak of {streak}, {failures} failures and {successes} successes since {since}");
            format!("{from:?} to {to:?} for {why:?}, after {told}; the probe told {due:?}")
        });
        self.begin_generation();
        (self.state, self.since, self.is_forced) = (to, now, why == Why::Forced);
    }

    /// So many calls at least, and so many of them failed. (Of the whole generation: its window is a part of it.)
    fn has_rate(&self) -> bool {
        let (calls, least) = (self.successes + self.failures, u64::from(self.config.minimum_calls));
        calls >= least && self.failures as f64 >= self.config.failure_rate * least as f64 - 1e-3
    }

    fn shortest_cool_down(&self) -> std::time::Duration {
        self.config.cool_down_start.unwrap_or(self.config.cool_down).min(self.config.cool_down)
    }

    fn operates(&mut self, act: Act) {
        match act {
            Act::Reset => self.begin_generation(),
            Act::Reload(number) => {
                let config = &self.facts.plan.configs[number];
                if config.judges_otherwise(self.config) {
                    self.begin_generation();
                }
                self.config = config;
            }
            Act::ForceOpen | Act::ForceClose | Act::Close => {}
        }
    }

    /// 4.5, 4.6: refused only while it is open, or while a probe is out.
    fn refuses(&self, moment: Moment, call: usize, complaints: &mut Complaints) {
        let now = moment.at;
        let holds = match self.state {
            State::Open => self.is_forced || now < self.since + self.config.cool_down,
            State::HalfOpen => self.has_probe(now),
            _ => false,
        };
        let rule = if self.state == State::HalfOpen { Rule::Probe } else { Rule::Open };
        complaints.unless(holds, rule, now, call, || {
            format!("refused, and it is {:?} since {}, its probe {:?}", self.state, self.since, self.probe)
        });
    }
}
