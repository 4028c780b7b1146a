use super::*;

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Duration::from_millis(milliseconds)
}

/// Lets one attempt go and end at this instant; what it changed.
fn attempt(rule: &mut PlainStreak, now: Time, failed: bool) -> Option<Transition> {
    let permit = rule.try_acquire(now).0.unwrap();
    rule.record(now, permit, failed)
}

#[test]
fn opens_at_exactly_five_in_a_row_however_much_went_well_before() {
    let mut rule = PlainStreak::new();
    for call in 0..6_000 {
        assert_eq!(attempt(&mut rule, at(call), false), None);
    }
    for call in 0..4 {
        assert_eq!(attempt(&mut rule, at(6_000 + call), true), None);
    }
    let opened = attempt(&mut rule, at(6_004), true).unwrap();
    assert_eq!((opened.from, opened.to, opened.why), (State::Closed, State::Open, Why::Streak));
    assert_eq!(rule.try_acquire(at(6_005)).0, None);
}

#[test]
fn a_success_ends_the_streak() {
    let mut rule = PlainStreak::new();
    for round in 0..3 {
        for call in 0..4 {
            assert_eq!(attempt(&mut rule, at(round * 10 + call), true), None);
        }
        assert_eq!(attempt(&mut rule, at(round * 10 + 4), false), None);
    }
}

#[test]
fn half_of_twenty_open_it_after_a_success_too() {
    let mut rule = PlainStreak::new();
    for call in 0..19 {
        assert_eq!(attempt(&mut rule, at(call), call % 2 == 0), None, "{call}");
    }
    assert_eq!(attempt(&mut rule, at(19), false).unwrap().why, Why::Rate);
}

#[test]
fn what_is_older_than_thirty_seconds_is_forgotten() {
    let mut rule = PlainStreak::new();
    for call in 0..19 {
        attempt(&mut rule, at(call), call % 2 == 0);
    }
    assert_eq!(attempt(&mut rule, at(30_000), false), None);
    assert_eq!(rule.count(at(30_001), false), (2, 0));
}

#[test]
fn one_probe_after_the_cool_down_decides() {
    let mut rule = PlainStreak::new();
    for _ in 0..5 {
        attempt(&mut rule, at(0), true);
    }
    assert_eq!(rule.try_acquire(at(14_999)), (None, None));
    let (probe, change) = rule.try_acquire(at(15_000));
    assert_eq!(change.unwrap().to, State::HalfOpen);
    assert_eq!(rule.try_acquire(at(15_001)), (None, None), "one probe");
    assert_eq!(rule.record(at(15_002), probe.unwrap(), true).unwrap().why, Why::ProbeFailed);
    assert_eq!(rule.try_acquire(at(30_001)), (None, None), "a full cool-down from its own time");
    let (probe, _) = rule.try_acquire(at(30_002));
    assert_eq!(rule.record(at(30_003), probe.unwrap(), false).unwrap().to, State::Closed);
    for _ in 0..4 {
        assert_eq!(attempt(&mut rule, at(30_004), true), None, "a fresh state");
    }
    assert!(attempt(&mut rule, at(30_004), true).is_some());
}

#[test]
fn what_was_let_go_before_a_change_decides_nothing_after_it() {
    let mut rule = PlainStreak::new();
    let old = rule.try_acquire(at(0)).0.unwrap();
    for _ in 0..5 {
        attempt(&mut rule, at(0), true);
    }
    assert_eq!(rule.record(at(1), old, false), None);
    let (probe, _) = rule.try_acquire(at(15_000));
    assert_eq!(rule.record(at(15_001), old, true), None, "not the probe's verdict");
    assert_eq!(rule.record(at(15_002), probe.unwrap(), false).unwrap().to, State::Closed);
}

/// Through the whole client: what it decides is what reaches the upstream, and what the run reports.
#[test]
fn a_client_behind_it_sends_exactly_five_requests_into_a_dead_upstream() {
    use steadfast_sim::outage::{Effect, ServiceTime, Simulation, Trigger, UpstreamModel, Workload};

    let seconds = Duration::from_secs;
    let upstream = UpstreamModel::new(ServiceTime::Fixed(Duration::from_millis(1)));
    let mut simulation = Simulation::new(upstream, 1, Workload::Even { per_second: 10.0 }, seconds(20));
    simulation.triggers.push(Trigger::new(Effect::DOWN, seconds(2), seconds(10)));
    let policy = crate::rules::Rule::PlainStreak.policy(crate::scenario::Scenario::Slow).unwrap();
    let run = simulation.run(&policy, 1).unwrap();

    assert_eq!(run.upstream_between(0, seconds(2), seconds(12)).requests, 5);
    let changes: Vec<_> = run.breakers.iter().map(|change| (change.to, change.why)).collect();
    let opened_and_closed =
        [(State::Open, Why::Streak), (State::HalfOpen, Why::CoolDownOver), (State::Closed, Why::ProbeSucceeded)];
    assert_eq!(changes, opened_and_closed);
    let calls = run.between(seconds(3), seconds(12));
    assert_eq!((calls.offered, calls.ok), (90, 0), "every call is refused for the cool-down");
    assert_eq!(run.between(seconds(18), seconds(20)).goodput(), 1.0);
}
