//! Takes down what happens while a run goes on.

use std::sync::{Arc, Mutex, PoisonError};

use steadfast::policy::Time;
use steadfast::policy::breaker::{State, Transition};
use steadfast::{Error, Event, Response};

use super::ledger::{Level, Series, Tally, is_good};
use super::results::{BreakerChange, Latency, PhaseFigures, since_start};
use super::simulation::Simulation;

/// Calls, as they are made and as they end.
pub(super) struct Recorder {
    in_time: std::time::Duration,
    pub(super) calls: Series<Tally>,
    pub(super) phases: Vec<PhaseFigures>,
    pub(super) levels: Vec<Level>,
    /// Calls that have not ended.
    pub(super) pending: u64,
    pub(super) ended: Time,
}

impl Recorder {
    pub(super) fn new(simulation: &Simulation) -> Self {
        let phases = simulation.phases_in_force().into_iter().filter_map(|phase| {
            let (name, from, to) = (phase.name, phase.from, phase.to);
            Some(PhaseFigures { name, from, to, calls: Tally::default(), latency: Latency::new()? })
        });
        Self {
            in_time: simulation.in_time,
            calls: Series::new(simulation.interval, simulation.interval_count()),
            phases: phases.collect(),
            levels: Vec::new(),
            pending: 0,
            ended: Time::ZERO,
        }
    }

    pub(super) fn begin(&mut self, arrived: Time) {
        self.pending += 1;
        self.calls.at(arrived).offered += 1;
        for phase in phases_of(&mut self.phases, arrived) {
            phase.calls.offered += 1;
        }
    }

    pub(super) fn end(&mut self, arrived: Time, now: Time, result: &Result<Response, Error>) {
        self.pending -= 1;
        self.ended = self.ended.max(now);
        self.calls.at(arrived).end(result, self.in_time);
        for phase in phases_of(&mut self.phases, arrived) {
            phase.calls.end(result, self.in_time);
            if let Ok(response) = result
                && is_good(response)
            {
                phase.latency.record(response.report().duration());
            }
        }
    }
}

fn phases_of(phases: &mut [PhaseFigures], arrived: Time) -> impl Iterator<Item = &mut PhaseFigures> {
    let arrived = since_start(arrived);
    phases.iter_mut().filter(move |phase| phase.from <= arrived && arrived < phase.to)
}

/// So many changes of breakers are kept.
const KEPT: usize = 200_000;

/// The breakers of all clients.
#[derive(Clone)]
pub(super) struct Breakers(Arc<Mutex<Changes>>);

#[derive(Default)]
pub(super) struct Changes {
    pub(super) changes: Vec<BreakerChange>,
    pub(super) left_out: u64,
    /// Of the clients of the first upstream.
    pub(super) open: u64,
    pub(super) half_open: u64,
}

impl Breakers {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// What tells of the changes of this client's breaker.
    pub(super) fn hook(&self, hop: usize, client: usize) -> Arc<dyn Fn(&Event) + Send + Sync> {
        let this = self.clone();
        Arc::new(move |event| {
            if let Event::Transition { transition, .. } = event {
                this.with(|changes| changes.note(hop, client, transition));
            }
        })
    }

    pub(super) fn with<R>(&self, look: impl FnOnce(&mut Changes) -> R) -> R {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Changes {
    fn note(&mut self, hop: usize, client: usize, transition: &Transition) {
        let Transition { from, to, why, at } = *transition;
        // A breaker that is switched off is forced closed when it is made: nothing has changed.
        if from == to {
            return;
        }
        if hop == 0 {
            for (state, step) in [(from, -1), (to, 1)] {
                match state {
                    State::Open => self.open = self.open.saturating_add_signed(step),
                    State::HalfOpen => self.half_open = self.half_open.saturating_add_signed(step),
                    State::Closed => {}
                }
            }
        }
        if self.changes.len() < KEPT {
            self.changes.push(BreakerChange { hop, client, at: since_start(at), from, to, why });
        } else {
            self.left_out += 1;
        }
    }
}
