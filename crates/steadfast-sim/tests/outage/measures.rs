//! What a run says of what happened.

use std::time::Duration;

use steadfast::policy::breaker::{State, Why};
use steadfast_sim::outage::{Effect, Phase, Policy, ServiceTime, Simulation, Spread, Trigger, UpstreamModel, Workload};

use crate::{MS, NOW, SEC, calls, plain, settings, slow};

#[test]
fn a_call_counts_when_it_was_made_whenever_it_ended() {
    let mut simulation = calls(slow(), &[900, 950, 990, 1_100]);
    simulation.in_time = MS * 200;
    let run = simulation.run(&Policy::none(&settings(plain())), 1).unwrap();
    let (first, second) = (run.calls[0], run.calls[1]);
    // Answered after 100, 150, 210, and 200 ms.
    assert_eq!((first.offered, first.sent, first.ok, first.in_time), (3, 3, 3, 2));
    assert_eq!((second.offered, second.sent, second.ok, second.in_time), (1, 1, 1, 1));
    assert_eq!(run.ended, MS * 1_300);
    // What the upstream does counts when it is done: one at 1.0 s, 1.1, 1.2 and 1.3.
    assert_eq!((run.upstreams[0][0].requests, run.upstreams[0][0].served), (3, 0));
    assert_eq!((run.upstreams[0][1].requests, run.upstreams[0][1].served), (1, 4));
    // At 1.0 s the first has just been answered, the second is being served, and one waits.
    assert_eq!((run.levels[0].calls, &run.levels[0].queue[..]), (2, &[1][..]));
    assert_eq!((run.levels[1].calls, &run.levels[1].queue[..]), (0, &[0][..]));
}

#[test]
fn phases_are_before_during_and_after_unless_they_are_named() {
    let mut simulation = calls(slow(), &[500, 1_500, 2_500, 3_500]);
    simulation.triggers = vec![Trigger::new(Effect::DOWN, SEC, SEC)];
    simulation.warm_up = MS * 600;
    let policy = Policy::none(&settings(plain()));
    let figures = |simulation: &Simulation| {
        let run = simulation.run(&policy, 1).unwrap();
        let figures = run.phases.iter().map(|phase| (phase.name.clone(), phase.calls.offered, phase.latency.count()));
        figures.collect::<Vec<_>>()
    };
    let named = |name: &str, offered, answered| (name.to_owned(), offered, answered);
    assert_eq!(figures(&simulation), [named("before", 0, 0), named("during", 1, 0), named("after", 2, 2)]);
    simulation.phases = vec![Phase { name: "late".to_owned(), from: MS * 2_500, to: MS * 3_500 }];
    assert_eq!(figures(&simulation), [named("late", 1, 1)]);
}

#[test]
fn breakers_are_followed_from_state_to_state() {
    let upstream = UpstreamModel::new(ServiceTime::Fixed(MS));
    let mut simulation = Simulation::new(upstream, 2, Workload::Even { per_second: 100.0 }, SEC * 40);
    simulation.triggers = vec![Trigger::new(Effect::DOWN, SEC * 10, SEC * 10)];
    let run = simulation.run(&Policy::new("breaker", settings(plain())), 1).unwrap();
    for client in 0..2 {
        let changes: Vec<_> = run.breakers.iter().filter(|change| change.client == client).collect();
        let states: Vec<_> = changes.iter().map(|change| (change.to, change.why)).collect();
        let expected =
            [(State::Open, Why::Streak), (State::HalfOpen, Why::CoolDownOver), (State::Closed, Why::ProbeSucceeded)];
        assert_eq!(states, expected, "open in the outage, and closed by the first probe after it");
        assert_eq!(run.first_opened(Duration::ZERO)[client], Some(changes[0].at));
        assert_eq!(run.first_opened(changes[0].at + MS)[client], None);
        assert_eq!(run.last_closed()[client], Some(changes[2].at));
        assert!(
            (SEC * 15..SEC * 15 + MS * 50).contains(&(changes[1].at - changes[0].at)),
            "the next call is the probe"
        );
        assert!((SEC * 25..SEC * 26).contains(&changes[2].at), "15 s of cool-down: {:?}", changes[2].at);
    }
    assert_eq!((run.levels[15].open, run.levels[15].half_open, run.levels[35].open), (2, 0, 0));
    let down = run.between(SEC * 11, SEC * 20);
    assert_eq!((down.offered, down.circuit_open, down.sent, down.refused()), (900, 900, 0, 900));
    assert_eq!(run.recovery(0.95, SEC * 3), Some(SEC * 6), "the second from 26 on is the first whole one");
}

#[test]
fn a_run_that_does_not_recover_says_so() {
    let upstream = UpstreamModel::new(ServiceTime::Fixed(MS));
    let mut simulation = Simulation::new(upstream, 1, Workload::Even { per_second: 10.0 }, SEC * 20);
    simulation.triggers = vec![Trigger::new(Effect::DOWN, SEC * 5, SEC * 10)];
    let policy = Policy::none(&settings(plain()));
    assert_eq!(simulation.run(&policy, 1).unwrap().recovery(0.95, SEC * 5), Some(NOW));
    assert_eq!(simulation.run(&policy, 1).unwrap().recovery(0.95, SEC * 6), None, "there are five seconds left");
    // Of no calls nothing can be told: neither where none came before, nor where none came after.
    for at in [SEC * 17, SEC * 2] {
        let mut quiet = simulation.clone();
        quiet.workload = Workload::Recorded { at: vec![at] };
        assert_eq!(quiet.run(&policy, 1).unwrap().recovery(0.95, SEC), None, "{at:?}");
    }
    simulation.triggers.clear();
    assert_eq!(simulation.run(&policy, 1).unwrap().recovery(0.95, SEC), None, "nothing had happened");
}

#[test]
fn budget_denials_and_full_bulkheads_are_counted() {
    let mut simulation = calls(slow(), &[0, 10, 20, 30, 40]);
    let policy = |builder| Policy::new("limits", settings(builder)).without_breaker();
    let run = simulation.run(&policy(plain().max_concurrent(2).bulkhead_wait(NOW)), 1).unwrap();
    assert_eq!((run.total().ok, run.total().bulkhead_full, run.total().sent), (2, 3, 2));
    simulation.triggers = vec![Trigger::new(Effect::DOWN, NOW, SEC)];
    let none_at_all = plain().retries(2).retry_budget_ratio(0.0).retry_budget_min_per_second(0.0);
    let run = simulation.run(&policy(none_at_all), 1).unwrap();
    assert_eq!((run.total().bad_answer, run.total().budget_ceiling, run.total().sent), (5, 5, 5));
}

#[test]
fn spread_is_mean_and_extremes() {
    assert_eq!(Spread::of([2.0, 4.0, 9.0]), Spread { mean: 5.0, min: 2.0, max: 9.0 });
    assert_eq!(Spread::of([]), Spread { mean: 0.0, min: 0.0, max: 0.0 });
}
