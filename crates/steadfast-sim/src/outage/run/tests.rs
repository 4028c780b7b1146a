//! What only the inside shows: when everything has ended, nothing is left.

use std::time::Duration;

use steadfast::config::SettingsBuilder;

use super::*;
use crate::outage::{Balancer, Cold, DeadWork, Of, RateLimiter, ServiceTime, Tells, UpstreamModel};

/// Everything at once: three hops, replicas, restarts, resets, hangs, limits, a queue bound.
fn rough(dead_work: DeadWork, holds_worker: bool) -> Simulation {
    let (secs, millis) = (Duration::from_secs, Duration::from_millis);
    let mut upstream = UpstreamModel::new(ServiceTime::Exponential { mean: millis(5) });
    (upstream.replicas, upstream.workers, upstream.queue) = (3, 2, Some(40));
    (upstream.dead_work, upstream.balancer) = (dead_work, Balancer::LeastBusy);
    upstream.health_check = Some(millis(300));
    upstream.cold = Some(Cold { speed: 0.3, lasts: secs(1) });
    upstream.rate_limit =
        Some(RateLimiter { limit: 600, period: secs(1), per_client: false, tells: Tells::RetryAfter });
    let load = Workload::Open { per_second: 500.0 };
    let mut simulation = Simulation::new(upstream.clone(), 20, load, secs(12));
    simulation.upstreams.extend([upstream.clone(), upstream]);
    simulation.holds_worker = holds_worker;
    simulation.triggers = vec![
        Trigger::new(Effect::Reset, secs(1), secs(10)).pulsing(millis(700), millis(1)).at_hop(1),
        Trigger::new(Effect::Restart { graceful: false }, secs(2), secs(1)).staggered(secs(2)),
        Trigger::new(Effect::Restart { graceful: true }, secs(3), secs(1)).staggered(secs(2)).at_hop(2),
        Trigger::new(Effect::Hang, secs(1), secs(10)).of(Of::Attempts(0.05)).at_hop(1),
        Trigger::new(Effect::Costly { status: 503 }, secs(1), secs(10)).of(Of::Calls(0.05)).at_hop(2),
        Trigger::new(Effect::FROZEN, secs(6), secs(1)).on_replica(1),
        Trigger::new(Effect::Unreachable, secs(8), secs(1)).on_replica(2),
        Trigger::new(Effect::Load { factor: 3.0 }, secs(9), secs(1)),
        Trigger::new(Effect::Hang, millis(11_900), secs(1)),
    ];
    simulation
}

#[test]
fn when_everything_has_ended_no_upstream_holds_anything() {
    let settings = SettingsBuilder::new("http://upstream")
        .attempt_timeout(Duration::from_millis(200))
        .deadline_header("x-time-left")
        .total_timeout(Duration::from_secs(2))
        .build()
        .unwrap();
    let policy = Policy::blind(&settings, 2);
    for dead_work in [DeadWork::Served, DeadWork::Skipped, DeadWork::Cancelled] {
        for holds_worker in [false, true] {
            let simulation = rough(dead_work, holds_worker);
            simulation.check().unwrap();
            let mut stage = Stage::new(&simulation, &policy, 1).unwrap();
            stage.run_open();
            assert!(stage.engines.iter().any(|engine| engine.jobs() > 0), "it is in the middle of things");
            stage.world.run_for(Duration::from_secs(300));
            assert_eq!(stage.recorder.borrow().pending, 0);
            let mut reset = 0;
            for (hop, engine) in stage.engines.iter().enumerate() {
                let held = (engine.jobs(), engine.queue(), engine.busy());
                assert_eq!(held, (0, 0, (0, 0, 0)), "{dead_work:?}, {holds_worker}, hop {hop}");
                let (intervals, _) = engine.ledger().into_parts();
                assert!(intervals.iter().map(|tally| tally.served).sum::<u64>() > 500);
                reset += intervals.iter().map(|tally| tally.reset).sum::<u64>();
            }
            assert!(reset > 0, "some were cut in the middle");
        }
    }
}
