use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(document: Value) -> ProblemDetails {
    serde_json::from_value(document).unwrap()
}

/// 7.3, 4.5: every kind of error: status, title, and a detail that names the upstream alone.
#[test]
fn c7_3_every_kind_of_error() {
    for (reason, status, title, detail) in [
        ("circuit_open", 503, "Upstream Circuit Open", "circuit breaker 'billing' is open"),
        ("bulkhead_full", 503, "Upstream Bulkhead Full", "too many calls to upstream 'billing' are in flight"),
        ("rate_limited", 503, "Upstream Rate Limited", "the rate limit of upstream 'billing' is used up"),
        ("timeout", 503, "Upstream Timeout", "upstream 'billing' did not answer in time"),
        ("unreachable", 503, "Upstream Unreachable", "upstream 'billing' could not be reached"),
        ("closed", 503, "Upstream Client Closed", "the client of upstream 'billing' is closed"),
        ("invalid_request", 500, "Internal Server Error", "the request to upstream 'billing' could not be made"),
        ("operation_failed", 503, "Upstream Failed", "upstream 'billing' failed"),
        ("operation_rejected", 500, "Internal Server Error", "what was asked of upstream 'billing' could not be done"),
        ("anything", 503, "Upstream Unavailable", "upstream 'billing' is not available"),
    ] {
        let problem = ProblemDetails::of_call(reason, "billing");
        let expected = json!({
            "type": "about:blank", "title": title, "status": status, "detail": detail,
            "reason": reason, "upstream": "billing",
        });
        assert_eq!(serde_json::to_value(&problem).unwrap(), expected);
        assert_eq!(problem.retry_after_header(), None);
    }
}

#[test]
fn a_request_that_the_service_did_not_take_on() {
    for (reason, status, title) in [
        ("overloaded", 503, "Service Overloaded"),
        ("deadline_passed", 504, "Deadline Passed"),
        ("anything", 503, "Service Unavailable"),
    ] {
        let problem = ProblemDetails::of_service(reason);
        assert_eq!((problem.status, problem.title.as_deref()), (Some(status), Some(title)));
        assert_eq!((problem.reason.as_deref(), problem.upstream), (Some(reason), None));
    }
}

/// 7.3: status, media type, and `Retry-After` where one is known.
#[test]
fn c7_3_as_a_response() {
    let problem = ProblemDetails::of_call("circuit_open", "billing").with_retry_after(Duration::from_millis(4_200));
    let response: Response<Bytes> = problem.to_response();
    assert_eq!((response.status().as_u16(), &response.headers()[RETRY_AFTER]), (503, &HeaderValue::from(5)));
    assert_eq!(response.headers()[CONTENT_TYPE], MEDIA_TYPE);
    assert_eq!(response.body(), &problem.to_json());
    let broken = ProblemDetails { status: Some(7), ..ProblemDetails::default() };
    let response: Response<Bytes> = broken.to_response();
    assert_eq!((response.status().as_u16(), response.headers().get(RETRY_AFTER)), (500, None));
}

/// 7.3
#[test]
fn c7_3_a_whole_document() {
    let problem = ProblemDetails::of_call("timeout", "billing")
        .with_request_id("r-42")
        .with_attempts(3)
        .with_retry_after(Duration::from_micros(1_234_001))
        .with_instance("/orders")
        .with_extension("hint", "later")
        .with_extension("status", 200);
    let expected = json!({
        "type": "about:blank", "title": "Upstream Timeout", "status": 503,
        "detail": "upstream 'billing' did not answer in time", "instance": "/orders",
        "reason": "timeout", "upstream": "billing", "request_id": "r-42", "attempts": 3, "retry_after": 1.235,
        "hint": "later",
    });
    let written: Value = serde_json::from_slice(&problem.to_json()).unwrap();
    assert_eq!(written, expected);
    assert_eq!(read(written), problem);
    assert_eq!(problem.extensions().len(), 1);
    assert_eq!(MEDIA_TYPE, "application/problem+json");
}

/// 7.3: rounded up, at least 1.
#[test]
fn c7_3_the_retry_after_header() {
    for (wait, expected) in [
        (Duration::ZERO, "1"),
        (Duration::from_nanos(1), "1"),
        (Duration::from_secs(1), "1"),
        (Duration::from_nanos(1_000_000_001), "2"),
        (Duration::from_millis(14_200), "15"),
        (Duration::from_secs(u64::MAX), "18446744073709551615"),
        (Duration::MAX, "18446744073709551615"),
    ] {
        assert_eq!(retry_after_header(wait), expected, "{wait:?}");
        let problem = ProblemDetails::default().with_retry_after(wait);
        assert_eq!(problem.retry_after_header().unwrap(), expected, "{wait:?}");
    }
    for seconds in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        let problem = ProblemDetails { retry_after: Some(seconds), ..ProblemDetails::default() };
        assert_eq!(problem.retry_after_header(), None, "{seconds}");
        assert!(serde_json::from_slice::<Value>(&problem.to_json()).is_ok());
    }
}

/// RFC 9457 3.1, 3.2: a member of the wrong type is as if absent; an unknown one is kept.
#[test]
fn documents_of_others_are_read_tolerantly() {
    let problem = read(json!({
        "type": 7, "title": null, "status": "503", "detail": ["x"], "instance": {}, "upstream": true,
        "request_id": 1, "attempts": -1, "retry_after": "5", "balance": 30, "accounts": ["/a"],
    }));
    let expected = ProblemDetails::default().with_extension("balance", 30).with_extension("accounts", json!(["/a"]));
    assert_eq!(problem, expected);
    assert_eq!(read(json!({})), ProblemDetails::default());
    assert_eq!(read(json!({"status": 70_000, "retry_after": -2})), ProblemDetails::default());
    assert_eq!(read(json!({"status": 404, "retry_after": 2})).retry_after, Some(2.0));
    assert!(serde_json::from_value::<ProblemDetails>(json!([])).is_err());
}

proptest! {
    #![proptest_config(crate::testing::seeded())]

    #[test]
    fn written_and_read_back(
        detail in ".{0,12}", status in any::<u16>(), millis in 0..1_u64 << 50, name in "[a-z_]{1,12}", number in any::<i64>(),
    ) {
        let problem = ProblemDetails::new(status, "t", detail)
            .with_retry_after(Duration::from_millis(millis))
            .with_extension(&name, number);
        prop_assert_eq!(serde_json::from_slice::<ProblemDetails>(&problem.to_json()).unwrap(), problem);
    }

    /// The document and the header agree.
    #[test]
    fn both_ways_to_the_header(nanos in 0..1_u64 << 53) {
        let wait = Duration::from_nanos(nanos);
        let problem = ProblemDetails::default().with_retry_after(wait);
        prop_assert_eq!(problem.retry_after_header().unwrap(), retry_after_header(wait));
    }
}
