//! One outage under several policies: 10 s at 30 % speed, at 85 % load, for one client and for a hundred.
//!
//! ```sh
//! cargo run --release -p steadfast-sim --example outage
//! ```
//!
//! Prints what share of the calls got a good answer before, during, and 30 to 70 s after, and what it cost on the wall.

use std::time::{Duration, Instant};

use steadfast::config::SettingsBuilder;
use steadfast_sim::outage::{Effect, Policy, ServiceTime, Simulation, Trigger, UpstreamModel, Workload};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = Duration::from_secs;
    let settings = SettingsBuilder::new("http://upstream")
        .attempt_timeout(Duration::from_millis(500))
        .max_concurrent(1_000_000)
        .build()?;
    let policies = [
        Policy::none(&settings),
        Policy::blind(&settings, 2),
        Policy::new("budget alone", settings.clone()).without_breaker(),
        Policy::new("budget and breaker", settings),
    ];
    for clients in [1, 100] {
        let upstream = UpstreamModel::new(ServiceTime::Exponential { mean: Duration::from_millis(1) });
        let mut simulation = Simulation::new(upstream, clients, Workload::Open { per_second: 850.0 }, seconds(100));
        simulation.warm_up = seconds(5);
        simulation.triggers.push(Trigger::new(Effect::Slow { speed: 0.3 }, seconds(20), seconds(10)));
        for policy in &policies {
            let began = Instant::now();
            let run = simulation.run(policy, 1)?;
            let took = began.elapsed().as_secs_f64();
            let share = |from, to| 100.0 * run.between(seconds(from), seconds(to)).goodput();
            let total = run.total();
            println!(
                "{clients:4} clients, {:18}: before {:5.1} %, during {:5.1} %, after {:5.1} %, sent per call {:.2}, recovered {:?}; {} calls in {took:.3} s",
                run.policy,
                share(5, 20),
                share(20, 30),
                share(60, 100),
                total.amplification(),
                run.recovery(0.95, seconds(5)),
                total.offered,
            );
        }
    }
    Ok(())
}
