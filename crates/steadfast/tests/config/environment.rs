//! Environment variables: 9.4, C42, S75-S80, B14.

use insta::assert_snapshot;
use steadfast::config::{Config, Loader, Problems};

use crate::entry;

const FILE: &str = "[upstreams.billing]\nbase_url = \"http://a:8010\"\nretries = 1\n";

fn with(variables: &[(&str, &str)]) -> Result<Config, Problems> {
    Loader::new().text("app.toml", FILE).env(variables.iter().copied()).load()
}

fn warnings(config: &Config) -> String {
    config.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// C42: the environment wins for `base_url`, the file for every other key, each with one warning.
#[test]
fn c9_4_c42_who_wins() {
    let config = with(&[
        ("STEADFAST_UPSTREAMS__BILLING__BASE_URL", "http://b:8010"),
        ("STEADFAST_UPSTREAMS__BILLING__RETRIES", "9"),
        ("STEADFAST_UPSTREAMS__BILLING__READ_TIMEOUT", "250ms"),
    ])
    .unwrap();
    assert_eq!(
        entry(&config, "billing", "base_url"),
        ("http://b:8010".into(), "$STEADFAST_UPSTREAMS__BILLING__BASE_URL".into())
    );
    assert_eq!(entry(&config, "billing", "retries"), ("1".into(), "app.toml:3:11".into()));
    // What the file leaves out is filled in.
    assert_eq!(
        entry(&config, "billing", "read_timeout"),
        ("250ms".into(), "$STEADFAST_UPSTREAMS__BILLING__READ_TIMEOUT".into())
    );
    assert_snapshot!(warnings(&config), @"
    upstreams.billing.base_url: $STEADFAST_UPSTREAMS__BILLING__BASE_URL (http://b:8010) wins over app.toml:2:12 (http://a:8010)
    upstreams.billing.retries: $STEADFAST_UPSTREAMS__BILLING__RETRIES (9) is ignored: app.toml:3:11 (1) wins for this key
    ");
}

/// S75: the same value, or an empty variable, is silent, and the file stays the origin.
#[test]
fn c9_4_no_difference_no_warning() {
    let config = with(&[
        ("STEADFAST_UPSTREAMS__BILLING__BASE_URL", "HTTP://A:8010"),
        ("STEADFAST_UPSTREAMS__BILLING__RETRIES", "1"),
        ("STEADFAST_UPSTREAMS__BILLING__READ_TIMEOUT", ""),
        ("STEADFAST_UPSTREAMS__BILLING__NONSENSE", ""),
    ])
    .unwrap();
    assert_eq!(warnings(&config), "");
    assert_eq!(entry(&config, "billing", "base_url").1, "app.toml:2:12");
    assert_eq!(entry(&config, "billing", "read_timeout").1, "default");
}

/// S78: it can define an upstream alone, beside a file or without one.
#[test]
fn c9_4_an_upstream_of_its_own() {
    let config = with(&[("STEADFAST_UPSTREAMS__MAIL_API__BASE_URL", "http://mail")]).unwrap();
    assert_eq!(config.upstreams().map(|(name, _)| name).collect::<Vec<_>>(), ["billing", "mail_api"]);
    let config = Loader::new().env([("SHOP_UPSTREAMS__A__BASE_URL", "http://a")]).env_prefix("SHOP_").load().unwrap();
    assert_eq!(config.upstreams().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
    // A file without upstreams is then only worth a warning.
    let config = Loader::new().text("app.toml", "").env([("STEADFAST_UPSTREAMS__A__BASE_URL", "http://a")]).load();
    assert_snapshot!(warnings(&config.unwrap()), @"app.toml: the file is empty: expected [upstreams.<name>] with a base_url");
}

/// B14, S80: names without case, `-` as `_`, and `__` within a name.
#[test]
fn c9_4_b14_names() {
    let file = "[upstreams.Mail-API]\nbase_url = \"http://a\"\n[upstreams.two__words]\nbase_url = \"http://b\"\n[upstreams._x_]\nbase_url = \"http://c\"";
    let config = Loader::new()
        .text("app.toml", file)
        .env([
            ("steadfast_upstreams__mail_api__retries", "3"),
            ("STEADFAST_UPSTREAMS__TWO__WORDS__RETRIES", "4"),
            ("STEADFAST_UPSTREAMS___X___RETRIES", "5"),
        ])
        .load()
        .unwrap();
    let retries: Vec<u32> = config.upstreams().map(|(_, upstream)| upstream.settings().retries).collect();
    assert_eq!(retries, [3, 4, 5]);
    assert_eq!(config.upstreams().count(), 3);
}

/// Text is read by the key's type.
#[test]
fn c9_4_text_by_type() {
    let key = |key: &str| format!("STEADFAST_UPSTREAMS__BILLING__{key}");
    let config = Loader::new()
        .text("app.toml", FILE)
        .env([
            (key("TOTAL_TIMEOUT"), "0.25"),
            (key("CONNECT_TIMEOUT"), "3"),
            (key("POOL_TIMEOUT"), "250ms"),
            (key("MAX_CONCURRENT"), "7"),
            (key("BREAKER_FAILURE_RATE"), "0.75"),
            (key("GZIP"), "false"),
            (key("FORWARD_AUTHORIZATION"), "true"),
            (key("JITTER"), "none"),
            (key("RETRY_STATUSES"), "503, 429"),
            (key("HEADERS"), r#"{"Accept": "text/plain", "X-Key": "hunter2"}"#),
            (key("TLS_ROOTS"), "/a.pem, /b.pem"),
            (key("USER_AGENT"), "me/1"),
            (key("DEADLINE_HEADER"), "X-Deadline"),
            (key("HTTP_VERSION"), "http2"),
            (key("HTTP2_PING_INTERVAL"), "20"),
            (key("PROXY"), "false"),
            (key("ZSTD"), "false"),
            (key("REPLAY_BUFFER_BYTES"), "1024"),
            (key("TLS_IDENTITY"), "/me, myself.pem"),
            (key("TLS_SERVER_NAME"), "billing.internal"),
        ])
        .load()
        .unwrap();
    for (key, value) in [
        ("total_timeout", "250ms"),
        ("connect_timeout", "3s"),
        ("pool_timeout", "250ms"),
        ("max_concurrent", "7"),
        ("breaker_failure_rate", "0.75"),
        ("gzip", "false"),
        ("forward_authorization", "true"),
        ("jitter", "none"),
        ("retry_statuses", "429, 503"),
        ("headers", "accept: text/plain, x-key: (masked)"),
        ("tls_roots", "/a.pem, /b.pem"),
        ("user_agent", "me/1"),
        ("deadline_header", "x-deadline"),
        ("http_version", "http2"),
        ("http2_ping_interval", "20s"),
        ("proxy", "false"),
        ("zstd", "false"),
        ("replay_buffer_bytes", "1024"),
        ("tls_identity", "/me, myself.pem"),
        ("tls_server_name", "billing.internal"),
    ] {
        assert_eq!(entry(&config, "billing", key).0, value, "{key}");
    }
}

/// S79: a mistake in a variable names the variable, even where the file would win.
#[test]
fn c9_4_mistakes_name_the_variable() {
    let key = |key: &str| format!("STEADFAST_UPSTREAMS__BILLING__{key}");
    let problems = Loader::new()
        .text("app.toml", FILE)
        .env([
            (key("RETRYS"), "1"),
            (key("RETRIES"), "-1"),
            (key("READ_TIMEOUT"), "soon"),
            (key("WRITE_TIMEOUT"), "0"),
            (key("TOTAL_TIMEOUT"), "inf"),
            (key("ATTEMPT_TIMEOUT"), "1e3"),
            (key("MAX_CONCURRENT"), " 5"),
            (key("GZIP"), "TRUE"),
            (key("RETRY_STATUSES"), "503,,5xx"),
            (key("HEADERS"), "X-Key: hunter2"),
            (key("TLS_ROOTS"), ","),
            (key("BASE_URL"), "http://user:hunter2@b"),
            ("STEADFAST_UPSTREAMS__BILING__RETRIES".into(), "1"),
            ("STEADFAST_UPSTREAMS__OTHER__RETRIES".into(), "1"),
            ("STEADFAST_UPSTREAMS__RETRIES".into(), "1"),
            ("STEADFAST_UPSTREAMS__A.B__BASE_URL".into(), "http://a"),
            ("STEADFAST_upstreams__billing__retries".into(), "1"),
        ])
        .load()
        .unwrap_err();
    assert!(!problems.to_string().contains("hunter2"), "{problems}");
    assert_snapshot!(problems.to_string(), @r#"
    $STEADFAST_UPSTREAMS__A.B__BASE_URL: upstreams."a.b": expected an upstream's name, 1 to 64 of A-Z a-z 0-9 _ -; found "a.b"
    $STEADFAST_UPSTREAMS__BILING__RETRIES: upstreams.biling: no file defines this upstream; did you mean `billing`?
    $STEADFAST_UPSTREAMS__BILLING__ATTEMPT_TIMEOUT: upstreams.billing.attempt_timeout: expected a duration above 0s, at most 24h (seconds, or a string such as "250ms"); found the string "1e3"
    $STEADFAST_UPSTREAMS__BILLING__BASE_URL: upstreams.billing.base_url: expected no user name or password before the host: credentials travel in the Authorization header
    $STEADFAST_UPSTREAMS__BILLING__GZIP: upstreams.billing.gzip: expected true or false; found the string "TRUE"
    $STEADFAST_UPSTREAMS__BILLING__HEADERS: upstreams.billing.headers: expected a JSON object of strings, such as {"X-Tenant": "acme"}; found other text
    $STEADFAST_UPSTREAMS__BILLING__MAX_CONCURRENT: upstreams.billing.max_concurrent: expected an integer from 1 to 1000000; found the string " 5"
    $STEADFAST_UPSTREAMS__BILLING__READ_TIMEOUT: upstreams.billing.read_timeout: expected a duration above 0s, at most 24h (seconds, or a string such as "250ms"); found the string "soon"
    $STEADFAST_UPSTREAMS__BILLING__RETRIES: upstreams.billing.retries: expected an integer from 0 to 1000; found the string "-1"
    $STEADFAST_UPSTREAMS__BILLING__RETRYS: upstreams.billing.retrys: unknown key; did you mean `retries`?
    $STEADFAST_UPSTREAMS__BILLING__RETRY_STATUSES: upstreams.billing.retry_statuses[1]: expected an HTTP status, 200 to 599; found the string ""
    $STEADFAST_UPSTREAMS__BILLING__RETRY_STATUSES: upstreams.billing.retry_statuses[2]: expected an HTTP status, 200 to 599; found the string "5xx"
    $STEADFAST_UPSTREAMS__BILLING__TLS_ROOTS: upstreams.billing.tls_roots[0]: expected a string with a file's name; found the string ""
    $STEADFAST_UPSTREAMS__BILLING__TLS_ROOTS: upstreams.billing.tls_roots[1]: expected a string with a file's name; found the string ""
    $STEADFAST_UPSTREAMS__BILLING__TOTAL_TIMEOUT: upstreams.billing.total_timeout: expected a duration above 0s, at most 24h (seconds, or a string such as "250ms"); found the string "inf"
    $STEADFAST_UPSTREAMS__BILLING__WRITE_TIMEOUT: upstreams.billing.write_timeout: expected a duration above 0s, at most 24h; found the integer 0
    $STEADFAST_UPSTREAMS__OTHER__RETRIES: upstreams.other: no file defines this upstream, and $STEADFAST_UPSTREAMS__OTHER__BASE_URL is not set
    $STEADFAST_UPSTREAMS__RETRIES: expected STEADFAST_UPSTREAMS__<NAME>__<KEY>
    $STEADFAST_upstreams__billing__retries: upstreams.billing.retries: set twice: $STEADFAST_UPSTREAMS__BILLING__RETRIES is the same variable
    "#);
    let first = problems.iter().next().unwrap();
    assert_eq!(
        (first.variable(), first.file(), first.line()),
        (Some("STEADFAST_UPSTREAMS__A.B__BASE_URL"), None, None)
    );
}

/// Headers from a variable: every mistake, and no value.
#[test]
fn c9_4_headers_from_a_variable() {
    let text =
        r#"{"X-A": 22022, "x-a": "hunter2", "Idempotency-Key": "hunter2", "X-B": null, "X-C": {"a": "hunter2"}}"#;
    let problems = with(&[("STEADFAST_UPSTREAMS__BILLING__HEADERS", text)]).unwrap_err().to_string();
    assert!(!problems.contains("hunter2") && !problems.contains("22022"), "{problems}");
    assert_snapshot!(problems, @"
    $STEADFAST_UPSTREAMS__BILLING__HEADERS: upstreams.billing.headers.X-A: expected a string of visible ASCII, no space at its ends, at most 8192 bytes; found a number
    $STEADFAST_UPSTREAMS__BILLING__HEADERS: upstreams.billing.headers.Idempotency-Key: one configured key would make all calls one; give each call its own with `.idempotency_key(…)`
    $STEADFAST_UPSTREAMS__BILLING__HEADERS: upstreams.billing.headers.X-B: expected a string of visible ASCII, no space at its ends, at most 8192 bytes; found null
    $STEADFAST_UPSTREAMS__BILLING__HEADERS: upstreams.billing.headers.X-C: expected a string of visible ASCII, no space at its ends, at most 8192 bytes; found an object
    ");
}

/// A variable that nobody would set to do nothing is not passed over in silence.
#[test]
fn a_variable_of_almost_the_right_form() {
    let config = with(&[("STEADFAST_UPSTREAMS_BILLING_RETRIES", "3"), ("STEADFAST_LOG", "x")]).unwrap();
    assert_snapshot!(warnings(&config), @"$STEADFAST_UPSTREAMS_BILLING_RETRIES is ignored: it is not of the form $STEADFAST_UPSTREAMS__<NAME>__<KEY>");
}

/// A file that cannot be read may define what a variable speaks of, so that is not reported as missing.
#[test]
fn an_unreadable_file_makes_no_other_problems() {
    let loader = Loader::new().text("app.toml", "[upstreams.a").env([("STEADFAST_UPSTREAMS__A__RETRIES", "1")]);
    assert_eq!(loader.load().unwrap_err().len(), 1);
}

/// With a root table, paths and variables keep their shapes.
#[test]
fn c9_4_with_a_root_table() {
    let file = "[plugin.http.upstreams.a]\nbase_url = \"http://a\"\n";
    let loader = |value: &str| {
        let variables = [("JFAST_HTTP_UPSTREAMS__A__RETRIES", value)];
        Loader::new().text("jfast.toml", file).table("plugin.http").env_prefix("JFAST_HTTP_").env(variables).load()
    };
    assert_eq!(loader("3").unwrap().upstream("a").unwrap().settings().retries, 3);
    assert_snapshot!(loader("x").unwrap_err().to_string(), @r#"$JFAST_HTTP_UPSTREAMS__A__RETRIES: plugin.http.upstreams.a.retries: expected an integer from 0 to 1000; found the string "x""#);
}

/// The environment of the process is read when asked for, and not otherwise.
#[test]
fn the_environment_of_the_process() {
    // Whatever this process's environment holds, it does not define our upstream with this prefix.
    let config = Loader::new().text("app.toml", FILE).env_prefix("STEADFAST_TEST_ONLY_").process_env().load().unwrap();
    assert_eq!(config.warnings(), []);
    // PATH is there, and is no variable of ours.
    let refused = Loader::new().env_prefix("PATH_").process_env().load().unwrap_err();
    assert_eq!(refused.len(), 1);
}

/// 8.6: what was given is not shown.
#[test]
fn c8_6_debug_shows_no_values() {
    let loader = Loader::new().text("app.toml", "hunter2").env([("A", "hunter2")]);
    assert!(!format!("{loader:?}").contains("hunter2"));
}
