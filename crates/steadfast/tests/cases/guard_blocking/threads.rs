//! On helper threads, called from plain threads. The clock is virtual; while the work runs only the work moves it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use steadfast::degraded;
use steadfast::policy::breaker::{BreakerConfig, State};
use steadfast::testing::VirtualClock;
use steadfast::{ErrorKind, Fault, Guard, GuardError};

use super::{Failed, guard, line, transient, until};
use crate::harness::{ms, secs};

/// Work that lets the deadline pass, and then goes on until it is told to end.
struct Endless {
    clock: VirtualClock,
    end: Receiver<()>,
    passes: u64,
}

impl Endless {
    fn new(clock: &VirtualClock, passes: u64) -> (Sender<()>, Self) {
        let (tell, end) = channel();
        (tell, Self { clock: clock.clone(), end, passes })
    }

    fn run(&self) -> Result<(), Failed> {
        self.clock.advance(secs(self.passes));
        let _ = self.end.recv();
        Err(Failed::TimedOut)
    }
}

#[test]
fn c11_7_the_caller_is_let_go_at_the_deadline_and_the_work_keeps_its_slot() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard.max_concurrent(1, ms(0)).total_timeout(secs(5)));
    let (end, work) = Endless::new(&clock, 5);
    let error = guard.call_on_thread_blocking(move |_| work.run()).unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::Timeout));
    assert_eq!(error.report().ended().name(), "deadline");
    assert_eq!(error.report().attempts().next().unwrap().outcome, steadfast::report::Outcome::Fault(Fault::Deadline));
    assert_eq!(line(&guard), (1, 0));

    clock.advance(secs(3_600));
    let refused = guard.call_on_thread_blocking(|_| Ok::<_, Failed>(())).unwrap_err();
    assert_eq!(refused.limit(), Some(ErrorKind::BulkheadFull), "however late");

    end.send(()).unwrap();
    until("the slot", || line(&guard) == (0, 0));
    guard.call_on_thread_blocking(|_| Ok::<_, Failed>(())).unwrap();
    assert_eq!(clock.armed_timers(), 0);
}

/// Both modes of P14: our deadline is ours, whatever the operation says of its own.
#[test]
fn p14_nothing_is_retried_while_the_work_still_runs() {
    let clock = VirtualClock::new();
    let starts = Arc::new(AtomicU32::new(0));
    for attempt_timeout in [None, Some(secs(2))] {
        let guard = guard(&clock, |guard| {
            let guard = guard.total_timeout(secs(5));
            attempt_timeout.map_or(guard.clone(), |timeout| guard.attempt_timeout(timeout))
        });
        starts.store(0, Ordering::SeqCst);
        let (end, work) = Endless::new(&clock, attempt_timeout.map_or(5, |timeout| timeout.as_secs()));
        let count = Arc::clone(&starts);
        let error = guard
            .transient(transient)
            .call_on_thread_blocking(move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                work.run()
            })
            .unwrap_err();
        let expected = if attempt_timeout.is_none() { ErrorKind::Timeout } else { ErrorKind::Unreachable };
        assert_eq!(error.limit(), Some(expected));
        assert!(matches!(&error, GuardError::Limit { last: None, .. }), "{error:?}");
        drop(end);
        until("the slot", || line(&guard) == (0, 0));
        assert_eq!(starts.load(Ordering::SeqCst), 1);
    }
}

/// An error that comes in time is retried, with the same operation and what it has kept, on another thread.
#[test]
fn w1_an_operation_keeps_what_it_has_over_its_attempts() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let mut seen = Vec::new();
    // Owned by one thread at a time, and not to be shared: as a connection is.
    let counter = Cell::new(0);
    let caller = thread::current().id();
    let seen = guard.transient(transient).call_on_thread_blocking(move |context| {
        assert_ne!(thread::current().id(), caller);
        counter.set(counter.get() + 1);
        seen.push((context.attempt, counter.get(), context.idempotency_key()));
        if context.attempt < 3 { Err(Failed::Connection) } else { Ok(seen.clone()) }
    });
    let seen = seen.unwrap();
    assert_eq!(
        seen.iter().map(|(attempt, counter, _)| (*attempt, *counter)).collect::<Vec<_>>(),
        [(1, 1), (2, 2), (3, 3)]
    );
    assert!(seen.iter().all(|(.., key)| *key == seen[0].2));
    assert_eq!(line(&guard), (0, 0));
}

#[test]
fn w3_an_open_circuit_ends_the_call_with_the_operations_last_error_behind_it() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let call = || guard.transient(transient).call_on_thread_blocking(|_| Err::<(), _>(Failed::Server(503)));
    let error = call().unwrap_err();
    assert_eq!((error.limit(), error.operation()), (Some(ErrorKind::CircuitOpen), Some(&Failed::Server(503))));
    assert_eq!(call().unwrap_err().report().attempt_count(), 0);
    clock.advance(secs(31));
    guard.call_on_thread_blocking(|_| Ok::<_, Failed>(())).unwrap();
    assert_eq!(guard.snapshot().breaker.state, State::Closed);
}

/// A first attempt that failed, and a second one that was cut: the limit, with the first one's error behind it.
#[test]
fn c7_2_a_cut_attempt_leaves_the_error_of_the_one_before() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let (end, work) = Endless::new(&clock, 30);
    let error = guard
        .transient(transient)
        .call_on_thread_blocking(move |context| if context.attempt == 1 { Err(Failed::Connection) } else { work.run() })
        .unwrap_err();
    assert_eq!((error.limit(), error.operation()), (Some(ErrorKind::Timeout), Some(&Failed::Connection)));
    assert_eq!(error.report().attempt_count(), 2);
    drop(end);
    until("the slot", || line(&guard) == (0, 0));
}

#[test]
fn c11_7_a_panic_goes_on_in_the_caller() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard.max_concurrent(1, ms(0)));
    for _ in 0..5 {
        let call = || guard.call_on_thread_blocking(|_| -> Result<(), Failed> { panic!("on purpose") });
        let panicked = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        assert_eq!(panicked.downcast_ref(), Some(&"on purpose"));
        assert_eq!(line(&guard), (0, 0), "at once");
    }
    assert_eq!(guard.snapshot().breaker.state, State::Closed, "no verdict, as with every call that is left");
}

/// Nobody hears of it, and nothing is lost.
#[test]
fn c11_7_a_panic_whose_caller_has_gone_gives_the_slot_back() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard.max_concurrent(1, ms(0)));
    let (end, work) = Endless::new(&clock, 30);
    let call = guard.call_on_thread_blocking(move |_| {
        let _ = work.run();
        panic!("on purpose") as Result<(), Failed>
    });
    assert_eq!(call.unwrap_err().limit(), Some(ErrorKind::Timeout));
    assert_eq!(line(&guard), (1, 0));
    drop(end);
    until("the slot", || line(&guard) == (0, 0));
}

/// Counts those that live.
struct Counted(Arc<AtomicU32>);

impl Counted {
    fn new(living: &Arc<AtomicU32>) -> Self {
        living.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(living))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn c11_7_what_late_work_brings_is_dropped_with_it() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let living = Arc::new(AtomicU32::new(0));
    let (end, work) = Endless::new(&clock, 30);
    let (own, made) = (Counted::new(&living), Arc::clone(&living));
    let call = guard.call_on_thread_blocking(move |_| {
        let _own = &own;
        let _ = work.run();
        Ok::<_, Failed>(Counted::new(&made))
    });
    assert!(call.is_err());
    assert_eq!(living.load(Ordering::SeqCst), 1);
    drop(end);
    until("the slot", || line(&guard) == (0, 0));
    assert_eq!(living.load(Ordering::SeqCst), 0, "value and operation go before the slot");
}

#[test]
fn c11_5_what_is_degraded_in_the_work_is_noted_where_its_caller_looks() {
    let clock = VirtualClock::new();
    let (outer, inner) = (guard(&clock, |guard| guard), guard(&clock, |guard| guard));
    let (value, noted) = degraded::collect_blocking(|| {
        outer.call_on_thread_blocking(move |_| {
            let estimate = inner.fallback(10).call_blocking(|| Err::<u32, _>(Failed::Connection));
            estimate.map_err(|_| Failed::Connection)
        })
    });
    assert_eq!(value.unwrap(), 10);
    assert_eq!(noted.len(), 1);
    let served = outer.fallback(3).serve_on_thread_blocking(|_| Err::<u32, _>(Failed::Connection)).unwrap();
    assert!(served.is_degraded() && served.into_value() == 3);
}

/// The waiter that gets the slot knows of the verdict of the work that had it.
#[test]
fn c0_2_the_verdict_is_recorded_before_the_slot_is_returned() {
    let breaker = BreakerConfig { failures: 1, ..BreakerConfig::default() };
    let builder = Guard::builder("one").breaker(breaker).max_concurrent(1, secs(3_600)).total_timeout(secs(7_200));
    let guard = builder.build().unwrap();
    let (end, ending) = channel::<()>();
    let ending = Mutex::new(ending);
    let first = {
        let guard = guard.clone();
        thread::spawn(move || {
            guard.call_on_thread_blocking(move |_| {
                let _ = ending.lock().unwrap().recv();
                Err::<(), _>(Failed::Connection)
            })
        })
    };
    until("the first", || line(&guard) == (1, 0));
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let guard = guard.clone();
            thread::spawn(move || guard.call_on_thread_blocking(|_| Ok::<_, Failed>(())))
        })
        .collect();
    until("the others", || line(&guard) == (1, 4));
    drop(end);
    assert!(matches!(first.join().unwrap(), Err(GuardError::Operation { error: Failed::Connection, .. })));
    for thread in waiting {
        assert_eq!(thread.join().unwrap().unwrap_err().limit(), Some(ErrorKind::CircuitOpen));
    }
    assert_eq!(line(&guard), (0, 0));
}

#[test]
fn c7_7_close_waits_for_late_work_to_the_last_deadline_and_no_longer() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard.total_timeout(secs(5)));
    let (end, work) = Endless::new(&clock, 5);
    guard.call_on_thread_blocking(move |_| work.run()).unwrap_err();
    guard.close_blocking();
    assert_eq!(clock.now().as_nanos(), 10_000_000_000);
    assert_eq!(line(&guard), (1, 0), "it still runs");
    drop(end);
    until("its end, which is no longer waited for", || {
        let before = clock.now();
        guard.close_blocking();
        clock.now() == before
    });
    assert_eq!(line(&guard), (0, 0));
}

#[test]
fn c1_5_work_that_was_cut_counts_if_it_had_time_to_answer() {
    for (passes, expected) in [(30, State::Open), (0, State::Closed)] {
        let clock = VirtualClock::new();
        let breaker = BreakerConfig { failures: 1, ..BreakerConfig::default() };
        let guard = guard(&clock, |guard| guard.breaker(breaker));
        let (end, work) = Endless::new(&clock, passes);
        let timeout = if passes == 0 { ms(500) } else { secs(30) };
        let mover = clock.clone();
        let call = guard.timeout(timeout).call_on_thread_blocking(move |_| {
            mover.advance(timeout);
            work.run()
        });
        assert_eq!(call.unwrap_err().limit(), Some(ErrorKind::Timeout));
        assert_eq!(guard.snapshot().breaker.state, expected);
        drop(end);
        until("the slot", || line(&guard) == (0, 0));
    }
}
