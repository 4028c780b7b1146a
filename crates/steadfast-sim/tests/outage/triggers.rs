//! What befalls requests, one by one.

use std::time::Duration;

use steadfast::report::Ended;
use steadfast_sim::outage::{Effect, Of, Policy, ServiceTime, Simulation, Trigger, UpstreamModel, Workload};

use crate::{MS, NOW, SEC, Seen, calls, plain, settings, slow, watch};

/// A call at 500 ms, while this happens from 400 ms to 1 s.
fn struck(effect: Effect) -> (Seen, u64, Duration) {
    let mut simulation = calls(slow(), &[500, 3_000]);
    simulation.triggers = vec![Trigger::new(effect, MS * 400, MS * 600)];
    let settings = settings(plain().connect_timeout(MS * 300));
    let (run, seen) = watch(&simulation, &settings);
    assert_eq!(seen[1], (3_000, 100, true, 1, Ended::Response), "it is over");
    let total = run.upstream_total(0);
    assert_eq!(total.requests, 2);
    (seen[0], total.served, total.busy)
}

#[test]
fn each_effect_is_what_it_says() {
    let exhausted = Ended::AttemptsExhausted;
    let answered = |took| (500, took, true, 1, exhausted);
    let unanswered = |took| (500, took, false, 1, exhausted);
    assert_eq!(struck(Effect::DOWN), (answered(1), 1, MS * 100), "503, and no work");
    let later = Effect::Answer { status: 502, after: MS * 30, retry_after: None };
    assert_eq!(struck(later), (answered(30), 1, MS * 100));
    assert_eq!(struck(Effect::Costly { status: 503 }), (answered(100), 2, MS * 200), "served, then failed");
    assert_eq!(struck(Effect::REFUSED), (unanswered(1), 1, MS * 100));
    assert_eq!(struck(Effect::Unreachable), (unanswered(300), 1, MS * 100), "the connect timeout ends it");
    assert_eq!(struck(Effect::Hang), (unanswered(500), 1, MS * 100), "the attempt's timeout ends it, and no backlog");
}

#[test]
fn the_read_timeout_ends_what_hangs_where_it_comes_first() {
    let mut simulation = calls(slow(), &[0]);
    simulation.triggers = vec![Trigger::new(Effect::Hang, NOW, SEC)];
    let (_, seen) = watch(&simulation, &settings(plain().read_timeout(MS * 200)));
    assert_eq!(seen, [(0, 200, false, 1, Ended::AttemptsExhausted)]);
}

#[test]
fn a_retry_after_is_sent_in_whole_seconds_and_waited_for() {
    let mut simulation = calls(slow(), &[0]);
    let later = Effect::Answer { status: 503, after: MS, retry_after: Some(MS * 1_200) };
    simulation.triggers = vec![Trigger::new(later, NOW, SEC)];
    let (_, seen) = watch(&simulation, &settings(plain().retries(1)));
    assert_eq!(seen, [(0, 2_101, true, 2, Ended::Response)], "1 ms, 2 s, and served");
}

#[test]
fn a_reset_ends_what_is_served_and_what_waits() {
    let mut simulation = calls(slow(), &[0, 10, 60, 500]);
    simulation.triggers = vec![Trigger::new(Effect::Reset, MS * 50, MS)];
    let (run, seen) = watch(&simulation, &settings(plain()));
    let reset = |at, took| (at, took, false, 1, Ended::AttemptsExhausted);
    assert_eq!(seen[..2], [reset(0, 50), reset(10, 40)]);
    assert_eq!(seen[2], (60, 100, true, 1, Ended::Response), "who comes later is served at once");
    let total = run.upstream_total(0);
    assert_eq!((total.reset, total.served, total.busy, total.wasted_work), (2, 2, MS * 250, MS * 50));
}

#[test]
fn a_reset_ends_what_hangs_and_comes_again_with_each_pulse() {
    let mut simulation = calls(slow(), &[0, 400]);
    simulation.triggers =
        vec![Trigger::new(Effect::Hang, NOW, SEC), Trigger::new(Effect::Reset, MS * 50, SEC).pulsing(MS * 400, MS)];
    let (_, seen) = watch(&simulation, &settings(plain()));
    assert_eq!(seen.iter().map(|call| call.1).collect::<Vec<_>>(), [50, 50], "at 50 and at 450");
}

#[test]
fn a_blip_is_there_for_a_moment_every_while() {
    let at: Vec<u32> = (0..12).map(|n| n * 500).collect();
    let mut simulation = calls(UpstreamModel::new(ServiceTime::Fixed(MS * 10)), &at);
    simulation.triggers = vec![Trigger::new(Effect::DOWN, SEC, SEC * 4).pulsing(SEC * 2, MS * 500)];
    let (_, seen) = watch(&simulation, &settings(plain()));
    let failed: Vec<_> = seen.iter().filter(|call| call.4 != Ended::Response).map(|call| call.0).collect();
    assert_eq!(failed, [1_000, 3_000], "from 1.0 to 1.5 s and from 3.0 to 3.5 s, and at 5 s it is over");
}

#[test]
fn one_replica_of_three_fails_a_third_of_the_attempts() {
    let mut upstream = UpstreamModel::new(ServiceTime::Fixed(MS));
    upstream.replicas = 3;
    let mut simulation = Simulation::new(upstream, 1, Workload::Even { per_second: 1_000.0 }, SEC * 10);
    simulation.triggers = vec![Trigger::new(Effect::DOWN, NOW, SEC * 10).on_replica(1)];
    let run = simulation.run(&Policy::new("plain", settings(plain())).without_breaker(), 1).unwrap();
    let goodput = run.total().goodput();
    assert!((goodput - 2.0 / 3.0).abs() < 0.015, "{goodput}");
}

#[test]
fn noise_falls_on_attempts_and_poison_on_calls() {
    let upstream = UpstreamModel::new(ServiceTime::Fixed(MS));
    let mut simulation = Simulation::new(upstream, 1, Workload::Even { per_second: 200.0 }, SEC * 100);
    let policy = Policy::blind(&settings(plain()), 2);
    let down = Trigger::new(Effect::DOWN, NOW, SEC * 200);

    simulation.triggers = vec![down.clone().of(Of::Attempts(0.2))];
    let noise = simulation.run(&policy, 1).unwrap().total();
    assert!((noise.goodput() - 0.992).abs() < 0.002, "all but 0.2 cubed: {noise:?}");
    assert!((noise.amplification() - 1.24).abs() < 0.01, "1 + 0.2 + 0.04: {noise:?}");

    simulation.triggers = vec![down.of(Of::Calls(0.1))];
    let poison = simulation.run(&policy, 1).unwrap().total();
    assert!((poison.goodput() - 0.9).abs() < 0.006, "{poison:?}");
    assert_eq!(poison.sent, poison.offered + 2 * poison.bad_answer, "each of them fails three times");
}

#[test]
fn of_two_triggers_the_first_in_the_list_is_the_one() {
    let mut simulation = calls(slow(), &[0]);
    let after = |millis| Effect::Answer { status: 503, after: MS * millis, retry_after: None };
    simulation.triggers = vec![Trigger::new(after(7), NOW, SEC), Trigger::new(after(9), NOW, SEC)];
    assert_eq!(watch(&simulation, &settings(plain())).1[0].1, 7);
    simulation.triggers.reverse();
    assert_eq!(watch(&simulation, &settings(plain())).1[0].1, 9);
}
