//! Upstreams that call others before they answer, with retries at each hop.

use steadfast::report::Ended;
use steadfast_sim::outage::{DeadWork, Effect, Policy, ServiceTime, Simulation, Trigger, UpstreamModel, Workload};

use crate::{MS, NOW, SEC, calls, plain, settings, took, watch_hop};

fn fixed(millis: u32) -> UpstreamModel {
    UpstreamModel::new(ServiceTime::Fixed(MS * millis))
}

fn chain(times: &[u32], at: &[u32]) -> Simulation {
    let mut simulation = calls(fixed(times[0]), at);
    simulation.upstreams.extend(times[1..].iter().map(|time| fixed(*time)));
    simulation
}

#[test]
fn a_call_takes_the_time_of_every_hop() {
    assert_eq!(took(&chain(&[50, 30, 20], &[0, 1_000]), &settings(plain())), [100, 100]);
}

#[test]
fn a_worker_that_does_not_wait_serves_the_next() {
    let mut simulation = chain(&[50, 40], &[0, 10]);
    // At the first hop 0-50 and 50-100, at the second 50-90 and 100-140.
    assert_eq!(took(&simulation, &settings(plain())), [90, 130]);
    simulation.holds_worker = true;
    // The second begins when the first has been answered: 90-140 and 140-180.
    assert_eq!(took(&simulation, &settings(plain())), [90, 170]);
}

#[test]
fn where_the_last_hop_is_down_three_attempts_at_each_of_three_hops_are_27() {
    let mut simulation = chain(&[1, 1, 1], &[0]);
    simulation.triggers = vec![Trigger::new(Effect::DOWN, NOW, SEC * 30).at_hop(2)];
    let settings = settings(plain().backoff_base(MS).attempt_timeout(SEC * 5));
    let run = simulation.run(&Policy::blind(&settings, 2), 1).unwrap();
    let requests: Vec<_> = (0..3).map(|hop| run.upstream_total(hop).requests).collect();
    assert_eq!(requests, [3, 9, 27]);
    assert_eq!((run.total().bad_answer, run.total().sent), (1, 3));
}

#[test]
fn a_call_that_was_given_up_goes_on_down_the_chain_unless_the_server_cancels() {
    // The caller goes at 100, 50 ms into the 200 of the second hop; the second call keeps the run going.
    for (dead_work, busy) in [(DeadWork::Served, 200), (DeadWork::Skipped, 200), (DeadWork::Cancelled, 50)] {
        let mut simulation = chain(&[50, 200], &[0, 1_000]);
        simulation.interval = MS * 500;
        simulation.upstreams.iter_mut().for_each(|upstream| upstream.dead_work = dead_work);
        let policy = Policy::none(&settings(plain())).built_by(|member| {
            let mut settings = member.settings.clone();
            settings.attempt_timeout = (member.hop == 0).then_some(MS * 100);
            member.builder_of(settings).build()
        });
        let run = simulation.run(&policy, 1).unwrap();
        assert_eq!(run.total().unreachable, 2);
        assert_eq!(run.upstream_between(1, NOW, SEC).busy, MS * busy, "{dead_work:?}");
    }
}

#[test]
fn a_deadline_that_is_told_limits_the_hops_behind() {
    let mut simulation = chain(&[50, 10], &[0]);
    simulation.triggers = vec![Trigger::new(Effect::Hang, NOW, SEC * 30).at_hop(1)];
    let limits = plain().attempt_timeout(SEC * 20).total_timeout(SEC);
    let behind = |limits| watch_hop(1, &simulation, &settings(limits)).1[0];
    assert_eq!(behind(limits.clone()), (50, 1_000, false, 1, Ended::Deadline));
    // It has what is left of the caller's second.
    assert_eq!(behind(limits.deadline_header("x-time-left")), (50, 950, false, 1, Ended::Deadline));
}

#[test]
fn an_open_workload_through_a_chain_is_counted_at_each_hop() {
    let mut simulation = chain(&[1, 1], &[0]);
    simulation.workload = Workload::Even { per_second: 100.0 };
    simulation.lasts = SEC * 10;
    simulation.clients = 3;
    let run = simulation.run(&Policy::new("plain", settings(plain())), 1).unwrap();
    assert_eq!(run.total().ok, run.total().offered);
    for hop in 0..2 {
        assert_eq!(run.upstream_total(hop).served, run.total().offered);
    }
}
