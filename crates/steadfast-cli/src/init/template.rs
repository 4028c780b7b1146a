//! `steadfast.toml`: one upstream to begin with, and every key as a comment, with its default, meaning and bounds.
//!
//! Made from the library's table of keys, so that it knows each key and no other. Prose is `# text`, a setting is
//! `#key = value`: removing that `#` sets the key, to its default where it has one and else to an example.

use std::fmt::Write;

use serde_json::Value;
use steadfast::config::{self, KEYS, Key};

use crate::output;

/// A section begins at the key that is named here, and goes on to the next one's, in the order of the table: a new key
/// falls into the section that it was put in there.
const SECTIONS: [(&str, &str); 13] = [
    ("connect_timeout", "Timeouts"),
    ("retries", "Retries"),
    ("retry_budget_ratio", "Retry budget: what pays for retries"),
    ("breaker_failures", "Circuit breaker: when to stop calling"),
    ("max_concurrent", "Bulkhead: how much at once"),
    ("rate_limit", "Rate limit: how often"),
    ("max_response_bytes", "Bodies"),
    ("forward_authorization", "Headers"),
    ("idle_timeout", "Connections"),
    ("gzip", "Encodings"),
    ("tls_platform_roots", "TLS"),
    ("deadline_header", "What the upstream is told"),
    ("attempt_spans", "Traces"),
];

/// What keys without a default look like.
const EXAMPLES: [(&str, &str); 8] = [
    ("attempt_timeout", "\"10s\""),
    ("breaker_cool_down_start", "\"2s\""),
    ("rate_limit", "100"),
    ("rate_limit_wait", "\"1s\""),
    ("http2_ping_interval", "\"20s\""),
    ("tls_identity_key", "\"/etc/example/client.key\""),
    ("tls_server_name", "\"example.internal\""),
    ("deadline_header", "\"X-Deadline\""),
];

/// The most characters in a line of prose.
const WIDTH: usize = 110;
/// Where the comment after a setting begins.
const COLUMN: usize = 40;

const HEAD: &str = "\
# The upstreams that this service calls. Made by `steadfast init`.
#
#   steadfast check steadfast.toml     what is wrong, or what applies and where it comes from
#   steadfast call example GET /       one call, as the service makes it
#
# Every key is here with its default. Remove the # in front of one to set it; what is not set keeps its default. A
# duration is seconds (2, 0.5) or a text with a unit (\"250ms\"). A key that does not exist is refused.
#
# A variable such as STEADFAST_UPSTREAMS__EXAMPLE__BASE_URL wins over base_url here; any other key's variable counts
# only where this file leaves the key out.

# The name is what the code asks for, as in clients.client(\"example\").
[upstreams.example]
";

const TAIL: &str = "
# One table for each upstream. Most need no more than this.
#[upstreams.billing]
#base_url = \"https://billing.internal/api\"
#total_timeout = \"5s\"
";

/// Where the example is: nothing is called until somebody asks for it.
const ADDRESS: &str = "\"http://127.0.0.1:8080\"";

/// The file as a whole; `None` if the library's schema of it does not have the form that is read here.
pub(super) fn file() -> Option<String> {
    let schema = config::schema("").ok()?;
    let upstreams = schema["properties"]["upstreams"]["patternProperties"].as_object()?;
    let rules = &upstreams.values().next()?["properties"];
    let mut text = HEAD.to_owned();
    for key in KEYS {
        if let Some((_, heading)) = SECTIONS.iter().find(|(first, _)| *first == key.name) {
            let _ = writeln!(text, "\n# ---- {heading} ----");
        }
        text.push('\n');
        setting(&mut text, key, rules.get(key.name)?);
    }
    text.push_str(TAIL);
    Some(text)
}

/// A key: what it means, and its line, which ends with what it may be.
fn setting(text: &mut String, key: &Key, rules: &Value) {
    let (name, bounds) = (key.name, key.bounds());
    let (line, bounds) = match default(rules) {
        _ if key.is_required() => (format!("{name} = {ADDRESS}"), bounds),
        Some(default) => (format!("#{name} = {default}"), bounds),
        None => (format!("#{name} = {}", example(key, rules)), format!("unset by default; {bounds}")),
    };
    for words in output::folded(key.meaning(), Some(WIDTH)).lines() {
        let _ = writeln!(text, "# {}", words.trim_end());
    }
    let _ = writeln!(text, "{line:<COLUMN$} # {bounds}");
}

/// The default as TOML. JSON's texts, numbers, flags, arrays and empty objects are TOML too, and no default is a table
/// with something in it.
fn default(rules: &Value) -> Option<String> {
    match rules.get("default")? {
        Value::Array(items) => Some(format!("[{}]", items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))),
        value => Some(value.to_string()),
    }
}

/// A value that a key without a default may have.
fn example(key: &Key, rules: &Value) -> String {
    if let Some((_, example)) = EXAMPLES.iter().find(|(name, _)| *name == key.name) {
        return (*example).to_owned();
    }
    match (rules["enum"].get(0), rules["examples"].get(0), key.type_name()) {
        (Some(value), _, _) | (None, Some(value), _) => value.to_string(),
        (_, _, "path") => "\"/etc/example/client.pem\"".to_owned(),
        (_, _, "count" | "number") => "1".to_owned(),
        _ => "\"example\"".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use steadfast::config::{Config, Loader};

    use super::*;

    fn load(text: String) -> Config {
        Loader::new().text("steadfast.toml", text).load().unwrap()
    }

    /// Every setting set: what `#key` stands for, without the further upstream at the end.
    fn all_set(text: &str) -> String {
        let text = text.strip_suffix(TAIL).unwrap();
        let bare = |line: &str| match line.strip_prefix('#') {
            Some(setting) if setting.starts_with(|c: char| c.is_ascii_lowercase()) => setting.to_owned(),
            _ => line.to_owned(),
        };
        text.lines().map(bare).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn it_is_valid_as_it_stands_and_says_nothing_but_defaults() {
        let config = load(file().unwrap());
        assert!(config.warnings().is_empty(), "{:?}", config.warnings());
        let bare = load(format!("[upstreams.example]\nbase_url = {ADDRESS}\n"));
        assert_eq!(config.upstream("example").unwrap().settings(), bare.upstream("example").unwrap().settings());
    }

    #[test]
    fn every_key_is_there_once_in_a_section() {
        let text = file().unwrap();
        let mut seen = 0;
        for key in KEYS {
            let line = format!("\n{}{} = ", if key.is_required() { "" } else { "#" }, key.name);
            let head = text.strip_suffix(TAIL).unwrap();
            assert_eq!(head.matches(&line).count(), 1, "{}", key.name);
            assert!(text.contains(&format!("\n# {}", key.meaning().split(' ').next().unwrap())), "{}", key.name);
            seen += 1;
        }
        assert_eq!(seen, all_set(&text).lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count());
        for (first, heading) in SECTIONS {
            assert!(text.contains(&format!("# ---- {heading} ----")), "{first} is no key");
        }
        for (name, _) in EXAMPLES {
            assert!(KEYS.iter().any(|key| key.name == name && key.default_text() == "unset"), "{name}");
        }
    }

    #[test]
    fn each_line_sets_the_default_it_stands_for_or_a_valid_example() {
        let set = load(all_set(&file().unwrap()));
        let bare = load(format!("[upstreams.example]\nbase_url = {ADDRESS}\n"));
        let defaults = bare.upstream("example").unwrap().entries();
        for (set, default) in set.upstream("example").unwrap().entries().zip(defaults) {
            if default.value != "unset" {
                assert_eq!(set.value, default.value, "{}", set.key);
            } else {
                assert_ne!(set.value, "unset", "{}", set.key);
            }
        }
    }

    #[test]
    fn lines_fit_a_screen() {
        for line in file().unwrap().lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
    }
}
