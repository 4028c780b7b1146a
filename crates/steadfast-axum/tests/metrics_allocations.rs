//! Counting allocates nothing: neither in a guard's call, which then allocates nothing at all, nor in a request, which
//! allocates as often as one that nobody counts. A process of its own, as the allocator counts; it counts by thread.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::future::{Future, ready};

use allocation_counter::measure;
use metrics::with_local_recorder;
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{Guard, ServiceClient};
use steadfast_axum::Prometheus;

const CALLS: usize = 1_000;

#[test]
fn a_guarded_call_that_is_counted_allocates_nothing() {
    let (prometheus, clock) = (Prometheus::new(), VirtualClock::new());
    let guard = with_local_recorder(&prometheus, || Guard::builder("free").clock(clock.clone()).build().unwrap());
    let call = || now(guard.call(|| ready(Ok::<_, Infallible>(())))).unwrap();
    call();
    let counted = measure(|| (0..CALLS).for_each(|_| call()));
    assert_eq!(counted.count_total, 0);
    let line = format!("steadfast_calls_total{{ended=\"response\",upstream=\"free\"}} {}\n", CALLS + 1);
    assert!(prometheus.render().contains(&line), "they were counted");
}

#[test]
fn a_request_that_is_counted_allocates_as_often_as_one_that_is_not() {
    let steps = || [Step::status(200)];
    let uncounted = allocations(None, "uncounted", steps());
    let prometheus = Prometheus::new();
    assert_eq!(allocations(Some(&prometheus), "counted", steps()), uncounted);
    assert!(prometheus.render().contains("steadfast_attempts_total{outcome=\"2xx\",upstream=\"counted\"} 1001\n"));
}

/// A retry, a wait, and a refusal by the budget, on the way.
#[test]
fn nor_do_retries_allocate_more() {
    let steps = || [Step::status(503), Step::status(200)];
    let uncounted = allocations(None, "uncounted_retries", steps());
    let prometheus = Prometheus::new();
    assert_eq!(allocations(Some(&prometheus), "counted_retries", steps()), uncounted);
    let line = "steadfast_retries_total{reason=\"backoff\",upstream=\"counted_retries\"}";
    let text = prometheus.render();
    let count = text.lines().find_map(|shown| shown.strip_prefix(line)).expect("it is shown");
    assert_ne!(count.trim(), "0");
}

/// Of so many requests to an upstream that answers with these, again and again.
fn allocations<const N: usize>(recorder: Option<&Prometheus>, name: &str, steps: [Step; N]) -> u64 {
    let clock = VirtualClock::new();
    let steps: Vec<Step> = steps.iter().cycle().take((CALLS + 1) * N).cloned().collect();
    let script = Script::new(clock.clone(), steps);
    let builder = ServiceClient::builder("http://billing.test").name(name).seed(7);
    let builder = builder.clock(clock.clone()).transport(script);
    let client = match recorder {
        Some(recorder) => with_local_recorder(recorder, || builder.build().unwrap()),
        None => builder.build().unwrap(),
    };
    let get = || drop(clock.run(client.get("/x").send()).unwrap());
    get();
    measure(|| (0..CALLS).for_each(|_| get())).count_total
}

/// What needs no waiting.
fn now<F: Future>(future: F) -> F::Output {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut cx) {
        std::task::Poll::Ready(out) => out,
        std::task::Poll::Pending => unreachable!("nothing is waited for"),
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(measure(|| drop(std::hint::black_box(Box::new(7)))).count_total, 1);
}
