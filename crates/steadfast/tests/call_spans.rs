//! The span that each call makes. A process of its own: `tracing` remembers for the whole process whether anybody listens.

#![allow(clippy::unwrap_used)]

#[path = "log_support/spans.rs"]
mod spans;

use std::future::{pending, ready};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use http::Request;
use http_body_util::Full;
use steadfast::layer::RetryLayer;
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::transport::RequestBody;
use steadfast::{Bulkhead, CircuitBreaker, ClientBuilder, ErrorKind, Guard, ServiceClient};
use tower::{Layer, ServiceExt};
use tracing::level_filters::LevelFilter;

use spans::Spans;

/// The level of all subscribers together is one number of the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seen(level: LevelFilter, work: impl FnOnce()) -> Spans {
    let _alone = alone();
    let spans = Spans::up_to(level);
    tracing::subscriber::with_default(spans.clone(), work);
    spans
}

fn billing(
    clock: &VirtualClock,
    steps: impl IntoIterator<Item = Step>,
    configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> ServiceClient {
    let script = Script::new(clock.clone(), steps);
    let builder = ServiceClient::builder("http://billing.test/pr3fix").name("billing").seed(7);
    configure(builder.clock(clock.clone()).transport(script)).build().unwrap()
}

/// 8.5, 7.4, 8.6: one span per call, named by method and upstream, with how it ended; what happens in the call is logged
/// inside; nothing else of the request is in it.
#[test]
fn c8_5_c7_4_c8_6_a_call_is_one_span() {
    let spans = seen(LevelFilter::INFO, || {
        let clock = VirtualClock::new();
        let client = billing(&clock, [Step::status(503), Step::status(404)], |builder| builder.breaker_failures(1_000));
        let request = client.put("/bot123:S3CR3T/x?key=S3CR3T").body("S3CR3T").bearer_auth("S3CR3T");
        assert_eq!(clock.run(request.send()).unwrap().unwrap().status(), 404);
    });
    let span = spans.only();
    assert_eq!((span.name, span.target.as_str()), ("call", "steadfast::call"));
    let expected = [
        ("ended", "not_retryable"),
        ("method", "PUT"),
        ("otel.name", "PUT billing"),
        ("retries", "1"),
        ("status", "404"),
        ("upstream", "billing"),
    ];
    let fields: Vec<_> = span.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(fields, expected);
    assert_eq!(span.events, ["retry"]);
    assert!(span.is_closed());
    let all = format!("{:?}", spans.all());
    for secret in ["S3CR3T", "bot123", "pr3fix", "billing.test"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}

/// 7.4: transitions, refusals and denied retries are logged inside of the call that met them.
#[test]
fn c7_4_what_the_policies_say_is_in_the_span() {
    let spans = seen(LevelFilter::INFO, || {
        let clock = VirtualClock::new();
        let client = billing(&clock, [Step::status(503)], |builder| builder.breaker_failures(1).retries(0));
        clock.run(client.get("/").send()).unwrap().unwrap();
        assert_eq!(clock.run(client.get("/").send()).unwrap().unwrap_err().kind(), ErrorKind::CircuitOpen);

        let paid = |builder: ClientBuilder| builder.retry_budget_ratio(0.0).retry_budget_min_per_second(0.0);
        let client = billing(&clock, [Step::status(503)], |builder| paid(builder).breaker_failures(1_000));
        clock.run(client.get("/").send()).unwrap().unwrap();
    });
    let all = spans.all();
    assert_eq!(all[0].events, ["circuit breaker changed its state"]);
    assert_eq!(all[1].events, ["refused, nothing sent"]);
    assert_eq!((all[1].field("ended"), all[1].field("status")), (Some("circuit_open"), None));
    assert_eq!(all[2].events, ["the retry budget denied a retry"]);
    assert_eq!(all[2].field("ended"), Some("budget_ceiling"));
    assert_eq!(spans.outside(), Vec::<String>::new());
}

/// 8.5: a guard's call is named by its dependency, and its operation runs inside, wherever that is: in the task, on the
/// thread that calls, on a helper thread.
#[test]
fn c8_5_a_guards_operation_runs_in_its_span() {
    let spans = seen(LevelFilter::INFO, || {
        let clock = VirtualClock::new();
        let guard = Guard::builder("tariffs").clock(clock.clone()).build().unwrap();
        let log = || {
            tracing::info!("at work");
            Ok::<_, io::Error>(())
        };
        clock.run(guard.call(|| ready(log()))).unwrap().unwrap();
        guard.call_blocking(log).unwrap();
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let on_thread = move |_| tracing::dispatcher::with_default(&dispatch, log);
        guard.call_on_thread_blocking(on_thread).unwrap();
    });
    let all = spans.all();
    assert_eq!(all.len(), 3);
    for span in &all {
        assert_eq!((span.field("otel.name"), span.field("method")), (Some("tariffs"), None));
        assert_eq!((span.field("ended"), span.field("retries")), (Some("response"), Some("0")));
        assert_eq!(span.events, ["at work"]);
        assert!(span.is_closed());
    }
}

/// A client for plain threads makes the same span.
#[test]
fn c8_5_a_blocking_call_is_one_span() {
    let spans = seen(LevelFilter::INFO, || {
        let client = billing(&VirtualClock::new(), [Step::status(200)], |builder| builder);
        steadfast::blocking::ServiceClient::from(client).get("/").send().unwrap();
    });
    let span = spans.only();
    assert_eq!((span.field("otel.name"), span.field("status")), (Some("GET billing"), Some("200")));
    assert!(span.is_closed());
}

/// A call that is dropped ends its span, and says so inside of it; one that was never polled has none.
#[test]
fn c1_6_a_dropped_call_ends_its_span() {
    let spans = seen(LevelFilter::DEBUG, || {
        let guard = Guard::builder("tariffs").clock(VirtualClock::new()).build().unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut call = Box::pin(guard.call(pending::<Result<(), io::Error>>));
        assert!(call.as_mut().poll(&mut context).is_pending());
        drop(call);
        drop(guard.call(pending::<Result<(), io::Error>>));
    });
    let span = spans.only();
    assert_eq!((span.field("ended"), span.field("status")), (Some("cancelled"), None));
    assert_eq!((&span.events[..], &spans.outside()[..]), (&["call cancelled".to_owned()][..], &[][..]));
    assert!(span.is_closed());
}

/// One policy alone is a part of a stack: the stack is what is called.
#[test]
fn parts_of_a_stack_have_no_span() {
    let spans = seen(LevelFilter::INFO, || {
        let clock = VirtualClock::new();
        let breaker = CircuitBreaker::builder("breaker").clock(clock.clone()).build().unwrap();
        clock.run(breaker.call(|| ready(Ok::<_, io::Error>(())))).unwrap().unwrap();
        let bulkhead = Bulkhead::builder("bulkhead").clock(clock.clone()).build().unwrap();
        drop(clock.run(bulkhead.acquire()).unwrap().unwrap());
        let again = steadfast::retry(|| ready(Ok::<_, io::Error>(()))).transient(|_| true);
        clock.run(again.clock(clock.clone()).call()).unwrap().unwrap();

        let client = billing(&clock, [Step::status(200)], |builder| builder);
        let service = tower::service_fn(move |_: Request<RequestBody>| {
            let call = client.get("/").send();
            async move { call.await.map(|response| response.into_http().map(Full::new)) }
        });
        let retry = RetryLayer::builder("retry").clock(clock.clone()).build().unwrap();
        let service = retry.layer(service);
        clock.run(service.oneshot(Request::new(RequestBody::empty()))).unwrap().unwrap();
    });
    assert_eq!(spans.only().field("otel.name"), Some("GET billing"));
}

/// Who listens to warnings only is told of those, and no span is made.
#[test]
fn a_subscriber_that_wants_no_span_gets_none() {
    let spans = seen(LevelFilter::WARN, || {
        let clock = VirtualClock::new();
        let client = billing(&clock, [Step::status(503)], |builder| builder.breaker_failures(1).retries(0));
        clock.run(client.get("/").send()).unwrap().unwrap();
    });
    assert!(spans.all().is_empty());
    assert_eq!(spans.outside(), ["circuit breaker changed its state"]);
}
