use http::header::ACCEPT;
use proptest::prelude::*;

use super::*;

const LEFT: Duration = Duration::from_secs(5);

fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

fn value(text: &'static str) -> HeaderValue {
    HeaderValue::from_static(text)
}

fn trace(text: &str, state: &str) -> TraceContext {
    TraceContext::parse([text.as_bytes()], [state.as_bytes()]).unwrap()
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

/// 8.1, C38: every source, weakest first.
#[test]
fn c8_1_a_stronger_source_replaces_a_weaker_one() {
    let configured = map(&[
        ("user-agent", "configured"),
        ("content-type", "configured"),
        ("x-request-id", "configured"),
        ("authorization", "configured"),
        ("idempotency-key", "configured"),
        ("traceparent", "configured"),
        ("tracestate", "configured"),
        ("x-left", "configured"),
        ("x-a", "configured"),
        ("x-b", "configured"),
    ]);
    let names: Vec<String> = configured.keys().map(ToString::to_string).collect();
    let user_agent = value("default");
    let mut layers = Layers { user_agent: Some(&user_agent), configured: Some(&configured), ..Layers::default() };
    for name in &names {
        let composed = compose(&layers).unwrap().for_attempt(None, LEFT);
        assert_eq!(values(&composed, name), ["configured"], "{name}");
    }

    let inherited = value("inherited");
    let left = HeaderName::from_static("x-left");
    layers.content_type = Some(&inherited);
    layers.request_id = Some(&inherited);
    layers.bearer = Some(&inherited);
    layers.idempotency_key = Some(&inherited);
    layers.deadline_header = Some(&left);
    let context = trace(PARENT, "vendor=1");
    let composed = compose(&layers).unwrap().for_attempt(Some(&context), LEFT);
    for name in &names {
        let expected = match name.as_str() {
            "traceparent" => PARENT,
            "tracestate" => "vendor=1",
            "x-left" => "5000",
            "user-agent" | "x-a" | "x-b" => "configured",
            _ => "inherited",
        };
        assert_eq!(values(&composed, name), [expected], "{name}");
    }

    let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "call")).collect();
    let call = map(&pairs);
    layers.call = Some(&call);
    let composed = compose(&layers).unwrap().for_attempt(Some(&context), LEFT);
    for name in &names {
        assert_eq!(values(&composed, name), ["call"], "{name}");
    }
    assert_eq!(composed.len(), names.len());
}

/// 8.1: two lines that one source gives are both kept, in order, and replace all of a weaker one.
#[test]
fn c8_1_lines_of_one_source_stay_together() {
    let configured = map(&[("accept", "a"), ("accept", "b"), ("x-c", "1"), ("x-c", "2")]);
    let call = map(&[("Accept", "c"), ("accept", "d")]);
    let composed = compose(&Layers { configured: Some(&configured), call: Some(&call), ..Layers::default() }).unwrap();
    assert_eq!(values(composed.headers(), ACCEPT.as_str()), ["c", "d"]);
    assert_eq!(values(composed.headers(), "x-c"), ["1", "2"]);
    assert!(composed.dropped().is_empty());
}

/// 2.8, A32, A135, A136: attempts differ by their span and the time left alone.
#[test]
fn a135_attempts_carry_one_traceparent_each() {
    let (id, key, left) = (value("r-1"), value("k-1"), HeaderName::from_static("x-left"));
    let composed = compose(&Layers {
        request_id: Some(&id),
        idempotency_key: Some(&key),
        deadline_header: Some(&left),
        ..Layers::default()
    })
    .unwrap();
    let served = trace(PARENT, "");
    let first = composed.for_attempt(Some(&served.child([1; 8])), LEFT);
    let mut second = composed.for_attempt(Some(&served.child([2; 8])), Duration::from_millis(4_000));
    assert_eq!(values(&first, "traceparent"), ["00-0af7651916cd43dd8448eb211c80319c-0101010101010101-01"]);
    assert_eq!(values(&second, "traceparent"), ["00-0af7651916cd43dd8448eb211c80319c-0202020202020202-01"]);
    assert_eq!((values(&first, "x-left"), values(&second, "x-left")), (vec!["5000".into()], vec!["4000".into()]));
    second.insert(TRACEPARENT, first[TRACEPARENT].clone());
    second.insert(left, first["x-left"].clone());
    assert_eq!(first, second);
}

/// 8.1, 8.5: no traceparent meets the tracestate of another source.
#[test]
fn c8_5_the_tracing_pair_is_one_thing() {
    let both = trace(PARENT, "vendor=1");
    let bare = trace(PARENT, "");
    let send = |configured: &[(&str, &str)], call: &[(&str, &str)], context: Option<&TraceContext>| {
        let (configured, call) = (map(configured), map(call));
        let layers = Layers { configured: Some(&configured), call: Some(&call), ..Layers::default() };
        let headers = compose(&layers).unwrap().for_attempt(context, LEFT);
        (values(&headers, "traceparent").join("|"), values(&headers, "tracestate").join("|"))
    };
    let pair = |parent: &str, state: &str| (parent.to_owned(), state.to_owned());
    let old = ("tracestate", "old=1");
    assert_eq!(send(&[], &[], Some(&both)), pair(PARENT, "vendor=1"));
    assert_eq!(send(&[old], &[], Some(&bare)), pair(PARENT, ""));
    assert_eq!(send(&[old], &[("traceparent", OTHER)], None), pair(OTHER, ""));
    assert_eq!(send(&[], &[("traceparent", OTHER)], Some(&both)), pair(OTHER, ""));
    assert_eq!(send(&[], &[("traceparent", OTHER), ("tracestate", "own=1")], Some(&both)), pair(OTHER, "own=1"));
    assert_eq!(send(&[], &[("tracestate", "own=1")], Some(&both)), pair(PARENT, "own=1"));
}

/// A141, RFC 9110 7.6.1
#[test]
fn a141_what_belongs_to_a_connection_is_dropped_and_named() {
    let call = map(&[
        ("connection", "keep-alive, X-Foo"),
        ("connection", "\t x-bar ,, not a name, close"),
        ("keep-alive", "timeout=5"),
        ("x-foo", "1"),
        ("x-foo", "2"),
        ("x-bar", "1"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAMAAABk"),
        ("proxy-connection", "close"),
        ("proxy-authorization", "Basic eDp5"),
        ("proxy-authenticate", "Basic"),
        ("proxy-authentication-info", "x"),
        ("content-length", "7"),
        ("host", "evil.test"),
        ("x-kept", "1"),
    ]);
    let configured = map(&[("host", "virtual.test"), ("x-bar", "configured"), ("te", "trailers")]);
    let composed = compose(&Layers { configured: Some(&configured), call: Some(&call), ..Layers::default() }).unwrap();
    let expected = map(&[("host", "virtual.test"), ("x-bar", "configured"), ("x-kept", "1")]);
    assert_eq!(composed.headers(), &expected);
    let mut dropped: Vec<&str> = composed.dropped().iter().map(HeaderName::as_str).collect();
    dropped.sort_unstable();
    let mut names: Vec<&str> = call.keys().map(HeaderName::as_str).filter(|name| *name != "x-kept").collect();
    names.push("te");
    names.sort_unstable();
    assert_eq!(dropped, names);
}

/// What a response keeps when it is sent on. `Proxy-Status` is for whoever made the request (RFC 9209).
#[test]
fn a_response_that_is_sent_on_keeps_what_is_end_to_end() {
    let kept = [("content-type", "text/plain"), ("set-cookie", "a"), ("set-cookie", "b"), ("proxy-status", "x")];
    let dropped = [
        ("connection", "Keep-Alive, x-hop"),
        ("connection", "@, x-other ,,"),
        ("keep-alive", "timeout=5"),
        ("x-hop", "1"),
        ("x-other", "1"),
        ("te", "trailers"),
        ("trailer", "x-sum"),
        ("upgrade", "h2c"),
        ("proxy-authenticate", "Basic"),
        ("proxy-connection", "close"),
    ];
    let mut headers = map(&[&kept[..], &dropped[..]].concat());
    keep_end_to_end(&mut headers);
    assert_eq!(headers, map(&kept));
    let mut sized = map(&[("content-length", "5")]);
    keep_end_to_end(&mut sized);
    assert_eq!(sized, map(&[("content-length", "5")]));
    sized.insert("transfer-encoding", value("chunked"));
    keep_end_to_end(&mut sized);
    assert_eq!(sized, map(&[]));
}

/// A141: `Connection` can only take away what its own source gave.
#[test]
fn a141_connection_cannot_take_an_inherited_header_away() {
    let bearer = value("Bearer x");
    let call = map(&[("connection", "authorization, x-request-id"), ("authorization", "mine")]);
    let layers = Layers { bearer: Some(&bearer), request_id: Some(&bearer), call: Some(&call), ..Layers::default() };
    let headers = compose(&layers).unwrap();
    assert_eq!(values(headers.headers(), "authorization"), ["Bearer x"]);
    assert_eq!(values(headers.headers(), "x-request-id"), ["Bearer x"]);
}

/// A141, A135: what `Connection` takes away is not there, so the attempt's own takes its place.
#[test]
fn a141_a_dropped_trace_or_deadline_is_not_the_calls_own() {
    let call = map(&[
        ("connection", "traceparent, tracestate, x-left"),
        ("traceparent", OTHER),
        ("tracestate", "own=1"),
        ("x-left", "1"),
    ]);
    let left = HeaderName::from_static("x-left");
    let layers = Layers { deadline_header: Some(&left), call: Some(&call), ..Layers::default() };
    let headers = compose(&layers).unwrap().for_attempt(Some(&trace(PARENT, "vendor=1")), LEFT);
    assert_eq!(headers, map(&[("traceparent", PARENT), ("tracestate", "vendor=1"), ("x-left", "5000")]));
}

/// 8.6, A133: `Debug` masks what is secret, whoever set it.
#[test]
fn c8_6_secrets_are_masked() {
    let names = [
        "authorization",
        "cookie",
        "idempotency-key",
        "x-api-key",
        "apikey",
        "x-auth-token",
        "x-amz-security-token",
        "ocp-apim-subscription-key",
        "x-client-secret",
        "x-session",
        "x-csrf-token",
        "x_api_key",
        "x-signature",
    ];
    let pairs: Vec<(&str, &str)> = names.iter().map(|name| (*name, "s3cret")).collect();
    let (layer, secret) = (map(&pairs), value("s3cret"));
    for layers in [
        Layers { configured: Some(&layer), ..Layers::default() },
        Layers { call: Some(&layer), ..Layers::default() },
        Layers { bearer: Some(&secret), idempotency_key: Some(&secret), ..Layers::default() },
    ] {
        let composed = compose(&layers).unwrap();
        assert!(composed.headers().values().all(HeaderValue::is_sensitive));
        let shown = format!("{composed:?} {:?}", composed.for_attempt(None, LEFT));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    for name in ["accept", "content-type", "x-request-id", "traceparent", "x-keyboard", "etag", "author"] {
        assert!(!is_secret(&HeaderName::from_static(name)), "{name}");
    }
}

/// More headers than a map holds are an error and no panic.
#[test]
fn too_many_headers_are_an_error() {
    let numbered = |from: usize, count: usize| {
        let names = (from..from + count).map(|number| HeaderName::try_from(format!("x-{number}")).unwrap());
        names.map(|name| (name, value("1"))).collect::<HeaderMap>()
    };
    let (left, right) = (numbered(0, 20_000), numbered(20_000, 20_000));
    let layers = Layers { configured: Some(&left), call: Some(&right), ..Layers::default() };
    assert_eq!(compose(&layers).unwrap_err(), InvalidHeader::TooMany);
    let (left, right) = (numbered(0, 5_000), numbered(20_000, 5_000));
    let layers = Layers { configured: Some(&left), call: Some(&right), ..Layers::default() };
    assert_eq!(compose(&layers).unwrap().headers().len(), 10_000);
}

/// 8.2
#[test]
fn c8_2_request_ids() {
    let long = "x".repeat(128);
    for id in ["r-42", "!", "~", "a/b:c,d;e=\"f\"", long.as_str()] {
        assert_eq!(request_id(id.as_bytes()).unwrap(), id);
    }
    let too_long = "x".repeat(129);
    for id in ["", " ", "a b", "a\tb", " a", "a\r\nX-Evil: 1", "a\0", "\u{7f}", "r\u{e4}", too_long.as_str()] {
        assert_eq!(request_id(id.as_bytes()), None, "{id:?}");
    }
    assert_eq!(request_id(b"a\xff"), None);
}

/// B13, A139, A141: what may not be configured says why, and never what.
#[test]
fn a139_configured_headers() {
    let (name, value) = configured("X-Api-Key", " s3cret\t").unwrap();
    assert_eq!((name.as_str(), value.as_bytes(), value.is_sensitive()), ("x-api-key", &b"s3cret"[..], true));
    assert!(!configured("Accept", "a b\tc").unwrap().1.is_sensitive());
    assert!(configured("Host", "virtual.test").is_ok());
    assert!(configured("x-empty", "").is_ok());
    for name in ["", "a b", "a:b", "a\n", "\u{e4}", "a/b", "\"a\"", &"x".repeat(70_000)] {
        assert_eq!(configured(name, "x"), Err(InvalidHeader::Name), "{name:?}");
    }
    for value in ["a\r\nX-Evil: 1", "a\rb", "a\nb", "a\0b", "\u{7f}", "\u{e4}", "\r\n", "a\n"] {
        assert_eq!(configured("x-a", value), Err(InvalidHeader::Value), "{value:?}");
    }
    for name in ["Connection", "TE", "transfer-encoding", "Content-Length", "Upgrade", "Proxy-Authorization"] {
        assert_eq!(configured(name, "x"), Err(InvalidHeader::OfConnection), "{name}");
    }
    assert_eq!(configured("Idempotency-Key", "k"), Err(InvalidHeader::SharedKey));
    assert_eq!(configured("idempotency-key", ""), Err(InvalidHeader::SharedKey));
}

proptest! {
    #![proptest_config(crate::testing::seeded())]

    /// 8.1: against the obvious model: the lines of the strongest source that has the name.
    #[test]
    fn c8_1_the_strongest_source_wins(
        configured in prop::collection::vec(("x-[abc]", "[0-9]"), 0..6),
        call in prop::collection::vec(("x-[abc]", "[0-9]"), 0..6),
    ) {
        fn pairs(source: &[(String, String)]) -> HeaderMap {
            let pairs: Vec<_> = source.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            map(&pairs)
        }
        let (weak, strong) = (pairs(&configured), pairs(&call));
        let composed = compose(&Layers { configured: Some(&weak), call: Some(&strong), ..Layers::default() }).unwrap();
        for name in ["x-a", "x-b", "x-c"] {
            let source = if strong.contains_key(name) { &strong } else { &weak };
            prop_assert_eq!(values(composed.headers(), name), values(source, name));
        }
    }

    /// 8.2
    #[test]
    fn c8_2_no_id_panics(id in prop::collection::vec(any::<u8>(), 0..140)) {
        if let Some(kept) = request_id(&id) {
            prop_assert_eq!(kept.as_bytes(), id.as_slice());
            prop_assert!(kept.to_str().is_ok());
        }
    }
}
