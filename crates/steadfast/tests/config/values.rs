//! Each type in a file: what is read, and as what it is shown. 9.1, 9.2.

use std::time::Duration;

use steadfast::config::{Loader, SettingsBuilder};
use steadfast::transport::{Proxy, ProxyUrl};

use crate::{complaint, entry, load};

fn shown(key: &str, value: &str) -> String {
    let toml = format!("[upstreams.a]\nbase_url = \"http://a\"\nrate_limit_style = \"smooth\"\n{key} = {value}\n");
    let toml = if key == "rate_limit_style" { toml.replacen("rate_limit_style = \"smooth\"\n", "", 1) } else { toml };
    let config = load(&toml).unwrap_or_else(|problems| panic!("{key} = {value}: {problems}"));
    entry(&config, "a", key).0
}

/// 9.1: seconds as a number, or text; both exact.
#[test]
fn c9_1_durations() {
    for (value, text) in [
        ("5", "5s"),
        ("5.0", "5s"),
        ("0.1", "100ms"),
        ("0.3", "300ms"),
        ("1_0.000_000_001", "10.000000001s"),
        ("1e-3", "1ms"),
        ("0x10", "16s"),
        ("\"250ms\"", "250ms"),
        ("\"1.5s\"", "1.5s"),
        ("'''2m'''", "2m"),
        ("\"24h\"", "24h"),
        ("86400", "24h"),
        ("\"100us\"", "100us"),
        ("\"5ns\"", "5ns"),
    ] {
        assert_eq!(shown("total_timeout", value), text, "{value}");
    }
    assert_eq!(shown("bulkhead_wait", "0"), "0s");
    assert_eq!(shown("bulkhead_wait", "-0.0"), "0s");
}

#[test]
fn c9_2_every_other_type() {
    for (key, value, text) in [
        ("retries", "0", "0"),
        ("retries", "1_000", "1000"),
        ("max_response_bytes", "1099511627776", "1099511627776"),
        ("rate_limit", "1000000000", "1000000000"),
        ("retry_budget_ratio", "0", "0"),
        ("retry_budget_ratio", "-0.0", "0"),
        ("retry_budget_ratio", "1.5", "1.5"),
        ("retry_budget_min_per_second", "1000000", "1000000"),
        ("breaker_failure_rate", "1", "1"),
        ("breaker_failure_rate", "1e-9", "0.000000001"),
        ("gzip", "false", "false"),
        ("jitter", "\"equal\"", "equal"),
        ("rate_limit_style", "\"window\"", "window"),
        ("retry_statuses", "[]", "none"),
        ("retry_statuses", "[503, 429, 503]", "429, 503"),
        ("headers", "{}", "none"),
        ("headers", "{ X-Empty = \"\" }", "x-empty: (masked)"),
        ("tls_roots", "[\"/a.pem\", \"b c.pem\"]", "/a.pem, b c.pem"),
        ("user_agent", "\"me/1 (x)\"", "me/1 (x)"),
        ("deadline_header", "\"X-Deadline-Ms\"", "x-deadline-ms"),
        ("attempt_spans", "false", "false"),
        ("record_url", "true", "true"),
        ("http_version", "\"http1\"", "http1"),
        ("replay_buffer_bytes", "0", "0"),
        ("replay_buffer_bytes", "0x4000_0000", "1073741824"),
        ("proxy", "true", "true"),
        ("proxy", "false", "false"),
        ("brotli", "false", "false"),
        ("tls_identity", "'C:\\me.pem'", "C:\\me.pem"),
        ("tls_server_name", "\"billing.internal\"", "billing.internal"),
        ("tls_server_name", "\"10.0.0.7\"", "10.0.0.7"),
        ("tls_server_name", "\"fd00::7\"", "fd00::7"),
    ] {
        assert_eq!(shown(key, value), text, "{key} = {value}");
    }
}

/// 8.6: what may be a token is masked in what is shown, and marked for the transport.
#[test]
fn c8_6_secrets_are_masked() {
    let config = load(
        r#"
[upstreams.a]
base_url = "http://a"
headers = { Authorization = "Bearer hunter2", X-Api-Key = "hunter2", X-Tenant = "hunter2", Accept = "text/plain" }
"#,
    )
    .unwrap();
    let shown = entry(&config, "a", "headers").0;
    assert_eq!(shown, "authorization: (masked), x-api-key: (masked), x-tenant: (masked), accept: text/plain");
    assert!(!format!("{config:?}").contains("hunter2"));
    let headers = &config.upstream("a").unwrap().settings().headers;
    assert_eq!(headers["authorization"], "Bearer hunter2");
}

/// 8.6: the address of a proxy is shown as it shows itself, without its credentials; a mistake in one repeats nothing.
#[test]
fn c8_6_a_proxys_credentials_are_shown_nowhere() {
    let url = "http://me:hunter2@proxy.internal:3128";
    let config = load(&format!("[upstreams.a]\nbase_url = \"http://a\"\nproxy = \"{url}\"")).unwrap();
    let proxy = Proxy::Url(ProxyUrl::parse(url).unwrap());
    assert_eq!(config.upstream("a").unwrap().settings().proxy, proxy);
    assert!(!entry(&config, "a", "proxy").0.contains("hunter2") && !format!("{config:?}").contains("hunter2"));

    let built = SettingsBuilder::new("http://a").proxy(proxy);
    assert!(!format!("{built:?} {:?}", built.clone().build()).contains("hunter2"));

    let variable = [("STEADFAST_UPSTREAMS__A__PROXY", "http://you:swordfish@proxy:1")];
    let file = format!("[upstreams.a]\nbase_url = \"http://a\"\nproxy = \"{url}\"");
    let config = Loader::new().text("app.toml", file).env(variable).load().unwrap();
    let warnings = config.warnings()[0].to_string();
    assert!(warnings.contains("is ignored") && !warnings.contains("hunter2") && !warnings.contains("swordfish"));

    for value in ["22022", "[\"hunter2\"]", "{ url = \"hunter2\" }", "\"\""] {
        let complaint = complaint(&format!("[upstreams.a]\nbase_url = \"http://a\"\nproxy = {value}"));
        assert!(!complaint.contains("hunter2") && !complaint.contains("22022"), "{complaint}");
    }
}

/// 9.3: keys that work badly together are not refused.
#[test]
fn c9_3_odd_pairs_are_allowed() {
    let config =
        load("[upstreams.a]\nbase_url = \"http://a\"\nbackoff_max = 0\nread_timeout = \"1h\"\nretries = 1000").unwrap();
    assert_eq!(config.upstream("a").unwrap().settings().backoff_max, Duration::ZERO);
}
