//! Workers, queues, disciplines, service times, speed.

use steadfast::report::Ended;
use steadfast_sim::outage::{Discipline, Effect, Policy, ServiceTime, Simulation, Trigger, UpstreamModel, Workload};

use crate::{MS, NOW, SEC, calls, plain, settings, slow, took, watch};

#[test]
fn first_in_is_first_out_and_each_waits_for_those_before_it() {
    // Served 0-100, 100-200, 200-300, 300-400; the fifth finds an idle worker.
    let simulation = calls(slow(), &[0, 10, 20, 30, 450]);
    assert_eq!(took(&simulation, &settings(plain())), [100, 190, 280, 370, 100]);
}

#[test]
fn last_in_is_first_out_where_the_model_says_so() {
    let mut upstream = slow();
    upstream.discipline = Discipline::Lifo;
    // Served 0-100; then the fourth, the third, the second.
    let simulation = calls(upstream, &[0, 10, 20, 30]);
    assert_eq!(took(&simulation, &settings(plain())), [100, 390, 280, 170]);
}

#[test]
fn two_workers_serve_two_at_once() {
    let mut upstream = slow();
    upstream.workers = 2;
    let simulation = calls(upstream, &[0, 10, 20, 30]);
    assert_eq!(took(&simulation, &settings(plain())), [100, 100, 180, 180]);
}

#[test]
fn a_full_queue_answers_503_after_a_millisecond_and_does_no_work() {
    let mut upstream = slow();
    upstream.queue = Some(1);
    let (run, seen) = watch(&calls(upstream, &[0, 10, 20, 120]), &settings(plain()));
    assert_eq!(seen[2], (20, 1, true, 1, Ended::AttemptsExhausted), "one is served and one waits");
    // The place in the queue came free at 100.
    assert_eq!(seen.iter().map(|call| call.1).collect::<Vec<_>>(), [100, 190, 1, 180]);
    let total = run.upstream_total(0);
    assert_eq!((total.requests, total.served, total.shed), (4, 3, 1));
    assert_eq!(total.busy, MS * 300);
    assert_eq!((run.total().ok, run.total().bad_answer), (3, 1));
}

#[test]
fn a_queue_of_nobody_serves_who_finds_a_worker() {
    let mut upstream = slow();
    upstream.queue = Some(0);
    assert_eq!(took(&calls(upstream, &[0, 99, 100]), &settings(plain())), [100, 1, 100]);
}

#[test]
fn what_has_begun_goes_on_at_the_speed_of_the_moment() {
    let mut simulation = calls(slow(), &[0]);
    // 50 ms at full speed, then 50 ms of work at half speed.
    simulation.triggers = vec![Trigger::new(Effect::Slow { speed: 0.5 }, MS * 50, MS * 200)];
    assert_eq!(took(&simulation, &settings(plain())), [150]);
    // 50 ms at full speed, 100 ms at a quarter, and the remaining 25 ms at full speed again.
    simulation.triggers = vec![Trigger::new(Effect::Slow { speed: 0.25 }, MS * 50, MS * 100)];
    assert_eq!(took(&simulation, &settings(plain())), [175]);
}

#[test]
fn two_that_slow_at_once_multiply() {
    let mut simulation = calls(slow(), &[0]);
    let half = Trigger::new(Effect::Slow { speed: 0.5 }, NOW, SEC);
    // 80 ms at half speed, then 60 ms of work at a quarter.
    simulation.triggers = vec![half.clone(), Trigger { from: MS * 80, ..half }];
    assert_eq!(took(&simulation, &settings(plain())), [320]);
}

#[test]
fn frozen_work_stands_still_and_the_backlog_stays() {
    let mut simulation = calls(slow(), &[0, 60, 70]);
    simulation.triggers = vec![Trigger::new(Effect::FROZEN, MS * 50, SEC)];
    let settings = settings(plain().attempt_timeout(SEC * 5));
    // 50 ms, a second of nothing, 50 ms; then the two that waited.
    assert_eq!(took(&simulation, &settings), [1_100, 1_140, 1_230]);
}

#[test]
fn recorded_service_times_are_played_in_order_and_over_again() {
    let times = vec![MS * 10, MS * 70, MS * 40];
    let simulation = calls(UpstreamModel::new(ServiceTime::Replayed(times)), &[0, 100, 200, 300, 400]);
    assert_eq!(took(&simulation, &settings(plain())), [10, 70, 40, 10, 70]);
}

#[test]
fn drawn_service_times_are_of_the_list_and_all_of_it() {
    let times = vec![MS * 10, MS * 70];
    let at: Vec<u32> = (0..50).map(|n| n * 100).collect();
    let took = took(&calls(UpstreamModel::new(ServiceTime::Drawn(times)), &at), &settings(plain()));
    assert!(took.iter().all(|took| [10, 70].contains(took)));
    assert!((15..35).contains(&took.iter().filter(|took| **took == 10).count()));
}

#[test]
fn a_lognormal_time_has_the_median_and_the_p99_it_was_given() {
    let mut upstream = UpstreamModel::new(ServiceTime::LogNormal { median: MS * 20, p99: MS * 100 });
    upstream.workers = 1_000;
    let load = Workload::Even { per_second: 1_000.0 };
    let simulation = Simulation::new(upstream, 1, load, SEC * 10);
    let settings = settings(plain().attempt_timeout(SEC * 20));
    let run = simulation.run(&Policy::new("plain", settings), 3).unwrap();
    let latency = &run.phase("all").unwrap().latency;
    let (median, p99) = (latency.quantile(0.5).as_secs_f64(), latency.quantile(0.99).as_secs_f64());
    assert!((median - 0.02).abs() < 0.001 && (p99 - 0.1).abs() < 0.012, "{median} {p99}");
    let expected = ServiceTime::LogNormal { median: MS * 20, p99: MS * 100 }.mean().as_secs_f64();
    assert!((latency.mean().as_secs_f64() / expected - 1.0).abs() < 0.03, "{latency:?} {expected}");
}
