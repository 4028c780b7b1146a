//! Attacks on guards, pieces, and families of them: races, closures with a memory, values that nobody checked, panics on
//! the way out.

use std::cell::Cell;
use std::future::{Future, pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use steadfast::guard::GuardCall;
use steadfast::policy::Time;
use steadfast::policy::budget::BudgetConfig;
use steadfast::testing::{Step, VirtualClock};
use steadfast::{CircuitBreaker, ErrorClass, ErrorKind, Guard, GuardError, Guards, RateLimit};

use crate::harness::{World, ms, secs};
use crate::pieces::Failed;

fn guard(clock: &VirtualClock) -> Guard {
    Guard::http("hostile").clock(clock.clone()).seed(7).build().unwrap()
}

type Kept<'a> = Pin<Box<dyn Future<Output = Result<u32, GuardError<Failed>>> + Send + 'a>>;

/// Polls once.
fn begin(call: &mut Kept<'_>) {
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// Another thread may have brought the line a later time than the one that this thread has just read: that is no reason
/// to refuse who could start.
#[test]
fn c6_3_threads_that_try_at_once_are_never_told_of_a_deadline() {
    let limit = RateLimit::new(10_000, Duration::from_millis(1)).unwrap();
    let (barrier, others) = (Barrier::new(4), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..20_000 {
                    if let Err(error) = limit.try_acquire("")
                        && error.kind() != ErrorKind::RateLimited
                    {
                        others.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(others.load(Ordering::SeqCst), 0, "refused for another reason than the limit");
}

/// One that remembers must not be asked again, nor answer for the fallback what it did not answer for the breaker.
#[test]
fn c11_5_a_classifier_is_asked_once_for_each_attempt() {
    let clock = VirtualClock::new();
    let guard = guard(&clock);
    let asked = AtomicU32::new(0);
    // A failure the first time, a permanent error from then on.
    let class = |_: &Failed| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => ErrorClass::Failure,
        _ => ErrorClass::Permanent,
    };
    let down = || Err::<u32, _>(Failed::Down);

    let value = clock.run(guard.classify(class).fallback(7).call(|| ready(down()))).unwrap();
    assert_eq!((value.ok(), asked.swap(0, Ordering::SeqCst)), (Some(7), 1));

    let served = clock.run(guard.classify(class).fallback(7).serve(|_| ready(down()))).unwrap();
    assert_eq!((served.unwrap().into_value(), asked.swap(0, Ordering::SeqCst)), (7, 1));

    let error = clock.run(guard.classify(class).serve(|_| ready(down()))).unwrap();
    assert_eq!((error.is_err(), asked.swap(0, Ordering::SeqCst)), (true, 1));

    let value = guard.classify(class).fallback(7).call_blocking(down);
    assert_eq!((value.ok(), asked.swap(0, Ordering::SeqCst)), (Some(7), 1));

    let value = guard.classify(class).fallback(7).call_on_thread_blocking(move |_| down());
    assert_eq!((value.ok(), asked.swap(0, Ordering::SeqCst)), (Some(7), 1));
}

/// The same one attempt later: what counts is the class of the error that the call ends with.
#[test]
fn c11_5_a_permanent_error_after_a_transient_one_gets_no_fallback() {
    let clock = VirtualClock::new();
    let guard = guard(&clock);
    let attempts = Cell::new(0);
    let error = guard
        .transient(|error: &Failed| *error == Failed::Down)
        .fallback(7)
        .call_blocking(|| {
            attempts.set(attempts.get() + 1);
            Err::<u32, _>(if attempts.get() == 1 { Failed::Down } else { Failed::NotFound })
        })
        .unwrap_err();
    assert_eq!((error.operation(), attempts.get()), (Some(&Failed::NotFound), 2));
}

/// Futures that are kept and never polled: all of their guards are waited for at the same time.
#[test]
fn c7_7_guards_close_by_the_last_deadline_and_not_by_the_sum_of_all() {
    let clock = VirtualClock::new();
    let hosts = Guards::new(Guard::http("hosts").clock(clock.clone())).unwrap();
    let guards: Vec<_> = ["a", "b", "c"].iter().map(|key| hosts.get(key).unwrap()).collect();
    let mut kept: Vec<Kept<'_>> = guards.iter().map(|guard| Box::pin(guard.call(pending)) as Kept<'_>).collect();
    kept.iter_mut().for_each(begin);
    clock.run(hosts.close()).unwrap();
    assert_eq!(clock.now(), Time::from_secs(30));
    hosts.close_blocking();
    assert!(clock.now() <= Time::from_secs(60));
}

/// A deadline is an instant, whenever the call that was given it begins.
#[test]
fn c1_1_a_call_that_was_prepared_early_keeps_to_its_deadline() {
    let clock = VirtualClock::new();
    let guard = guard(&clock);
    let deadline = Instant::now() + ms(1);
    let prepared: GuardCall<'_> = guard.deadline(deadline);
    while Instant::now() < deadline {
        thread::yield_now();
    }
    let late = clock.run(prepared.call(|| ready(Ok::<_, Failed>(1)))).unwrap().unwrap_err();
    assert_eq!((late.limit(), late.report().attempt_count()), (Some(ErrorKind::Timeout), 0));
    let late = prepared.call_blocking(|| Ok::<_, Failed>(1)).unwrap_err();
    assert_eq!((late.limit(), late.report().attempt_count()), (Some(ErrorKind::Timeout), 0));
}

#[test]
fn c1_1_a_request_that_was_sent_and_not_polled_keeps_to_its_deadline() {
    let world = World::new([Step::status(200)]);
    let deadline = Instant::now() + ms(1);
    let sent = world.client.get("/x").deadline(deadline).send();
    while Instant::now() < deadline {
        thread::yield_now();
    }
    let late = world.run(sent).unwrap_err();
    assert_eq!((late.kind(), late.attempts()), (ErrorKind::Timeout, 0));
}

#[test]
fn c1_3_a_budget_of_no_number_is_refused() {
    let of = |ratio, min_per_second| {
        let budget = BudgetConfig { ratio, min_per_second, gate: true };
        Guard::http("odd").retry_budget(budget)
    };
    for (ratio, min_per_second) in [(f64::NAN, 1.0), (-1.0, 1.0), (0.2, f64::INFINITY), (0.2, -0.5)] {
        let problems = of(ratio, min_per_second).build().unwrap_err().to_string();
        assert!(problems.contains("retry_budget_"), "{problems}");
    }
    assert!(of(0.0, 0.0).build().is_ok(), "no retries");
    assert!(of(f64::NAN, 1.0).without_retry_budget().build().is_ok(), "there is none");
}

/// With a lease of nothing every probe comes too late, and the breaker would never close again.
#[test]
fn c4_6_a_breaker_that_could_never_close_is_refused() {
    let problems = CircuitBreaker::builder("odd").probe_lease(Duration::ZERO).build().unwrap_err().to_string();
    assert!(problems.contains("probe_lease") && problems.contains("above zero"), "{problems}");
    assert!(CircuitBreaker::builder("long").probe_lease(Duration::MAX).build().is_ok());
}

/// A key that comes from outside writes no line of its own into a log.
#[test]
fn c11_8_the_name_of_a_keyed_guard_is_one_line() {
    let hosts = Guards::new(Guard::http("hosts")).unwrap();
    let forged = hosts.get("a\r\n2026-01-01 ERROR forged\x1b[2J").unwrap();
    assert_eq!(forged.name(), "hosts/a\u{fffd}\u{fffd}2026-01-01 ERROR forged\u{fffd}[2J");
    assert_eq!(hosts.get("b\u{e9}.example").unwrap().name(), "hosts/b\u{e9}.example");
    // They are told apart all the same.
    hosts.get("a\r").unwrap().force_open();
    assert_eq!((hosts.get("a\n").unwrap().snapshot().breaker.forced, hosts.len()), (false, 4));
}

/// The key may be whatever tells callers apart: a token among others.
#[test]
fn c8_6_the_key_of_a_call_is_in_no_debug_text() {
    let clock = VirtualClock::new();
    let guard = guard(&clock);
    let shown = format!("{:?}", guard.key("hunter2").timeout(secs(3)));
    assert!(!shown.contains("hunter2") && shown.contains("hostile") && shown.contains("3s"), "{shown}");
}

/// Panics, and once more when it is dropped.
struct PanicsTwice;

impl PanicsTwice {
    fn run(&self) -> Result<u32, Failed> {
        panic!("on purpose")
    }
}

impl Drop for PanicsTwice {
    fn drop(&mut self) {
        panic!("on purpose, again");
    }
}

#[test]
fn c11_7_a_panic_is_the_callers_even_if_another_follows_it() {
    let clock = VirtualClock::new();
    let guard = guard(&clock);
    let twice = PanicsTwice;
    let work = move |_: steadfast::guard::Context| {
        let twice = &twice;
        twice.run()
    };
    let left = catch_unwind(AssertUnwindSafe(|| guard.call_on_thread_blocking(work)));
    assert_eq!(left.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
    assert_eq!(guard.snapshot().line.in_use, 0);
}

/// A runtime that shuts down lets its timers go off. That is no deadline: taken for one, it would put the guard's clock
/// forward, and whoever calls through another runtime would be refused until the time has really come.
#[test]
fn c1_1_a_runtime_that_is_gone_makes_no_deadline_pass() {
    let guard = Guard::http("shared").build().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let gone = runtime();
    let mut kept: Kept<'_> = Box::pin(guard.call(pending));
    {
        let _inside = gone.enter();
        begin(&mut kept);
    }
    drop(gone);
    let polled = catch_unwind(AssertUnwindSafe(|| kept.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
    assert!(polled.is_err(), "as every timer of tokio's: {polled:?}");
    drop(kept);
    let value = runtime().block_on(guard.timeout(secs(10)).call(|| ready(Ok::<_, Failed>(1))));
    assert_eq!((value.ok(), guard.snapshot().line.in_use), (Some(1), 0));
}
