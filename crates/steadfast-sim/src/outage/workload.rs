//! Who calls, and when: arrivals over time, the same for every policy of a seed.

use std::time::Duration;

use steadfast::policy::Time;

use super::trigger::{Effect, Trigger};
use super::upstream::exponential;

/// The load that the clients of a fleet put on their upstream, all together.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Calls come whether or not earlier ones have ended, at random instants (a Poisson process), each from any client.
    Open {
        /// Calls a second, of all clients together. Above 0.
        per_second: f64,
    },
    /// The same at equal distances, from one client after the other.
    Even {
        /// Calls a second, of all clients together. Above 0.
        per_second: f64,
    },
    /// Each client has so many callers, and each of them calls again when its call has ended and it has thought.
    Closed {
        /// Callers in each client. At least 1.
        callers: usize,
        /// The mean time to think, exponentially distributed; above 0, as a refused call would else be made again at the
        /// same instant for ever. A trigger of load divides it.
        think: Duration,
    },
    /// Calls come at these instants, counted from the start of the run and in order, each from any client: arrivals that
    /// were recorded.
    Recorded {
        /// The instants.
        at: Vec<Duration>,
    },
}

/// How many different routes calls are spread over; a trigger can fall on some of them.
pub(super) const ROUTES: u16 = 1_000;

/// One call to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) at: Time,
    pub(super) client: usize,
    pub(super) route: u16,
}

/// The arrivals of an open workload, in order. What a policy does changes nothing about them.
pub(super) struct Arrivals<'a> {
    workload: &'a Workload,
    tide: Tide,
    random: fastrand::Rng,
    clients: usize,
    end: Time,
    at: f64,
    count: usize,
}

impl<'a> Arrivals<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        triggers: &[Trigger],
        clients: usize,
        end: Duration,
        random: fastrand::Rng,
    ) -> Self {
        let end = Time::ZERO + end;
        Self { workload, tide: Tide::new(triggers), random, clients, end, at: 0.0, count: 0 }
    }

    /// Seconds from the last arrival's amount of load to the next one's; `amount` 1 is the mean distance.
    fn after(&mut self, per_second: f64, amount: f64) -> Option<Time> {
        self.at = self.tide.after(self.at, amount / per_second)?;
        Some(Time::ZERO + Duration::try_from_secs_f64(self.at).ok()?)
    }
}

impl Iterator for Arrivals<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let (at, client) = match self.workload {
            Workload::Open { per_second } => {
                let amount = exponential(&mut self.random);
                (self.after(*per_second, amount)?, self.random.usize(0..self.clients))
            }
            Workload::Even { per_second } => (self.after(*per_second, 1.0)?, self.count % self.clients),
            Workload::Recorded { at } => (Time::ZERO + *at.get(self.count)?, self.random.usize(0..self.clients)),
            Workload::Closed { .. } => return None,
        };
        self.count += 1;
        let route = self.random.u16(0..ROUTES);
        (at < self.end).then_some(Arrival { at, client, route })
    }
}

/// How much load there is over time: a factor that changes at known instants.
#[derive(Clone, Debug)]
pub(super) struct Tide {
    /// From when on, in seconds, which factor; the first at 0.
    steps: Vec<(f64, f64)>,
}

impl Tide {
    pub(super) fn new(triggers: &[Trigger]) -> Self {
        let mut edges: Vec<(Time, f64, bool)> = Vec::new();
        for trigger in triggers {
            let Effect::Load { factor } = trigger.effect else { continue };
            let windows = (0..).map_while(|n| trigger.window(0, n));
            edges.extend(windows.flat_map(|(from, to)| [(from, factor, true), (to, factor, false)]));
        }
        edges.sort_by_key(|(at, _, _)| *at);
        let mut steps = vec![(0.0, 1.0)];
        let mut active: Vec<f64> = Vec::new();
        for (at, factor, begins) in edges {
            if begins {
                active.push(factor);
            } else if let Some(place) = active.iter().position(|known| *known == factor) {
                active.swap_remove(place);
            }
            steps.push((at.since(Time::ZERO).as_secs_f64(), active.iter().product()));
        }
        Self { steps }
    }

    /// When `amount` of load, in seconds at factor 1, has come since `at`; `None`: never.
    pub(super) fn after(&self, mut at: f64, mut amount: f64) -> Option<f64> {
        let mut index = self.steps.partition_point(|(from, _)| *from <= at).saturating_sub(1);
        loop {
            let factor = self.steps.get(index)?.1;
            let next = self.steps.get(index + 1).map(|(from, _)| *from);
            let there = if factor > 0.0 { at + amount / factor } else { f64::INFINITY };
            match next {
                Some(next) if there >= next => {
                    amount -= (next - at) * factor;
                    (at, index) = (next, index + 1);
                }
                _ => return there.is_finite().then_some(there),
            }
        }
    }
}
