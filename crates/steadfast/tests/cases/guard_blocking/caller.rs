//! On the thread that calls.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;

use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::{BreakerConfig, State};
use steadfast::report::WaitReason;
use steadfast::testing::VirtualClock;
use steadfast::{ErrorClass, ErrorKind, Event, Guard, GuardError, degraded};

use super::{Failed, guard, line, transient, until};
use crate::harness::{ms, secs};

fn plain(clock: &VirtualClock) -> Guard {
    guard(clock, |guard| guard)
}

/// Neither operation, value, error, judge nor fallback are `Send`, nor is there a runtime, under the system's clock.
#[test]
fn c11_7_nothing_has_to_be_send_and_no_runtime_is_there() {
    let backoff = Backoff { base: ms(1), max: ms(1), jitter: Jitter::None, ..Backoff::default() };
    let guard = Guard::builder("here").backoff(backoff).build().unwrap();
    let connection = Rc::new(RefCell::new(Vec::new()));
    let codes = Rc::new([1, 2]);
    let value = guard
        .classify(|error: &Rc<u32>| if codes.contains(error) { ErrorClass::TRANSIENT } else { ErrorClass::Permanent })
        .fallback_with(|_: &GuardError<Rc<u32>>| Rc::clone(&connection))
        .call_blocking_with(|context| {
            connection.borrow_mut().push(context.attempt);
            if context.attempt < 3 { Err(Rc::new(context.attempt)) } else { Ok(Rc::clone(&connection)) }
        });
    assert_eq!(*value.unwrap().borrow(), [1, 2, 3]);
    assert_eq!(line(&guard), (0, 0));
}

#[test]
fn c11_7_a_value_that_comes_late_is_a_value() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard.attempt_timeout(secs(1)));
    let served = guard.serve_blocking(|context| {
        assert_eq!((context.attempt, context.time_left), (1, secs(30)));
        clock.advance(secs(31));
        Ok::<_, Failed>("late")
    });
    let served = served.unwrap();
    assert_eq!(served.report().ended().name(), "response");
    assert_eq!(served.report().duration(), secs(31));
    assert_eq!(served.into_value(), "late");
}

#[test]
fn c11_7_the_deadline_is_looked_at_between_attempts() {
    let clock = VirtualClock::new();
    let runs = Cell::new(0);
    let call = plain(&clock).transient(transient).call_blocking(|| {
        runs.set(runs.get() + 1);
        clock.advance(secs(15));
        Err::<(), _>(Failed::Connection)
    });
    let error = call.unwrap_err();
    assert_eq!(runs.get(), 2, "the third would have begun beyond the deadline");
    assert!(matches!(error, GuardError::Operation { error: Failed::Connection, .. }));
    assert_eq!(error.report().ended().name(), "deadline");
}

#[test]
fn c1_1_a_spent_deadline_runs_nothing() {
    let clock = VirtualClock::new();
    let call = plain(&clock).timeout(secs(0)).call_blocking(|| -> Result<(), Failed> { unreachable!("no time") });
    let error = call.unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::Timeout));
    assert_eq!(error.report().attempt_count(), 0);
}

/// Nobody else may begin beside an operation that outlasts its deadline.
#[test]
fn c11_7_an_operation_keeps_its_slot_beyond_the_deadline() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard.max_concurrent(1, ms(500)));
    let inner = guard.call_blocking(|| {
        clock.advance(secs(40));
        assert_eq!(line(&guard), (1, 0));
        let began = clock.now();
        let inner = guard.call_blocking(|| -> Result<(), Failed> { unreachable!("the slot is taken") });
        assert_eq!(clock.now().since(began), ms(500), "the inner call waited on this very thread");
        Ok::<_, Failed>(inner)
    });
    let inner = inner.unwrap().unwrap_err();
    assert_eq!(inner.limit(), Some(ErrorKind::BulkheadFull));
    assert_eq!(line(&guard), (0, 0));
    assert_eq!(clock.armed_timers(), 0);
}

#[test]
fn c11_7_calls_may_lie_inside_of_each_other() {
    fn depth(guards: &[Guard], left: u32) -> Result<u32, GuardError<Failed>> {
        guards[left as usize % guards.len()].transient(transient).call_blocking_with(|context| {
            if context.attempt == 1 {
                return Err(Failed::Connection);
            }
            if left == 0 { Ok(0) } else { Ok(depth(guards, left - 1).unwrap() + 1) }
        })
    }
    let clock = VirtualClock::new();
    let guards: Vec<_> =
        (0..3).map(|_| guard(&clock, |guard| guard.without_retry_budget().without_breaker())).collect();
    assert_eq!(depth(&guards, 40).unwrap(), 40);
    assert!(guards.iter().all(|guard| line(guard) == (0, 0)));
    assert_eq!(clock.armed_timers(), 0);
}

#[test]
fn c1_6_a_panic_gives_everything_back_and_is_no_verdict() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard.max_concurrent(1, ms(0)));
    for _ in 0..5 {
        let call = || guard.call_blocking(|| -> Result<(), Failed> { panic!("on purpose") });
        let panicked = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        assert_eq!(panicked.downcast_ref(), Some(&"on purpose"));
    }
    assert_eq!((line(&guard), guard.snapshot().breaker.state), ((0, 0), State::Closed));

    // So does the probe's place.
    for _ in 0..3 {
        guard.call_blocking(|| Err::<(), _>(Failed::Connection)).unwrap_err();
    }
    clock.advance(secs(31));
    let judge = |_: &Failed| -> bool { panic!("the judge too") };
    let call = || guard.transient(judge).call_blocking(|| Err::<(), _>(Failed::Connection));
    catch_unwind(AssertUnwindSafe(call)).unwrap_err();
    guard.call_blocking(|| Ok::<_, Failed>(())).unwrap();
    assert_eq!(guard.snapshot().breaker.state, State::Closed);
    assert_eq!(clock.armed_timers(), 0);
}

#[test]
fn c11_5_a_fallback_is_marked_and_noted_on_this_thread() {
    let clock = VirtualClock::new();
    let guard = plain(&clock);
    let (served, noted) = degraded::collect_blocking(|| {
        guard.transient(transient).fallback(7).serve_blocking(|_| Err::<u32, _>(Failed::Connection))
    });
    let served = served.unwrap();
    assert!(served.is_degraded() && *served.value() == 7);
    assert_eq!(noted, [served.degraded().unwrap().clone()]);
    assert_eq!(served.report().ended().name(), "circuit_open");
    // What is an answer is no reason for one.
    guard.reset_breaker();
    let permanent = guard.transient(transient).fallback(7).call_blocking(|| Err::<u32, _>(Failed::Client(404)));
    assert!(matches!(permanent.unwrap_err(), GuardError::Operation { error: Failed::Client(404), .. }));
}

#[test]
fn c11_7_an_event_hook_may_not_make_one() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (itself, sink) = (Arc::new(OnceLock::<Guard>::new()), Arc::clone(&seen));
    let in_hook = Arc::clone(&itself);
    let clock = VirtualClock::new();
    let guard = guard(&clock, move |guard| {
        guard.on_event(move |event| {
            let (Event::Ended { .. }, Some(guard)) = (event, in_hook.get()) else { return };
            let here = guard.fallback(()).call_blocking(|| Ok::<_, Failed>(())).unwrap_err();
            let there = guard.call_on_thread_blocking(|_| Ok::<_, Failed>(())).unwrap_err();
            sink.lock().unwrap().extend([here.limit(), there.limit()]);
            guard.close_blocking();
        })
    });
    itself.set(guard.clone()).unwrap();
    guard.call_blocking(|| Ok::<_, Failed>(())).unwrap();
    assert_eq!(*seen.lock().unwrap(), [Some(ErrorKind::InvalidRequest); 2]);
    let closed = guard.call_blocking(|| Ok::<_, Failed>(())).unwrap_err();
    assert_eq!(closed.limit(), Some(ErrorKind::Closed));
    // The two hold each other.
    drop(guard);
}

#[test]
fn c7_7_close_waits_for_running_calls_of_every_kind() {
    let clock = VirtualClock::new();
    let guard = plain(&clock);
    guard.close_blocking();
    assert_eq!(clock.now().as_nanos(), 0, "nothing ran");

    // A future that is never polled is waited for to its deadline, and no longer.
    let guard = plain(&clock);
    let mut kept = pin!(guard.call(std::future::pending::<Result<(), Failed>>));
    assert!(kept.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    guard.close_blocking();
    assert_eq!(clock.now().as_nanos(), 30_000_000_000);

    // One that ends is not waited for any longer; under the system's clock, which nobody moves.
    let guard = Guard::builder("here").build().unwrap();
    let (begin, begun) = std::sync::mpsc::channel();
    let (end, ending) = std::sync::mpsc::channel::<()>();
    let running = {
        let guard = guard.clone();
        thread::spawn(move || {
            guard.call_blocking(|| {
                begin.send(()).unwrap();
                ending.recv().unwrap();
                Ok::<_, Failed>(())
            })
        })
    };
    begun.recv().unwrap();
    let closing = {
        let guard = guard.clone();
        thread::spawn(move || guard.close_blocking())
    };
    until("closing", || guard.snapshot().closed);
    end.send(()).unwrap();
    running.join().unwrap().unwrap();
    closing.join().unwrap();
}

/// What waits is told of in the report, as for async calls.
#[test]
fn c7_4_waits_are_reported_as_for_async_calls() {
    let run = |blocking: bool| {
        let clock = VirtualClock::new();
        let guard = guard(&clock, |guard| guard.breaker(BreakerConfig::default()));
        let fails = |attempt| if attempt < 4 { Err(Failed::Connection) } else { Ok(attempt) };
        let served = if blocking {
            guard.transient(transient).serve_blocking(|context| fails(context.attempt))
        } else {
            let call = guard.transient(transient).serve(|context| std::future::ready(fails(context.attempt)));
            clock.run(call).unwrap()
        };
        served.unwrap().report().clone()
    };
    let report = run(true);
    assert_eq!(report, run(false));
    assert!(report.waits().iter().all(|wait| wait.reason == WaitReason::Backoff) && report.waits().len() == 3);
}

/// One line for both kinds: a slot that an async call held goes to the thread that waits for it, and the other way round.
#[test]
fn c6_2_async_and_blocking_callers_stand_in_one_line() {
    let guard = Guard::builder("both").max_concurrent(1, secs(3_600)).total_timeout(secs(7_200)).build().unwrap();
    let mut held = Box::pin(guard.call(std::future::pending::<Result<(), Failed>>));
    // The deadline's timer needs a runtime, as ever.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let entered = runtime.enter();
    assert!(held.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let order = Arc::new(Mutex::new(Vec::new()));
    let blocking = {
        let (guard, order) = (guard.clone(), Arc::clone(&order));
        thread::spawn(move || {
            guard.call_blocking(|| {
                order.lock().unwrap().push("blocking");
                Ok::<_, Failed>(())
            })
        })
    };
    until("the thread in line", || line(&guard) == (1, 1));
    let mut behind = Box::pin(guard.call(|| {
        order.lock().unwrap().push("async");
        std::future::ready(Ok::<_, Failed>(()))
    }));
    assert!(behind.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(line(&guard), (1, 2));
    drop(held);
    blocking.join().unwrap().unwrap();
    until("the async call's turn", || {
        matches!(behind.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())))
    });
    assert_eq!(*order.lock().unwrap(), ["blocking", "async"]);
    drop(entered);
    drop(behind);
    assert_eq!(line(&guard), (0, 0));
}
