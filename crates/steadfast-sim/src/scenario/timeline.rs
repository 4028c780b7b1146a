//! What happened in a scenario, in order: what a difference is shown in.
//!
//! Steps, requests, replies, and the client's own events all go to one list, each with its instant and with whose it is.
//! Nothing here holds a header or a body: those may be secrets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast::Event;
use steadfast::config::reading::show_duration;
use steadfast::policy::Time;

/// The most moments that are kept. Further ones are counted.
const MOST: usize = 5_000;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When, from the beginning of the scenario.
    pub at: Duration,
    /// In which step, from 0.
    pub step: usize,
    /// Whose it is: an upstream's or guard's name, or empty for the scenario's own.
    pub who: String,
    /// What it is.
    pub what: String,
}

/// The list. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct TimeLine(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    moments: Vec<Moment>,
    left_out: usize,
    step: usize,
}

impl TimeLine {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something.
    pub fn note(&self, at: Time, who: &str, what: impl Into<String>) {
        let mut state = self.state();
        if state.moments.len() >= MOST {
            state.left_out += 1;
            return;
        }
        let (at, step) = (at.since(Time::ZERO), state.step);
        state.moments.push(Moment { at, step, who: who.to_owned(), what: what.into() });
    }

    /// What is noted from here on belongs to this step.
    pub(super) fn enter(&self, step: usize) {
        self.state().step = step;
    }

    /// What has happened so far.
    pub fn moments(&self) -> Vec<Moment> {
        self.state().moments.clone()
    }

    /// How much has happened so far, what was too much to be kept included.
    pub fn len(&self) -> usize {
        let state = self.state();
        state.moments.len() + state.left_out
    }

    /// Whether nothing has happened yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many moments were too many to be kept.
    pub fn left_out(&self) -> usize {
        self.state().left_out
    }

    /// Notes what a client or guard tells.
    pub(super) fn event(&self, at: Time, event: &Event) {
        if let Some((who, what)) = words(event) {
            self.note(at, who, what);
        }
    }
}

/// An event in words; `None` for what is told in another way.
fn words(event: &Event) -> Option<(&str, String)> {
    Some(match event {
        Event::Transition { upstream, transition } => {
            let (from, to, why) = (transition.from.name(), transition.to.name(), transition.why.name());
            (upstream, format!("breaker: {from} -> {to} ({why})"))
        }
        Event::Attempt { upstream, attempt } => {
            let (number, outcome, took) = (attempt.number, attempt.outcome.name(), show(attempt.duration));
            (upstream, format!("attempt {number} ended: {outcome} after {took}"))
        }
        Event::Retry { upstream, attempt, wait, reason } => {
            (upstream, format!("waits {} for attempt {attempt} ({})", show(*wait), reason.name()))
        }
        Event::BudgetDenied { upstream, reason } => (upstream, format!("retry budget: no retry ({reason})")),
        Event::Rejected { upstream, kind, retry_after } => {
            let later = retry_after.map(|wait| format!(", retry after {}", show(wait))).unwrap_or_default();
            (upstream, format!("refused: {kind}{later}"))
        }
        Event::Degraded { upstream, reason } => (upstream, format!("fallback served ({reason})")),
        Event::BodyEnded { upstream, fault, bytes, duration } => {
            let how = fault.map_or("whole", steadfast::Fault::name);
            (upstream, format!("body ended: {how}, {bytes} bytes, took {}", show(*duration)))
        }
        Event::Ended { upstream, ended, attempts, duration, .. } => {
            (upstream, format!("call ended: {ended}, attempts {attempts}, took {}", show(*duration)))
        }
        Event::Cancelled { upstream, attempts, duration } => {
            (upstream, format!("call dropped by its caller, attempts {attempts}, took {}", show(*duration)))
        }
        _ => return None,
    })
}

/// A duration to the microsecond: what is drawn by chance has digits that nobody reads.
pub(super) fn show(duration: Duration) -> String {
    show_duration(Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)))
}
