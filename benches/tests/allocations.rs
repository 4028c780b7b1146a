//! The policies and the report of a first attempt that succeeds allocate nothing.

use steadfast_benches::Failure;
use steadfast_benches::closure::{
    self, Backon, Bare, Failsafe, Governor, Kind, RateLimited, Stack, Steadfast, Tower, TowerResilience,
};

/// Allocations of five batches of calls, after some to warm up. The allocator counts by thread, so that other tests do
/// not disturb.
fn allocations_of(mut stack: impl Stack, kind: Kind) -> Result<[u64; 5], Failure> {
    let runtime = closure::runtime()?;
    closure::calls(&runtime, &mut stack, kind, 10_000)?;
    let mut counts = [0; 5];
    for count in &mut counts {
        let mut ended = Ok(());
        *count = allocation_counter::measure(|| ended = closure::calls(&runtime, &mut stack, kind, 5_000)).count_total;
        ended?;
    }
    Ok(counts)
}

#[test]
fn a_first_attempt_that_succeeds_allocates_nothing() {
    assert_eq!(allocations_of(Steadfast::new().unwrap(), Kind::Ready).unwrap(), [0; 5]);
    assert_eq!(allocations_of(Steadfast::new().unwrap(), Kind::PendsOnce).unwrap(), [0; 5]);
}

#[test]
fn nor_does_it_with_a_rate_limit() {
    // The window remembers its starts, and grows when more of them fall into one than ever before: that depends on how
    // fast the machine is at the moment. What is grown stays, so that a batch without any must come soon.
    for kind in [Kind::Ready, Kind::PendsOnce] {
        let counts = allocations_of(RateLimited::new().unwrap(), kind).unwrap();
        assert!(counts.contains(&0) && counts.iter().sum::<u64>() < 5, "{counts:?}");
    }
}

/// What the comparison is made with runs, as often as it is asked to.
#[test]
fn every_contender_runs() {
    let runtime = closure::runtime().unwrap();
    for kind in [Kind::Ready, Kind::PendsOnce] {
        runs(&runtime, Bare, kind);
        runs(&runtime, Tower::new(), kind);
        runs(&runtime, TowerResilience::new().unwrap(), kind);
        runs(&runtime, Failsafe::new(), kind);
        runs(&runtime, Backon, kind);
        runs(&runtime, Governor::new(), kind);
    }
}

fn runs<S: Stack>(runtime: &tokio::runtime::Runtime, mut stack: S, kind: Kind) {
    let ended = closure::calls(runtime, &mut stack, kind, 100);
    assert!(ended.is_ok(), "{}, {}: {ended:?}", S::NAME, kind.name());
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocation_counter::measure(|| drop(std::hint::black_box(Box::new(7)))).count_total, 1);
}
