//! What users' own code may do to a call: hooks that panic, hang or fail, transports that lie, errors that are printed.

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_executor::block_on;
use http_body::{Body, Frame, SizeHint};
use steadfast::report::Outcome;
use steadfast::testing::{Step, VirtualClock};
use steadfast::transport::{ResponseBody, TransportError};
use steadfast::{ErrorKind, Event, Fault, Guard, GuardError, Sent};

use crate::harness::{World, ended, kind, ms, outcomes, secs, status};

/// 4.6: the event of the probe is told while its permit is on its way to the call.
#[test]
fn c4_6_an_event_hook_that_panics_loses_neither_probe_nor_slot() {
    let armed = Arc::new(AtomicBool::new(false));
    let hook = Arc::clone(&armed);
    let clock = VirtualClock::new();
    let upstream = steadfast::testing::Script::new(clock.clone(), [Step::status(503), Step::status(200)]);
    let client = steadfast::ServiceClient::builder("http://billing.test")
        .name("billing")
        .breaker_failures(1)
        .retries(0)
        .clock(clock.clone())
        .transport(upstream.clone())
        .on_event(move |event| {
            let is_transition = matches!(event, Event::Transition { .. });
            assert!(!(is_transition && hook.load(Ordering::SeqCst)), "the hook panics");
        })
        .build()
        .unwrap();
    assert_eq!(clock.run(client.get("/x").send()).unwrap().unwrap().status(), 503);
    clock.advance(secs(15));
    armed.store(true, Ordering::SeqCst);
    assert_eq!(clock.run(client.get("/x").send()).unwrap().unwrap().status(), 200);
    let snapshot = client.snapshot();
    assert_eq!((snapshot.line.in_use, snapshot.breaker.state), (0, steadfast::policy::breaker::State::Closed));
}

/// A hook may look at the client that tells it.
#[test]
fn an_event_hook_may_take_a_snapshot() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own: Arc<Mutex<Option<steadfast::ServiceClient>>> = Arc::default();
    let (sink, slot) = (Arc::clone(&seen), Arc::clone(&own));
    let clock = VirtualClock::new();
    let upstream = steadfast::testing::Script::new(clock.clone(), [Step::status(503)]);
    let client = steadfast::ServiceClient::builder("http://billing.test")
        .breaker_failures(1)
        .clock(clock.clone())
        .transport(upstream)
        .on_event(move |_| {
            if let Some(client) = &*slot.lock().unwrap() {
                sink.lock().unwrap().push(client.snapshot().line.in_use);
            }
        })
        .build()
        .unwrap();
    *own.lock().unwrap() = Some(client.clone());
    clock.run(client.get("/x").send()).unwrap().unwrap();
    assert!(!seen.lock().unwrap().is_empty());
    // It would keep itself alive.
    *own.lock().unwrap() = None;
}

/// 1.5: evidence is counted from the hand-over to the transport, and a hook that fetches a token is before that.
#[test]
fn c1_5_a_hook_that_hangs_says_nothing_about_the_upstream() {
    for attempt_timeout in [None, Some(secs(3))] {
        let world = World::with([Step::status(200)], |client| {
            let client = match attempt_timeout {
                Some(timeout) => client.attempt_timeout(timeout),
                None => client,
            };
            client.breaker_failures(1).total_timeout(secs(5)).before_attempt_async(|_| Box::pin(pending()))
        });
        let result = world.get();
        assert!(result.is_err());
        assert_eq!(world.state(), "closed", "{:?}", outcomes(&result));
        assert_eq!(world.upstream.requests(), 0);
        world.assert_at_rest();
    }
}

/// 2.9: a retry that a hook kept from being sent is given back.
#[test]
fn c2_9_a_retry_that_a_hook_refuses_is_not_paid_for() {
    let world = World::with([Step::status(503)], |client| {
        client.before_attempt(|parts| if parts.attempt == 1 { Ok(()) } else { Err("no token".into()) })
    });
    let before = world.client.snapshot().budget.credit;
    let result = world.get();
    assert_eq!((status(&result), ended(&result)), (503, "not_retryable"));
    let budget = world.client.snapshot().budget;
    assert_eq!((budget.retries, budget.credit), (0, before));
}

/// 4.3, 2.9: neither is one for which the pool had no room.
#[test]
fn c2_9_a_retry_without_a_connection_is_not_paid_for() {
    let world = World::new([Step::status(503), Step::fail(Fault::PoolTimeout, Sent::No)]);
    let result = world.get();
    assert_eq!((status(&result), ended(&result)), (503, "bulkhead_full"));
    assert_eq!(world.client.snapshot().budget.retries, 0);
    assert_eq!(world.client.snapshot().breaker.failures, 1);
}

/// A transport that claims the deadline passed is believed, and no evidence is made of it.
#[test]
fn c1_5_a_transport_that_claims_the_deadline_ends_the_call_without_a_verdict() {
    let world = World::with([Step::fail(Fault::Deadline, Sent::Unknown)], |client| client.breaker_failures(1));
    let result = world.get();
    assert_eq!((kind(&result), ended(&result)), (ErrorKind::Timeout, "deadline"));
    assert_eq!(world.state(), "closed");
    world.assert_at_rest();
}

#[test]
fn a_thousand_retries_without_backoff_end() {
    let world = World::with([Step::reset()], |client| {
        client
            .retries(1_000)
            .backoff_base(ms(0))
            .retry_budget_ratio(1_000.0)
            .retry_budget_gate(false)
            .breaker_failures(1_000_000)
            .breaker_minimum_calls(1_000_000)
            .total_timeout(secs(86_400))
    });
    let result = world.get();
    assert_eq!((result.unwrap_err().attempts(), world.clock.now().as_nanos()), (1_001, 0));
    world.assert_at_rest();
}

/// 11.2, 11.3: an attempt that we cut brings no error of its own, and does not take away the one before it.
#[test]
fn c11_3_the_last_error_outlives_an_attempt_that_is_cut() {
    let clock = VirtualClock::new();
    for attempt_timeout in [secs(2), secs(60)] {
        let guard = Guard::builder("mail")
            .attempts(2)
            .attempt_timeout(attempt_timeout)
            .total_timeout(secs(10))
            .clock(clock.clone())
            .build()
            .unwrap();
        let operation = |context: steadfast::Context| async move {
            if context.attempt == 1 { Err::<(), _>("greylisted") } else { pending().await }
        };
        let result = clock.run(guard.transient(|_: &_| true).call_with(operation)).unwrap();
        let GuardError::Limit { error, last } = result.unwrap_err() else { panic!("a limit of ours ended it") };
        assert_eq!(last, Some("greylisted"));
        let expected = if attempt_timeout < secs(10) { ErrorKind::Unreachable } else { ErrorKind::Timeout };
        assert_eq!(error.kind(), expected);
        let outcomes: Vec<_> = error.report().attempts().map(|attempt| attempt.outcome).collect();
        assert_eq!(outcomes[0], Outcome::Error);
    }
}

/// 7.2: the source is that of the attempt that the message speaks of.
#[test]
fn c7_2_the_source_is_the_last_attempts() {
    let world = World::with([Step::reset(), Step::hang()], |client| client.total_timeout(secs(2)));
    let error = world.get().unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 2));
    assert!(std::error::Error::source(&error).is_none());
}

/// Says that more will come than fits anywhere, and sends two bytes.
struct Boaster(u8);

impl Body for Boaster {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        self.0 += 1;
        Poll::Ready((self.0 <= 2).then(|| Ok(Frame::data(Bytes::from_static(b"x")))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::MAX / 2)
    }
}

/// 7.5: memory is not set aside for what a head only claims.
#[test]
fn c7_5_a_length_that_is_only_claimed_costs_nothing() {
    let body = ResponseBody::boxed(Boaster(0));
    assert_eq!(block_on(body.collect(u64::MAX)).unwrap(), "xx");
}

#[test]
fn c7_5_a_body_just_at_the_limit_is_whole() {
    for (limit, is_whole) in [(10, true), (9, false)] {
        let world = World::with([Step::status(200).body("0123456789")], |client| client.max_response_bytes(limit));
        assert_eq!(world.get().is_ok(), is_whole, "{limit}");
    }
}

/// 8.6
#[test]
fn c8_6_what_is_printed_of_hooks_and_bodies_holds_no_secret() {
    let shown = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&shown);
    let world = World::with([Step::status(200).body(r#"{"token":"S3CR3T"}"#)], |client| {
        client.before_attempt(move |parts| {
            *sink.lock().unwrap() = format!("{parts:?}");
            Ok(())
        })
    });
    let request = world.client.put("/invoices").query(&[("apikey", "S3CR3T")]).bearer_auth("S3CR3T").body("S3CR3T");
    let response = world.run(request.header("x-session", "S3CR3T").send()).unwrap();
    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code, reason = "only its type matters")]
    struct Token {
        token: u64,
    }
    let error = response.json::<Token>().unwrap_err();
    for text in [shown.lock().unwrap().clone(), format!("{error:?}"), error.to_string(), format!("{response:?}")] {
        assert!(!text.is_empty() && !text.contains("S3CR3T"), "{text}");
    }
}
