//! What is lived through both ways: at most 50 calls a second, service times of 20 ms and more, 16 s each.

use std::time::Duration;

use steadfast::config::SettingsBuilder;
use steadfast_sim::outage::{Effect, RateLimiter, ServiceTime, Simulation, Tells, Trigger, UpstreamModel, Workload};

const LENGTH: Duration = Duration::from_secs(16);
const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) simulation: Simulation,
    /// The client's settings, with this base URL.
    pub(crate) settings: fn(&str) -> SettingsBuilder,
}

/// Service times between these, and arrivals at random instants: so many a second from each of these seconds on.
fn simulation(seed: u64, workers: usize, ms: (u64, u64), load: &[(u64, f64)]) -> Simulation {
    let mut random = fastrand::Rng::with_seed(seed);
    let times = (0..997).map(|_| Duration::from_micros(random.u64(ms.0 * 1_000..ms.1 * 1_000))).collect();
    let mut model = UpstreamModel::new(ServiceTime::Replayed(times));
    model.workers = workers;
    let (mut at, mut arrivals) = (0.0, Vec::new());
    while at < LENGTH.as_secs_f64() {
        arrivals.push(Duration::from_secs_f64(at));
        let (_, rate) = load.iter().rev().find(|(from, _)| *from as f64 <= at).expect("it begins at 0");
        at += -(1.0 - random.f64()).ln() / rate;
    }
    Simulation::new(model, 1, Workload::Recorded { at: arrivals }, LENGTH)
}

fn with(mut simulation: Simulation, effect: Effect, from: u32, lasts: u32) -> Simulation {
    simulation.triggers.push(Trigger::new(effect, SEC * from, SEC * lasts));
    simulation
}

pub(crate) fn all() -> Vec<Case> {
    let mut spike = simulation(4, 1, (38, 42), &[(0, 15.0), (5, 45.0), (9, 15.0)]);
    spike.upstreams[0].queue = Some(4);
    let mut limited = simulation(5, 8, (20, 60), &[(0, 12.0), (5, 36.0), (9, 12.0)]);
    limited.upstreams[0].rate_limit =
        Some(RateLimiter { limit: 20, period: SEC, per_client: false, tells: Tells::RetryAfter });
    vec![
        Case {
            name: "slow",
            simulation: with(simulation(1, 2, (20, 40), &[(0, 25.0)]), Effect::Slow { speed: 0.05 }, 4, 4),
            settings: |url| SettingsBuilder::new(url).attempt_timeout(MS * 300).breaker_cool_down(SEC * 2),
        },
        Case {
            name: "down",
            simulation: with(simulation(2, 2, (20, 40), &[(0, 30.0)]), Effect::DOWN, 4, 5),
            settings: |url| SettingsBuilder::new(url).breaker_cool_down(MS * 1_500),
        },
        Case {
            name: "hangs",
            simulation: with(simulation(3, 2, (20, 60), &[(0, 20.0)]), Effect::Hang, 5, 3),
            settings: |url| {
                SettingsBuilder::new(url)
                    .attempt_timeout(MS * 400)
                    .total_timeout(SEC)
                    .max_concurrent(6)
                    .bulkhead_wait(MS * 50)
                    .breaker_cool_down(SEC * 3)
            },
        },
        Case { name: "spike", simulation: spike, settings: |url| SettingsBuilder::new(url).breaker_cool_down(SEC) },
        Case { name: "limited", simulation: limited, settings: |url| SettingsBuilder::new(url).total_timeout(SEC * 3) },
    ]
}
