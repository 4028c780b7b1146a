//! The budget and the model go through the same histories.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use steadfast_policy::budget::BudgetConfig;

use crate::history::{Event, Op, Player, any_history, random_history, reconfigured_history};
use crate::model::Model;

const CONFIGS: [(f64, f64); 6] = [(0.2, 1.0), (0.5, 1.0), (0.1, 0.0), (0.0, 0.5), (1.5, 3.25), (0.000_001, 100.0)];

/// Plays `events` and compares every decision and figure.
fn compare(config: BudgetConfig, events: &[Event]) {
    let mut player = Player::new(config);
    let mut model = Model::new(config);
    let mut out = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let Some(step) = player.play(*event) else {
            continue;
        };
        let now = step.now.as_nanos();
        match event.op {
            Op::Call => model.call_started(now),
            Op::First(answer) => model.first_done(now, answer),
            Op::Ask(cause, random) => match model.ask(now, cause, random) {
                Ok(grant) => {
                    out.push(grant);
                    assert_eq!(step.denied, None, "event {index}: {event:?}");
                }
                Err(denied) => assert_eq!(step.denied, Some(denied), "event {index}: {event:?}"),
            },
            Op::Retry(pick, answer) => model.retry_done(now, out.swap_remove(pick % out.len()), answer),
            Op::Unsent(pick) => model.retry_unsent(now, out.swap_remove(pick % out.len())),
            Op::Reconfigure(config) => model.reconfigure(now, config),
        }
        let seen = (step.after.requests, step.after.retries, step.after.credit);
        let counted = (model.requests_at(now), model.retries_at(now), model.credit());
        assert_eq!(seen, counted, "event {index}: {event:?}");
        assert_eq!(step.after.capacity, 20 + seen.0 as i64 / 5);
    }
}

#[test]
fn long_histories_agree_with_the_model() {
    for seed in 0..24 {
        let (ratio, min_per_second) = CONFIGS[seed as usize % CONFIGS.len()];
        let config = BudgetConfig { ratio, min_per_second, gate: seed % 4 != 3 };
        compare(config, &random_history(seed, 1500));
    }
}

#[test]
fn c9_5_histories_with_other_settings_in_between_agree_with_the_model() {
    for seed in 0..24 {
        let (ratio, min_per_second) = CONFIGS[seed as usize % CONFIGS.len()];
        let config = BudgetConfig { ratio, min_per_second, gate: seed % 2 == 0 };
        compare(config, &reconfigured_history(seed, 1500));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_history_agrees_with_the_model(
        events in any_history(120),
        keys in 0..CONFIGS.len(),
        gate in any::<bool>(),
    ) {
        let (ratio, min_per_second) = CONFIGS[keys];
        compare(BudgetConfig { ratio, min_per_second, gate }, &events);
    }
}
