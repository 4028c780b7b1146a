use std::time::Duration;

use super::super::duration::DAY;

use super::*;

fn text(builder: SettingsBuilder) -> String {
    builder.build().expect_err("is refused").to_string()
}

#[test]
fn each_setter_lands_in_its_field() {
    let settings = SettingsBuilder::new("http://billing:8010/api")
        .name("billing")
        .retries(4)
        .total_timeout(Duration::from_secs(5))
        .breaker_failure_rate(1.0)
        .retry_budget_gate(false)
        .jitter(Jitter::Additive)
        .rate_limit_style(RateStyle::Smooth)
        .rate_limit(20_000)
        .retry_statuses(&[503])
        .headers(&[("X-Tenant", "a"), ("Accept", "b")])
        .header("x-tenant", "c")
        .user_agent("me/1")
        .tls_roots(&[PathBuf::from("/a.pem")])
        .deadline_header("X-Deadline")
        .replay_buffer_bytes(0)
        .http_version(HttpVersion::Http2)
        .http2_ping_interval(Duration::from_secs(15))
        .http2_ping_timeout(Duration::from_secs(3))
        .proxy(Proxy::Off)
        .brotli(false)
        .zstd(false)
        .tls_roots_only(true)
        .tls_identity(Path::new("/me.pem"))
        .tls_identity_key(&PathBuf::from("/me.key"))
        .tls_server_name("billing.internal")
        .build()
        .unwrap();
    assert_eq!((settings.name.as_str(), settings.retries), ("billing", 4));
    assert_eq!(settings.total_timeout, Duration::from_secs(5));
    assert_eq!((settings.jitter, settings.rate_limit_style), (Jitter::Additive, RateStyle::Smooth));
    assert_eq!((settings.rate_limit, settings.retry_budget_gate), (Some(20_000), false));
    assert_eq!(settings.retry_statuses.iter().collect::<Vec<_>>(), [503]);
    assert_eq!(settings.headers["x-tenant"], "c");
    assert!(settings.headers["x-tenant"].is_sensitive() && !settings.headers["accept"].is_sensitive());
    assert_eq!(settings.headers.len(), 2);
    assert_eq!(settings.user_agent, "me/1");
    assert_eq!(settings.tls_roots, [PathBuf::from("/a.pem")]);
    assert_eq!(settings.deadline_header.unwrap(), "x-deadline");
    assert_eq!((settings.replay_buffer_bytes, settings.http_version), (0, HttpVersion::Http2));
    assert_eq!(settings.http2_ping_interval, Some(Duration::from_secs(15)));
    assert_eq!((settings.http2_ping_timeout, settings.proxy), (Duration::from_secs(3), Proxy::Off));
    assert_eq!((settings.gzip, settings.brotli, settings.zstd), (true, false, false));
    assert!(settings.tls_roots_only && !settings.tls_platform_roots);
    assert_eq!(settings.tls_identity.unwrap(), Path::new("/me.pem"));
    assert_eq!(settings.tls_identity_key.unwrap(), Path::new("/me.key"));
    assert_eq!(settings.tls_server_name.as_deref(), Some("billing.internal"));
}

#[test]
fn without_setters_it_is_the_defaults_and_the_name_the_hosts() {
    for (url, name) in [
        ("http://api.example.com", "api-example-com"),
        ("http://127.0.0.1:8010/x", "127-0-0-1"),
        ("https://[::1]/", "--1"),
        ("http://billing_1", "billing_1"),
    ] {
        let settings = SettingsBuilder::new(url).build().unwrap();
        assert_eq!(settings, Settings::new(name, steadfast_http::BaseUrl::parse(url).unwrap()));
    }
}

/// 1.3, B8: what would turn a deadline off is refused in a builder too, and all of it at once.
#[test]
fn c1_3_b8_zero_infinite_nan_and_too_long_are_refused_at_once() {
    let builder = SettingsBuilder::new("ftp://billing")
        .name("b c")
        .connect_timeout(Duration::ZERO)
        .total_timeout(Duration::MAX)
        .read_timeout(DAY + Duration::from_nanos(1))
        .retries(u32::MAX)
        .retry_budget_ratio(f64::NAN)
        .retry_budget_min_per_second(f64::INFINITY)
        .breaker_failure_rate(0.0)
        .backoff_factor(-1.0)
        .breaker_statuses(&[503, 99, 600])
        .max_concurrent(0)
        .headers(&[("Idempotency-Key", "k"), ("a b", "c"), ("X-A", "d\n")])
        .user_agent("")
        .http2_ping_interval(Duration::ZERO)
        .replay_buffer_bytes((1 << 30) + 1)
        .tls_identity(Path::new(""))
        .tls_identity_key(Path::new("me.key"))
        .tls_server_name("billing internal");
    insta::assert_snapshot!(text(builder), @r#"
    base_url: expected the scheme http or https
    connect_timeout: expected a duration above 0s, at most 24h; found 0s
    read_timeout: expected a duration above 0s, at most 24h; found 86400.000000001s
    total_timeout: expected a duration above 0s, at most 24h; found 18446744073709551615.999999999s
    retries: expected an integer from 0 to 1000; found the integer 4294967295
    backoff_factor: expected a number from 1 to 1000; found the float -1.0
    retry_budget_ratio: expected a number from 0 to 1000; found the float NaN
    retry_budget_min_per_second: expected a number from 0 to 1000000; found the float inf
    breaker_failure_rate: expected a number above 0, at most 1; found the float 0.0
    breaker_statuses[1]: expected an HTTP status, 200 to 599; found the integer 99
    breaker_statuses[2]: expected an HTTP status, 200 to 599; found the integer 600
    max_concurrent: expected an integer from 1 to 1000000; found the integer 0
    replay_buffer_bytes: expected an integer from 0 to 1073741824; found the integer 1073741825
    headers.Idempotency-Key: one configured key would make all calls one; give each call its own with `.idempotency_key(…)`
    headers."a b": not a header name: letters, digits, and - . _ ~ ! # $ % & ' * + ^ ` | only
    headers.X-A: expected a string of visible ASCII, no space at its ends, at most 8192 bytes; found a string with a space at its end
    user_agent: expected a string of 1 to 256 visible ASCII characters; found the string ""
    http2_ping_interval: expected a duration above 0s, at most 24h; found 0s
    tls_identity: expected a string with a file's name; found a path
    tls_server_name: expected a string with a DNS name or an IP address; found the string "billing internal"
    name: expected an upstream's name, 1 to 64 of A-Z a-z 0-9 _ -; found "b c"
    "#);
}

/// 6.1: the window style remembers every start, so its limit is lower.
#[test]
fn c6_1_a_window_has_a_lower_limit() {
    insta::assert_snapshot!(text(SettingsBuilder::new("http://a").rate_limit(10_001)), @r#"rate_limit: expected at most 10000 with rate_limit_style = "window" ("smooth" takes up to 1000000000); found 10001"#);
    assert!(SettingsBuilder::new("http://a").rate_limit(10_000).build().is_ok());
}

#[test]
fn of_two_calls_the_later_counts() {
    let builder = SettingsBuilder::new("").base_url("http://a").retries(5_000).retries(1);
    assert_eq!(builder.build().unwrap().retries, 1);
    assert!(SettingsBuilder::new("http://a").retries(1).retries(5_000).build().is_err());
    // An empty name is a mistake of its own.
    assert_eq!(SettingsBuilder::new("").name("").build().unwrap_err().len(), 2);
    assert_eq!(SettingsBuilder::new("").build().unwrap_err().len(), 1);
}

#[test]
fn the_origin_of_each_value_is_known() {
    let effective = SettingsBuilder::new("http://a").retries(3).build_effective().unwrap();
    let origins: Vec<(&str, Origin)> = effective.entries().map(|entry| (entry.key, entry.origin)).collect();
    assert_eq!(origins.len(), KEYS.len());
    for (key, origin) in origins {
        let set = ["base_url", "retries"].contains(&key);
        assert_eq!(origin, if set { Origin::Builder } else { Origin::Default }, "{key}");
    }
}

/// 8.6: what was given is not shown.
#[test]
fn c8_6_debug_shows_no_values() {
    let builder = SettingsBuilder::new("http://user:hunter2@a").header("Authorization", "Bearer hunter2").retries(1);
    let shown = format!("{builder:?} {:?}", builder.clone().build());
    assert!(!shown.contains("hunter2") && shown.contains("retries"), "{shown}");
}
