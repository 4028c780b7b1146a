//! The request that a task serves: what its calls take over without being told, and what never gets to another's
//! (contract sections 1.1 and 8; S67-S72, S110-S114).

use std::future::{pending, ready};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_util::future::join_all;
use http::{HeaderMap, Request};
use steadfast::degraded::{self, Collector, Degraded};
use steadfast::layer::{CallOptions, DeadlineLayer};
use steadfast::testing::{Step, VirtualClock};
use steadfast::transport::RequestBody;
use steadfast::{BoxError, CallContext, ErrorClass, ErrorKind, Guard, ServiceClient, TraceContext, context};
use tower::{Layer, ServiceExt};

use crate::harness::{World, kind, ms, secs};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// What user `name` brought along.
fn served(name: &str) -> CallContext {
    let mut headers = HeaderMap::new();
    headers.insert("x-request-id", format!("req-{name}").parse().unwrap());
    headers.insert("authorization", format!("Bearer token-{name}").parse().unwrap());
    headers.insert("traceparent", PARENT.parse().unwrap());
    headers.insert("tracestate", "vendor=1".parse().unwrap());
    CallContext::extract(&headers)
}

fn world() -> World {
    World::with([Step::status(200)], |client| client.forward_authorization(true))
}

fn header(world: &World, request: usize, name: &str) -> Option<String> {
    let seen = world.upstream.seen();
    seen[request].headers.get(name).map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn c8_2_a_call_that_is_given_no_context_has_the_tasks() {
    let world = world();
    world.run(context::scope(served("a"), async {
        world.client.get("/x").send().await.unwrap();
        world.client.get("/x").send_streaming().await.unwrap();
    }));
    for request in 0..2 {
        assert_eq!(header(&world, request, "x-request-id").unwrap(), "req-a");
        assert_eq!(header(&world, request, "authorization").unwrap(), "Bearer token-a");
        assert_eq!(header(&world, request, "tracestate").unwrap(), "vendor=1");
        let sent = header(&world, request, "traceparent").unwrap();
        assert!(sent.starts_with(&PARENT[..36]) && sent != PARENT, "the same trace, a span of its own: {sent}");
    }
    world.get().unwrap();
    assert_eq!(header(&world, 2, "x-request-id"), None, "outside of the scope there is none");
}

#[test]
fn c8_2_a_context_that_is_given_replaces_the_tasks_as_a_whole() {
    let world = world();
    world.run(context::scope(served("a").with_time_left(secs(0)), async {
        let own = CallContext::new().with_request_id("own");
        world.client.get("/x").context(&own).send().await.unwrap();
        context::scope(CallContext::new(), world.client.get("/x").send()).await.unwrap_err();
        context::scope(CallContext::new(), async { world.client.get("/x").send().await }).await.unwrap();
    }));
    assert_eq!(world.upstream.requests(), 2, "what is sent outside of the inner scope has the outer one's time");
    assert_eq!(header(&world, 0, "x-request-id").unwrap(), "own");
    for name in ["authorization", "traceparent", "tracestate"] {
        assert_eq!(header(&world, 0, name), None, "{name}");
    }
    assert_eq!(header(&world, 1, "x-request-id"), None);
}

/// 1.1: counted from the scope, however many calls are made, and whatever they wait for.
#[test]
fn c1_1_the_requests_deadline_counts_from_its_beginning() {
    let world = World::with([Step::status(200).after(secs(2))], |client| client.read_timeout(secs(20)));
    let limited = served("a").with_time_left(secs(5));
    let ended = world.run(context::scope_on(&world.clock.clone().into(), limited, async {
        let mut ended = Vec::new();
        for _ in 0..4 {
            let before = world.clock.now();
            let result = world.client.get("/x").send().await;
            ended.push((result.err().map(|error| error.kind()), world.clock.now().since(before)));
        }
        ended
    }));
    let timeout = Some(ErrorKind::Timeout);
    assert_eq!(ended, [(None, secs(2)), (None, secs(2)), (timeout, secs(1)), (timeout, secs(0))]);
    assert_eq!(world.upstream.requests(), 3, "nothing is sent for a caller who has gone");
    world.assert_at_rest();
}

#[test]
fn c1_1_a_guards_call_has_the_requests_deadline_unless_it_is_given_another_context() {
    let clock = VirtualClock::new();
    let guard = Guard::builder("db").clock(clock.clone()).build().unwrap();
    let hangs = || pending::<Result<(), io::Error>>();
    let took = |shape: u32| {
        let before = clock.now();
        let limited = CallContext::new().with_time_left(secs(3));
        let call = async {
            match shape {
                0 => guard.call(hangs).await,
                1 => guard.transient(|_: &io::Error| true).call(hangs).await,
                2 => guard.timeout(secs(1)).call(hangs).await,
                3 => guard.context(&CallContext::new().with_time_left(secs(7))).call(hangs).await,
                _ => guard.context(&CallContext::new()).call(hangs).await,
            }
        };
        let error = clock.run(context::scope_on(&clock.clone().into(), limited, call)).unwrap().unwrap_err();
        assert_eq!(error.limit(), Some(ErrorKind::Timeout));
        clock.now().since(before)
    };
    assert_eq!([0, 1, 2, 3, 4].map(took), [secs(3), secs(3), secs(1), secs(7), secs(30)]);
}

/// A guard's call that is kept and made later has what is left then.
#[test]
fn c1_1_the_time_left_is_looked_for_when_the_call_begins() {
    let clock = VirtualClock::new();
    let guard = Guard::builder("db").clock(clock.clone()).build().unwrap();
    let limited = CallContext::new().with_time_left(secs(3));
    let scope = context::scope_on(&clock.clone().into(), limited, async {
        let call = guard.key("a");
        clock.advance(secs(2));
        assert_eq!(context::time_left(), Some(secs(1)));
        assert_eq!(context::current().unwrap().time_left(), Some(secs(1)));
        call.call_with(|context| ready(Ok::<_, io::Error>(context.time_left))).await
    });
    assert_eq!(clock.run(scope).unwrap().unwrap(), secs(1));
}

/// What is left counts from `send`, however late the future is polled.
#[test]
fn c1_1_calls_that_are_made_at_once_and_run_one_by_one_share_the_time_left() {
    let world = World::with([Step::hang()], |client| client.retries(0));
    let clock = world.clock.clone();
    let limited = CallContext::new().with_time_left(secs(3));
    let both = context::scope_on(&clock.clone().into(), limited, async {
        let (first, second) = (world.client.get("/1").send(), world.client.get("/2").send());
        (first.await.is_err(), second.await.is_err())
    });
    assert_eq!(clock.run(both).unwrap(), (true, true));
    assert_eq!(clock.now(), steadfast::policy::Time::from_secs(3));
}

#[test]
fn c8_2_a_layered_client_takes_the_context_over_and_a_single_policy_only_its_deadline() {
    let world = world();
    let clock = &world.clock;
    let upstream = world.upstream.clone();
    let whole = ServiceClient::builder("http://billing.test").name("billing").clock(clock.clone());
    let whole = whole.build_layer().unwrap().layer(crate::layers::wire(&upstream));
    let single = DeadlineLayer::builder("billing").clock(clock.clone()).build().unwrap();
    let single = single.layer(crate::layers::wire(&upstream));
    let request = || Request::get("http://billing.test/x").body(RequestBody::empty()).unwrap();
    let limited = served("a").with_time_left(secs(3));
    world.run(context::scope_on(&clock.clone().into(), limited, async {
        whole.clone().oneshot(request()).await.unwrap();
        single.clone().oneshot(request()).await.unwrap();
        let mut own = request();
        own.extensions_mut().insert(CallOptions::new().context(&CallContext::new().with_request_id("own")));
        whole.oneshot(own).await.unwrap();
        upstream.play([Step::hang()]);
        upstream.set_read_timeout(secs(100));
        let before = clock.now();
        let error = single.oneshot(request()).await.unwrap_err();
        assert_eq!((error.kind(), clock.now().since(before)), (ErrorKind::Timeout, secs(3)));
    }));
    assert_eq!(header(&world, 0, "x-request-id").unwrap(), "req-a");
    assert_eq!(header(&world, 1, "x-request-id"), None);
    assert_eq!(header(&world, 2, "x-request-id").unwrap(), "own");
}

/// 8.2, 8.3: a thousand requests of two users, each in the middle of its own when the next one's goes on.
#[test]
fn c8_3_interleaved_requests_never_see_each_others_context() {
    let steps = (0..1_000).map(|number| Step::status(200).after(ms(number % 7)));
    let world = World::with(steps, |client| client.forward_authorization(true).max_concurrent(1_000));
    let request = async |number: usize| {
        let user = if number.is_multiple_of(2) { "a" } else { "b" };
        context::scope(served(user), async {
            steadfast::Clock::from(world.clock.clone()).wait(ms((number % 13) as u64)).await;
            let path = format!("/{user}");
            world.client.get(&path).send().await.unwrap();
            assert_eq!(context::current().unwrap().request_id().unwrap(), format!("req-{user}"));
        })
        .await;
    };
    world.run(join_all((0..1_000).map(request)));
    let seen = world.upstream.seen();
    assert_eq!(seen.len(), 1_000);
    for seen in seen {
        let user = seen.uri.path().trim_start_matches("/api/").to_owned();
        assert_eq!(seen.headers["x-request-id"], format!("req-{user}"));
        assert_eq!(seen.headers["authorization"], format!("Bearer token-{user}"));
    }
}

#[test]
fn a_future_that_is_dropped_in_a_scope_leaves_nothing_behind() {
    let mut cx = Context::from_waker(Waker::noop());
    {
        let mut scope = pin!(context::scope(served("a"), pending::<()>()));
        assert_eq!(scope.as_mut().poll(&mut cx), Poll::Pending);
        assert!(context::current().is_none(), "between two polls the thread is another's");
    }
    assert!(context::current().is_none());
    let caught = std::panic::catch_unwind(|| context::scope_blocking(served("a"), || panic!("in a scope")));
    assert!(caught.is_err() && context::current().is_none());
}

/// S70: what is spawned has the context only if it is taken along; and then what degraded there is told, too.
#[tokio::test]
async fn s70_a_context_is_carried_over_spawn() {
    let here = || context::current().and_then(|context| context.request_id().map(str::to_owned));
    let degrade = || {
        let closed = World::new([]);
        closed.run(closed.client.close());
        degraded::note(Degraded::from(&closed.get().unwrap_err()));
    };
    let collector = Collector::new();
    let carried = collector
        .scope(context::scope(served("a"), async {
            let lost = tokio::spawn(async move { here() }).await.unwrap();
            let kept = context::spawn(async move {
                degrade();
                here()
            });
            let blocking = context::spawn_blocking(here).await.unwrap();
            let thread = std::thread::spawn(context::carry_blocking(here)).join().unwrap();
            (lost, kept.await.unwrap(), blocking, thread)
        }))
        .await;
    let kept = Some("req-a".to_owned());
    assert_eq!(carried, (None, kept.clone(), kept.clone(), kept));
    assert_eq!(collector.noted()[0].to_string(), "billing (closed)");
    // Where there is nothing, nothing is carried, and nothing is made.
    let none = context::spawn(async move { (here(), Collector::current().is_none()) }).await.unwrap();
    assert_eq!(none, (None, true));
    assert_eq!(context::carry_blocking(here)(), None);
    // What is carried replaces what is there, even with nothing.
    let carried = context::carry(async move { here() });
    assert_eq!(context::scope(served("b"), carried).await, None);
}

/// A call of the client for threads has it too, on the thread that makes it.
#[test]
fn c8_2_a_blocking_call_has_the_context_of_its_thread() {
    let world = world();
    let client = steadfast::blocking::ServiceClient::from(world.client.clone());
    let call = || client.get("/x").send().map(|response| response.status().as_u16());
    assert_eq!(context::scope_blocking(served("a"), call).unwrap(), 200);
    assert_eq!(call().unwrap(), 200);
    assert_eq!(header(&world, 0, "x-request-id").unwrap(), "req-a");
    assert_eq!(header(&world, 1, "x-request-id"), None);
}

/// A guard's work on another thread, and on this one: for the same request, within its deadline.
#[test]
fn c1_1_blocking_work_has_the_context_of_who_asked_for_it() {
    let clock = VirtualClock::new();
    let guard = Guard::builder("db").clock(clock.clone()).build().unwrap();
    let here = |left| {
        let here = context::current().map(|here| here.request_id().unwrap_or_default().to_owned());
        Ok::<_, io::Error>((here, left))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let call = guard.call_on_thread(move |context| here(context.time_left));
    let limited = || served("a").with_time_left(secs(3));
    let found = runtime.block_on(context::scope_on(&clock.clone().into(), limited(), call)).unwrap();
    assert_eq!(found, (Some("req-a".to_owned()), secs(3)));
    let blocking = || guard.key("x").call_blocking_with(|context| here(context.time_left)).unwrap();
    assert_eq!(context::scope_blocking_on(&clock.clone().into(), limited(), blocking), found);
    assert_eq!(blocking(), (None, secs(30)));
}

/// S110-S112: through a queue, as a job's payload.
#[test]
fn s110_a_job_keeps_request_id_and_trace_and_never_the_bearer() {
    let world = world();
    let limited = served("a").with_time_left(secs(3));
    let queued = context::scope_blocking(limited, || serde_json::to_string(&context::for_job()).unwrap());
    assert!(!queued.contains("token"), "{queued}");
    let restored: CallContext = serde_json::from_str(&queued).unwrap();
    world.run(context::scope(restored, async {
        assert_eq!(context::time_left(), None, "nobody waits for a job");
        world.client.get("/x").send().await.unwrap();
    }));
    assert_eq!(header(&world, 0, "x-request-id").unwrap(), "req-a");
    assert!(header(&world, 0, "traceparent").unwrap().starts_with(&PARENT[..36]));
    assert_eq!(header(&world, 0, "tracestate").unwrap(), "vendor=1");
    assert_eq!(header(&world, 0, "authorization"), None);
}

/// S111
#[test]
fn s111_a_job_that_no_request_queued_has_nothing() {
    assert_eq!(serde_json::to_string(&context::for_job()).unwrap(), "{}");
    let world = world();
    world
        .run(context::scope(serde_json::from_str("{}").unwrap(), async { world.client.get("/x").send().await }))
        .unwrap();
    for name in ["x-request-id", "traceparent", "authorization"] {
        assert_eq!(header(&world, 0, name), None, "{name}");
    }
}

/// 8.5, 2.8: each attempt has a span of its own, in the one trace.
#[test]
fn c8_5_every_attempt_has_its_own_span() {
    let world = World::new([Step::status(503), Step::status(503), Step::status(200)]);
    let root = CallContext::new().with_request_id("r").with_trace(TraceContext::root(7, 9, false));
    world.run(context::scope(root, async { world.client.get("/x").send().await })).unwrap();
    let spans: Vec<String> = (0..3).map(|request| header(&world, request, "traceparent").unwrap()).collect();
    assert!(spans.iter().all(|span| span.starts_with(&spans[0][..36])));
    assert!(spans[0] != spans[1] && spans[1] != spans[2] && spans[0] != spans[2]);
    assert!((0..3).all(|request| header(&world, request, "x-request-id").unwrap() == "r"));
}

/// 7.3, B17: at a service's edge.
mod edge {
    use super::*;

    #[test]
    fn c7_3_a_problem_names_the_request_that_is_served() {
        let world = World::with([Step::refuse()], |client| client.retries(0));
        let error = world.get().unwrap_err();
        assert_eq!(kind(&Err(error)), ErrorKind::Unreachable);
        let error = world.get().unwrap_err();
        assert_eq!(error.to_problem().request_id, None);
        let problem = context::scope_blocking(served("a"), || error.to_problem());
        assert_eq!(problem.request_id.as_deref(), Some("req-a"));
        assert_eq!((problem.status, problem.attempts), (Some(503), Some(1)));
        assert_eq!(problem.upstream.as_deref(), Some("billing"));
    }

    /// An error whose text must not get out.
    fn secret() -> BoxError {
        "postgres://user:s3cret@10.0.0.7/db: connection refused".into()
    }

    #[test]
    fn c7_3_an_operations_own_error_tells_nothing_of_itself() {
        let clock = VirtualClock::new();
        let guard = Guard::database("tariffs").clock(clock.clone()).build().unwrap();
        let failing = || ready(Err::<(), _>(secret()));
        for (transient, status, reason) in [(true, 503, "operation_failed"), (false, 500, "operation_rejected")] {
            let error = clock.run(guard.transient(|_: &BoxError| transient).call(failing)).unwrap().unwrap_err();
            let problem = error.to_problem();
            assert_eq!((problem.status, problem.reason.as_deref()), (Some(status), Some(reason)));
            assert_eq!((error.upstream(), problem.upstream.as_deref()), ("tariffs", Some("tariffs")));
            let text = String::from_utf8(problem.to_json()).unwrap();
            assert!(!text.contains("s3cret") && !text.contains("10.0.0.7") && !text.contains("refused"), "{text}");
        }
        // Nobody said what the error means: it is taken for a failure. A limit further in refused: nothing was asked.
        for refused in [false, true] {
            let class = move |_: &BoxError| if refused { ErrorClass::Refused } else { ErrorClass::Failure };
            let error = clock.run(guard.classify(class).call(failing)).unwrap().unwrap_err();
            assert_eq!(error.to_problem().status, Some(503), "refused: {refused}");
        }
        guard.force_open();
        let error = clock.run(guard.call(failing)).unwrap().unwrap_err();
        assert_eq!(error.to_problem().reason.as_deref(), Some("circuit_open"));
    }

    #[test]
    fn c7_3_axum_answers_with_the_problem() {
        use axum_core::response::IntoResponse;
        let world = World::with([Step::status(503)], |client| client.retries(0).breaker_failures(1));
        world.get().unwrap();
        let response = world.get().unwrap_err().into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(response.headers()["retry-after"], "15");
        let invalid = world.run(world.client.get("//elsewhere.test/").send()).unwrap_err().into_response();
        assert_eq!((invalid.status().as_u16(), invalid.headers().get("retry-after")), (500, None));
        let clock = VirtualClock::new();
        let guard = Guard::database("tariffs").clock(clock.clone()).build().unwrap();
        let error = clock.run(guard.call(|| ready(Err::<(), _>(secret())))).unwrap().unwrap_err();
        assert_eq!(error.into_response().status(), 503, "nobody said that it was an answer");
    }
}
