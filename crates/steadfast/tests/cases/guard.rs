//! What a guard's caller can say: classes of errors, waits that were asked for, keys, fallbacks, policies switched off
//! (contract section 11).

use std::collections::HashSet;
use std::fmt;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use steadfast::degraded::{self, Collector, MOST};
use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::{BreakerConfig, State};
use steadfast::report::{Ended, WaitReason};
use steadfast::testing::VirtualClock;
use steadfast::{BoxError, CallContext, ErrorClass, ErrorKind, Event, Guard, GuardBuilder, GuardError};

use crate::harness::{ms, secs};

#[derive(Clone, Debug, PartialEq)]
enum Failed {
    Busy(Option<Duration>),
    Slow(Option<Duration>),
    NotFound,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Failed {}

fn class(failed: &Failed) -> ErrorClass {
    match failed {
        Failed::Busy(retry_after) => ErrorClass::Transient { retry_after: *retry_after },
        Failed::Slow(retry_after) => ErrorClass::Throttled { retry_after: *retry_after },
        Failed::NotFound => ErrorClass::Permanent,
    }
}

fn guard(clock: &VirtualClock, configure: impl FnOnce(GuardBuilder) -> GuardBuilder) -> Guard {
    configure(Guard::builder("tariffs").clock(clock.clone()).seed(7)).build().unwrap()
}

/// Runs an operation that fails in this way until the attempt after the last.
fn fails(clock: &VirtualClock, guard: &Guard, error: &Failed, times: u32) -> Result<u32, GuardError<Failed>> {
    let call = guard
        .classify(class)
        .call_with(|context| ready(if context.attempt > times { Ok(context.attempt) } else { Err(error.clone()) }));
    clock.run(call).unwrap()
}

#[test]
fn c11_2_the_wait_that_an_error_asks_for_is_waited_for_exactly() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    for error in [Failed::Busy(Some(secs(7))), Failed::Slow(Some(secs(7)))] {
        let before = clock.now();
        assert_eq!(fails(&clock, &guard, &error, 1).unwrap(), 2);
        assert_eq!(clock.now().since(before), secs(7), "{error}");
    }
    let before = clock.now();
    assert_eq!(fails(&clock, &guard, &Failed::Busy(None), 1).unwrap(), 2);
    assert!(clock.now().since(before) <= ms(100), "our own backoff");
}

#[test]
fn c11_2_a_hint_takes_the_wait_out_of_an_error_and_never_overrules_the_classifier() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let hint = |_: &Failed| Some(secs(3));
    let run = |retries: bool| {
        let before = clock.now();
        let call = guard
            .transient(move |_: &Failed| retries)
            .retry_after(hint)
            .call_with(|context| ready(if context.attempt > 1 { Ok(()) } else { Err(Failed::Busy(None)) }));
        let result = clock.run(call).unwrap();
        (result.is_ok(), clock.now().since(before))
    };
    assert_eq!(run(true), (true, secs(3)));
    assert_eq!(run(false), (false, Duration::ZERO));

    // What the classifier has found counts before the hint.
    let before = clock.now();
    let call = guard
        .classify(class)
        .retry_after(hint)
        .call_with(|context| ready(if context.attempt > 1 { Ok(()) } else { Err(Failed::Busy(Some(secs(5)))) }));
    clock.run(call).unwrap().unwrap();
    assert_eq!(clock.now().since(before), secs(5));

    // A hint alone says nothing about which errors may be retried.
    let call = guard.key("").retry_after(hint).call(|| ready(Err::<(), _>(Failed::Busy(None))));
    assert_eq!(clock.run(call).unwrap().unwrap_err().report().attempt_count(), 1);
}

#[test]
fn c2_5_a_longer_wait_than_allowed_ends_the_call_at_once() {
    let clock = VirtualClock::new();
    let patient = guard(&clock, |guard| guard);
    let error = fails(&clock, &patient, &Failed::Busy(Some(secs(30))), 1).unwrap_err();
    assert_eq!((error.report().ended(), error.retry_after()), (Ended::RetryAfterTooLong, Some(secs(30))));

    let hasty = guard(&clock, |guard| guard.max_retry_after(secs(2)));
    let error = fails(&clock, &hasty, &Failed::Slow(Some(secs(3))), 1).unwrap_err();
    assert_eq!(error.operation(), Some(&Failed::Slow(Some(secs(3)))));
    assert_eq!((error.report().ended(), error.retry_after()), (Ended::RetryAfterTooLong, Some(secs(3))));
    assert_eq!(clock.now().as_nanos(), 0);
    let problems = Guard::builder("x").max_retry_after(secs(86_401)).build().unwrap_err();
    assert_eq!(problems.iter().next().unwrap().path(), "max_retry_after");
}

/// A queue behind the guard wants to know when to come back, whatever ended the call.
#[test]
fn c2_10_the_wait_that_the_last_error_asked_for_is_told_where_nobody_waits_for_it() {
    let clock = VirtualClock::new();
    let guard =
        guard(&clock, |guard| guard.attempts(2).breaker(BreakerConfig { failures: 3, ..BreakerConfig::default() }));
    let error = fails(&clock, &guard, &Failed::Busy(Some(secs(4))), 9).unwrap_err();
    assert_eq!((error.report().ended(), error.retry_after()), (Ended::AttemptsExhausted, Some(secs(4))));
    // The breaker opens: what is left of its cool-down, unless more was asked for.
    let error = fails(&clock, &guard, &Failed::Busy(Some(secs(4))), 9).unwrap_err();
    assert_eq!((error.report().ended(), error.retry_after()), (Ended::CircuitOpen, Some(secs(15))));
    let error = fails(&clock, &guard, &Failed::NotFound, 9).unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::CircuitOpen));
}

/// As HTTP's 429 (4.2): who asks us to slow down is well.
#[test]
fn c11_2_a_dependency_that_asks_to_slow_down_does_not_open_the_breaker() {
    let clock = VirtualClock::new();
    let guard =
        guard(&clock, |guard| guard.attempts(1).breaker(BreakerConfig { failures: 3, ..BreakerConfig::default() }));
    for _ in 0..50 {
        fails(&clock, &guard, &Failed::Slow(None), u32::MAX).unwrap_err();
        fails(&clock, &guard, &Failed::NotFound, u32::MAX).unwrap_err();
    }
    assert_eq!(guard.snapshot().breaker.state, State::Closed);
    for _ in 0..3 {
        fails(&clock, &guard, &Failed::Busy(None), u32::MAX).unwrap_err();
    }
    assert_eq!(guard.snapshot().breaker.state, State::Open);
}

#[test]
fn c11_1_every_policy_but_the_deadline_can_be_switched_off() {
    let clock = VirtualClock::new();
    let unlimited = guard(&clock, |guard| guard.without_breaker().without_retry_budget().without_bulkhead());
    for _ in 0..1_000 {
        let error = fails(&clock, &unlimited, &Failed::Busy(None), u32::MAX).unwrap_err();
        assert_eq!(error.report().ended(), Ended::AttemptsExhausted, "no budget and no breaker says no");
    }
    let never = || pending::<Result<(), Failed>>();
    let calls = join_all((0..1_000).map(|_| unlimited.call(never)));
    let before = clock.now();
    for result in clock.run(calls).unwrap() {
        assert_eq!(result.unwrap_err().limit(), Some(ErrorKind::Timeout), "all were let in at once");
    }
    assert_eq!(clock.now().since(before), secs(30));

    // With them, the same traffic meets each.
    let careful = guard(&clock, |guard| guard);
    let mut ends = HashSet::new();
    for _ in 0..50 {
        ends.insert(fails(&clock, &careful, &Failed::Busy(None), u32::MAX).unwrap_err().report().ended().name());
    }
    assert!(ends.contains("circuit_open"), "{ends:?}");
    let budgeted = guard(&clock, |guard| guard.without_breaker());
    for _ in 0..50 {
        ends.insert(fails(&clock, &budgeted, &Failed::Busy(None), u32::MAX).unwrap_err().report().ended().name());
    }
    assert!(ends.iter().any(|end| end.starts_with("budget_")), "{ends:?}");
}

#[test]
fn c11_4_each_kind_has_its_own_deadline() {
    for (builder, limit) in [
        (Guard::builder("any"), secs(30)),
        (Guard::http("tariffs"), secs(30)),
        (Guard::database("orders"), secs(10)),
        (Guard::job("nightly"), secs(300)),
    ] {
        let clock = VirtualClock::new();
        let guard = builder.clock(clock.clone()).build().unwrap();
        let error = clock.run(guard.call(pending::<Result<(), Failed>>)).unwrap().unwrap_err();
        assert_eq!((error.limit(), clock.now().as_nanos()), (Some(ErrorKind::Timeout), limit.as_nanos() as u64));
    }
}

/// P14, 11.3: our deadline is no error of the operation's, whatever the operation's errors look like.
#[test]
fn p14_an_overall_deadline_is_not_an_error_that_the_retry_lists() {
    let clock = VirtualClock::new();
    // The operation keeps to the time that is left, and reports that as its own timeout, which is transient.
    let guard = guard(&clock, |guard| guard.total_timeout(secs(3)).attempts(10).without_retry_budget());
    let attempts = Mutex::new(0);
    let call = guard.transient(|_: &Failed| true).call_with(|context| {
        *attempts.lock().unwrap() += 1;
        let clock = steadfast::Clock::from(clock.clone());
        async move {
            clock.wait(context.time_left).await;
            Err::<(), _>(Failed::Busy(None))
        }
    });
    let error = clock.run(call).unwrap().unwrap_err();
    assert_eq!(*attempts.lock().unwrap(), 1, "{error:?}");
    assert_eq!(error.report().ended(), Ended::Deadline);
    assert_eq!(clock.now().as_nanos(), 3_000_000_000);
}

#[test]
fn c1_1_a_call_can_only_shorten_its_deadline() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard.total_timeout(secs(5)));
    let never = || pending::<Result<(), Failed>>();
    let ran = |call: GuardError<Failed>| (call.limit(), call.report().duration());
    for (asked, limit) in [(secs(2), secs(2)), (secs(60), secs(5))] {
        let error = clock.run(guard.timeout(asked).timeout(secs(70)).call(never)).unwrap().unwrap_err();
        assert_eq!(ran(error), (Some(ErrorKind::Timeout), limit));
    }
    // The request's deadline is told in the machine's time, so only its bounds are known here.
    let inherited = guard.deadline(Instant::now() + secs(3)).call(never);
    let (kind, lasted) = ran(clock.run(inherited).unwrap().unwrap_err());
    assert_eq!(kind, Some(ErrorKind::Timeout));
    assert!(lasted <= secs(3), "{lasted:?}");
    let over = guard.context(&CallContext::default().with_time_left(Duration::ZERO)).call(never);
    let error = clock.run(over).unwrap().unwrap_err();
    assert_eq!((error.limit(), error.report().attempt_count()), (Some(ErrorKind::Timeout), 0));
}

#[test]
fn c11_8_the_idempotency_key_is_the_calls_own_and_the_same_for_every_attempt() {
    let keys_of = |guard: &Guard, clock: &VirtualClock| {
        let keys = Mutex::new(Vec::new());
        let call = guard.transient(|_: &Failed| true).call_with(|context| {
            keys.lock().unwrap().push(context.idempotency_key().to_string());
            ready(Err::<(), _>(Failed::Busy(None)))
        });
        clock.run(call).unwrap().unwrap_err();
        keys.into_inner().unwrap()
    };
    let clock = VirtualClock::new();
    let seeded = guard(&clock, |guard| guard);
    let first = keys_of(&seeded, &clock);
    assert_eq!(first.len(), 3);
    assert!(first.iter().all(|key| *key == first[0]));
    let second = keys_of(&seeded, &clock);
    assert_ne!(first[0], second[0]);
    let again = guard(&clock, |guard| guard);
    assert_eq!([&keys_of(&again, &clock)[0], &keys_of(&again, &clock)[0]], [&first[0], &second[0]], "as the seed says");
    let random = Guard::builder("mail").clock(clock.clone()).build().unwrap();
    assert_ne!(keys_of(&random, &clock)[0], keys_of(&random, &clock)[0]);
}

#[test]
fn c11_5_a_fallback_stands_in_and_says_so() {
    let clock = VirtualClock::new();
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let guard = guard(&clock, |guard| {
        guard.attempts(1).breaker(BreakerConfig { failures: 2, ..BreakerConfig::default() }).on_event(move |event| {
            if let Event::Degraded { upstream, reason } = event {
                sink.lock().unwrap().push(format!("{upstream}: {reason}"));
            }
        })
    });
    let down = |_| ready(Err::<u32, _>(Failed::Busy(None)));

    let served = clock.run(guard.serve(|_| ready(Ok::<_, Failed>(12)))).unwrap().unwrap();
    assert_eq!((*served.value(), served.is_degraded(), served.report().attempt_count()), (12, false, 1));

    let served = clock.run(guard.fallback(10).serve(down)).unwrap().unwrap();
    let degraded = served.degraded().unwrap().clone();
    assert_eq!((degraded.dependency(), degraded.reason()), ("tariffs", Ended::NotRepeatable));
    assert_eq!(served.report().attempt_count(), 1);
    assert_eq!(served.into_value(), 10);

    // The breaker is open after one more: nothing is asked, and the closure is told why.
    let _ = clock.run(guard.call_with(down)).unwrap().unwrap_err();
    let estimate = guard.fallback_with(|cause: &GuardError<Failed>| {
        assert_eq!(cause.limit(), Some(ErrorKind::CircuitOpen));
        11
    });
    let served = clock.run(estimate.serve(down)).unwrap().unwrap();
    assert_eq!(served.degraded().unwrap().to_string(), "tariffs (circuit_open)");
    assert_eq!(served.degraded().unwrap().retry_after(), Some(secs(15)));
    assert_eq!(served.into_value(), 11);
    assert_eq!(*events.lock().unwrap(), ["tariffs: not_repeatable", "tariffs: circuit_open"]);
}

#[test]
fn c11_5_a_permanent_error_is_an_answer_and_gets_no_fallback() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let (result, degraded) = degraded::collect_blocking(|| {
        clock.run(guard.classify(class).fallback(1).call(|| ready(Err(Failed::NotFound)))).unwrap()
    });
    assert!(matches!(result, Err(GuardError::Operation { error: Failed::NotFound, .. })));
    assert!(degraded.is_empty());
    let transient = guard.classify(class).fallback(1).call(|| ready(Err(Failed::Busy(None))));
    assert_eq!(clock.run(transient).unwrap().unwrap(), 1);
}

#[test]
fn k9_a_request_knows_what_was_degraded_while_it_was_served() {
    let clock = VirtualClock::new();
    let guards = ["tariffs", "stock", "tariffs"].map(|name| Guard::builder(name).clock(clock.clone()).build().unwrap());
    let down = || ready(Err::<u32, _>(Failed::Busy(None)));
    let request = move |guards: Vec<Guard>| async move {
        for guard in guards {
            guard.fallback(0).call(down).await.unwrap();
        }
    };
    let (_, degraded) = clock.run(degraded::collect(request(guards.to_vec()))).unwrap();
    let names: Vec<_> = degraded.iter().map(|degraded| degraded.dependency()).collect();
    assert_eq!(names, ["tariffs", "stock"], "each dependency once, in order");

    // Two requests at once on one thread see their own; a task that was spawned takes the collector along.
    let both = async {
        let one = degraded::collect(request(vec![guards[0].clone()]));
        let other = degraded::collect(async {
            let collector = Collector::current().unwrap();
            let spawned = std::thread::spawn({
                let (clock, guard) = (clock.clone(), guards[1].clone());
                move || clock.run(collector.scope(request(vec![guard]))).unwrap()
            });
            spawned.join().unwrap();
        });
        futures_util::future::join(one, other).await
    };
    let ((_, one), (_, other)) = clock.run(both).unwrap();
    assert_eq!((one[0].dependency(), one.len()), ("tariffs", 1));
    assert_eq!((other[0].dependency(), other.len()), ("stock", 1));

    // Without a collector nothing is kept anywhere.
    clock.run(request(guards.to_vec())).unwrap();
    assert!(Collector::current().is_none());
}

#[test]
fn k9_a_collector_is_bounded() {
    let clock = VirtualClock::new();
    let collector = Collector::new();
    assert!(collector.is_empty());
    for number in 0..MOST + 50 {
        let guard = Guard::builder(&format!("d{number}")).clock(clock.clone()).build().unwrap();
        let call = guard.fallback(0).call(|| ready(Err(Failed::Busy(None))));
        collector.scope_blocking(|| clock.run(call)).unwrap().unwrap();
    }
    let noted = collector.noted();
    assert_eq!((noted.len(), noted[0].dependency()), (MOST, "d0"));
}

/// 7.2, 11.2: an operation whose error is boxed already.
#[test]
fn c11_2_a_boxed_error_comes_out_of_its_box_unwrapped() {
    let clock = VirtualClock::new();
    let guard =
        guard(&clock, |guard| guard.attempts(4).breaker(BreakerConfig { failures: 3, ..BreakerConfig::default() }));
    let fetch = |error: Failed| {
        let call =
            guard.transient(|_: &BoxError| true).call(move || ready(Err::<(), BoxError>(Box::new(error.clone()))));
        clock.run(call).unwrap().map_err(GuardError::into_box)
    };
    let error = fetch(Failed::NotFound).unwrap_err();
    let error = error.downcast_ref::<steadfast::Error>().unwrap();
    assert!(error.is_circuit_open());
    assert_eq!(std::error::Error::source(error).unwrap().to_string(), "NotFound");
    guard.reset_breaker();
    let call = guard.call(|| ready(Err::<(), BoxError>(Box::new(Failed::NotFound))));
    let error = clock.run(call).unwrap().map_err(GuardError::into_box).unwrap_err();
    assert_eq!(error.downcast_ref::<Failed>(), Some(&Failed::NotFound));
}

#[test]
fn c7_7_a_closed_guard_lets_running_calls_end_and_refuses_others() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let slow = guard.call(|| {
        let clock = steadfast::Clock::from(clock.clone());
        async move {
            clock.wait(secs(2)).await;
            Ok::<_, Failed>(1)
        }
    });
    let close = async {
        guard.close().await;
        clock.now().as_nanos()
    };
    let (value, closed_at) = clock.run(async { futures_util::future::join(slow, close).await }).unwrap();
    assert_eq!((value.unwrap(), closed_at), (1, 2_000_000_000));
    let refused = clock.run(guard.fallback(5).serve(|_| ready(Err(Failed::Busy(None))))).unwrap().unwrap();
    assert_eq!(refused.degraded().unwrap().reason(), Ended::Closed);
}

#[test]
fn c2_6_the_waits_of_a_guard_are_its_backoff() {
    let clock = VirtualClock::new();
    let backoff = Backoff { base: secs(1), factor: 3.0, max: secs(5), jitter: Jitter::None, jitter_max: ms(0) };
    let guard = guard(&clock, |guard| guard.attempts(4).backoff(backoff));
    let served =
        clock
            .run(guard.classify(class).serve(|context| {
                ready(if context.attempt < 4 { Err(Failed::Busy(None)) } else { Ok(context.time_left) })
            }))
            .unwrap()
            .unwrap();
    let waits: Vec<_> = served.report().waits().iter().map(|wait| (wait.duration, wait.reason)).collect();
    assert_eq!(waits, [1, 3, 5].map(|wait| (secs(wait), WaitReason::Backoff)));
    assert_eq!(served.into_value(), secs(21), "what was left when the last attempt began");
}
