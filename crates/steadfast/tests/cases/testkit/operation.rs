//! Operations that play a script, and spies.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Waker};

use futures_executor::block_on;
use futures_util::future::join_all;
use steadfast::policy::Time;
use steadfast::testing::{Reply, Script, ScriptedOperation, Step, VirtualClock, fake_clock, spy};
use steadfast::{ErrorKind, GuardError, ServiceClient};

use super::guard;
use crate::harness::{ms, secs};

#[test]
fn c11_6_the_script_is_played_in_order_and_its_last_step_repeats() {
    let rates = ScriptedOperation::new(VirtualClock::new(), [Err("a"), Ok(1), Ok(2)]);
    let results: Vec<_> = (0..4).map(|_| block_on(rates.call())).collect();
    assert_eq!(results, [Err("a"), Ok(1), Ok(2), Ok(2)]);
    assert_eq!(rates.calls(), 4);
    rates.clone().play([Err("b")]);
    assert_eq!(block_on(rates.call()), Err("b"));
    assert_eq!(rates.call_blocking(), Err("b"));
    assert_eq!(rates.calls(), 6);
}

#[test]
fn c11_6_c11_8_attempts_deadlines_and_keys_are_seen() {
    let time = fake_clock();
    let rates = ScriptedOperation::new(&time, [Err("a"), Err("b"), Ok(1)]);
    let guard = guard().build().unwrap();
    let call = || block_on(guard.transient(|_| true).call_with(|context| rates.call_with(context)));
    call().unwrap();
    rates.play([Err("a"), Ok(1)]);
    call().unwrap();
    let seen = rates.seen();
    let attempts: Vec<_> = seen.iter().filter_map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 1, 2]);
    let left: Vec<_> = seen.iter().filter_map(|call| call.time_left).collect();
    assert_eq!(left, [secs(30), secs(29), secs(27), secs(30), secs(29)]);
    assert!(seen[0].key.is_some() && seen[..3].iter().all(|call| call.key == seen[0].key));
    assert!(seen[3..].iter().all(|call| call.key == seen[3].key) && seen[0].key != seen[3].key);
    block_on(rates.call()).unwrap();
    let last = rates.seen().pop().unwrap();
    assert_eq!((last.attempt, last.time_left, last.key), (None, None, None));
    assert_eq!(last.at, Time::from_secs(4));
}

#[test]
fn c11_6_errors_that_cannot_be_cloned_are_made_anew() {
    let time = fake_clock();
    let disk = ScriptedOperation::new(&time, [Reply::<(), _>::with(|| Err(io::Error::other("full")))]);
    let guard = guard().build().unwrap();
    let error = block_on(guard.transient(|_: &io::Error| true).call(|| disk.call())).unwrap_err();
    assert!(matches!(error, GuardError::Limit { last: Some(last), .. } if last.to_string() == "full"));
    assert_eq!(disk.calls(), 3);
}

#[test]
fn c11_6_what_runs_at_once_is_counted_and_what_is_dropped_is_not() {
    let time = fake_clock();
    let slow = ScriptedOperation::new(&time, [Reply::from(Ok::<_, &str>(1)).after(secs(1))]);
    let guard = guard().max_concurrent(4, secs(10)).build().unwrap();
    block_on(join_all((0..8).map(|_| guard.call(|| slow.call()))));
    assert_eq!((slow.calls(), slow.peak(), slow.in_flight()), (8, 4, 0));

    let mut dropped = Box::pin(guard.call(|| slow.call()));
    assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(slow.in_flight(), 1);
    drop(dropped);
    assert_eq!((slow.in_flight(), time.armed_timers()), (0, 0));
}

#[test]
fn c11_6_a_scripted_panic_goes_through_the_guard_and_leaves_nothing_behind() {
    let time = fake_clock();
    let bad = ScriptedOperation::new(&time, [Reply::panic("no such table"), Ok::<_, &str>(1).into()]);
    let guard = guard().max_concurrent(1, ms(0)).build().unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| block_on(guard.call(|| bad.call())))).unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().unwrap(), "no such table");
    assert_eq!((bad.in_flight(), guard.snapshot().line.in_use), (0, 0));
    assert_eq!(block_on(guard.call(|| bad.call())).unwrap(), 1);
}

#[test]
fn c11_6_what_hangs_is_answered_from_the_next_script() {
    // On a clock that nothing moves, a hang is one.
    let clock = VirtualClock::new();
    let held = ScriptedOperation::new(clock.clone(), [Reply::<_, &str>::hang()]);
    let guard = guard().clock(clock).build().unwrap();
    let mut call = pin!(guard.call(|| held.call()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!((0..10).all(|_| call.as_mut().poll(&mut cx).is_pending()));
    assert_eq!(held.in_flight(), 1);
    held.play([Ok(5)]);
    assert_eq!(block_on(call).unwrap(), 5);
    assert_eq!((held.calls(), held.in_flight()), (1, 0));
}

#[test]
fn c11_6_a_script_without_steps_hangs() {
    let time = fake_clock();
    let none = ScriptedOperation::<(), &str>::new(&time, Vec::<Reply<(), &str>>::new());
    let error = block_on(guard().build().unwrap().call(|| none.call())).unwrap_err();
    assert_eq!((error.limit(), time.elapsed()), (Some(ErrorKind::Timeout), secs(30)));
}

#[test]
fn c11_6_blocking_work_moves_the_clock_by_its_time() {
    let time = fake_clock();
    let query = ScriptedOperation::new(&time, [Reply::from(Ok::<_, &str>(1)).after(secs(2))]);
    assert_eq!(query.call_blocking(), Ok(1));
    assert_eq!((time.elapsed(), time.sleeps()), (secs(2), vec![]));
    let still = VirtualClock::new();
    let query = ScriptedOperation::new(still.clone(), [Reply::from(Ok::<_, &str>(1)).after(secs(2))]);
    assert_eq!(query.call_blocking(), Ok(1));
    assert_eq!(still.now(), Time::from_secs(2));
}

#[test]
fn c11_6_a_thread_that_hangs_goes_on_when_the_script_is_another() {
    let held = ScriptedOperation::new(VirtualClock::new(), [Reply::<_, &str>::hang()]);
    let calling = held.clone();
    let thread = std::thread::spawn(move || calling.call_blocking());
    while held.in_flight() == 0 {
        std::thread::yield_now();
    }
    held.play([Ok(3)]);
    assert_eq!(thread.join().unwrap(), Ok(3));
    assert_eq!(held.in_flight(), 0);
}

#[test]
fn p21_a_spy_counts_and_still_calls() {
    let time = fake_clock();
    let rates = spy(|| std::future::ready(Err::<(), _>("busy")));
    let is_transient = spy(|error: &&str| *error == "busy");
    let guard = guard().attempts(2).build().unwrap();
    let error = block_on(guard.transient(|error| is_transient.call_with(error)).call(|| rates.call())).unwrap_err();
    assert_eq!(error.operation(), Some(&"busy"));
    assert_eq!((rates.call_count(), is_transient.clone().call_count()), (2, 2));
    assert_eq!(time.sleeps().len(), 1);
}

#[test]
fn p21_a_spy_on_a_transport_is_a_transport() {
    let time = fake_clock();
    let watched = spy(Script::new(&time, [Step::status(503), Step::status(200)]));
    let client = ServiceClient::builder("http://rates.test").transport(watched.clone()).build().unwrap();
    assert_eq!(block_on(client.get("/x").send()).unwrap().status(), 200);
    assert_eq!((watched.call_count(), watched.watched().requests()), (2, 2));
}
