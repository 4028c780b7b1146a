use std::collections::BTreeSet;

use super::*;

fn defaults() -> Settings {
    Settings::new("billing", BaseUrl::parse("http://billing:8010").unwrap())
}

/// Every row's kind fits its field, and every default is a value that the key itself accepts.
#[test]
fn every_row_fits_its_field() {
    for key in KEYS {
        let mut settings = defaults();
        let sample = (key.datum)(&settings).unwrap_or_else(|| match key.kind {
            Kind::Duration(bounds) => Datum::Duration(bounds.max),
            Kind::Count(bounds) => Datum::Count(bounds.max),
            Kind::Word(words) => Datum::Word(words[0]),
            Kind::HeaderName => Datum::HeaderName(http::HeaderName::from_static("x-deadline")),
            Kind::HostName => Datum::HostName("billing.internal".to_owned()),
            Kind::Path => Datum::Path("/etc/client.pem".into()),
            _ => panic!("{} is unset and has no sample", key.name),
        });
        assert!(key.put(&mut settings, sample.clone()), "{}", key.name);
        assert_eq!((key.datum)(&settings), Some(sample), "{}", key.name);
        // A value of another type is refused and changes nothing.
        let before = settings.clone();
        let other = if matches!(key.kind, Kind::Flag) { Datum::Count(1) } else { Datum::Flag(true) };
        assert!(!key.put(&mut settings, other), "{}", key.name);
        assert_eq!(settings, before);
    }
}

/// Every count that a key allows fits the field behind it.
#[test]
fn every_bound_fits_its_field() {
    for key in KEYS {
        if let Kind::Count(bounds) = key.kind {
            for count in [bounds.min, bounds.max] {
                assert!(key.put(&mut defaults(), Datum::Count(count)), "{} = {count}", key.name);
            }
        }
    }
}

#[test]
fn names_are_unique_and_can_be_a_variable() {
    let names: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(names.len(), KEYS.len());
    for name in names {
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'), "{name}");
        assert!(!name.contains("__") && !name.starts_with('_') && !name.ends_with('_'), "{name}");
    }
}

/// 9.1: the keys of the seed, with its defaults.
#[test]
fn c9_1_the_seeds_keys_and_defaults() {
    let default = |name: &str| find(name).map(|index| KEYS[index].default_text()).unwrap_or_default();
    for (name, text) in [
        ("base_url", "required"),
        ("connect_timeout", "2s"),
        ("read_timeout", "10s"),
        ("write_timeout", "10s"),
        ("pool_timeout", "2s"),
        ("total_timeout", "30s"),
        ("retries", "2"),
        ("backoff_base", "100ms"),
        ("backoff_max", "2s"),
        ("max_retry_after", "30s"),
        ("retry_budget_ratio", "0.2"),
        ("retry_budget_min_per_second", "1"),
        ("breaker_failures", "5"),
        ("breaker_failure_rate", "0.5"),
        ("breaker_minimum_calls", "20"),
        ("breaker_window", "30s"),
        ("breaker_cool_down", "15s"),
        ("max_concurrent", "50"),
        ("bulkhead_wait", "500ms"),
        ("forward_authorization", "false"),
        ("headers", "none"),
        // Beyond the seed.
        ("profile", "unset"),
        ("attempt_timeout", "unset"),
        ("breaker_cool_down_start", "unset"),
        ("rate_limit", "unset"),
        ("rate_limit_wait", "unset"),
        ("deadline_header", "unset"),
        ("jitter", "full"),
        ("rate_limit_style", "window"),
        ("retry_statuses", "429, 502, 503, 504"),
        ("breaker_statuses", "502, 503, 504"),
        ("max_response_bytes", "16777216"),
        ("replay_buffer_bytes", "65536"),
        ("http_version", "auto"),
        ("http2_ping_interval", "unset"),
        ("http2_ping_timeout", "10s"),
        ("proxy", "true"),
        ("brotli", "true"),
        ("zstd", "true"),
        ("tls_roots_only", "false"),
        ("tls_identity", "unset"),
        ("tls_identity_key", "unset"),
        ("tls_server_name", "unset"),
    ] {
        assert_eq!(default(name), text, "{name}");
    }
}

/// The comments of [`Settings`] say the default and the bounds that the table holds.
#[test]
fn the_comments_of_settings_agree_with_the_table() {
    let source = include_str!("../settings.rs");
    for key in KEYS.iter().filter(|key| !key.is_required()) {
        let field = source.find(&format!("    pub {}: ", key.name)).unwrap_or_else(|| panic!("no field {}", key.name));
        let comment: Vec<&str> =
            source[..field].lines().rev().map_while(|line| line.trim().strip_prefix("///")).map(str::trim).collect();
        let comment: Vec<&str> = comment.into_iter().rev().collect();
        let comment = comment.join(" ");
        let default = match key.name {
            "user_agent" => "`steadfast/<version>`".to_owned(),
            _ => key.default_text(),
        };
        assert!(comment.contains(&format!("Default {default}")), "{}: default {default} in: {comment}", key.name);
        if matches!(key.kind, Kind::Duration(_) | Kind::Count(_) | Kind::Number(_) | Kind::Statuses) {
            assert!(comment.contains(&key.bounds()), "{}: {} in: {comment}", key.name, key.bounds());
        }
    }
}
