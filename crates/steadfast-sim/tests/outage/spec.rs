//! A simulation that makes no sense is refused, with everything that is wrong with it.

use std::time::Duration;

use steadfast_sim::outage::{
    Cold, Effect, Of, Phase, Policy, RateLimiter, RunError, ServiceTime, Simulation, Tells, Trigger, UpstreamModel,
    Workload,
};

use crate::{MS, NOW, SEC, plain, settings, slow};

fn fine() -> Simulation {
    Simulation::new(slow(), 1, Workload::Open { per_second: 1.0 }, SEC)
}

/// What is said of a simulation that was fine before this change.
fn said(change: impl FnOnce(&mut Simulation)) -> String {
    let mut simulation = fine();
    change(&mut simulation);
    simulation.check().map_or_else(|invalid| invalid.to_string(), |()| "fine".to_owned())
}

#[test]
fn each_field_has_its_bounds_and_a_problem_names_it() {
    assert_eq!(said(|_| ()), "fine");
    assert_eq!(said(|s| s.clients = 0), "clients: expected at least 1, found 0");
    assert_eq!(said(|s| s.upstreams.clear()), "upstreams: expected at least one, found \"none\"");
    assert_eq!(said(|s| s.lasts = Duration::ZERO), "lasts: expected above 0s, found 0ns");
    assert_eq!(said(|s| s.interval = Duration::ZERO).lines().next(), Some("interval: expected above 0s, found 0ns"));
    assert_eq!(
        said(|s| s.interval = Duration::from_nanos(1)),
        "interval: expected at least a millionth of `lasts`, found 1ns"
    );
    let upstream = |change: fn(&mut UpstreamModel)| said(|s| change(&mut s.upstreams[0]));
    assert_eq!(upstream(|u| u.replicas = 0), "upstreams[0].replicas: expected at least 1, found 0");
    assert_eq!(upstream(|u| u.workers = 0), "upstreams[0].workers: expected at least 1, found 0");
    let none = Duration::ZERO;
    assert!(upstream(|u| u.service = ServiceTime::Fixed(Duration::ZERO)).starts_with("upstreams[0].service: "));
    assert!(upstream(|u| u.service = ServiceTime::Drawn(Vec::new())).contains("at least one time"));
    assert!(upstream(|u| u.service = ServiceTime::LogNormal { median: MS * 2, p99: MS }).contains("not below it"));
    assert!(upstream(|u| u.cold = Some(Cold { speed: 0.0, lasts: SEC })).starts_with("upstreams[0].cold.speed: "));
    let limit = RateLimiter { limit: 1, period: none, per_client: false, tells: Tells::Nothing };
    assert!(said(|s| s.upstreams[0].rate_limit = Some(limit)).starts_with("upstreams[0].rate_limit.period: "));
}

#[test]
fn workloads_and_phases_have_theirs() {
    for per_second in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let said = said(|s| s.workload = Workload::Open { per_second });
        assert!(said.starts_with("workload.per_second: expected above 0, found "), "{said}");
    }
    let closed = |callers, think| said(|s| s.workload = Workload::Closed { callers, think });
    assert_eq!(closed(0, MS), "workload.callers: expected at least 1, found 0");
    assert_eq!(closed(1, NOW), "workload.think: expected above 0s, found 0ns");
    assert!(said(|s| s.workload = Workload::Recorded { at: vec![SEC, MS] }).contains("instants in order"));
    let backwards = Phase { name: "x".to_owned(), from: SEC, to: SEC };
    assert_eq!(said(|s| s.phases = vec![backwards]), "phases[0].to: expected later than `from`, found 1s");
}

#[test]
fn triggers_have_theirs() {
    let trigger = |trigger: Trigger| said(|s| s.triggers = vec![trigger]);
    let down = || Trigger::new(Effect::DOWN, MS, SEC);
    assert_eq!(trigger(down()), "fine");
    assert_eq!(trigger(Trigger::new(Effect::DOWN, MS, NOW)), "triggers[0].lasts: expected above 0s, found 0ns");
    assert!(trigger(down().pulsing(NOW, NOW)).starts_with("triggers[0].pulse.every: expected above 0s"));
    assert!(trigger(down().pulsing(MS, MS * 2)).starts_with("triggers[0].pulse.lasts: "));
    assert_eq!(trigger(down().at_hop(1)), "triggers[0].hop: expected an upstream of the chain, found 1");
    assert!(trigger(down().on_replica(1)).starts_with("triggers[0].replica: expected a replica of the upstream"));
    assert!(trigger(down().of(Of::Attempts(1.5))).starts_with("triggers[0].of: expected 0 to 1"));
    assert!(trigger(Trigger::new(Effect::Reset, MS, SEC).of(Of::Calls(0.5))).starts_with("triggers[0].of: "));
    assert!(trigger(Trigger::new(Effect::Slow { speed: -1.0 }, MS, SEC)).starts_with("triggers[0].effect: "));
    assert!(trigger(Trigger::new(Effect::Costly { status: 99 }, MS, SEC)).starts_with("triggers[0].effect.status: "));
    let load = Trigger::new(Effect::Load { factor: 2.0 }, MS, SEC);
    assert!(trigger(load.clone().on_replica(0)).starts_with("triggers[0].replica: "));
    let recorded = said(|s| {
        s.triggers = vec![load];
        s.workload = Workload::Recorded { at: vec![MS] };
    });
    assert!(recorded.starts_with("triggers[0].effect: expected a workload that is not recorded"), "{recorded}");
}

#[test]
fn all_problems_are_told_at_once_and_nothing_runs() {
    let mut simulation = fine();
    (simulation.clients, simulation.lasts) = (0, Duration::ZERO);
    let Err(RunError::Invalid(invalid)) = simulation.run(&Policy::none(&settings(plain())), 1) else { panic!() };
    assert_eq!(invalid.problems.iter().map(|problem| problem.at.as_str()).collect::<Vec<_>>(), ["clients", "lasts"]);
}

#[test]
fn a_client_that_cannot_be_built_is_an_error_of_the_run() {
    let policy = Policy::none(&settings(plain())).built_by(|member| member.builder().retries(3).build());
    let error = fine().run(&policy, 1).unwrap_err();
    assert!(matches!(error, RunError::Client(_)) && error.to_string().contains("retries"), "{error}");
}
