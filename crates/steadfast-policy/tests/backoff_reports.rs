//! Backoffs that overflowed, vanished, or never ended: public reports about other libraries (A15 to A22).

use std::time::Duration;

use proptest::prelude::*;
use steadfast_policy::backoff::{Backoff, Jitter};

const JITTERS: [Jitter; 4] = [Jitter::Full, Jitter::Equal, Jitter::Additive, Jitter::None];

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn backoff(base: Duration, factor: f64, max: Duration) -> Backoff {
    Backoff { base, factor, max, jitter: Jitter::None, jitter_max: Duration::ZERO }
}

#[test]
fn a15_to_a22_the_cap_at_the_numbers_that_broke_others() {
    let second = millis(1_000);
    let forever = Duration::from_nanos(u64::MAX);
    for (report, backoff, retries, expected) in [
        ("A15", backoff(2 * second, 2.0, 30 * second), vec![1_024, 1_025, 1_026, u32::MAX], 30 * second),
        ("A16", backoff(second, 2.0, 60 * second), vec![31, 32, 33, 63, 64, 65], 60 * second),
        ("A17", backoff(second, 2.0, millis(10)), (1..=100).collect(), millis(10)),
        ("A18", backoff(2 * second, 2.0, 300 * second), (9..=10_000).collect(), 300 * second),
        ("A19", backoff(Duration::ZERO, 2.0, 60 * second), vec![1, 64, 1_025, u32::MAX], Duration::ZERO),
        ("A22", backoff(second, 10.0, Duration::MAX), vec![400, 401, u32::MAX], forever),
    ] {
        for retry in retries {
            assert_eq!(backoff.cap(retry), expected, "{report}, retry {retry}");
            for random in [0, 1, u64::MAX / 2, u64::MAX] {
                assert_eq!(backoff.wait(retry, random), expected, "{report}, retry {retry}");
            }
        }
    }
}

/// Neither does the jitter exceed the cap, nor does the cap erase the jitter.
#[test]
fn a20_a_saturated_wait_is_jittered_and_below_the_cap() {
    let cap = millis(60_000);
    for jitter in [Jitter::Full, Jitter::Equal] {
        let backoff = Backoff { jitter, ..backoff(millis(100), 2.0, cap) };
        let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
        let waits: std::collections::BTreeSet<_> = (0..10_000)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                backoff.wait(64, random)
            })
            .collect();
        assert!(waits.last().is_some_and(|longest| *longest <= cap), "{jitter:?}");
        assert!(waits.len() > 9_900, "{jitter:?}: {} different waits", waits.len());
    }
}

proptest! {
    /// A15 to A19, A22: the kind of fault as a whole. No configuration and no number of retries gives a wait above its
    /// maximum, or one that shrinks as the retries go on.
    #[test]
    fn a15_to_a22_no_retry_escapes_its_bounds(
        base in any::<u64>(), max in any::<u64>(), factor in 1.0..1e300_f64, retry in 1..u32::MAX, random in any::<u64>(),
    ) {
        for jitter in JITTERS {
            let jitter_max = millis(100);
            let backoff = Backoff {
                base: Duration::from_nanos(base), factor, max: Duration::from_nanos(max), jitter, jitter_max,
            };
            let most = if jitter == Jitter::Additive { backoff.max + jitter_max } else { backoff.max };
            prop_assert!(backoff.wait(retry, random) <= most);
            prop_assert!(backoff.cap(retry) <= backoff.cap(retry + 1));
            prop_assert!(base == 0 || max == 0 || backoff.cap(retry) >= backoff.base.min(backoff.max));
        }
    }
}
