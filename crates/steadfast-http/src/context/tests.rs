use proptest::prelude::*;

use super::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn served() -> CallContext {
    CallContext::extract(&headers(&[
        ("X-Request-ID", "r-42"),
        ("Authorization", "Bearer s3cret"),
        ("traceparent", PARENT),
        ("tracestate", "vendor=1"),
        ("cookie", "session=s3cret"),
        ("x-tenant", "t"),
        ("baggage", "a=1"),
    ]))
}

/// 8.2, 8.3, 8.5, S72
#[test]
fn c8_2_what_is_taken_over() {
    let context = served().with_time_left(Duration::from_secs(3));
    assert_eq!(context.request_id(), Some("r-42"));
    assert_eq!(context.request_id_header().unwrap(), "r-42");
    assert_eq!(context.bearer().unwrap(), "Bearer s3cret");
    assert_eq!(context.trace().unwrap().to_string(), PARENT);
    assert_eq!(context.trace().unwrap().state().unwrap(), "vendor=1");
    assert_eq!(context.time_left(), Some(Duration::from_secs(3)));
    assert_eq!(CallContext::extract(&HeaderMap::new()), CallContext::new());
}

/// 8.3, S69: `Bearer` in any case, verbatim, the first header only.
#[test]
fn c8_3_only_a_bearer_travels() {
    let bearer = |lines: &[&str]| {
        let pairs: Vec<(&str, &str)> = lines.iter().map(|line| ("authorization", *line)).collect();
        let context = CallContext::extract(&headers(&pairs));
        context.bearer().map(|value| value.to_str().unwrap().to_owned())
    };
    for kept in ["Bearer x", "bearer x", "BEARER x", "bEaReR  x.y-z_~+/==", "Bearer x y"] {
        assert_eq!(bearer(&[kept]).as_deref(), Some(kept));
    }
    for lost in
        ["Basic eDp5", "Bearer", "Bearer ", "Bearer \t", "Bearerx", "Bearer\tx", "Digest a", "", "x Bearer y", "Bear"]
    {
        assert_eq!(bearer(&[lost]), None, "{lost:?}");
    }
    assert_eq!(bearer(&["Bearer 1", "Bearer 2"]).as_deref(), Some("Bearer 1"));
    assert_eq!(bearer(&["Basic 1", "Bearer 2"]), None);
    assert_eq!(CallContext::new().with_bearer(&HeaderValue::from_static("Basic x")).bearer(), None);
}

/// 8.2: an id that may not be forwarded is none.
#[test]
fn c8_2_a_bad_request_id_is_none() {
    for id in ["", "a b", &"x".repeat(129)] {
        assert_eq!(CallContext::extract(&headers(&[("x-request-id", id)])).request_id(), None, "{id:?}");
        assert_eq!(served().with_request_id(id).request_id(), None, "{id:?}");
    }
    let mut latin = HeaderMap::new();
    latin.insert(X_REQUEST_ID, HeaderValue::from_bytes(b"r\xe4").unwrap());
    assert_eq!(CallContext::extract(&latin).request_id(), None);
    assert_eq!(served().with_request_id("job-7").request_id(), Some("job-7"));
}

/// 8.5
#[test]
fn c8_5_a_bad_trace_is_none() {
    assert_eq!(CallContext::extract(&headers(&[("traceparent", "00-x"), ("tracestate", "a=1")])).trace(), None);
    assert_eq!(CallContext::extract(&headers(&[("traceparent", PARENT), ("traceparent", PARENT)])).trace(), None);
}

/// 8.3, 8.6: a job keeps no token, and neither does anything that is stored or printed.
#[test]
fn c8_3_no_token_is_kept() {
    let context = served().with_time_left(Duration::from_secs(3));
    let stored = serde_json::to_string(&context).unwrap();
    let expected = format!(r#"{{"request_id":"r-42","traceparent":"{PARENT}","tracestate":"vendor=1"}}"#);
    assert_eq!(stored, expected);
    let read: CallContext = serde_json::from_str(&stored).unwrap();
    assert_eq!(read, context.for_job());
    assert_eq!((read.bearer(), read.time_left()), (None, None));
    assert!(!format!("{context:?} {read:?}").contains("s3cret"));
    assert!(context.bearer().unwrap().is_sensitive());
    assert_eq!(serde_json::to_string(&CallContext::new()).unwrap(), "{}");
}

/// What is stored is input like any other.
#[test]
fn what_is_read_back_is_checked() {
    let read = |text: &str| serde_json::from_str::<CallContext>(text).unwrap();
    let context = read(r#"{"request_id":"a\r\nb","traceparent":"00-x","tracestate":"a=1","bearer":"Bearer x"}"#);
    assert_eq!(context, CallContext::new());
    let context = read(&format!(r#"{{"request_id":null,"traceparent":"{PARENT}","tracestate":"A=1"}}"#));
    assert_eq!((context.request_id(), context.trace().unwrap().state()), (None, None));
}

/// 1.1
#[test]
fn c1_1_time_left_from_a_header() {
    let name = HeaderName::from_static("x-time-left-ms");
    let from = |value: &str| served().with_time_left_from(&headers(&[("x-time-left-ms", value)]), &name).time_left();
    assert_eq!(from("250"), Some(Duration::from_millis(250)));
    assert_eq!(from("soon"), None);
    let context = served().with_time_left(Duration::from_secs(3)).with_time_left_from(&HeaderMap::new(), &name);
    assert_eq!(context.time_left(), Some(Duration::from_secs(3)));
}

proptest! {
    #![proptest_config(crate::testing::seeded())]

    /// Whatever comes in survives being stored, but for what may not be.
    #[test]
    fn stored_and_read_back(id in ".{0,8}", trace in any::<u128>(), span in any::<u64>(), state in "[a-c]=[ -~]{0,4}") {
        let traceparent = TraceContext::root(trace, span, true).to_string();
        let trace = TraceContext::parse([traceparent.as_bytes()], [state.as_bytes()]).unwrap();
        let context = CallContext::new().with_request_id(&id).with_trace(trace);
        let stored = serde_json::to_string(&context).unwrap();
        prop_assert_eq!(serde_json::from_str::<CallContext>(&stored).unwrap(), context);
    }

    #[test]
    fn no_headers_panic(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 3)) {
        let mut headers = HeaderMap::new();
        for (name, value) in ["x-request-id", "authorization", "traceparent"].into_iter().zip(values) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(name, value);
            }
        }
        let context = CallContext::extract(&headers);
        let _ = serde_json::to_string(&context).unwrap();
    }
}
