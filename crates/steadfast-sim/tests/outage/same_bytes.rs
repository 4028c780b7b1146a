//! Must show 4: the same seed gives the same bytes.

use std::num::NonZero;

use steadfast_sim::outage::{
    Balancer, Effect, Of, Policy, Run, ServiceTime, Simulation, Trigger, UpstreamModel, Workload,
};

use crate::{MS, SEC, plain, settings};

/// A bit of everything, with 50 clients and a chain.
fn busy() -> Simulation {
    let mut upstream = UpstreamModel::new(ServiceTime::LogNormal { median: MS * 2, p99: MS * 30 });
    (upstream.replicas, upstream.workers, upstream.balancer) = (3, 2, Balancer::LeastBusy);
    let mut simulation = Simulation::new(upstream.clone(), 50, Workload::Open { per_second: 400.0 }, SEC * 15);
    simulation.upstreams.push(upstream);
    simulation.triggers = vec![
        Trigger::new(Effect::DOWN, SEC * 2, SEC * 10).of(Of::Attempts(0.1)),
        Trigger::new(Effect::Hang, SEC * 3, SEC * 2).on_replica(1).at_hop(1),
        Trigger::new(Effect::Restart { graceful: false }, SEC * 6, SEC).staggered(SEC),
        Trigger::new(Effect::Load { factor: 4.0 }, SEC * 11, SEC),
    ];
    simulation
}

fn policy() -> Policy {
    Policy::new("as configured", settings(plain().retries(2)))
}

fn bytes(run: &Run) -> String {
    format!("{run:?}")
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let first = busy().run(&policy(), 7).unwrap();
    let total = first.total();
    assert!(total.ok > 1_000 && total.budget_efficacy > 0 && total.circuit_open > 0, "much has happened: {total:?}");
    let second = busy().run(&policy(), 7).unwrap();
    assert_eq!(bytes(&first), bytes(&second));
    assert_eq!(first, second);
    assert_ne!(bytes(&first), bytes(&busy().run(&policy(), 8).unwrap()));
}

#[test]
fn a_closed_loop_too() {
    let mut simulation = busy();
    simulation.workload = Workload::Closed { callers: 2, think: MS * 300 };
    let first = simulation.run(&policy(), 7).unwrap();
    assert!(first.total().ok > 1_000);
    assert_eq!(bytes(&first), bytes(&simulation.run(&policy(), 7).unwrap()));
}

#[test]
fn several_threads_change_nothing_and_the_order_is_that_of_policies_and_seeds() {
    let mut simulation = busy();
    simulation.lasts = SEC * 4;
    let policies = [Policy::none(&policy().settings), policy()];
    let run = |threads| simulation.run_all(&policies, &[3, 1, 2], NonZero::new(threads).unwrap()).unwrap();
    let (one, four) = (run(1), run(4));
    assert_eq!(one, four);
    let order: Vec<_> = one.iter().flatten().map(|run| (run.policy.as_str(), run.seed)).collect();
    let (none, own) = ("none", "as configured");
    assert_eq!(order, [(none, 3), (none, 1), (none, 2), (own, 3), (own, 1), (own, 2)]);
}
