//! `/metrics` as Prometheus reads it. Everything here has a recorder of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::future::Future;
use std::task::{Context, Poll, Waker};

use http::Request;
use http_body_util::BodyExt;
use metrics::{counter, describe_counter, describe_histogram, gauge, histogram, with_local_recorder};
use steadfast::ServiceClient;
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast_axum::{MOST_SERIES, Prometheus};
use tower::Service;

/// What it shows of everything but upstreams, which other tests have too.
fn own(prometheus: &Prometheus) -> String {
    let text = prometheus.render();
    text.lines().filter(|line| !line.contains("steadfast_")).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn counters_gauges_and_histograms_in_the_text_format() {
    let prometheus = Prometheus::new().buckets("body.size", &[100.0, 10.0, f64::NAN, 10.0]);
    with_local_recorder(&prometheus, || {
        describe_counter!("mails.sent", "Mails that went out.\nWith a \\.");
        counter!("mails.sent", "to" => "a \"b\" \\ c\nd", "in-house" => "yes").increment(2);
        counter!("mails.sent", "to" => "e").increment(1);
        gauge!("9lives").set(f64::INFINITY);
        gauge!("level", "kind" => "a").set(-1.5);
        describe_histogram!("body.size", metrics::Unit::Bytes, "Sizes.");
        for size in [10.0, 10.5, 1_000.0, f64::NAN] {
            histogram!("body.size", "le" => "mine").record(size);
        }
        histogram!("took").record(0.3);
    });
    let expected = r#"# TYPE _9lives gauge
_9lives +Inf
# HELP body_size_bytes Sizes.
# TYPE body_size_bytes histogram
body_size_bytes_bucket{le_="mine",le="10"} 1
body_size_bytes_bucket{le_="mine",le="100"} 2
body_size_bytes_bucket{le_="mine",le="+Inf"} 3
body_size_bytes_sum{le_="mine"} 1020.5
body_size_bytes_count{le_="mine"} 3
# TYPE level gauge
level{kind="a"} -1.5
# HELP mails_sent_total Mails that went out.\nWith a \\.
# TYPE mails_sent_total counter
mails_sent_total{in_house="yes",to="a \"b\" \\ c\nd"} 2
mails_sent_total{to="e"} 1
# TYPE took histogram
"#;
    let text = own(&prometheus);
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("took_bucket{le=\"0.25\"} 0\ntook_bucket{le=\"0.5\"} 1\n"), "{text}");
    assert!(
        text.ends_with("took_bucket{le=\"60\"} 1\ntook_bucket{le=\"+Inf\"} 1\ntook_sum 0.3\ntook_count 1\n"),
        "{text}"
    );
}

#[test]
fn a_name_has_one_kind_and_is_there_once() {
    let prometheus = Prometheus::new();
    with_local_recorder(&prometheus, || {
        counter!("jobs").increment(1);
        // The same in Prometheus.
        counter!("jobs_total").increment(1);
        gauge!("jobs").set(7.0);
        describe_histogram!("took", metrics::Unit::Seconds, "");
        histogram!("took_seconds").record(1.0);
        gauge!("took_seconds").set(7.0);
    });
    let text = own(&prometheus);
    assert!(text.starts_with("# TYPE jobs_total counter\njobs_total 2\n# TYPE took_seconds histogram\n"), "{text}");
    assert_eq!(text.matches("# TYPE").count(), 2, "{text}");
}

#[test]
fn time_series_without_end_are_not_kept() {
    let prometheus = Prometheus::new();
    with_local_recorder(&prometheus, || {
        for number in 0..MOST_SERIES + 10 {
            counter!("visits", "visitor" => number.to_string()).increment(1);
        }
        // What was there before still counts.
        counter!("visits", "visitor" => "7").increment(1);
    });
    let text = own(&prometheus);
    assert_eq!(text.lines().count(), MOST_SERIES + 1);
    assert!(text.contains("\nvisits_total{visitor=\"7\"} 2\n"));
}

/// 8.6, and 4.9 from outside.
#[test]
fn the_service_answers_with_what_the_clients_do_now() {
    let mut prometheus = Prometheus::new();
    let clock = VirtualClock::new();
    let client = with_local_recorder(&prometheus, || {
        let steps = [Step::status(503), Step::status(200)];
        let builder =
            ServiceClient::builder("http://billing.test/pr3fix").name("endpoint").header("X-Api-Key", "S3CR3T");
        builder.clock(clock.clone()).transport(Script::new(clock.clone(), steps)).build().unwrap()
    });
    clock.run(client.get("/p4th?key=S3CR3T").send()).unwrap().unwrap();
    client.force_open();
    let response = now(Service::call(&mut prometheus, Request::new(()))).unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = String::from_utf8(now(response.into_body().collect()).unwrap().to_bytes().to_vec()).unwrap();
    for line in [
        "# TYPE steadfast_calls_total counter",
        "steadfast_calls_total{ended=\"response\",upstream=\"endpoint\"} 1",
        "steadfast_calls_total{ended=\"deadline\",upstream=\"endpoint\"} 0",
        "steadfast_attempts_total{outcome=\"5xx\",upstream=\"endpoint\"} 1",
        "steadfast_circuit_breaker_state{state=\"open\",upstream=\"endpoint\"} 1",
        "steadfast_circuit_breaker_transitions_total{to=\"open\",upstream=\"endpoint\",why=\"forced\"} 1",
        "steadfast_call_duration_seconds_count{upstream=\"endpoint\"} 1",
        "steadfast_call_timeout_seconds{upstream=\"endpoint\"} 30",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
    }
    for secret in ["S3CR3T", "pr3fix", "p4th", "billing.test"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

/// What needs no waiting.
fn now<F: Future>(future: F) -> F::Output {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(out) => out,
        Poll::Pending => panic!("it waits"),
    }
}
