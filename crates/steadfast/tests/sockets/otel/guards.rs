//! Guarded operations: INTERNAL spans, around whatever spans the operation makes of its own.

use std::io;

use opentelemetry::global;
use opentelemetry::trace::{SpanKind as OwnKind, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use steadfast::policy::backoff::Backoff;
use steadfast::{Guard, GuardError, Guards};

use crate::scene::{ROOT, facts, is, says, trace, within};

/// What a database's driver would do.
fn query(fails: bool) -> io::Result<()> {
    let tracer = global::tracer("driver");
    let builder = tracer.span_builder("own").with_kind(OwnKind::Client);
    let span = tracer.build(builder.with_attributes([KeyValue::new("db.system.name", "postgresql")]));
    Context::current_with_span(span).span().end();
    if fails { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(()) }
}

fn guard() -> Guard {
    let no_wait = Backoff { base: std::time::Duration::ZERO, ..Backoff::default() };
    Guard::database("ledger").backoff(no_wait).build().unwrap()
}

/// Call, attempt, the driver's span, attempt, the driver's span: each below the one it was made in.
fn assert_is_a_call_with_two_attempts(spans: &[Span]) {
    let [call, first, in_first, second, in_second] = spans else { panic!("{spans:#?}") };
    assert_eq!(is(call), ("ledger", SpanKind::Internal, false));
    assert_eq!(call.parent_span_id, ROOT.to_be_bytes());
    let ended = [("steadfast.ended", "response"), ("steadfast.retries", "1"), ("steadfast.upstream", "ledger")];
    assert_eq!(says(call), facts(&ended));
    assert_eq!(is(first), ("attempt", SpanKind::Internal, true));
    assert_eq!(says(first), facts(&[("error.type", "_OTHER"), ("steadfast.upstream", "ledger")]));
    assert_eq!(is(second), ("attempt", SpanKind::Internal, false));
    assert_eq!(says(second), facts(&[("steadfast.retry", "1"), ("steadfast.upstream", "ledger")]));
    for (attempt, own) in [(first, in_first), (second, in_second)] {
        assert_eq!(attempt.parent_span_id, call.span_id);
        assert_eq!((own.name.as_str(), &own.parent_span_id), ("own", &attempt.span_id));
    }
}

#[test]
fn c8_5_a_task_operation_runs_in_its_attempts_span() {
    let (_, spans) = within(trace(), async {
        let call = guard();
        let call = call.transient(|_: &io::Error| true);
        call.call_with(|context| async move { query(context.attempt == 1) }).await.unwrap();
    });
    assert_is_a_call_with_two_attempts(&spans);
}

#[test]
fn c8_5_so_does_one_on_a_helper_thread() {
    let (_, spans) = within(trace(), async {
        let call = guard();
        let call = call.transient(|_: &io::Error| true);
        call.call_on_thread(|context| query(context.attempt == 1)).await.unwrap();
    });
    assert_is_a_call_with_two_attempts(&spans);
}

#[test]
fn c8_5_so_does_one_on_the_thread_that_calls() {
    let (_, spans) = within(trace(), async {
        let call = guard();
        let call = call.transient(|_: &io::Error| true);
        call.call_blocking_with(|context| query(context.attempt == 1)).unwrap();
    });
    assert_is_a_call_with_two_attempts(&spans);
}

/// What an operation does before its future is polled belongs to the attempt as well.
#[test]
fn c8_5_the_beginning_of_an_operation_is_in_its_attempts_span_too() {
    let (_, spans) = within(trace(), async {
        guard().call(|| std::future::ready(query(false))).await.unwrap();
    });
    let [_, attempt, own] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((attempt.name.as_str(), own.name.as_str()), ("attempt", "own"));
    assert_eq!(own.parent_span_id, attempt.span_id);
}

/// A key may be a tenant's name, or a token: no backend of traces is told.
#[test]
fn c8_6_a_guard_for_a_key_is_called_as_its_family() {
    let (_, spans) = within(trace(), async {
        let guards = Guards::new(Guard::database("ledger")).unwrap();
        guards.get("s3cret").unwrap().call(|| std::future::ready(query(false))).await.unwrap();
    });
    assert!(spans.iter().all(|span| !format!("{span:?}").contains("s3cret")), "{spans:#?}");
    assert_eq!((is(&spans[0]).0, says(&spans[0])["steadfast.upstream"].as_str()), ("ledger", "ledger"));
}

/// An error of the operation's own is an error of the call.
#[test]
fn c8_5_an_operations_error_is_one_of_its_call() {
    let (_, spans) = within(trace(), async {
        let failed = guard().call(|| std::future::ready(query(true))).await;
        assert!(matches!(failed, Err(GuardError::Operation { .. })));
    });
    let [call, attempt, _] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((is(call).2, is(attempt).2), (true, true));
    assert_eq!(says(call)["error.type"], "_OTHER");
    assert_eq!(says(call)["steadfast.ended"], "not_repeatable");
}
