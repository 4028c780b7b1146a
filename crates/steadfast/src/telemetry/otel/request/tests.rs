#![allow(clippy::unwrap_used)]

use http::HeaderValue;
use steadfast_http::{BaseUrl, Fault};

use super::*;

fn settings(base: &str, record_url: bool) -> Settings {
    Settings { record_url, ..Settings::new("billing", BaseUrl::parse(base).unwrap()) }
}

fn text(attributes: &[KeyValue]) -> Vec<String> {
    attributes.iter().map(|pair| format!("{}={}", pair.key, pair.value)).collect()
}

fn attributes(method: &str, uri: &str, host: Option<&'static str>, settings: &Settings) -> Vec<String> {
    let (method, uri) = (Method::from_bytes(method.as_bytes()).unwrap(), uri.parse().unwrap());
    let headers = host.map(|host| (HOST, HeaderValue::from_static(host))).into_iter().collect();
    let shown = Shown { method: &method, uri: &uri, settings, headers: &headers, trace: None };
    text(&Request::new(&shown).attributes())
}

/// Where a request goes, in each form in which that can be said.
#[test]
fn host_and_port_are_those_of_the_request() {
    let http = settings("http://billing.test:8010/api", false);
    let https = settings("https://billing.test", false);
    for (uri, host, settings, address, port) in [
        ("http://billing.test/x", None, &http, "billing.test", 80),
        ("https://billing.test/x", None, &http, "billing.test", 443),
        ("http://[::1]:8080/x", None, &http, "::1", 8080),
        ("http://user:S3CR3T@billing.test/x", None, &http, "billing.test", 80),
        // In a layer a request may say no more than its path.
        ("/x", Some("orders.test:81"), &http, "orders.test", 81),
        ("/x", Some("orders.test"), &https, "orders.test", 443),
        ("/x", None, &http, "billing.test", 8010),
        ("/x", Some("no host at all"), &https, "billing.test", 443),
    ] {
        let expected =
            ["http.request.method=GET".to_owned(), format!("server.address={address}"), format!("server.port={port}")];
        assert_eq!(attributes("GET", uri, host, settings), expected, "{uri} {host:?}");
    }
}

/// 8.6: what may be a secret is left out of the URL, also where it has no name.
#[test]
fn c8_6_the_url_is_without_secrets() {
    let settings = settings("https://billing.test", true);
    for (uri, expected) in [
        ("https://billing.test/a?b=c", "https://billing.test/a?b=REDACTED"),
        ("https://u:p@billing.test:8443/a", "https://billing.test:8443/a"),
        ("http://[::1]/a?token&b=&=c&&d=e=f", "http://[::1]/a?REDACTED&REDACTED&=REDACTED&&d=REDACTED"),
        // A bare token, as padded base64 has it.
        ("/a?UzNDUjNU==", "https://billing.test/a?REDACTED"),
        ("/a", "https://billing.test/a"),
    ] {
        let all = attributes("GET", uri, None, &settings);
        assert_eq!(all.last().unwrap(), &format!("url.full={expected}"));
    }
    let long = attributes("GET", &format!("/{}", "a".repeat(5_000)), None, &settings);
    assert_eq!(long.last().unwrap().len(), "url.full=".len() + LONGEST_URL);
}

/// A method is known as it is written, or not at all.
#[test]
fn methods_are_known_or_other() {
    let settings = settings("http://billing.test", false);
    for known in METHODS.split(',') {
        assert_eq!(attributes(known, "/", None, &settings)[0], format!("http.request.method={known}"));
    }
    for other in ["get", "PURGE", "GE"] {
        let all = attributes(other, "/", None, &settings);
        assert_eq!(all[0], "http.request.method=_OTHER");
        assert_eq!(all[3], format!("http.request.method_original={other}"));
    }
    // The list that a service names is the whole list.
    let known = |name: &str| method(&Method::from_bytes(name.as_bytes()).unwrap(), "PURGE, GET").0;
    assert_eq!((known("PURGE"), known("GET"), known("PUT")), (Some("PURGE".into()), Some("GET".into()), None));
    let (_, original) = method(&Method::from_bytes("X".repeat(2_000).as_bytes()).unwrap(), METHODS);
    assert_eq!(original.unwrap().len(), LONGEST);
}

/// Status 400 and above is an error of the client's span, and so is no response.
#[test]
fn what_is_an_error() {
    for (outcome, expected) in [
        (Outcome::Ok, None),
        (Outcome::Status(204), None),
        (Outcome::Status(399), None),
        (Outcome::Status(400), Some("400")),
        (Outcome::Status(503), Some("503")),
        (Outcome::Error, Some("_OTHER")),
        (Outcome::Fault(Fault::ReadTimeout), Some("read_timeout")),
    ] {
        assert_eq!(error_type(outcome).as_deref(), expected, "{outcome:?}");
        let mut said = Vec::new();
        assert_eq!(of_outcome(outcome, &mut said), expected.is_some());
        assert_eq!(
            text(&said).len(),
            usize::from(expected.is_some()) + usize::from(matches!(outcome, Outcome::Status(_)))
        );
    }
}

/// A cut is between characters.
#[test]
fn text_is_cut_between_characters() {
    assert_eq!((cut("aé", 2), cut("aé", 3), cut("aé", 9), cut("é", 1)), ("a", "aé", "aé", ""));
}
