//! One piece around another, and guards in a stack of tower's: who is told of whose refusal (11.2, 11.3; P10, P19).

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use steadfast::layer::GuardLayer;
use steadfast::policy::breaker::{BreakerConfig, State};
use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{
    Bulkhead, CircuitBreaker, ErrorClass, ErrorKind, Guard, GuardBuilder, GuardError, RateLimit, ServiceClient, retry,
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::harness::{ms, secs};
use crate::pieces::{DOWN, Desk, Failed, Reply, transient};

fn class(failed: &Failed) -> ErrorClass {
    if transient(failed) { ErrorClass::TRANSIENT } else { ErrorClass::Permanent }
}

/// A guard that does nothing but retry.
fn retries(clock: &VirtualClock) -> GuardBuilder {
    Guard::builder("retries")
        .attempts(4)
        .without_breaker()
        .without_retry_budget()
        .without_bulkhead()
        .clock(clock.clone())
        .seed(7)
}

fn breaker(clock: &VirtualClock) -> CircuitBreaker {
    CircuitBreaker::builder("tariffs").failures(3).cool_down(secs(30)).clock(clock.clone()).build().unwrap()
}

#[test]
fn p19_an_open_breaker_inside_ends_a_retry_around_it() {
    let desk = Desk::new(&[DOWN]);
    let breaker = breaker(&desk.clock);
    let around = || {
        retry(|| breaker.transient(transient).call(|| desk.ask()))
            .attempts(9)
            .classify(|error| error.class(class))
            .clock(desk.clock.clone())
    };
    // Three requests, three waits, and then the open circuit: the retry outside cannot know of it before.
    let ended = desk.run(around().call()).unwrap_err();
    assert_eq!((ended.limit(), desk.asked()), (Some(ErrorKind::CircuitOpen), 3));
    let before = desk.clock.now();
    assert_eq!(desk.run(around().call()).unwrap_err().limit(), Some(ErrorKind::CircuitOpen));
    assert_eq!((desk.asked(), desk.clock.now()), (3, before), "nothing was sent, and nothing waited for");
}

#[test]
fn p19_unless_the_caller_lists_it() {
    let desk = Desk::new(&[DOWN, DOWN, DOWN, Ok(1)]);
    let breaker = breaker(&desk.clock);
    // It comes back when the breaker says so.
    let listed = |error: &GuardError<Failed>| match error.limit() {
        Some(ErrorKind::CircuitOpen) => ErrorClass::Throttled { retry_after: error.retry_after() },
        _ => error.class(class),
    };
    let call = retry(|| breaker.transient(transient).call(|| desk.ask())).attempts(9).classify(listed);
    assert_eq!(desk.run(call.clock(desk.clock.clone()).call()).unwrap(), 1);
    assert_eq!(desk.asked(), 4);
}

#[test]
fn p10_each_attempt_takes_a_place_of_a_limit_inside() {
    let desk = Desk::new(&[DOWN, DOWN, Ok(1)]);
    let limit = RateLimit::builder("api").limit(1, secs(10)).clock(desk.clock.clone()).build().unwrap();
    let call = retry(|| limit.call("host", || desk.ask())).classify(|error| error.class(class));
    assert_eq!(desk.run(call.clock(desk.clock.clone()).call()).unwrap(), 1);
    assert_eq!(desk.clock.now().as_nanos(), 20_000_000_000);
}

#[test]
fn c11_3_no_refusal_further_in_is_retried_or_held_against_the_guard_around() {
    let clock = VirtualClock::new();
    let outer = Guard::builder("region").attempts(4).clock(clock.clone()).seed(7);
    let outer = outer.breaker(BreakerConfig { failures: 1, ..BreakerConfig::default() }).build().unwrap();
    let none_left =
        RateConfig { limit: 1, period: secs(60), wait: Some(secs(0)), style: RateStyle::Window, max_keys: 1 };
    let inner = |configure: fn(GuardBuilder) -> GuardBuilder| {
        configure(Guard::builder("mail").without_breaker().clock(clock.clone())).build().unwrap()
    };
    let forced = Guard::builder("mail").clock(clock.clone()).build().unwrap();
    forced.force_open();
    let closed = inner(|guard| guard);
    clock.run(closed.close()).unwrap();
    let limited = Guard::builder("mail").rate_limit(none_left).clock(clock.clone()).build().unwrap();
    clock.run(limited.call(|| ready(Ok::<_, Failed>(())))).unwrap().unwrap();
    for (guard, kind) in
        [(forced, ErrorKind::CircuitOpen), (closed, ErrorKind::Closed), (limited, ErrorKind::RateLimited)]
    {
        let call = || guard.call(|| ready(Ok::<u32, Failed>(1)));
        let guarded = outer.classify(|error: &GuardError<Failed>| error.class(class));
        let refused = clock.run(guarded.call(call)).unwrap().unwrap_err();
        assert_eq!(refused.operation().unwrap().limit(), Some(kind));
        assert_eq!((refused.report().attempt_count(), outer.snapshot().breaker.calls), (1, 0), "{kind}");
        // It is no answer, so a fallback stands in for it.
        let guarded = outer.classify(|error: &GuardError<Failed>| error.class(class)).fallback(7);
        let served = clock.run(guarded.serve(|_| call())).unwrap().unwrap();
        assert_eq!((*served.value(), served.is_degraded()), (7, true));
    }
    assert_eq!(outer.snapshot().breaker.state, State::Closed);
    // A deadline further in is an attempt that took too long: it counts, and may be tried again.
    let slow = Guard::builder("mail").total_timeout(secs(1)).clock(clock.clone()).build().unwrap();
    let guarded = outer.classify(|error: &GuardError<Failed>| error.class(class));
    let late = clock.run(guarded.call(|| slow.call(std::future::pending::<Reply>))).unwrap().unwrap_err();
    assert_eq!((late.report().attempt_count(), outer.snapshot().breaker.state), (1, State::Open));
}

#[test]
fn c11_3_a_client_within_a_guard_is_judged_the_same() {
    let clock = VirtualClock::new();
    let script = Script::new(clock.clone(), [Step::status(200)]);
    let client = ServiceClient::builder("http://billing.test").transport(script).clock(clock.clone()).build().unwrap();
    let guard = Guard::builder("invoices").attempts(3).clock(clock.clone()).build().unwrap();
    client.force_open();
    let call = guard.classify(ErrorClass::of_limit).call(|| client.get("/x").send());
    let refused = clock.run(call).unwrap().unwrap_err();
    assert!(matches!(&refused, GuardError::Operation { error, .. } if error.is_circuit_open()));
    assert_eq!((refused.report().attempt_count(), guard.snapshot().breaker.streak), (1, 0));
}

/// A stack of single layers, from the outside in: retries, a bulkhead, a breaker.
#[test]
fn c11_2_c11_3_hold_in_a_stack_of_single_layers() {
    let desk = Arc::new(Desk::new(&[DOWN, DOWN, Ok(1), Err(Failed::NotFound), DOWN]));
    let (clock, inner) = (desk.clock.clone(), Arc::clone(&desk));
    let upstream = service_fn(move |_: &'static str| inner.ask());
    let breaker = breaker(&clock);
    let bulkhead = Bulkhead::builder("tariffs").max_concurrent(1).clock(clock.clone()).build().unwrap();
    let retries = retries(&clock).build().unwrap();
    type Outer = GuardError<GuardError<Failed>>;
    let stack = ServiceBuilder::new()
        .layer(GuardLayer::new(retries).classify(|error: &Outer| error.class(|error| error.class(class))))
        .layer(GuardLayer::new(bulkhead.as_guard().clone()))
        .layer(GuardLayer::new(breaker.as_guard().clone()).transient(transient))
        .service(upstream);
    let call = || desk.run(stack.clone().oneshot("tariff"));

    assert_eq!((call().unwrap(), desk.asked()), (1, 3), "two failures are retried through all layers");
    let permanent = call().unwrap_err();
    let own = permanent.operation().and_then(|error| error.operation()).and_then(|error| error.operation());
    assert_eq!((own, desk.asked()), (Some(&Failed::NotFound), 4));

    // From a fresh start, so that it opens at exactly three.
    breaker.reset();
    let open = call().unwrap_err();
    let innermost = open.operation().and_then(|error| error.operation()).unwrap();
    assert_eq!((innermost.limit(), desk.asked()), (Some(ErrorKind::CircuitOpen), 7));
    assert_eq!(open.to_string(), "circuit breaker 'tariffs' is open", "it passes through as it is");
    let before = desk.clock.now();
    call().unwrap_err();
    assert_eq!((desk.asked(), desk.clock.now()), (7, before));
    assert_eq!((breaker.failures(), bulkhead.snapshot().in_use), (3, 0));
}

#[test]
fn c5_1_a_bulkhead_around_a_service_bounds_what_is_in_flight() {
    let clock = VirtualClock::new();
    let bulkhead = Bulkhead::builder("reports").max_concurrent(2).wait(ms(500)).clock(clock.clone()).build().unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, peak, time) = (Arc::clone(&now), Arc::clone(&most), steadfast::Clock::from(clock.clone()));
    let upstream = service_fn(move |_: u32| {
        let (running, peak, time) = (Arc::clone(&running), Arc::clone(&peak), time.clone());
        async move {
            peak.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            time.wait(ms(400)).await;
            running.fetch_sub(1, Ordering::Relaxed);
            Ok::<_, Failed>(())
        }
    });
    let mut stack = ServiceBuilder::new().layer(GuardLayer::new(bulkhead.as_guard().clone())).service(upstream);
    let results = clock.run(join_all((0..6).map(|number| stack.call(number)))).unwrap();
    // Two at once, two after 0.4 s, and the last two would have had to wait for 0.8 s.
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 4);
    assert!(results[4..].iter().all(|result| result.as_ref().unwrap_err().limit() == Some(ErrorKind::BulkheadFull)));
    assert_eq!((most.load(Ordering::Relaxed), now.load(Ordering::Relaxed)), (2, 0));
}
