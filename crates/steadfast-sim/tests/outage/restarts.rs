//! Restarts, rolling ones, and cold caches.

use steadfast::report::Ended;
use steadfast_sim::outage::{Balancer, Cold, Effect, Trigger};

use crate::{MS, NOW, SEC, calls, plain, settings, slow, took, watch};

#[test]
fn a_hard_restart_resets_what_is_there_and_refuses_until_it_is_over() {
    let mut simulation = calls(slow(), &[0, 100, 599, 600]);
    simulation.triggers = vec![Trigger::new(Effect::Restart { graceful: false }, MS * 50, MS * 550)];
    let (_, seen) = watch(&simulation, &settings(plain()));
    let failed = |at, took| (at, took, false, 1, Ended::AttemptsExhausted);
    assert_eq!(seen[..3], [failed(0, 50), failed(100, 1), failed(599, 1)]);
    assert_eq!(seen[3], (600, 100, true, 1, Ended::Response));
}

#[test]
fn a_graceful_one_ends_what_it_has() {
    let mut simulation = calls(slow(), &[0, 10, 100]);
    simulation.triggers = vec![Trigger::new(Effect::Restart { graceful: true }, MS * 50, SEC)];
    let (_, seen) = watch(&simulation, &settings(plain()));
    assert_eq!(seen.iter().map(|call| (call.1, call.2)).collect::<Vec<_>>(), [(100, true), (190, true), (1, false)]);
}

#[test]
fn a_cold_cache_is_slow_for_a_while() {
    let mut upstream = slow();
    upstream.cold = Some(Cold { speed: 0.25, lasts: SEC });
    let mut simulation = calls(upstream, &[600, 1_500, 2_000]);
    simulation.triggers = vec![Trigger::new(Effect::Restart { graceful: false }, MS * 100, MS * 500)];
    // A quarter of full speed to 1.6 s: 100 ms take 400; then 25 ms of work, and 75 ms at full speed; then full speed.
    assert_eq!(took(&simulation, &settings(plain())), [400, 175, 100]);
}

#[test]
fn a_rolling_deploy_restarts_one_replica_after_the_other() {
    let mut upstream = slow();
    (upstream.replicas, upstream.balancer) = (2, Balancer::RoundRobin);
    // The turns go 1, 0, 1, 0: replica 0 is down in the first second, replica 1 in the third.
    let mut simulation = calls(upstream, &[200, 400, 1_200, 1_400, 2_200, 2_400, 3_200, 3_400]);
    let restart = Trigger::new(Effect::Restart { graceful: false }, NOW, SEC).staggered(SEC * 2);
    simulation.triggers = vec![restart];
    let (run, seen) = watch(&simulation, &settings(plain()));
    let answered: Vec<_> = seen.iter().map(|call| call.2).collect();
    assert_eq!(answered, [true, false, true, true, false, true, true, true]);
    assert_eq!(run.trouble, Some((NOW, SEC * 3)), "it is over when the last replica is up");
}
