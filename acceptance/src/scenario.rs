//! What the clients live through: each scenario as data for the simulator, and the stretch of time that is looked at.
//!
//! All of them share one upstream unless they say otherwise: one worker with an unbounded queue, first in, first out, that
//! serves dead work in full, 1 000/s with exponential service times; replicas share that capacity, and each attempt goes to
//! any of them. It is the upstream that recovers worst. Calls come at random (Poisson) from any client, 20 s before the
//! trouble begins.
//!
//! Two sizes the thresholds do not come with, and they were found by trying. A spike is half as many calls again for 10 s:
//! blind retries then survive it at load .5, not at .85, and at .7 with some seeds, as is known of them; after twice the
//! calls or 20 s they never survive at .7, after 1.3 times the calls always. The upstream whose replica drops its
//! connections has three replicas of 50 workers with 150 ms: breaker off, clients of 7 calls/s and less then get 98 % and
//! busier ones 100 %, as is known; with 50 ms all get 100 %.

use std::time::Duration;

use steadfast_sim::outage::{DeadWork, Effect, Of, ServiceTime, Simulation, Trigger, UpstreamModel, Workload};

/// How a request fails that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Failing {
    /// 503 after 1 ms, at no cost to the upstream.
    Answers503,
    /// No answer ever, and no backlog.
    Hangs,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scenario {
    /// 30 % of full speed for 10 s.
    Slow,
    /// Speed 0 for 10 s; the backlog stays.
    Freeze,
    /// 1.5 times the calls for 10 s.
    Spike,
    /// As many calls as make 1.05 times the capacity, for 30 s.
    Brownout,
    /// One of three replicas fails for 30 s.
    BadReplica(Failing),
    /// One attempt in five is served in full and then answered 503, for 30 s.
    Costly,
    /// Every request fails for 30 s.
    Down(Failing),
    /// A share of all attempts fails, each by itself.
    Noise {
        /// How many of a hundred.
        percent: u8,
        /// In which way.
        failing: Failing,
        /// For so many seconds.
        seconds: u16,
    },
    /// 20 % noise for 30 s, with 5 % before and after.
    AfterNoise,
    /// Everything fails for 30 s, with 5 % noise before and after.
    AfterDown,
    /// One client with a call a minute for a week, under noise.
    Week {
        /// How many of a hundred attempts fail.
        percent: u8,
        /// In which way.
        failing: Failing,
    },
    /// One client whose upstream answers 503 for two hours.
    TwoHours {
        /// So many calls a minute.
        per_minute: u32,
        /// The outage begins with the process; else after two hours of good answers.
        fresh: bool,
    },
    /// One of so many replicas fails for 300 s.
    OneOf {
        /// How many.
        replicas: u8,
        /// In which way.
        failing: Failing,
    },
    /// One route in ten fails always, for 300 s.
    Poison,
    /// Everything fails from second 60 on, for 30 to 44 s, so that the breaker's window was full; under noise from second 20.
    Dead {
        /// In which way.
        failing: Failing,
        /// How many of a hundred attempts failed before, by a 503.
        noise: u8,
    },
    /// Nine attempts in ten fail for 60 s.
    NinetyPercent,
    /// Everything fails for 20 ms, every 20 s, for 60 s.
    Blip,
    /// One of three replicas resets what it has in flight, every 10 s, for 60 s.
    Reset,
    /// Everything hangs for 30 s, behind so many slots and an attempt timeout of 10 s.
    Slots(u16),
    /// Clients with few calls, whose upstream dies after noise.
    Quiet {
        /// Calls a minute of each.
        per_minute: u32,
        /// How many of a hundred attempts failed before.
        noise: u8,
    },
}

/// A scenario at a load, for a number of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Case {
    /// What happens.
    pub scenario: Scenario,
    /// Calls, in hundredths of the capacity. Scenarios that name a rate go by that.
    pub load: u32,
    /// How many clients make them.
    pub clients: usize,
    /// Whether the upstream skips requests whose caller has gone.
    pub skips_dead_work: bool,
}

/// A case made ready to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What to run.
    pub simulation: Simulation,
    /// When the trouble begins.
    pub from: Duration,
    /// When it is over.
    pub over: Duration,
}

/// What all upstreams of a run serve a second.
const CAPACITY: u32 = 1_000;
/// When the trouble begins, where nothing else is said.
const CALM: Duration = Duration::from_secs(20);
/// For how long calls go on after it, where what is looked at is the time after it.
const AFTER: Duration = Duration::from_secs(72);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Case {
    /// This scenario for so many clients at this load, in hundredths of the capacity.
    pub const fn new(scenario: Scenario, load: u32, clients: usize) -> Self {
        Self { scenario, load, clients, skips_dead_work: false }
    }

    /// What to run. Only the length of an outage that is to end at no particular moment of the breaker's cool-down depends
    /// on the seed.
    pub fn plan(&self, seed: u64) -> Plan {
        let (from, lasts, after) = self.times(seed);
        let over = from + lasts;
        let mut model = upstream(self.scenario);
        if self.skips_dead_work {
            model.dead_work = DeadWork::Skipped;
        }
        let workload = Workload::Open { per_second: self.per_second() };
        let mut simulation = Simulation::new(model, self.clients, workload, over + after);
        // Fine enough for all edges; coarse where a run lasts for hours, and nothing is asked of a part of it.
        simulation.interval = match self.scenario {
            Scenario::Week { .. } => seconds(60),
            Scenario::TwoHours { .. } => seconds(1),
            _ => Duration::from_millis(500),
        };
        simulation.warm_up = from;
        simulation.triggers = self.triggers(from, lasts, over + after);
        Plan { simulation, from, over }
    }

    /// Calls a second of all clients.
    fn per_second(&self) -> f64 {
        match self.scenario {
            Scenario::Week { .. } => 1.0 / 60.0,
            Scenario::TwoHours { per_minute, .. } => f64::from(per_minute) / 60.0,
            Scenario::Quiet { per_minute, .. } => f64::from(per_minute) / 60.0 * self.clients as f64,
            _ => f64::from(self.load * CAPACITY) / 100.0,
        }
    }

    /// When the trouble begins, how long it lasts, and for how long calls are made after it.
    fn times(&self, seed: u64) -> (Duration, Duration, Duration) {
        match self.scenario {
            Scenario::Slow | Scenario::Freeze | Scenario::Spike => (CALM, seconds(10), AFTER),
            Scenario::Brownout | Scenario::BadReplica(_) | Scenario::Costly | Scenario::Down(_) => {
                (CALM, seconds(30), AFTER)
            }
            Scenario::Noise { seconds: lasts, .. } => (CALM, seconds(lasts.into()), Duration::ZERO),
            Scenario::AfterNoise | Scenario::AfterDown => (CALM, seconds(30), seconds(16)),
            Scenario::Week { .. } => (Duration::ZERO, seconds(7 * 24 * 3_600), Duration::ZERO),
            Scenario::TwoHours { fresh: true, .. } => (Duration::ZERO, seconds(7_200), Duration::ZERO),
            Scenario::TwoHours { fresh: false, .. } => (seconds(7_200), seconds(7_200), Duration::ZERO),
            Scenario::OneOf { .. } | Scenario::Poison => (CALM, seconds(300), Duration::ZERO),
            Scenario::NinetyPercent | Scenario::Blip | Scenario::Reset => (CALM, seconds(60), Duration::ZERO),
            Scenario::Slots(_) => (CALM, seconds(30), Duration::ZERO),
            Scenario::Dead { .. } => {
                // 30 to 44 s in five steps of which none is a multiple of the cool-down of 15 s.
                let step = u32::try_from(seed % 5).unwrap_or(0);
                (seconds(60), seconds(30) + Duration::from_millis(3_500) * step, seconds(30))
            }
            Scenario::Quiet { per_minute: 1, .. } => (seconds(600), seconds(900), Duration::ZERO),
            Scenario::Quiet { .. } => (seconds(120), seconds(60), Duration::ZERO),
        }
    }

    fn triggers(&self, from: Duration, lasts: Duration, end: Duration) -> Vec<Trigger> {
        let now = |effect| Trigger::new(effect, from, lasts);
        let noise = |percent: u8, failing, from, to: Duration| {
            let share = Of::Attempts(f64::from(percent) / 100.0);
            Trigger::new(effect(failing), from, to - from).of(share)
        };
        // The first trigger that falls on a request counts; so an outage is named before the noise around it.
        let with_noise = |trigger, percent| vec![trigger, noise(percent, Failing::Answers503, Duration::ZERO, end)];
        let down = effect(Failing::Answers503);
        match self.scenario {
            Scenario::Slow => vec![now(Effect::Slow { speed: 0.3 })],
            Scenario::Freeze => vec![now(Effect::FROZEN)],
            Scenario::Spike => vec![now(Effect::Load { factor: 1.5 })],
            Scenario::Brownout => vec![Trigger::brownout(f64::from(self.load) / 100.0, 1.05, from, lasts)],
            Scenario::BadReplica(failing) | Scenario::OneOf { failing, .. } => {
                vec![now(effect(failing)).on_replica(0)]
            }
            Scenario::Costly => vec![now(Effect::Costly { status: 503 }).of(Of::Attempts(0.2))],
            Scenario::Down(failing) => vec![now(effect(failing))],
            Scenario::Slots(_) => vec![now(Effect::Hang)],
            Scenario::Noise { percent, failing, .. } | Scenario::Week { percent, failing } => {
                vec![noise(percent, failing, from, from + lasts)]
            }
            Scenario::AfterNoise => vec![
                noise(20, Failing::Answers503, from, from + lasts),
                noise(5, Failing::Answers503, Duration::ZERO, from),
                noise(5, Failing::Answers503, from + lasts, end),
            ],
            Scenario::AfterDown => with_noise(now(down), 5),
            Scenario::TwoHours { .. } => vec![now(down)],
            Scenario::Poison => vec![now(down).of(Of::Calls(0.1))],
            Scenario::Dead { failing, noise: 0 } => vec![now(effect(failing))],
            Scenario::Dead { failing, noise: percent } => {
                vec![now(effect(failing)), noise(percent, Failing::Answers503, CALM, from)]
            }
            Scenario::NinetyPercent => vec![noise(90, Failing::Answers503, from, from + lasts)],
            Scenario::Blip => vec![now(down).pulsing(CALM, Duration::from_millis(20))],
            Scenario::Reset => {
                vec![now(Effect::Reset).on_replica(0).pulsing(seconds(10), Duration::from_millis(1))]
            }
            Scenario::Quiet { noise: percent, .. } => {
                vec![now(down), noise(percent, Failing::Answers503, Duration::ZERO, from)]
            }
        }
    }
}

fn effect(failing: Failing) -> Effect {
    match failing {
        Failing::Answers503 => Effect::DOWN,
        Failing::Hangs => Effect::Hang,
    }
}

fn upstream(scenario: Scenario) -> UpstreamModel {
    let (replicas, workers) = match scenario {
        Scenario::BadReplica(_) => (3, 1),
        Scenario::OneOf { replicas, .. } => (u32::from(replicas.max(1)), 1),
        Scenario::Reset => (3, 50),
        _ => (1, 1),
    };
    let mean = Duration::from_secs(1) * replicas * workers / CAPACITY;
    let mut model = UpstreamModel::new(ServiceTime::Exponential { mean });
    (model.replicas, model.workers) = (replicas as usize, workers as usize);
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Scenario; 24] = [
        Scenario::Slow,
        Scenario::Freeze,
        Scenario::Spike,
        Scenario::Brownout,
        Scenario::BadReplica(Failing::Answers503),
        Scenario::BadReplica(Failing::Hangs),
        Scenario::Costly,
        Scenario::Down(Failing::Hangs),
        Scenario::Noise { percent: 20, failing: Failing::Answers503, seconds: 60 },
        Scenario::AfterNoise,
        Scenario::AfterDown,
        Scenario::Week { percent: 5, failing: Failing::Answers503 },
        Scenario::TwoHours { per_minute: 1, fresh: true },
        Scenario::TwoHours { per_minute: 6_000, fresh: false },
        Scenario::OneOf { replicas: 3, failing: Failing::Hangs },
        Scenario::OneOf { replicas: 10, failing: Failing::Answers503 },
        Scenario::Poison,
        Scenario::Dead { failing: Failing::Answers503, noise: 0 },
        Scenario::Dead { failing: Failing::Answers503, noise: 20 },
        Scenario::NinetyPercent,
        Scenario::Blip,
        Scenario::Reset,
        Scenario::Slots(10),
        Scenario::Quiet { per_minute: 1, noise: 5 },
    ];

    #[test]
    fn every_plan_makes_sense_to_the_simulator() {
        for scenario in ALL {
            for seed in 1..=5 {
                let plan = Case::new(scenario, 85, 10).plan(seed);
                assert!(plan.simulation.check().is_ok(), "{scenario:?}");
                assert!(plan.from < plan.over && plan.over <= plan.simulation.lasts, "{scenario:?}");
            }
        }
    }

    #[test]
    fn replicas_share_the_capacity() {
        for scenario in ALL {
            let capacity = upstream(scenario).capacity();
            assert!((capacity - 1_000.0).abs() < 1e-6, "{scenario:?}: {capacity}");
        }
    }

    #[test]
    fn an_outage_ends_at_five_different_moments_of_the_cool_down() {
        let case = Case::new(Scenario::Dead { failing: Failing::Answers503, noise: 0 }, 70, 1);
        let lasts = |seed| {
            let plan = case.plan(seed);
            (plan.over - plan.from).as_secs_f64()
        };
        let mut all: Vec<f64> = (1..=5).map(lasts).collect();
        all.sort_by(f64::total_cmp);
        assert_eq!(all, [30.0, 33.5, 37.0, 40.5, 44.0]);
    }
}
