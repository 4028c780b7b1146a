//! What is taken from a run: a few numbers, so that thousands of runs fit into memory.

use std::time::Duration;

use steadfast_sim::outage::{Run, RunError};

use crate::Failure;
use crate::rules::Rule;
use crate::scenario::{Case, Plan};

/// One run, but for its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Trial {
    /// What the clients live through.
    pub case: Case,
    /// How they behave.
    pub rule: Rule,
}

impl Trial {
    /// Runs it.
    ///
    /// # Errors
    /// The case or the settings make no sense, which would be a fault of this crate.
    pub fn run(&self, seed: u64) -> Result<Figures, Failure> {
        let plan = self.case.plan(seed);
        let policy = self.rule.policy(self.case.scenario).map_err(|problems| problems.to_string())?;
        let run = plan.simulation.run(&policy, seed).map_err(|error: RunError| error.to_string())?;
        Ok(Figures::of(&run, &plan))
    }
}

/// What can be asked of a run. Calls belong to the time at which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Calls with a good answer of those made during the trouble, in percent.
    During,
    /// Of those made 30 to 70 s after it, in percent.
    After,
    /// Of those made 0 to 10 s after it, in percent.
    NextTen,
    /// Of those made 5 to 15 s after it, in percent.
    FiveToFifteen,
    /// Attempts for each call made during the trouble.
    SentPerCall,
    /// Retries of the calls made during the trouble.
    Retries,
    /// Requests that reached the upstream during the trouble, per client.
    SentEach,
    /// Seconds from the trouble's beginning to a client's breaker opening; the mean over the clients. One that stays closed
    /// counts as opening at the end.
    Opens,
    /// Seconds from the trouble's end to a client's breaker closing; the mean over those that close after it.
    Closes,
}

/// All of that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    during: f64,
    after: f64,
    next_ten: f64,
    five_to_fifteen: f64,
    sent_per_call: f64,
    retries: f64,
    sent_each: f64,
    opens: f64,
    closes: f64,
    /// Calls that were made in the whole run.
    pub calls: u64,
}

impl Figures {
    fn of(run: &Run, plan: &Plan) -> Self {
        let (from, over) = (plan.from, plan.over);
        let percent = |from, to| 100.0 * run.between(over + from, over + to).goodput();
        let seconds = Duration::from_secs;
        let during = run.between(from, over);
        let requests = run.upstream_between(0, from, over).requests;
        let clients = run.clients.max(1) as f64;
        let opened = run.first_opened(from).into_iter().map(|at| at.unwrap_or(over).min(over));
        let opened: f64 = opened.map(|at| at.saturating_sub(from).as_secs_f64()).sum();
        let closed: Vec<f64> = run
            .last_closed()
            .into_iter()
            .flatten()
            .filter(|at| *at >= over)
            .map(|at| (at - over).as_secs_f64())
            .collect();
        Self {
            during: 100.0 * during.goodput(),
            after: percent(seconds(30), seconds(70)),
            next_ten: percent(Duration::ZERO, seconds(10)),
            five_to_fifteen: percent(seconds(5), seconds(15)),
            sent_per_call: during.amplification(),
            retries: during.sent.saturating_sub(during.offered) as f64,
            sent_each: requests as f64 / clients,
            opens: opened / clients,
            closes: closed.iter().sum::<f64>() / closed.len().max(1) as f64,
            calls: run.total().offered,
        }
    }

    /// One of them.
    pub fn figure(&self, figure: Figure) -> f64 {
        match figure {
            Figure::During => self.during,
            Figure::After => self.after,
            Figure::NextTen => self.next_ten,
            Figure::FiveToFifteen => self.five_to_fifteen,
            Figure::SentPerCall => self.sent_per_call,
            Figure::Retries => self.retries,
            Figure::SentEach => self.sent_each,
            Figure::Opens => self.opens,
            Figure::Closes => self.closes,
        }
    }
}

#[cfg(test)]
impl Figures {
    pub(crate) fn for_tests(during: f64) -> Self {
        Self { during, ..Self::default() }
    }
}
