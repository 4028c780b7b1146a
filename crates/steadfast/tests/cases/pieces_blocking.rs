//! The pieces on plain threads: the same cases, without a runtime and without `Send`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use steadfast::pieces::retry_blocking;
use steadfast::policy::Time;
use steadfast::policy::breaker::State;
use steadfast::testing::VirtualClock;
use steadfast::{Bulkhead, CircuitBreaker, ErrorKind, GuardError, RateLimit};

use crate::harness::{ms, secs};
use crate::pieces::{DOWN, Failed, transient};

#[test]
fn k7_three_attempts_on_a_plain_thread() {
    let (clock, count) = (VirtualClock::new(), Rc::new(Cell::new(0)));
    let fails = |times: u32| {
        let count = Rc::clone(&count);
        count.set(0);
        move || {
            count.set(count.get() + 1);
            if count.get() > times { Ok(count.get()) } else { DOWN }
        }
    };
    let call = retry_blocking(fails(2)).transient(transient).clock(clock.clone());
    assert_eq!((call.call_blocking(), count.get()), (Ok(3), 3));
    assert_ne!(clock.now(), Time::ZERO, "it waited");
    let call = retry_blocking(fails(9)).transient(transient).clock(clock.clone());
    assert_eq!((call.call_blocking(), count.get()), (DOWN, 3));
    let call = retry_blocking(fails(9)).attempts(4).transient(|_| false).clock(clock.clone());
    assert_eq!((call.call_blocking(), count.get()), (DOWN, 1));
    let call = retry_blocking(fails(1)).transient(transient).retry_after(|_| Some(secs(7))).clock(clock.clone());
    let before = clock.now();
    assert_eq!((call.call_blocking(), clock.now().since(before)), (Ok(2), secs(7)));
}

#[test]
fn w5_of_six_at_five_a_second_one_waits_on_a_plain_thread() {
    let clock = VirtualClock::new();
    let limit = RateLimit::builder("api").limit(5, secs(1)).clock(clock.clone()).build().unwrap();
    for _ in 0..6 {
        limit.acquire_blocking("").unwrap();
    }
    assert_eq!(clock.now(), Time::from_secs(1));
    assert_eq!(limit.call_blocking("other", || Ok::<_, Failed>(3)).unwrap(), 3);
    assert_eq!(limit.snapshot().in_use, 0);
    let strict = RateLimit::builder("api").limit(1, secs(9)).wait(Duration::ZERO).clock(clock.clone()).build().unwrap();
    strict.acquire_blocking("").unwrap();
    assert_eq!(strict.acquire_blocking("").unwrap_err().retry_after(), Some(secs(9)));
}

#[test]
fn k_a_three_calls_leave_and_two_are_refused_on_a_plain_thread() {
    let clock = VirtualClock::new();
    let breaker = CircuitBreaker::builder("tariffs").failures(3).cool_down(secs(30)).clock(clock.clone());
    let (breaker, mut left) = (breaker.build().unwrap(), 0);
    let mut call = |reply| {
        breaker.transient(transient).call_blocking(|| {
            left += 1;
            reply
        })
    };
    for _ in 0..3 {
        assert!(matches!(call(DOWN), Err(GuardError::Operation { error: Failed::Down, .. })));
    }
    for _ in 0..2 {
        assert_eq!(call(DOWN).unwrap_err().to_string(), "circuit breaker 'tariffs' is open");
    }
    clock.advance(secs(31));
    assert_eq!(call(Ok(1)).unwrap(), 1);
    assert_eq!((left, breaker.state()), (4, State::Closed));
    assert_eq!(breaker.call_blocking(|| DOWN).unwrap_err().limit(), None);
}

#[test]
fn c5_1_a_slot_is_waited_for_on_a_plain_thread() {
    let clock = VirtualClock::new();
    let builder = Bulkhead::builder("reports").max_concurrent(1).clock(clock.clone());
    let bulkhead = builder.clone().wait(ms(500)).build().unwrap();
    let slot = bulkhead.acquire_blocking().unwrap();
    assert_eq!(bulkhead.acquire_blocking().unwrap_err().kind(), ErrorKind::BulkheadFull);
    assert_eq!(clock.now(), Time::from_millis(500));
    assert_eq!(bulkhead.call_blocking(|| Ok::<_, Failed>(1)).unwrap_err().limit(), Some(ErrorKind::BulkheadFull));
    drop(slot);
    assert_eq!(bulkhead.call_blocking(|| Ok::<_, Failed>(1)).unwrap(), 1);
    assert_eq!(bulkhead.snapshot().in_use, 0);

    // A hook that waited for what its own call holds would wait for ever.
    let (send, heard) = mpsc::channel();
    let within = builder.clone().wait(ms(500)).build().unwrap();
    let hooked = builder.on_event(move |_| drop(send.send(within.acquire_blocking().map(drop)))).build().unwrap();
    hooked.call_blocking(|| Ok::<_, Failed>(1)).unwrap();
    let heard: Vec<_> = heard.try_iter().collect();
    assert!(!heard.is_empty() && heard.iter().all(|told| told.as_ref().unwrap_err().is_invalid_request()));
}
