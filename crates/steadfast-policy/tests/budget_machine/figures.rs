//! Requests that a run of calls sends to an upstream which answers nothing but 503, and the defects of other budgets.

use steadfast_policy::budget::{Budget, BudgetConfig, Denied, RetryPermit};
use steadfast_policy::{Answer, Cause, Time};

/// Sends `calls` calls one after the other at `at`, each with up to two retries, and counts the requests.
fn requests_sent(budget: &mut Budget, at: Time, calls: u32) -> u32 {
    let mut sent = 0;
    for _ in 0..calls {
        budget.call_started(at);
        sent += 1;
        budget.first_done(at, Answer::Failed);
        for _ in 0..2 {
            let Ok(permit) = budget.ask(at, Cause::Fast, 0) else {
                break;
            };
            sent += 1;
            budget.retry_done(at, permit, Answer::Failed);
        }
    }
    sent
}

fn config(ratio: f64, min_per_second: f64, gate: bool) -> BudgetConfig {
    BudgetConfig { ratio, min_per_second, gate }
}

fn at(secs: u64) -> Time {
    Time::from_secs(secs)
}

fn granted(budget: &mut Budget, now: Time, asks: u32) -> Vec<RetryPermit> {
    (0..asks).map_while(|_| budget.ask(now, Cause::Fast, 0).ok()).collect()
}

/// 3.1, S37, C20: the figures of the ceiling alone.
#[test]
fn c3_1_the_ceiling_alone_sends_34_22_and_20_requests_for_20_failing_calls() {
    let sent = |ratio, floor| requests_sent(&mut Budget::new(config(ratio, floor, false)), at(3), 20);
    assert_eq!(sent(0.2, 1.0), 34);
    assert_eq!(sent(0.1, 0.0), 22);
    assert_eq!(sent(0.0, 0.0), 20);
}

/// 3.2: the gate lets through five retries of a new client that fail, and changes the other two figures not at all.
#[test]
fn c3_2_the_gate_sends_25_where_the_ceiling_sends_34() {
    let sent = |ratio, floor| requests_sent(&mut Budget::new(config(ratio, floor, true)), at(3), 20);
    assert_eq!(sent(0.2, 1.0), 25);
    assert_eq!(sent(0.1, 0.0), 22);
    assert_eq!(sent(0.0, 0.0), 20);
}

/// C21: a floor of 0.5 pays for five retries; eleven seconds later the ceiling pays again, the gate does not.
#[test]
fn c3_1_a_floor_of_one_half_pays_for_five_retries_and_again_after_eleven_seconds() {
    let mut off = Budget::new(config(0.0, 0.5, false));
    assert_eq!(requests_sent(&mut off, at(3), 10), 15);
    assert_eq!(requests_sent(&mut off, at(14), 10), 15);
    let mut on = Budget::new(config(0.0, 0.5, true));
    assert_eq!(requests_sent(&mut on, at(3), 10), 15);
    assert_eq!(requests_sent(&mut on, at(14), 10), 10);
    assert_eq!(on.ask(at(14), Cause::Fast, 0), Err(Denied::Efficacy));
}

/// 3.1: both keys 0 mean no retries.
#[test]
fn c3_1_ratio_and_floor_zero_refuse_every_retry() {
    let mut budget = Budget::new(config(0.0, 0.0, true));
    for second in 0..100 {
        budget.call_started(at(second));
        assert_eq!(budget.ask(at(second), Cause::Fast, 0), Err(Denied::Ceiling));
    }
}

/// 3.3: the refusal says which of the two limits it was, and the ceiling is asked first.
#[test]
fn c3_3_the_refusal_names_the_limit() {
    let mut budget = Budget::new(config(0.0, 0.6, true));
    assert_eq!(granted(&mut budget, at(1), 9).len(), 5);
    assert_eq!(budget.ask(at(1), Cause::Fast, 0), Err(Denied::Efficacy));
    let permit = Budget::new(BudgetConfig::default()).ask(at(1), Cause::Fast, 0).unwrap();
    budget.retry_done(at(1), permit, Answer::Ok);
    assert!(budget.ask(at(1), Cause::Fast, 0).is_ok());
    assert_eq!(budget.ask(at(1), Cause::Fast, 0), Err(Denied::Ceiling), "the bank is empty too");
}

/// S36: a silent client may spend the whole floor in one instant, and a fraction of a retry is a retry.
#[test]
fn c3_1_the_floor_is_a_lump_and_fractions_round_up() {
    assert_eq!(granted(&mut Budget::new(config(0.0, 1.0, false)), at(5), 99).len(), 10);
    assert_eq!(granted(&mut Budget::new(config(0.0, 0.01, false)), at(5), 99).len(), 1);
    assert_eq!(granted(&mut Budget::new(config(0.0, 0.11, false)), at(5), 99).len(), 2);
}

/// S40: what is counted ages out at the tenth second after its own, whatever the part of the second.
#[test]
fn c3_1_a_retry_ages_out_after_nine_to_ten_seconds() {
    for (granted_at, still, gone) in [(20_000, 29_999, 30_000), (20_999, 29_999, 30_000)] {
        let mut budget = Budget::new(config(0.0, 0.1, false));
        assert!(budget.ask(Time::from_millis(granted_at), Cause::Fast, 0).is_ok());
        assert_eq!(budget.ask(Time::from_millis(still), Cause::Fast, 0), Err(Denied::Ceiling));
        assert!(budget.ask(Time::from_millis(gone), Cause::Fast, 0).is_ok());
    }
}

/// tower-rs/tower#857: a ratio of 0.6 is 0.6, not 1.
#[test]
fn a99_a_ratio_is_not_cut_to_a_reciprocal() {
    let mut budget = Budget::new(config(0.6, 0.0, true));
    for _ in 0..10 {
        budget.call_started(at(1));
        budget.first_done(at(1), Answer::Ok);
    }
    let permits = granted(&mut budget, at(1), 99);
    assert!(permits.len() <= 6);
    let mut ceiling = Budget::new(config(0.6, 0.0, false));
    (0..10).for_each(|_| ceiling.call_started(at(1)));
    assert_eq!(granted(&mut ceiling, at(1), 99).len(), 6);
}

/// envoyproxy/envoy#30205: a retry counts from its decision on, not from its sending, so a burst cannot slip through.
#[test]
fn a100_retries_that_wait_are_counted() {
    for (gate, most) in [(false, 200), (true, 5)] {
        let mut budget = Budget::new(config(0.2, 0.0, gate));
        (0..1000).for_each(|_| budget.call_started(at(1)));
        (0..1000).for_each(|_| budget.first_done(at(1), Answer::Failed));
        let waiting: Vec<_> = (0..1000).filter_map(|_| budget.ask(at(1), Cause::Fast, 0).ok()).collect();
        assert_eq!(waiting.len(), most);
    }
}

/// alloy-rs/alloy#3069: calls that run out of attempts leave nothing behind.
#[test]
fn a101_exhausted_calls_leave_no_pending_retry() {
    let mut budget = Budget::new(config(f64::INFINITY, 0.0, false));
    assert_eq!(requests_sent(&mut budget, at(1), 1000), 3000);
    assert_eq!(budget.snapshot(at(1)).retries, 2000);
    let rested = budget.snapshot(at(11));
    assert_eq!((rested.requests, rested.retries), (0, 0));
}

/// aws/aws-sdk-cpp#2275: a clock ten years ahead, and back, leaves credit within its bounds.
#[test]
fn a102_a_clock_that_jumps_ten_years_and_back_is_harmless() {
    let mut budget = Budget::new(BudgetConfig::default());
    let decade = 10 * 366 * 24 * 3600;
    for second in [5, decade, 6, u64::MAX / 1_000_000_000, 7, 0] {
        for _ in 0..20 {
            budget.call_started(at(second));
            budget.first_done(at(second), Answer::Ok);
            if let Ok(permit) = budget.ask(at(second), Cause::Timeout, u64::MAX) {
                budget.retry_done(at(second), permit, Answer::Failed);
            }
            let seen = budget.snapshot(at(second));
            assert!((0..=seen.capacity.max(40)).contains(&seen.credit), "{seen:?}");
        }
    }
}

/// tower-rs/tower#130: a tiny ratio does not make one retry eat the floor.
#[test]
fn a103_a_tiny_ratio_leaves_the_floor_whole() {
    let mut budget = Budget::new(config(0.01, 1.0, false));
    budget.call_started(at(1));
    // Ten, and the hundredth part that the one call adds, which is a retry too.
    assert_eq!(granted(&mut budget, at(1), 99).len(), 11);
    assert_eq!(granted(&mut Budget::new(config(0.01, 1.0, false)), at(1), 99).len(), 10);
}

/// Huge and impossible keys saturate.
#[test]
fn c3_1_infinite_keys_are_no_limit_and_what_is_no_number_is_zero() {
    for (ratio, floor) in [(0.0, f64::INFINITY), (f64::INFINITY, 0.0), (1e300, 0.0), (0.0, f64::MAX)] {
        let mut budget = Budget::new(config(ratio, floor, false));
        budget.call_started(at(1));
        assert_eq!(granted(&mut budget, at(1), 5000).len(), 5000, "{ratio} {floor}");
        assert_eq!(budget.snapshot(at(1)).ceiling_left, u64::MAX);
    }
    for bad in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        let mut budget = Budget::new(config(bad, bad, false));
        budget.call_started(at(1));
        assert_eq!(budget.ask(at(1), Cause::Fast, 0), Err(Denied::Ceiling), "{bad}");
    }
}
