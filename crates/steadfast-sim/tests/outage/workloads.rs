//! Arrivals: how many, when, from whom; and that they are the same for every policy.

use steadfast_sim::outage::{Effect, Policy, ServiceTime, Simulation, Trigger, UpstreamModel, Workload};

use crate::{MS, NOW, SEC, calls, plain, settings, slow, watch};

fn quick(clients: usize, workload: Workload, seconds: u32) -> Simulation {
    let mut upstream = UpstreamModel::new(ServiceTime::Fixed(MS));
    upstream.workers = 1_000;
    Simulation::new(upstream, clients, workload, SEC * seconds)
}

fn offered(simulation: &Simulation) -> Vec<u64> {
    let run = simulation.run(&Policy::none(&settings(plain())), 1).unwrap();
    run.calls.iter().map(|tally| tally.offered).collect()
}

#[test]
fn even_arrivals_come_at_equal_distances_and_a_load_factor_multiplies_them() {
    // The last of each second falls on the next one's beginning.
    let mut simulation = quick(2, Workload::Even { per_second: 10.0 }, 4);
    assert_eq!(offered(&simulation), [9, 10, 10, 10]);
    simulation.triggers = vec![Trigger::new(Effect::Load { factor: 2.0 }, MS * 1_050, MS * 1_000)];
    // At 1.0, 1.075 and so on to 2.025, then at 2.1: the halves of a distance on both sides of an edge make one.
    assert_eq!(offered(&simulation), [9, 20, 10, 10]);
}

#[test]
fn no_load_is_none_until_it_is_over() {
    let mut simulation = quick(1, Workload::Open { per_second: 100.0 }, 4);
    simulation.triggers = vec![Trigger::new(Effect::Load { factor: 0.0 }, SEC, SEC * 2)];
    let offered = offered(&simulation);
    assert_eq!((offered[1], offered[2]), (0, 0));
    assert!(offered[0] > 70 && offered[3] > 70, "{offered:?}");
}

#[test]
fn open_arrivals_are_a_poisson_process() {
    let simulation = quick(10, Workload::Open { per_second: 100.0 }, 400);
    let counts: Vec<f64> = offered(&simulation).iter().map(|count| *count as f64).collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
    assert!((mean - 100.0).abs() < 2.0, "{mean}");
    assert!((variance / mean - 1.0).abs() < 0.25, "of as many as its mean: {variance}");
}

#[test]
fn a_brownout_brings_the_load_to_what_it_says() {
    let mut simulation = quick(10, Workload::Open { per_second: 850.0 }, 60);
    simulation.triggers = vec![Trigger::brownout(0.85, 1.05, SEC * 10, SEC * 30)];
    let run = simulation.run(&Policy::none(&settings(plain())), 1).unwrap();
    let per_second = run.between(SEC * 10, SEC * 40).offered as f64 / 30.0;
    assert!((per_second - 1_050.0).abs() < 15.0, "{per_second}");
}

#[test]
fn recorded_calls_come_when_they_came() {
    let (run, seen) = watch(&calls(slow(), &[3, 500, 500, 2_001]), &settings(plain()));
    assert_eq!(seen.iter().map(|call| call.0).collect::<Vec<_>>(), [3, 500, 500, 2_001]);
    assert_eq!(run.calls.iter().take(3).map(|tally| tally.offered).collect::<Vec<_>>(), [3, 0, 1]);
}

#[test]
fn a_closed_loop_waits_for_its_answers() {
    // 4 callers who think 100 ms and wait 100: as many as 20 calls a second.
    let mut upstream = slow();
    upstream.workers = 4;
    let workload = Workload::Closed { callers: 2, think: MS * 100 };
    let mut simulation = Simulation::new(upstream, 2, workload, SEC * 200);
    let run = simulation.run(&Policy::none(&settings(plain())), 1).unwrap();
    let per_second = run.total().offered as f64 / 200.0;
    assert!((per_second - 20.0).abs() < 0.8, "{per_second}");
    assert!(run.levels.iter().all(|level| level.calls <= 4));
    // Twice the load: they think half as long.
    simulation.triggers = vec![Trigger::new(Effect::Load { factor: 2.0 }, NOW, SEC * 200)];
    let run = simulation.run(&Policy::none(&settings(plain())), 1).unwrap();
    let per_second = run.total().offered as f64 / 200.0;
    assert!((per_second - 4.0 / 0.15).abs() < 1.0, "{per_second}");
}

#[test]
fn an_open_load_is_the_same_for_every_policy_of_a_seed() {
    let mut simulation = quick(7, Workload::Open { per_second: 200.0 }, 10);
    simulation.triggers = vec![Trigger::new(Effect::DOWN, SEC * 2, SEC * 3)];
    let settings = settings(plain());
    let offered = |policy: &Policy, seed| {
        let run = simulation.run(policy, seed).unwrap();
        run.calls.iter().map(|tally| tally.offered).collect::<Vec<_>>()
    };
    let (none, blind) = (Policy::none(&settings), Policy::blind(&settings, 4));
    assert_eq!(offered(&none, 1), offered(&blind, 1));
    assert_ne!(offered(&none, 1), offered(&none, 2));
}
