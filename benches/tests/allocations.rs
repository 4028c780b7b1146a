//! The policies and the report of a first attempt that succeeds allocate nothing.

use steadfast_benches::Failure;
use steadfast_benches::closure::{self, Kind, RateLimited, Stack, Steadfast};

/// The allocator counts by thread, so that other tests do not disturb.
fn allocations_of(mut stack: impl Stack, kind: Kind) -> Result<u64, Failure> {
    let runtime = closure::runtime()?;
    // The line and the windows grow to their size once.
    closure::calls(&runtime, &mut stack, kind, 20_000)?;
    let mut ended = Ok(());
    let counted = allocation_counter::measure(|| ended = closure::calls(&runtime, &mut stack, kind, 10_000));
    ended.map(|()| counted.count_total)
}

#[test]
fn a_first_attempt_that_succeeds_allocates_nothing() {
    assert_eq!(allocations_of(Steadfast::new(), Kind::Ready).unwrap(), 0);
    assert_eq!(allocations_of(Steadfast::new(), Kind::PendsOnce).unwrap(), 0);
}

#[test]
fn nor_does_it_with_a_rate_limit() {
    assert_eq!(allocations_of(RateLimited::new(), Kind::Ready).unwrap(), 0);
    assert_eq!(allocations_of(RateLimited::new(), Kind::PendsOnce).unwrap(), 0);
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocation_counter::measure(|| drop(std::hint::black_box(Box::new(7)))).count_total, 1);
}
