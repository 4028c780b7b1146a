//! Other settings for a budget in use (9.5): the window and the credit stay.

use steadfast_policy::budget::{Budget, BudgetConfig, Denied};
use steadfast_policy::{Answer, Cause, Time};

use crate::history::{Event, Op, Player, Random, random_config, random_history, reconfigured_history};

const GATED: BudgetConfig = BudgetConfig { ratio: 10.0, min_per_second: 100.0, gate: true };
const FREE: BudgetConfig = BudgetConfig { gate: false, ..GATED };

fn at(secs: u64) -> Time {
    Time::from_secs(secs)
}

/// Retries granted now that fail, until one is refused: how many, and why no more.
fn spend(budget: &mut Budget, now: Time) -> (u32, Denied) {
    for granted in 0..10_000 {
        match budget.ask(now, Cause::Fast, 0) {
            Ok(permit) => budget.retry_done(now, permit, Answer::Failed),
            Err(denied) => return (granted, denied),
        }
    }
    unreachable!("no limit")
}

#[test]
fn c9_5_a_new_ceiling_counts_the_calls_and_retries_so_far() {
    let config = |ratio, min_per_second| BudgetConfig { ratio, min_per_second, gate: false };
    let mut budget = Budget::new(config(0.2, 0.0));
    for _ in 0..50 {
        budget.call_started(at(1));
    }
    assert_eq!(spend(&mut budget, at(1)), (10, Denied::Ceiling));
    budget.reconfigure(at(2), config(0.5, 0.0));
    assert_eq!(spend(&mut budget, at(2)), (15, Denied::Ceiling));
    budget.reconfigure(at(2), config(0.1, 0.0));
    assert_eq!(spend(&mut budget, at(2)), (0, Denied::Ceiling));
    budget.reconfigure(at(2), config(0.1, 2.5));
    assert_eq!(spend(&mut budget, at(2)), (5, Denied::Ceiling));
    // The ten of the first second age out when they would have.
    assert_eq!(budget.snapshot(at(10)).retries, 30);
    assert_eq!(budget.snapshot(at(11)).retries, 20);
}

/// Also the part that silence leaves above the bank: no answer has come that would have cut it.
#[test]
fn c9_5_the_credit_of_before_a_silence_stays() {
    for config in [BudgetConfig { ratio: 5.0, ..GATED }, FREE] {
        let mut budget = Budget::new(GATED);
        for _ in 0..200 {
            budget.call_started(at(1));
            budget.first_done(at(1), Answer::Ok);
        }
        budget.reconfigure(at(21), config);
        assert_eq!(budget.snapshot(at(21)).credit, 60);
    }
}

#[test]
fn c9_5_the_credit_stays() {
    let mut budget = Budget::new(GATED);
    let permit = budget.ask(at(1), Cause::Timeout, 0).unwrap();
    budget.retry_done(at(1), permit, Answer::Failed);
    budget.reconfigure(at(1), BudgetConfig { ratio: 5.0, ..GATED });
    assert_eq!(budget.snapshot(at(1)).credit, 20);
    assert_eq!(spend(&mut budget, at(1)), (2, Denied::Efficacy));
}

/// A retry that is out gets back what it cost, not what one costs now.
#[test]
fn c9_5_a_retry_that_is_out_is_refunded_at_what_it_cost() {
    for is_sent in [true, false] {
        let settle = |budget: &mut Budget, permit| match is_sent {
            true => budget.retry_done(at(2), permit, Answer::Ok),
            false => budget.retry_unsent(at(2), permit),
        };
        let earned = i64::from(is_sent);

        let mut budget = Budget::new(GATED);
        let paid = budget.ask(at(1), Cause::Timeout, 0).unwrap();
        let lost = budget.ask(at(1), Cause::Timeout, 0).unwrap();
        budget.retry_done(at(1), lost, Answer::Failed);
        budget.reconfigure(at(1), FREE);
        assert_eq!(budget.snapshot(at(1)).credit, 0);
        settle(&mut budget, paid);
        assert_eq!(budget.snapshot(at(2)).credit, 20.min(20 + earned));

        let mut budget = Budget::new(FREE);
        let free = budget.ask(at(1), Cause::Timeout, 0).unwrap();
        budget.reconfigure(at(1), GATED);
        let lost = [Cause::Timeout, Cause::Fast].map(|cause| budget.ask(at(1), cause, 0).unwrap());
        for permit in lost {
            budget.retry_done(at(1), permit, Answer::Failed);
        }
        assert_eq!(budget.snapshot(at(1)).credit, 12);
        settle(&mut budget, free);
        assert_eq!(budget.snapshot(at(2)).credit, 12 + earned);
    }
}

/// Off, it does not keep back a retry; on again, it has what it had, and no retry more.
#[test]
fn c9_5_turning_the_gate_off_and_on_gives_no_credit() {
    let mut budget = Budget::new(GATED);
    assert_eq!(spend(&mut budget, at(1)), (5, Denied::Efficacy));
    budget.reconfigure(at(1), FREE);
    assert_eq!(spend(&mut budget, at(1)).1, Denied::Ceiling);
    budget.reconfigure(at(12), GATED);
    assert_eq!(spend(&mut budget, at(12)), (0, Denied::Efficacy));
}

/// What a busy hour earned while nothing had a price is not there for a quiet one.
#[test]
fn c9_5_the_gate_turned_on_starts_with_what_the_bank_holds_now() {
    for (silence, expected) in [(0, 60), (5, 60), (20, 40)] {
        let mut budget = Budget::new(FREE);
        for _ in 0..200 {
            budget.call_started(at(1));
            budget.first_done(at(1), Answer::Ok);
        }
        assert_eq!(budget.snapshot(at(1)).credit, 60);
        budget.reconfigure(at(1 + silence), GATED);
        assert_eq!(budget.snapshot(at(1 + silence)).credit, expected, "after {silence} s");
    }
    // A client that nobody has called yet is as good as new.
    let mut budget = Budget::new(FREE);
    budget.reconfigure(at(1), GATED);
    assert_eq!(budget.snapshot(at(1)).credit, 40);
}

/// Also where the values differ and mean the same.
#[test]
fn c9_5_the_same_settings_change_nothing() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let config = random_config(&mut random);
        let (mut told, mut untold) = (Player::new(config), Player::new(config));
        for event in random_history(seed, 2000) {
            // At a time of its own: time that it let pass would be seen in what is counted.
            let step = random.below(3_000_000_000) as i64;
            told.play(Event { step, op: Op::Reconfigure(config) });
            let one = told.play(Event { step: event.step - step, ..event });
            let other = untold.play(event);
            let seen = |step: Option<crate::history::Step>| step.map(|step| (step.denied, step.after));
            assert_eq!(seen(one), seen(other), "{event:?}");
        }
    }
    let mut budget = Budget::new(BudgetConfig { ratio: -1.0, min_per_second: f64::NAN, gate: false });
    let before = format!("{budget:?}");
    budget.reconfigure(at(5), BudgetConfig { ratio: f64::NAN, min_per_second: 0.0, gate: false });
    assert_eq!(format!("{budget:?}"), before);
}

/// Whatever is changed when: the credit stays in its bounds, nothing but a probe and an answer adds to it, and retries
/// that are never sent leave nothing behind.
#[test]
fn c9_5_no_change_of_settings_makes_credit() {
    let mut changes = 0;
    for seed in 0..30 {
        let mut player = Player::new(GATED);
        let mut largest = 40;
        for event in reconfigured_history(seed, 2000) {
            let Some(step) = player.play(event) else { continue };
            largest = largest.max(step.before.capacity).max(step.after.capacity);
            assert!((0..=largest).contains(&step.after.credit), "{step:?}");
            if let Op::Reconfigure(config) = step.op {
                changes += 1;
                let after = step.after;
                assert!(after.credit <= step.before.credit, "{step:?}");
                assert_eq!((after.requests, after.retries), (step.before.requests, step.before.retries));
                // From here on the ceiling is the new one, and counts what there has been.
                let tenths = (config.ratio * 10.0) as u64 * after.requests + (config.min_per_second * 100.0) as u64;
                assert_eq!(after.ceiling_left, tenths.div_ceil(10).saturating_sub(after.retries), "{step:?}");
            }
        }
        let (mut budget, now) = (player.budget(), Time::MAX);
        assert_eq!(budget.snapshot(now).retries, 0);
        budget.call_started(now);
        assert_eq!(budget.snapshot(now).requests, 1);
    }
    assert!(changes > 1000, "{changes}");
}
