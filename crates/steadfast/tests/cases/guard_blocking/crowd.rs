//! Many threads at one guard, under the system's clock: no time is asserted, only who may be where at once.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::testing::VirtualClock;
use steadfast::{Guard, GuardBuilder, GuardError};

use super::{Failed, line, transient, until};
use crate::harness::{ms, secs};

const HOUR: Duration = Duration::from_secs(3_600);

/// Nothing but the bulkhead: waits for a slot are long, waits for a retry short.
fn crowded(slots: u32) -> GuardBuilder {
    let backoff = Backoff { base: Duration::from_nanos(1), jitter: Jitter::None, ..Backoff::default() };
    Guard::builder("crowded")
        .total_timeout(HOUR)
        .max_concurrent(slots, HOUR)
        .without_breaker()
        .without_retry_budget()
        .backoff(backoff)
}

/// Counts who is inside, and the most that ever were.
#[derive(Default)]
struct Inside {
    now: AtomicU32,
    peak: AtomicU32,
    runs: AtomicU32,
}

impl Inside {
    fn enter(self: &Arc<Self>) -> Leaves {
        let inside = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(inside, Ordering::SeqCst);
        self.runs.fetch_add(1, Ordering::SeqCst);
        Leaves(Arc::clone(self))
    }
}

struct Leaves(Arc<Inside>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An operation of every kind: a value, an error that is retried, one that is not, a panic.
fn work(inside: &Arc<Inside>, number: usize, attempt: u32) -> Result<usize, Failed> {
    let _inside = inside.enter();
    if number.is_multiple_of(5) {
        thread::yield_now();
    }
    match (number % 7, attempt) {
        (1 | 2, 1) => Err(Failed::Connection),
        (3, _) => Err(Failed::Client(404)),
        (4, 2) if number.is_multiple_of(3) => panic!("on purpose"),
        (4, _) => Err(Failed::Connection),
        _ => Ok(number),
    }
}

#[test]
fn c5_1_eight_threads_never_have_more_than_three_slots() {
    const CALLS: usize = 200;
    let guard = crowded(3).attempts(2).build().unwrap();
    let inside = Arc::new(Inside::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let kind = |kind: usize, number: usize| {
        let (guard, inside) = (guard.clone(), Arc::clone(&inside));
        let call = guard.transient(transient);
        match kind {
            0 | 1 => call.call_blocking_with(|context| work(&inside, number, context.attempt)),
            2 => call.call_on_thread_blocking(move |context| work(&inside, number, context.attempt)),
            _ => runtime.block_on(call.call_on_thread(move |context| work(&inside, number, context.attempt))),
        }
    };
    thread::scope(|scope| {
        for thread in 0..8_usize {
            let kind = &kind;
            scope.spawn(move || {
                for call in 0..CALLS {
                    let number = thread * CALLS + call;
                    let panics = number % 7 == 4 && number.is_multiple_of(3);
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| kind(thread % 4, number)));
                    match (result, number % 7) {
                        (Err(_), _) => assert!(panics),
                        (Ok(result), 3) => assert!(result.is_err_and(|error| error.limit().is_none())),
                        (Ok(result), 4) => assert!(!panics && result.is_err()),
                        (Ok(result), _) => assert_eq!(result.unwrap(), number),
                    }
                }
            });
        }
    });
    let peak = inside.peak.load(Ordering::SeqCst);
    assert!((1..=3).contains(&peak), "{peak}");
    let retried = (0..8 * CALLS).filter(|number| matches!(number % 7, 1 | 2 | 4)).count();
    assert_eq!(inside.runs.load(Ordering::SeqCst) as usize, 8 * CALLS + retried);
    until("the last slot", || line(&guard) == (0, 0));
    guard.close_blocking();
}

/// Calls whose callers go, by deadline, while the work is in every possible stage. Under a virtual clock that a thread
/// moves all the time, so that deadlines strike anywhere.
#[test]
fn c11_7_work_that_outlives_its_callers_never_exceeds_the_slots() {
    let clock = VirtualClock::new();
    let guard = crowded(3).total_timeout(secs(2)).attempt_timeout(secs(1)).clock(clock.clone()).build().unwrap();
    let inside = Arc::new(Inside::default());
    let left = AtomicU32::new(6);
    let outlived = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..left.load(Ordering::SeqCst) {
            scope.spawn(|| {
                for number in 0..200 {
                    let inside = Arc::clone(&inside);
                    let call = guard.transient(transient).call_on_thread_blocking(move |context| {
                        let _inside = inside.enter();
                        for _ in 0..number % 20 {
                            thread::yield_now();
                        }
                        if context.attempt == 1 { Err(Failed::Connection) } else { Ok(()) }
                    });
                    if let Err(GuardError::Limit { .. }) = call {
                        outlived.fetch_add(1, Ordering::SeqCst);
                    }
                }
                left.fetch_sub(1, Ordering::SeqCst);
            });
        }
        scope.spawn(|| {
            while left.load(Ordering::SeqCst) > 0 {
                clock.advance(ms(10));
                thread::yield_now();
            }
        });
    });
    assert!(outlived.load(Ordering::SeqCst) > 0, "no deadline struck");
    until("the last slot", || line(&guard) == (0, 0));
    assert!(inside.peak.load(Ordering::SeqCst) <= 3);
    assert_eq!((inside.now.load(Ordering::SeqCst), clock.armed_timers()), (0, 0));
}

/// Parked threads get their places in the order in which they came, whichever of them wakes first.
#[test]
fn c6_2_threads_wait_for_a_place_in_the_order_in_which_they_came() {
    let rate = RateConfig { limit: 1, period: ms(3), wait: None, style: RateStyle::Window, max_keys: 10 };
    let guard = crowded(1).rate_limit(rate).build().unwrap();
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let queue = || {
            for number in 0..8_u32 {
                let (guard, order) = (&guard, &order);
                scope.spawn(move || {
                    let call = guard.call_blocking(|| {
                        order.lock().unwrap().push(number);
                        Ok::<_, Failed>(())
                    });
                    call.unwrap();
                });
                // The slot is taken: nobody leaves the line before all are in it.
                until("the next in line", || line(guard) == (1, number + 1));
            }
            Ok::<_, Failed>(())
        };
        guard.call_blocking(queue).unwrap();
    });
    assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
    assert_eq!(line(&guard), (0, 0));
}
