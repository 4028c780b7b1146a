//! Hours and weeks of one client: a retry budget against an upstream that never answers, or loses a share of attempts.

use std::time::Duration;

use steadfast_policy::budget::{Budget, BudgetConfig};
use steadfast_policy::{Answer, Cause, Time};

use crate::history::Random;

const HOURS_2: Duration = Duration::from_secs(7200);

/// Grants of two hours without an answer, as (time, was a probe). Every call asks for two retries.
fn grants_in_outage(budget: &mut Budget, start: Time, every: Duration, cause: Cause, seed: u64) -> Vec<(Time, bool)> {
    let mut random = Random(seed);
    let price = if cause == Cause::Timeout { 20 } else { 8 };
    let mut grants = Vec::new();
    let mut now = start;
    while now.since(start) < HOURS_2 {
        budget.call_started(now);
        budget.first_done(now, Answer::Failed);
        for _ in 0..2 {
            let probe = budget.snapshot(now).credit < price;
            let Ok(permit) = budget.ask(now, cause, random.next()) else {
                break;
            };
            grants.push((now, probe));
            budget.retry_done(now, permit, Answer::Failed);
        }
        now = now + every;
    }
    grants
}

/// 6. Two hours without any answer: at most 17 retries, 13 or so in the mean, however many calls there are.
#[test]
fn property_6_a_two_hour_outage_gets_at_most_17_retries() {
    for (every, seeds) in [(10, 1), (100, 8), (1000, 60), (10_000, 100), (60_000, 100), (600_000, 100)] {
        let every = Duration::from_millis(every);
        for cause in [Cause::Fast, Cause::Timeout] {
            let grants = |seed| {
                let mut budget = Budget::new(BudgetConfig::default());
                grants_in_outage(&mut budget, Time::from_secs(9), every, cause, seed).len()
            };
            let retries: Vec<_> = (0..seeds).map(grants).collect();
            assert!(retries.iter().all(|&retries| retries <= 17), "a call every {every:?}, {cause:?}: {retries:?}");
            assert!(2 * retries.iter().sum::<usize>() <= 27 * retries.len(), "{every:?}, {cause:?}: {retries:?}");
        }
    }
}

/// 6. Without an answer the grants are what the bank pays for, and probes at least two minutes apart.
#[test]
fn property_6_probes_are_two_minutes_apart() {
    for seed in 0..40 {
        let mut budget = Budget::new(BudgetConfig::default());
        let mut now = Time::from_secs(1);
        for _ in 0..5000 {
            now = now + Duration::from_millis(1);
            budget.call_started(now);
            budget.first_done(now, Answer::Ok);
        }
        let bank = budget.snapshot(now).credit;
        assert_eq!(bank, 1020, "a fifth of five thousand calls");
        let every = Duration::from_secs(1 + seed);
        let grants = grants_in_outage(&mut budget, now, every, Cause::Fast, seed);
        let probes: Vec<_> = grants.iter().filter(|(_, probe)| *probe).collect();
        assert!(grants.len() - probes.len() <= bank as usize / 8);
        assert!(!probes.is_empty() && probes.len() <= 16, "{}", probes.len());
        for pair in probes.windows(2) {
            assert!(pair[1].0.since(pair[0].0) >= Duration::from_secs(240), "{pair:?}");
        }
        let first = probes[0].0;
        let paid = grants.iter().take_while(|(_, probe)| !probe).last().unwrap().0;
        assert!(first.since(paid) >= Duration::from_secs(120), "{first} after {paid}");
    }
}

/// The waits of an empty bank: 120 to 360 s for the first probe, then 240 to 720, then 480 to 1440 for ever.
#[test]
fn c3_2_probes_wait_4_8_and_16_minutes_and_half_of_that_more_or_less() {
    for (random, factor) in [(0, 1), (1 << 63, 2), (u64::MAX, 3)] {
        let mut budget = Budget::new(BudgetConfig { ratio: 0.0, min_per_second: 10.0, gate: true });
        let mut last = Time::from_secs(7);
        for _ in 0..5 {
            let _lost = budget.ask(last, Cause::Fast, random).unwrap();
        }
        for minutes in [2, 4, 8, 8, 8] {
            let due = last + Duration::from_secs(60 * minutes * factor);
            let early = Time::from_nanos(due.as_nanos() - 2);
            assert!(budget.ask(early, Cause::Fast, random).is_err(), "{minutes} {factor}");
            let _lost = budget.ask(due, Cause::Fast, random).unwrap();
            assert_eq!(budget.snapshot(due).credit, 0);
            last = due;
        }
    }
}

/// An answer since the last grant brings the next probe to a minute after that grant, and the waits back to 4 minutes.
#[test]
fn c3_2_an_answer_rearms_the_probe_a_minute_after_the_last_grant() {
    let at = Time::from_millis;
    let mut budget = Budget::new(BudgetConfig::default());
    let _lost: Vec<_> = (0..5).map(|_| budget.ask(at(1000), Cause::Fast, u64::MAX)).collect();
    // The bank stays empty: slow answers only.
    budget.first_done(at(2000), Answer::SlowOk);
    assert!(budget.ask(at(60_999), Cause::Fast, u64::MAX).is_err());
    let _probe = budget.ask(at(61_000), Cause::Fast, 0).unwrap();
    // Unanswered since: the first probe has doubled the wait of 240 s.
    assert!(budget.ask(at(61_000 + 239_999), Cause::Fast, 0).is_err());
    let _probe = budget.ask(at(61_000 + 240_000), Cause::Fast, 0).unwrap();
    budget.first_done(at(301_000), Answer::SlowOk);
    let _probe = budget.ask(at(361_000), Cause::Fast, 0).unwrap();
    assert!(budget.ask(at(361_000 + 239_999), Cause::Fast, 0).is_err(), "the wait had started again");
    assert!(budget.ask(at(361_000 + 240_000), Cause::Fast, 0).is_ok());
}

/// An answer that comes late never puts the probe off.
#[test]
fn c3_2_an_answer_long_after_the_last_grant_leaves_a_due_probe_due() {
    let at = Time::from_secs;
    let mut budget = Budget::new(BudgetConfig::default());
    let _lost: Vec<_> = (0..5).map(|_| budget.ask(at(1), Cause::Fast, 0)).collect();
    budget.first_done(at(500), Answer::SlowOk);
    assert!(budget.ask(at(500), Cause::Fast, 0).is_ok());
}

/// The success of a client with a call a minute for a week, per ten thousand calls.
fn week(percent: u64, cause: Cause, seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut budget = Budget::new(BudgetConfig::default());
    let calls = 7 * 24 * 60;
    let good = (0..calls).filter(|minute| minute_call(&mut budget, &mut random, *minute, percent, cause)).count();
    good as u64 * 10_000 / calls
}

fn minute_call(budget: &mut Budget, random: &mut Random, minute: u64, percent: u64, cause: Cause) -> bool {
    let now = Time::from_secs(60 * minute);
    let answer = |fails| if fails { Answer::Failed } else { Answer::Ok };
    budget.call_started(now);
    let mut failed = random.chance(percent);
    budget.first_done(now, answer(failed));
    for _ in 0..2 {
        if !failed {
            break;
        }
        let Ok(permit) = budget.ask(now, cause, random.next()) else {
            break;
        };
        failed = random.chance(percent);
        budget.retry_done(now, permit, answer(failed));
    }
    !failed
}

/// A quiet client is not starved: a call a minute for a week, over noise of 5 % and 20 %, and hangs of 5 %.
#[test]
fn c3_2_a_call_a_minute_is_repaired() {
    for (percent, cause, least) in [(5, Cause::Fast, 9990), (20, Cause::Fast, 9750), (5, Cause::Timeout, 9950)] {
        let seeds = 10;
        let mean = (0..seeds).map(|seed| week(percent, cause, seed)).sum::<u64>() / seeds;
        assert!(mean >= least, "{percent} % {cause:?}: {mean}");
    }
}
