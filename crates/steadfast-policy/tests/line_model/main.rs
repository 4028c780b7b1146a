//! The line (5.1, 5.2, 6.1 to 6.4) against a model that keeps lists of everything and searches them from end to end.
#![expect(clippy::expect_used, reason = "a test's insistence")]

mod glue;
mod history;
mod model;
mod random;
mod reconfigured;

use std::time::Duration;

use proptest::prelude::*;
use steadfast_policy::line::{LineConfig, RateConfig, RateStyle};

use crate::history::{Call, Move, Pair, Step};
use crate::random::Random;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Times on a coarse grid, so that instants often coincide, and now and then a nanosecond beside it.
fn any_time(random: &mut Random, most: u64) -> Duration {
    let grid = millis(50 * random.below(most / 50 + 1));
    match random.below(8) {
        0 => grid + Duration::from_nanos(1),
        1 => grid.saturating_sub(Duration::from_nanos(1)),
        _ => grid,
    }
}

fn any_config(random: &mut Random) -> LineConfig {
    let rate = RateConfig {
        limit: 1 + random.below(4) as u32,
        period: [millis(1000), millis(300), Duration::from_nanos(7)][random.below(3) as usize],
        wait: [None, Some(Duration::ZERO), Some(millis(1000)), Some(millis(1500))][random.below(4) as usize],
        style: if random.below(3) == 0 { RateStyle::Smooth } else { RateStyle::Window },
        max_keys: 1 + random.below(4) as usize,
    };
    LineConfig {
        slots: [0, 1, 1, 2, 3, 8][random.below(6) as usize],
        slot_wait: [0, 200, 500, 5000].map(millis)[random.below(4) as usize],
        rate: (random.below(6) > 0).then_some(rate),
    }
}

fn any_lease(random: &mut Random) -> Option<Duration> {
    (random.below(2) == 0).then(|| any_time(random, 3000))
}

fn any_step(random: &mut Random) -> Step {
    let clock = match random.below(100) {
        0..45 => Move::Stay,
        45..70 => Move::Forward(any_time(random, 200)),
        70..90 => Move::ToWaiter(random.below(100) as usize, any_time(random, 50) / 4),
        90..95 => Move::Back(any_time(random, 1000)),
        95..99 => Move::Forward(any_time(random, 5000)),
        _ => Move::Forward(Duration::from_secs(86_400 * 365 * 5)),
    };
    let pick = random.below(1000) as usize;
    let call = match random.below(100) {
        0..45 => Call::Enter { key: pick, time_left: any_time(random, 3000) },
        45..70 => Call::Poll(pick),
        70..75 => Call::Leave(pick),
        75..91 => Call::Release(pick),
        91..95 => Call::Lease(pick, any_lease(random)),
        95..99 => Call::UndoStart(pick),
        _ => Call::Reconfigure(any_config(random)),
    };
    Step { clock, call }
}

fn compare(seed: u64, steps: usize) {
    let mut random = Random::new(seed);
    let mut pair = Pair::new(any_config(&mut random));
    for _ in 0..steps {
        pair.step(any_step(&mut random));
    }
    pair.all_go();
}

/// So many histories by environment variable, to search longer by hand.
fn scaled(histories: u64) -> u64 {
    let factor = std::env::var("STEADFAST_TEST_SCALE").ok().and_then(|factor| factor.parse().ok());
    histories * factor.unwrap_or(1)
}

#[test]
fn c6_2_it_does_what_the_model_does_over_many_short_histories() {
    for seed in 0..scaled(1500) {
        compare(seed, 60);
    }
}

#[test]
fn c6_2_it_does_what_the_model_does_over_long_histories() {
    for seed in 0..scaled(12) {
        compare(1_000_000 + seed, 600);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same, with histories that shrink to the few steps that matter.
    #[test]
    fn c6_2_it_does_what_the_model_does(config: u64, steps in prop::collection::vec(any::<u64>(), 0..60)) {
        let mut pair = Pair::new(any_config(&mut Random::new(config)));
        for seed in steps {
            pair.step(any_step(&mut Random::new(seed)));
        }
        pair.all_go();
    }
}
