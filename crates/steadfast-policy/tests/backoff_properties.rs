//! Backoff (2.5) over any configuration, retry, and draw.
#![expect(clippy::disallowed_types, reason = "proptest's macros share their strategies")]

use std::time::Duration;

use proptest::prelude::*;
use steadfast_policy::backoff::{Backoff, Jitter};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A seeded generator (xorshift64*), so that a failure can be run again.
fn draws(mut seed: u64) -> impl Iterator<Item = u64> {
    std::iter::repeat_with(move || {
        seed ^= seed >> 12;
        seed ^= seed << 25;
        seed ^= seed >> 27;
        seed.wrapping_mul(0x2545_f491_4f6c_dd1d)
    })
}

#[test]
fn c16_five_retries_stay_below_their_caps_and_are_not_all_equal() {
    let backoff = Backoff { base: millis(100), max: millis(500), ..Backoff::default() };
    for seed in 1..=1000 {
        let waits: Vec<_> = (1..=5).zip(draws(seed)).map(|(retry, random)| backoff.wait(retry, random)).collect();
        let caps = [100, 200, 400, 500, 500].map(millis);
        assert!(waits.iter().zip(caps).all(|(&wait, cap)| wait <= cap), "{waits:?}");
        assert!(waits.windows(2).any(|pair| pair[0] != pair[1]));
    }
}

#[test]
fn p1_additive_jitter_comes_after_the_cap() {
    let jitter = Jitter::Additive;
    let backoff = Backoff { base: millis(200), factor: 2.0, max: secs(5), jitter, jitter_max: millis(100) };
    for (retry, least) in [(1, 200), (2, 400), (3, 800), (6, 5000), (60, 5000)] {
        assert_eq!(backoff.wait(retry, 0), millis(least));
        assert_eq!(backoff.wait(retry, u64::MAX), millis(least + 100));
    }
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn c2_5_the_cap_does_not_erase_the_jitter() {
    for jitter in [Jitter::Full, Jitter::Equal] {
        let backoff = Backoff { base: secs(1), max: secs(60), jitter, ..Backoff::default() };
        let waits: Vec<_> = draws(7).take(10_000).map(|random| backoff.wait(1000, random)).collect();
        assert!(waits.iter().all(|&wait| wait <= secs(60)));
        // Half of the draws fall into the upper half of the range, give or take five standard deviations.
        let middle = if jitter == Jitter::Full { secs(30) } else { secs(45) };
        let above = waits.iter().filter(|&&wait| wait > middle).count();
        assert!((4750..=5250).contains(&above), "{above}");
    }
}

fn any_backoff() -> impl Strategy<Value = Backoff> {
    let duration = || {
        prop_oneof![
            Just(Duration::ZERO),
            (0..=u64::MAX).prop_map(Duration::from_nanos),
            (0..10_000_u64).prop_map(Duration::from_millis),
            Just(Duration::MAX),
        ]
    };
    let factor = prop_oneof![0.0..10.0, Just(1.0), Just(2.0), any::<f64>()];
    let jitter = prop::sample::select(vec![Jitter::Full, Jitter::Equal, Jitter::Additive, Jitter::None]);
    (duration(), factor, duration(), jitter, duration()).prop_map(|(base, factor, max, jitter, jitter_max)| Backoff {
        base,
        factor,
        max,
        jitter,
        jitter_max,
    })
}

proptest! {
    #[test]
    fn c2_5_a_wait_keeps_to_its_range(backoff in any_backoff(), retry: u32, random: u64) {
        let cap = backoff.cap(retry);
        let wait = backoff.wait(retry, random);
        prop_assert!(cap <= backoff.max);
        let (least, most) = match backoff.jitter {
            Jitter::Full => (Duration::ZERO, cap),
            Jitter::Equal => (cap / 2, cap),
            Jitter::Additive => (cap, cap.saturating_add(backoff.jitter_max)),
            Jitter::None => (cap, cap),
        };
        prop_assert!(least <= wait && wait <= most, "{least:?} {wait:?} {most:?}");
    }

    #[test]
    fn c2_5_the_cap_follows_its_formula(base in 1_u64..10_000, max in 1_u64..100_000, retry in 1_u32..40) {
        // Powers of two are exact, so the cap is too.
        let backoff = Backoff { base: millis(base), max: millis(max), ..Backoff::default() };
        let grown = u128::from(base) << (retry - 1);
        prop_assert_eq!(backoff.cap(retry), millis(grown.min(u128::from(max)) as u64));
    }

    #[test]
    fn c2_5_the_cap_never_shrinks_while_the_factor_grows_it(
        backoff in any_backoff(), retry in 1..u32::MAX,
    ) {
        // Closer to 1 the rounding of the power would show.
        prop_assume!(backoff.factor == 1.0 || backoff.factor >= 1.001);
        prop_assert!(backoff.cap(retry) <= backoff.cap(retry + 1));
    }
}
