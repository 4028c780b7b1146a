//! Which replica a request goes to.

use steadfast_sim::outage::{Balancer, Effect, Policy, ServiceTime, Simulation, Trigger, UpstreamModel, Workload};

use crate::{MS, NOW, SEC, calls, plain, settings, slow, took};

fn two(balancer: Balancer) -> UpstreamModel {
    let mut upstream = slow();
    (upstream.replicas, upstream.balancer) = (2, balancer);
    upstream
}

#[test]
fn by_turns_each_second_request_goes_to_the_same_replica() {
    assert_eq!(took(&calls(two(Balancer::RoundRobin), &[0, 10, 20, 30]), &settings(plain())), [100, 100, 180, 180]);
}

#[test]
fn the_least_busy_is_the_one_with_the_fewest_unanswered() {
    let mut simulation = calls(two(Balancer::LeastBusy), &[0, 10, 60, 70]);
    // By turns replica 1, then 0. Replica 1 stands still, so the others go where it is not, as long as it has more.
    simulation.triggers = vec![Trigger::new(Effect::FROZEN, MS * 5, SEC * 2).on_replica(1)];
    let settings = settings(plain().attempt_timeout(SEC * 5));
    let took = took(&simulation, &settings);
    assert_eq!(took[1], 100, "replica 0 was idle");
    // At 60 both have one, and it is replica 1's turn; at 70 replica 0 has fewer.
    assert_eq!(took[3], 140, "behind the second on replica 0");
    assert!(took[2] > 2_000, "stuck behind the first on replica 1");
}

#[test]
fn a_replica_that_fails_at_once_draws_the_load_of_a_least_busy_balancer() {
    let share = |balancer| {
        let mut upstream = two(balancer);
        (upstream.service, upstream.workers) = (ServiceTime::Fixed(MS * 50), 100);
        let mut simulation = Simulation::new(upstream, 1, Workload::Open { per_second: 200.0 }, SEC * 20);
        simulation.triggers = vec![Trigger::new(Effect::DOWN, NOW, SEC * 20).on_replica(0)];
        let policy = Policy::new("plain", settings(plain())).without_breaker();
        1.0 - simulation.run(&policy, 1).unwrap().total().goodput()
    };
    assert!((share(Balancer::Random) - 0.5).abs() < 0.03);
    assert!((share(Balancer::RoundRobin) - 0.5).abs() < 0.01);
    assert!(share(Balancer::LeastBusy) > 0.8, "it looks idle");
}

#[test]
fn a_health_check_leaves_out_a_replica_that_is_down_after_a_while() {
    for balancer in [Balancer::Random, Balancer::RoundRobin, Balancer::LeastBusy] {
        let mut upstream = two(balancer);
        upstream.service = ServiceTime::Fixed(MS);
        upstream.health_check = Some(SEC);
        let mut simulation = Simulation::new(upstream, 1, Workload::Even { per_second: 100.0 }, SEC * 10);
        simulation.triggers = vec![Trigger::new(Effect::Restart { graceful: false }, SEC * 2, SEC * 5).on_replica(0)];
        let run = simulation.run(&Policy::new("plain", settings(plain())).without_breaker(), 1).unwrap();
        let failed = |from, to| run.between(SEC * from, SEC * to).unreachable;
        assert!(failed(2, 3) >= 30, "{balancer:?}");
        assert_eq!((failed(0, 2), failed(3, 10)), (0, 0), "{balancer:?}");
        let after = run.upstream_between(0, SEC * 7, SEC * 10);
        assert_eq!((after.served, after.struck), (300, 0));
    }
}

#[test]
fn with_all_replicas_left_out_any_is_asked() {
    let mut upstream = two(Balancer::RoundRobin);
    upstream.health_check = Some(MS);
    let mut simulation = calls(upstream, &[1_000, 1_500]);
    simulation.triggers = vec![Trigger::new(Effect::Restart { graceful: false }, NOW, SEC * 5)];
    assert_eq!(took(&simulation, &settings(plain())), [1, 1]);
}
