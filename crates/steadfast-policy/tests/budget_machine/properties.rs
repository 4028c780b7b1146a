//! What holds in every history, over 180 000 random operations with idle gaps of up to 400 s and a clock that steps
//! back. The numbers are those of the rule's own list of properties.

use steadfast_policy::budget::{Budget, BudgetConfig, Denied};
use steadfast_policy::{Answer, Cause, Time};

use crate::history::{Event, Op, Player, Step, random_history};

const HISTORIES: u64 = 60;
const LENGTH: usize = 3000;

fn config(seed: u64) -> BudgetConfig {
    let ratio = [0.2, 0.5, 0.1, 10.0][seed as usize % 4];
    BudgetConfig { ratio, min_per_second: (seed % 3) as f64, gate: true }
}

/// Plays every history from a fresh budget and shows each step, with the price of what is out after it.
fn every_step(mut check: impl FnMut(u64, &Step, i64)) {
    for seed in 0..HISTORIES {
        let mut player = Player::new(config(seed));
        for event in random_history(seed, LENGTH) {
            if let Some(step) = player.play(event) {
                check(seed, &step, player.pending_cost());
            }
        }
    }
}

fn granted(step: &Step) -> bool {
    matches!(step.op, Op::Ask(..)) && step.denied.is_none()
}

fn is_probe(step: &Step) -> bool {
    granted(step) && step.before.credit < step.cost
}

/// The histories reach what the properties speak of.
#[test]
fn the_histories_hold_grants_probes_and_both_refusals() {
    let mut seen = [0; 4];
    every_step(|_, step, _| match step.denied {
        Some(Denied::Ceiling) => seen[0] += 1,
        Some(Denied::Efficacy) => seen[1] += 1,
        None if is_probe(step) => seen[2] += 1,
        None if granted(step) => seen[3] += 1,
        None => {}
    });
    assert!(seen.iter().all(|&count| count > 500), "{seen:?}");
}

/// 1. A grant satisfies the seed's inequality on the last ten buckets, a ceiling refusal violates it.
#[test]
fn property_1_the_ceiling_is_the_seeds() {
    every_step(|seed, step, _| {
        if !matches!(step.op, Op::Ask(..)) {
            return;
        }
        let BudgetConfig { ratio, min_per_second, .. } = config(seed);
        let tenths = (ratio * 10.0) as u64 * step.before.requests + (min_per_second * 100.0) as u64;
        let room = step.before.retries * 10 < tenths;
        assert_eq!(room, step.denied != Some(Denied::Ceiling), "{step:?}");
        assert_eq!(room, step.before.ceiling_left > 0, "{step:?}");
        if step.denied.is_none() {
            assert_eq!(step.after.ceiling_left, step.before.ceiling_left - 1, "{step:?}");
        }
    });
}

/// 1. Without the gate the ceiling decides alone: nothing is refused for any other reason, whatever the answers.
#[test]
fn property_1_without_the_gate_only_the_ceiling_refuses() {
    for seed in 0..HISTORIES {
        let mut player = Player::new(BudgetConfig { gate: false, ..config(seed) });
        for event in random_history(seed, LENGTH) {
            let Some(step) = player.play(event) else {
                continue;
            };
            assert_ne!(step.denied, Some(Denied::Efficacy));
            if matches!(step.op, Op::Ask(..)) {
                assert_eq!(step.denied.is_some(), step.before.ceiling_left == 0, "{step:?}");
            }
        }
    }
}

/// 2. Credit stays between 0 and the larger of 40 and the largest bank so far.
#[test]
fn property_2_credit_is_bounded() {
    let mut largest = (0, 40);
    every_step(|seed, step, _| {
        if largest.0 != seed {
            largest = (seed, 40);
        }
        largest.1 = largest.1.max(step.before.capacity).max(step.after.capacity);
        assert!((0..=largest.1).contains(&step.after.credit), "{step:?}");
    });
}

/// 2. A refusal, the start of a call, and a failed attempt never change the credit.
#[test]
fn property_2_refusals_and_failures_change_no_credit() {
    let failed = |answer| matches!(answer, Answer::Failed | Answer::ServerError);
    every_step(|_, step, _| {
        let idle = match step.op {
            Op::Call => true,
            Op::Ask(..) => step.denied.is_some(),
            Op::First(answer) | Op::Retry(_, answer) => failed(answer),
            Op::Unsent(_) | Op::Reconfigure(_) => false,
        };
        assert!(!idle || step.before.credit == step.after.credit, "{step:?}");
    });
}

/// 3. What retries that failed or are out have cost is at most 40, the good answers, and what probes were given.
#[test]
fn property_3_credit_is_conserved() {
    let (mut run, mut wasted, mut given) = (0, 0, 40);
    every_step(|seed, step, pending| {
        if run != seed {
            (run, wasted, given) = (seed, 0, 40);
        }
        match step.op {
            Op::Ask(..) if is_probe(step) => given += step.cost - step.before.credit,
            Op::First(Answer::Ok) | Op::Retry(_, Answer::Ok) => given += 1,
            Op::Retry(_, Answer::Failed | Answer::ServerError) => wasted += step.cost,
            _ => {}
        }
        assert!(wasted + pending <= given, "{wasted} + {pending} > {given} at {step:?}");
    });
}

/// 4. A grant takes exactly its price, or what there is if it is a probe; an answer gives it back.
#[test]
fn property_4_prices_are_exact() {
    every_step(|_, step, _| {
        let before = step.before.credit;
        let expected = match step.op {
            Op::Ask(..) if granted(step) => (before - step.cost).max(0),
            Op::First(Answer::Ok) => (before + 1).min(step.after.capacity),
            Op::First(Answer::SlowOk) => (before - 5).clamp(0, step.after.capacity),
            Op::Retry(_, Answer::Ok) => (before + step.cost + 1).min(step.after.capacity),
            Op::Retry(_, Answer::SlowOk) => (before + step.cost - 5).clamp(0, step.after.capacity),
            _ => return,
        };
        assert_eq!(step.after.credit, expected, "{step:?}");
    });
}

/// 5 and 2.9. A retry that was never sent gives back its price, and its place under the ceiling while that counts.
#[test]
fn property_5_an_unsent_retry_is_refunded() {
    let mut given_back = 0;
    every_step(|_, step, _| {
        if matches!(step.op, Op::Unsent(_)) {
            let most = step.after.capacity.max(40);
            assert_eq!(step.after.credit, (step.before.credit + step.cost).min(most), "{step:?}");
            assert!(step.before.retries - step.after.retries <= 1, "{step:?}");
            given_back += step.before.retries - step.after.retries;
        }
    });
    assert!(given_back > 200, "{given_back}");
}

/// 7. An earlier time than before decides as the latest time seen would: nothing comes back, nothing ages.
#[test]
fn property_7_a_clock_that_steps_back_is_no_time() {
    for seed in 0..HISTORIES {
        let mut stepping = Player::new(config(seed));
        let mut standing = Player::new(config(seed));
        let (mut behind, mut latest) = (0, 0);
        for event in random_history(seed, LENGTH) {
            behind += event.step;
            let Some(one) = stepping.play(event) else {
                continue;
            };
            let step = (behind - latest).max(0);
            latest = latest.max(behind);
            let other = standing.play(Event { step, ..event }).unwrap();
            assert_eq!((one.denied, one.after), (other.denied, other.after), "{one:?}");
        }
    }
}

/// 7. The same history and the same random numbers make the same decisions, and reading has no effect.
#[test]
fn property_7_decisions_repeat() {
    let decisions = || {
        let mut steps = Vec::new();
        every_step(|_, step, _| steps.push((step.denied, step.after)));
        steps
    };
    assert_eq!(decisions(), decisions());
}

/// Causes differ in price alone: between them the ceiling makes no difference.
#[test]
fn property_4_a_timeout_costs_20_and_a_fast_failure_8() {
    for (cause, cost) in [(Cause::Fast, 8), (Cause::Timeout, 20)] {
        let mut budget = Budget::new(BudgetConfig::default());
        let now = Time::from_secs(1);
        let _permit = budget.ask(now, cause, 0).unwrap();
        assert_eq!(budget.snapshot(now).credit, 40 - cost);
    }
}

/// A permit that another budget granted takes nothing out of a window that never counted it.
#[test]
fn property_5_a_foreign_permit_is_harmless() {
    let now = Time::from_secs(1);
    let permit = Budget::new(BudgetConfig::default()).ask(now, Cause::Fast, 0).unwrap();
    let mut other = Budget::new(BudgetConfig::default());
    let before = other.snapshot(now);
    other.retry_unsent(now, permit);
    assert_eq!(other.snapshot(now), before);
}
