//! What a file may say, and the text of what is wrong with it. 9.1, 9.2, 9.3, C41.

use insta::assert_snapshot;
use steadfast::config::{Loader, Origin};

use crate::{complaint, entry, load};

/// The configuration that the first seed document shows, as it stands.
const SEED: &str = r#"
[plugins]
enabled = ["observability", "http"]

[plugin.http.upstreams.billing]
base_url = "http://billing:8010"
read_timeout = 5.0
retries = 2

[plugin.http.upstreams.catalog]
base_url = "http://catalog:8020"
forward_authorization = true
"#;

/// 9.1: the seed's file loads as it stands, and what lies outside the root table is not read.
#[test]
fn c9_1_the_seeds_file_loads_as_it_stands() {
    let config = Loader::new().text("jfast.toml", SEED).table("plugin.http").load().unwrap();
    let names: Vec<&str> = config.upstreams().map(|(name, _)| name).collect();
    assert_eq!(names, ["billing", "catalog"]);
    assert_eq!(entry(&config, "billing", "read_timeout"), ("5s".into(), "jfast.toml:7:16".into()));
    assert_eq!(entry(&config, "billing", "write_timeout"), ("10s".into(), "default".into()));
    assert_eq!(entry(&config, "catalog", "base_url"), ("http://catalog:8020".into(), "jfast.toml:11:12".into()));
    // 8.3: a token that travels without TLS is worth a warning, and nothing else is.
    let warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    assert_snapshot!(warnings.join("\n"), @"plugin.http.upstreams.catalog.forward_authorization: callers' tokens are sent to http://catalog:8020 without TLS");
}

/// Without `--table` one line says what to do, instead of one per table that is not ours.
#[test]
fn c9_1_the_seeds_file_without_its_table() {
    assert_snapshot!(complaint(SEED), @"app.toml:5:14: plugin.http.upstreams: no [upstreams] at the top level; to read these, name their table: `plugin.http`");
}

#[test]
fn c9_1_a_root_table_that_is_not_there() {
    let load = |table: &str| Loader::new().text("jfast.toml", SEED).table(table).load().unwrap_err().to_string();
    assert_snapshot!(load("plugin.htp"), @"jfast.toml: no table [plugin.htp] in this file; did you mean [plugin.http]?");
    assert_snapshot!(load("something.else"), @"jfast.toml: no table [something.else] in this file");
    assert_snapshot!(load("plugins.enabled"), @"jfast.toml:3:11: plugins.enabled: expected a table; found an array");
    assert_snapshot!(load("plugins"), @"jfast.toml:3:1: plugins.enabled: unknown key; only `upstreams` and `guards` are known here");
    assert_snapshot!(load("plugin..http"), @r#"expected the root table as names with dots, such as plugin.http; found "plugin..http""#);
}

#[test]
fn c9_1_nothing_configured() {
    assert_snapshot!(complaint(""), @"app.toml: the file is empty: expected [upstreams.<name>] with a base_url");
    assert_snapshot!(complaint("# only a comment\n"), @"app.toml: the file is empty: expected [upstreams.<name>] with a base_url");
    assert_snapshot!(complaint("[upstreams]\n"), @"app.toml: no upstreams in this file: expected [upstreams.<name>] with a base_url");
    assert_snapshot!(complaint("upstreams = {}"), @"app.toml: no upstreams in this file: expected [upstreams.<name>] with a base_url");
    assert_snapshot!(Loader::new().load().unwrap_err().to_string(), @"no upstreams: no file was given, and no variable $STEADFAST_UPSTREAMS__<NAME>__BASE_URL is set");
    assert_snapshot!(Loader::new().env([("X_A", "b")]).env_prefix("X_").load().unwrap_err().to_string(), @"no upstreams: no file was given, and no variable $X_UPSTREAMS__<NAME>__BASE_URL is set");
}

/// 9.2: an unknown key anywhere under the root table, with the nearest known one (B15).
#[test]
fn c9_2_b15_unknown_keys_at_every_level() {
    assert_snapshot!(complaint(r#"
[upstreams.billing]
base_url = "http://billing:8010"
retrys = 2
read_timout = 5
colour = "red"
"#), @"
    app.toml:4:1: upstreams.billing.retrys: unknown key; did you mean `retries`?
    app.toml:5:1: upstreams.billing.read_timout: unknown key; did you mean `read_timeout`?
    app.toml:6:1: upstreams.billing.colour: unknown key
    ");
    assert_snapshot!(complaint(r#"
read_timeout = 5
[upstream.billing]
base_url = "http://billing:8010"
[other]
"#), @"
    app.toml:2:1: read_timeout: `read_timeout` is a key of an upstream and belongs in [upstreams.<name>]
    app.toml:3:2: upstream: unknown key; did you mean `upstreams`?
    app.toml:5:2: other: unknown key; only `upstreams` and `guards` are known here
    ");
    assert_snapshot!(complaint(r#"
[upstreams]
read_timeout = 5
billing = "http://user:secret@billing"
[upstreams.catalog]
base_url = "http://catalog"
"#), @"
    app.toml:3:1: upstreams.read_timeout: unknown upstream; `read_timeout` is a key of an upstream and belongs in [upstreams.<name>]
    app.toml:4:1: upstreams.billing: expected a table, [upstreams.billing]; found a string
    ");
}

/// A misspelt `base_url` is misspelt, not missing as well.
#[test]
fn c9_2_what_is_misspelt_is_not_missing_too() {
    assert_snapshot!(complaint("[upstreams.a]\nbase_ulr = \"http://a\""), @"app.toml:2:1: upstreams.a.base_ulr: unknown key; did you mean `base_url`?");
    assert_snapshot!(complaint("[upstreams.a]\n"), @"app.toml:1:12: upstreams.a.base_url: missing; set it here or in $STEADFAST_UPSTREAMS__A__BASE_URL");
}

/// 9.2: types are strict.
#[test]
fn c9_2_types_are_strict() {
    assert_snapshot!(complaint(r#"
[upstreams.billing]
base_url = 8010
retries = "5"
breaker_failures = true
max_concurrent = 2.5
read_timeout = "5"
write_timeout = true
total_timeout = [1]
retry_budget_ratio = "0.2"
retry_budget_gate = "yes"
forward_authorization = 1
jitter = "Full"
rate_limit_style = 1
retry_statuses = 503
breaker_statuses = [503, "504", 99, 700, [1]]
headers = "X-A: b"
tls_roots = "/etc/ca.pem"
user_agent = 1
deadline_header = 1979-05-27
bulkhead_wait = {}
http_version = "h2"
http2_ping_interval = "soon"
replay_buffer_bytes = "64 KiB"
proxy = 3128
tls_roots_only = 1
tls_identity = ["a.pem"]
tls_identity_key = ""
tls_server_name = "https://billing"
"#), @r#"
    app.toml:3:12: upstreams.billing.base_url: expected a string with an absolute http(s) URL; found an integer
    app.toml:4:11: upstreams.billing.retries: expected an integer from 0 to 1000; found the string "5"
    app.toml:5:20: upstreams.billing.breaker_failures: expected an integer from 1 to 1000000; found the boolean true
    app.toml:6:18: upstreams.billing.max_concurrent: expected an integer from 1 to 1000000; found the float 2.5
    app.toml:7:16: upstreams.billing.read_timeout: expected a duration above 0s, at most 24h (seconds, or a string such as "250ms"); found the string "5"
    app.toml:8:17: upstreams.billing.write_timeout: expected a duration above 0s, at most 24h (seconds, or a string such as "250ms"); found the boolean true
    app.toml:9:17: upstreams.billing.total_timeout: expected a duration above 0s, at most 24h (seconds, or a string such as "250ms"); found an array
    app.toml:10:22: upstreams.billing.retry_budget_ratio: expected a number from 0 to 1000; found the string "0.2"
    app.toml:11:21: upstreams.billing.retry_budget_gate: expected true or false; found the string "yes"
    app.toml:12:25: upstreams.billing.forward_authorization: expected true or false; found the integer 1
    app.toml:13:10: upstreams.billing.jitter: expected one of "full", "equal", "additive", "none"; found the string "Full"; did you mean "full"?
    app.toml:14:20: upstreams.billing.rate_limit_style: expected one of "window", "smooth"; found the integer 1
    app.toml:15:18: upstreams.billing.retry_statuses: expected an array of HTTP statuses, such as [429, 503]; found the integer 503
    app.toml:16:26: upstreams.billing.breaker_statuses[1]: expected an HTTP status, 200 to 599; found the string "504"
    app.toml:16:33: upstreams.billing.breaker_statuses[2]: expected an HTTP status, 200 to 599; found the integer 99
    app.toml:16:37: upstreams.billing.breaker_statuses[3]: expected an HTTP status, 200 to 599; found the integer 700
    app.toml:16:42: upstreams.billing.breaker_statuses[4]: expected an HTTP status, 200 to 599; found an array
    app.toml:17:11: upstreams.billing.headers: expected a table of header names and strings; found a string
    app.toml:18:13: upstreams.billing.tls_roots: expected an array of strings with file names; found the string "/etc/ca.pem"
    app.toml:19:14: upstreams.billing.user_agent: expected a string of 1 to 256 visible ASCII characters; found the integer 1
    app.toml:20:19: upstreams.billing.deadline_header: expected a string with a header's name; found a date or time
    app.toml:21:17: upstreams.billing.bulkhead_wait: expected a duration from 0s to 24h (seconds, or a string such as "250ms"); found a table
    app.toml:22:16: upstreams.billing.http_version: expected one of "auto", "http1", "http2"; found the string "h2"
    app.toml:23:23: upstreams.billing.http2_ping_interval: expected a duration above 0s, at most 24h (seconds, or a string such as "250ms"); found the string "soon"
    app.toml:24:23: upstreams.billing.replay_buffer_bytes: expected an integer from 0 to 1073741824; found the string "64 KiB"
    app.toml:25:9: upstreams.billing.proxy: expected true (the environment's), false (none), or a string with a proxy's URL; found an integer
    app.toml:26:18: upstreams.billing.tls_roots_only: expected true or false; found the integer 1
    app.toml:27:16: upstreams.billing.tls_identity: expected a string with a file's name; found an array
    app.toml:28:20: upstreams.billing.tls_identity_key: expected a string with a file's name; found the string ""
    app.toml:29:19: upstreams.billing.tls_server_name: expected a string with a DNS name or an IP address; found the string "https://billing"
    "#);
}

/// 1.3, C41: zero, negative, infinite, NaN, more than a day.
#[test]
fn c1_3_c41_bounds() {
    assert_snapshot!(complaint(r#"
[upstreams.billing]
base_url = "http://billing"
connect_timeout = 0
read_timeout = 0.0
write_timeout = "0ms"
pool_timeout = -1
total_timeout = inf
attempt_timeout = nan
backoff_base = -0.5
backoff_max = "25h"
jitter_max = 1e300
max_retry_after = 86401
retries = -1
backoff_factor = 0.5
retry_budget_ratio = nan
retry_budget_min_per_second = -1
breaker_failures = 0
breaker_failure_rate = 1.01
max_concurrent = 9223372036854775807
max_response_bytes = 0
rate_limit = 10001
"#), @r#"
    app.toml:4:19: upstreams.billing.connect_timeout: expected a duration above 0s, at most 24h; found the integer 0
    app.toml:5:16: upstreams.billing.read_timeout: expected a duration above 0s, at most 24h; found the float 0.0
    app.toml:6:17: upstreams.billing.write_timeout: expected a duration above 0s, at most 24h; found the string "0ms"
    app.toml:7:16: upstreams.billing.pool_timeout: expected a duration above 0s, at most 24h; found the integer -1
    app.toml:8:17: upstreams.billing.total_timeout: expected a duration above 0s, at most 24h; found the float inf
    app.toml:9:19: upstreams.billing.attempt_timeout: expected a duration above 0s, at most 24h; found the float nan
    app.toml:10:16: upstreams.billing.backoff_base: expected a duration from 0s to 24h; found the float -0.5
    app.toml:11:15: upstreams.billing.backoff_max: expected a duration from 0s to 24h; found the string "25h"
    app.toml:12:14: upstreams.billing.jitter_max: expected a duration from 0s to 24h; found the float 1e300
    app.toml:13:19: upstreams.billing.max_retry_after: expected a duration from 0s to 24h; found the integer 86401
    app.toml:14:11: upstreams.billing.retries: expected an integer from 0 to 1000; found the integer -1
    app.toml:15:18: upstreams.billing.backoff_factor: expected a number from 1 to 1000; found the float 0.5
    app.toml:16:22: upstreams.billing.retry_budget_ratio: expected a number from 0 to 1000; found the float nan
    app.toml:17:31: upstreams.billing.retry_budget_min_per_second: expected a number from 0 to 1000000; found the integer -1
    app.toml:18:20: upstreams.billing.breaker_failures: expected an integer from 1 to 1000000; found the integer 0
    app.toml:19:24: upstreams.billing.breaker_failure_rate: expected a number above 0, at most 1; found the float 1.01
    app.toml:20:18: upstreams.billing.max_concurrent: expected an integer from 1 to 1000000; found the integer 9223372036854775807
    app.toml:21:22: upstreams.billing.max_response_bytes: expected an integer from 1 to 1099511627776; found the integer 0
    app.toml:22:14: upstreams.billing.rate_limit: expected at most 10000 with rate_limit_style = "window" ("smooth" takes up to 1000000000); found 10001
    "#);
}

/// 9.3, B12, B16: an address that cannot be called is refused, and never repeated.
#[test]
fn c9_3_b12_b16_addresses() {
    for address in ["", "billing:8010", "ftp://billing", "http://", "http://user:hunter2@billing", "http://b?k=hunter2"]
    {
        let complaint = complaint(&format!("[upstreams.a]\nbase_url = \"{address}\""));
        assert!(complaint.starts_with("app.toml:2:12: upstreams.a.base_url: expected "), "{complaint}");
        assert!(!complaint.contains("hunter2") && !complaint.contains('\n'), "{complaint}");
    }
}

/// 2.2, B13, 8.1, 8.6: headers that cannot be configured; no value is repeated.
#[test]
fn b13_headers() {
    let complaint = complaint(
        r#"
[upstreams.billing]
base_url = "http://billing"
[upstreams.billing.headers]
idempotency-key = "hunter2"
Host = "hunter2"
Content-Length = "hunter2"
Connection = "hunter2"
Transfer-Encoding = "hunter2"
"X A" = "hunter2"
X-Line = "hunter2\nX-B: c"
X-Space = " hunter2"
X-Letter = "hünter2"
X-Number = 22022
X-List = ["hunter2"]
X-Twice = "hunter2"
x-twice = "hunter2"
"#,
    );
    assert!(!complaint.contains("hunter2") && !complaint.contains("22022"), "{complaint}");
    assert_snapshot!(complaint, @r#"
    app.toml:5:1: upstreams.billing.headers.idempotency-key: one configured key would make all calls one; give each call its own with `.idempotency_key(…)`
    app.toml:6:1: upstreams.billing.headers.Host: `Host` follows from base_url and cannot be set
    app.toml:7:1: upstreams.billing.headers.Content-Length: `Content-Length` follows from the body and cannot be set
    app.toml:8:1: upstreams.billing.headers.Connection: this header belongs to one connection (RFC 9110 7.6.1) and cannot be set
    app.toml:9:1: upstreams.billing.headers.Transfer-Encoding: this header belongs to one connection (RFC 9110 7.6.1) and cannot be set
    app.toml:10:1: upstreams.billing.headers."X A": not a header name: letters, digits, and - . _ ~ ! # $ % & ' * + ^ ` | only
    app.toml:11:10: upstreams.billing.headers.X-Line: expected a string of visible ASCII, no space at its ends, at most 8192 bytes; found a string with another character
    app.toml:12:11: upstreams.billing.headers.X-Space: expected a string of visible ASCII, no space at its ends, at most 8192 bytes; found a string with a space at its end
    app.toml:13:12: upstreams.billing.headers.X-Letter: expected a string of visible ASCII, no space at its ends, at most 8192 bytes; found a string with another character
    app.toml:14:12: upstreams.billing.headers.X-Number: expected a string of visible ASCII, no space at its ends, at most 8192 bytes; found an integer
    app.toml:15:10: upstreams.billing.headers.X-List: expected a string of visible ASCII, no space at its ends, at most 8192 bytes; found an array
    app.toml:17:1: upstreams.billing.headers.x-twice: this header is set twice (names are compared without case)
    "#);
}

/// B14: names that the environment could not tell apart; names that are none.
#[test]
fn b14_names() {
    assert_snapshot!(complaint(r#"
[upstreams.a-b]
base_url = "http://a"
[upstreams.A_B]
base_url = "http://b"
[upstreams.""]
base_url = "http://c"
[upstreams."a b\u001b[31m"]
base_url = "http://d"
[upstreams.dot.ted]
base_url = "http://e"
"#), @r#"
    app.toml:4:12: upstreams.A_B: already defined at app.toml:2:12 as "a-b"; names are one if they differ only in case or in `-` and `_`
    app.toml:6:12: upstreams."": expected an upstream's name, 1 to 64 of A-Z a-z 0-9 _ -; found ""
    app.toml:8:12: upstreams."a b\u{1b}[31m": expected an upstream's name, 1 to 64 of A-Z a-z 0-9 _ -; found "a b\u{1b}[31m"
    app.toml:10:12: upstreams.dot.base_url: missing; set it here or in $STEADFAST_UPSTREAMS__DOT__BASE_URL
    app.toml:10:16: upstreams.dot.ted: unknown key
    "#);
    let long = format!("[upstreams.{}]\nbase_url = \"http://a\"", "x".repeat(65));
    assert_snapshot!(complaint(&long), @r#"app.toml:1:12: upstreams."xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…": expected an upstream's name, 1 to 64 of A-Z a-z 0-9 _ -; found "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…""#);
    assert!(load(&long.replacen('x', "", 1)).is_ok());
}

/// An upstream stands in one file, and the problems of all files come at once, in their order.
#[test]
fn c9_2_several_files() {
    let one = "[upstreams.a]\nbase_url = \"http://a\"\nretries = -1\n[upstreams.c]\nbase_url = \"http://c\"";
    let two = "[upstreams.b]\nbase_url = \"b\"\n[upstreams.a]\nbase_url = \"http://a\"\n[upstreams.d]\n";
    let problems = Loader::new().text("one.toml", one).text("two.toml", two).file("missing.toml").load().unwrap_err();
    let said = problems.to_string().replace(&std::io::Error::from_raw_os_error(2).to_string(), "<not found>");
    assert_snapshot!(said, @"
    one.toml:3:11: upstreams.a.retries: expected an integer from 0 to 1000; found the integer -1
    two.toml:2:12: upstreams.b.base_url: expected an absolute URL that begins with http:// or https://
    two.toml:3:12: upstreams.a: already defined at one.toml:1:12; an upstream stands in one file
    missing.toml: cannot be read: <not found>
    ");
    let lines: Vec<_> = problems.iter().map(|problem| (problem.file().unwrap(), problem.line())).collect();
    assert_eq!(lines[1], ("two.toml", Some(2)));
}

/// Upstreams may be spread over files; a file without any is worth a warning only.
#[test]
fn several_files_make_one_configuration() {
    let config = Loader::new()
        .text("one.toml", "[upstreams.b]\nbase_url = \"http://b\"")
        .text("two.toml", "[upstreams.a]\nbase_url = \"http://a\"")
        .text("three.toml", "")
        .load()
        .unwrap();
    assert_eq!(config.upstreams().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "a"]);
    assert_snapshot!(config.warnings()[0].to_string(), @"three.toml: the file is empty: expected [upstreams.<name>] with a base_url");
    assert_eq!(config.warnings().len(), 1);
}

/// TOML's own rules: syntax, and keys that are set twice.
#[test]
fn c9_2_syntax_and_duplicates() {
    assert_snapshot!(complaint("[upstreams.a]\nbase_url = \"http://a\nretries = 1\n"), @r#"app.toml:2:21: TOML syntax: invalid basic string, expected `"`"#);
    assert_snapshot!(complaint("[upstreams.a\nbase_url = http://a\nretries = = 1\n\n]]"), @"
    app.toml:1:13: TOML syntax: unclosed table, expected `]`
    app.toml:3:11: TOML syntax: extra `=`
    app.toml:5:1: TOML syntax: missing table open, expected `[`
    ");
    assert_snapshot!(complaint("[upstreams.a]\nbase_url = \"http://a\"\nretries = 1\nretries = 2\nretrys = 1\n[upstreams.a]\n"), @"
    app.toml:4:1: duplicate key `retries`
    app.toml:5:1: upstreams.a.retrys: unknown key; did you mean `retries`?
    app.toml:6:12: duplicate key `a`
    ");
    // A faulty line is not repeated: it may hold a secret.
    let secret = complaint("[upstreams.a]\nheaders = { Authorization = \"Bearer hunter2\n}\n");
    assert!(!secret.contains("hunter2"), "{secret}");
}

/// A problem as data.
#[test]
fn a_problem_can_be_asked() {
    let problems = load("[upstreams.a]\nbase_url = \"http://a\"\n  retrys = 1\nretries = 2.5").unwrap_err();
    let [unknown, wrong] = problems.iter().collect::<Vec<_>>()[..] else { panic!("two: {problems}") };
    assert_eq!((unknown.file(), unknown.line(), unknown.column()), (Some("app.toml"), Some(3), Some(3)));
    assert_eq!((unknown.path(), unknown.nearest()), ("upstreams.a.retrys", Some("retries")));
    assert_eq!((unknown.message(), unknown.variable()), ("unknown key; did you mean `retries`?", None));
    assert_eq!((wrong.expected(), wrong.found()), (Some("an integer from 0 to 1000"), Some("the float 2.5")));
    assert_eq!((problems.len(), problems.is_empty()), (2, false));
}

/// Columns count characters, lines count as editors do, whatever ends them, with a byte order mark or without.
#[test]
fn places_are_those_of_an_editor() {
    let text = "\u{feff}# ä\r\n[upstreams.\"ä\"]\r\nbase_url = \"http://a\"\r\nheaders = { \"ö\" = \"b\" }\r\n";
    assert_snapshot!(complaint(text), @r#"
    app.toml:2:12: upstreams."ä": expected an upstream's name, 1 to 64 of A-Z a-z 0-9 _ -; found "ä"
    app.toml:4:13: upstreams."ä".headers."ö": not a header name: letters, digits, and - . _ ~ ! # $ % & ' * + ^ ` | only
    "#);
}

/// The origin of every value.
#[test]
fn origins() {
    let config = load("[upstreams]\na = { base_url = \"http://a\", retries = 7 }").unwrap();
    let effective = config.upstream("a").unwrap();
    let set: Vec<_> = effective.entries().filter(|entry| entry.origin != Origin::Default).collect();
    assert_eq!(set.len(), 2);
    assert_eq!(set[1].origin, Origin::File { file: "app.toml".into(), line: 2, column: 40 });
    assert_eq!(effective.settings().retries, 7);
    assert_eq!(config.upstream("b"), None);
}
