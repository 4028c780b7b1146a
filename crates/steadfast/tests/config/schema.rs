//! The schema says what the reader does: the same values are accepted and refused. 9.1, 9.2.

mod validator;

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use steadfast::config::{KEYS, Loader};

use validator::accepts;
pub(crate) use validator::passes;

/// What a value of any key may look like, in TOML: of every type, at every bound and just beyond, and in odd shapes.
const VALUES: &str = include_str!("schema/values.txt");

fn schema(table: &str) -> Value {
    steadfast::config::schema(table).unwrap()
}

/// The file that has this value. What another key is needed for is there as well.
fn file(key: &str, value: &str) -> String {
    let mut lines = vec![format!("{key} = {value}")];
    let beside = [("base_url", "\"https://a\""), ("rate_limit_style", "\"smooth\""), ("tls_identity", "\"a.pem\"")];
    lines.extend(beside.iter().filter(|(name, _)| *name != key).map(|(name, value)| format!("{name} = {value}")));
    format!("[upstreams.a]\n{}\n", lines.join("\n"))
}

fn read(toml: &str) -> bool {
    Loader::new().text("a.toml", toml).load().is_ok()
}

/// Where a schema cannot say what the reader knows.
fn is_beyond_a_schema(key: &str, value: &str) -> bool {
    let is_text = value.starts_with(['"', '\'']);
    // To JSON Schema a float without a fraction is an integer.
    let is_whole_float = value.parse::<f64>().is_ok_and(|number| number.fract() == 0.0) && value.contains(['.', 'e']);
    let type_name = KEYS.iter().find(|known| known.name == key).map(|key| key.type_name());
    match type_name {
        // What is a proxy's URL, the transport says.
        Some("proxy") => is_text,
        // Of a name or an address only the characters are looked at, and of a port only the digits.
        Some("host name" | "URL") => is_text,
        Some("count") => is_whole_float,
        // A tenth of a nanosecond is nothing.
        Some("duration") => value == "1e-10",
        _ => false,
    }
}

/// 9.2: for each key and each value the schema and the reader agree; it never refuses what the reader accepts.
#[test]
fn c9_2_reader_and_schema_agree_on_every_value() {
    let schema = schema("");
    let (mut accepted, mut refused, mut left) = (0, 0, 0);
    for key in KEYS {
        for value in VALUES.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
            let toml = file(key.name, value);
            match (read(&toml), passes(&schema, &toml)) {
                (true, true) => accepted += 1,
                (false, false) => refused += 1,
                (false, true) if is_beyond_a_schema(key.name, value) => left += 1,
                (read, passed) => panic!("{} = {value}: read: {read}, passed: {passed}", key.name),
            }
        }
    }
    assert!(accepted > 500 && refused > 2_000 && left < 300, "{accepted} {refused} {left}");
}

/// Every key of the table is in it once, with a description and, where it has one, its default; and nothing else is.
#[test]
fn c9_1_every_key_is_in_it() {
    let schema = schema("");
    let upstreams = &schema["properties"]["upstreams"];
    let (_, upstream) = upstreams["patternProperties"].as_object().unwrap().iter().next().unwrap();
    let properties = upstream["properties"].as_object().unwrap();
    assert_eq!(properties.len(), KEYS.len());
    for key in KEYS {
        let property = &properties[key.name];
        let description = property["description"].as_str().unwrap();
        assert!(description.contains(key.meaning()) && description.contains(&key.bounds()), "{description}");
        let default = property.get("default");
        assert_eq!(default.is_none(), ["required", "unset"].contains(&key.default_text().as_str()), "{}", key.name);
        // A default is a value that the key takes.
        assert!(default.is_none_or(|default| accepts(property, default)), "{property}");
        for example in property["examples"].as_array().into_iter().flatten() {
            assert!(accepts(property, example), "{property}");
        }
    }
}

/// The bounds are the table's, whatever they are.
#[test]
fn c9_2_the_bounds_are_those_of_the_table() {
    let schema = schema("");
    let property = |key: &str| {
        schema.pointer(&format!("/properties/upstreams/patternProperties/^[A-Za-z0-9_-]{{1,64}}$/properties/{key}"))
    };
    let numbers = KEYS.iter().filter(|key| ["count", "number"].contains(&key.type_name()));
    let mut compared = 0;
    for key in numbers {
        let property = property(key.name).unwrap();
        let words = match (property.get("minimum"), property.get("exclusiveMinimum")) {
            (Some(min), None) => format!("{} to {}", plain(min), plain(&property["maximum"])),
            (None, Some(min)) => format!("above {}, at most {}", plain(min), plain(&property["maximum"])),
            _ => panic!("{property}"),
        };
        assert_eq!(words, key.bounds(), "{}", key.name);
        compared += 1;
    }
    assert!(compared > 10);
}

fn plain(number: &Value) -> String {
    number.as_u64().map_or_else(|| number.as_f64().unwrap().to_string(), |number| number.to_string())
}

/// Names of upstreams, and what stands beside and below them.
#[test]
fn c9_1_tables_and_names() {
    let schema = schema("");
    let upstream = |name: &str| format!("[upstreams.{name}]\nbase_url = \"http://a\"\n");
    let longest = "n".repeat(64);
    for toml in [upstream("a"), upstream("Mail-API_2"), upstream(&longest), upstream("a") + &upstream("b")] {
        assert!(read(&toml) && passes(&schema, &toml), "{toml}");
    }
    for toml in [
        upstream("\"a.b\""),
        upstream("\"\""),
        upstream(&format!("n{longest}")),
        upstream("\"é\""),
        "upstreams = 1".to_owned(),
        "upstreams.a = 1".to_owned(),
        "upstreams = []".to_owned(),
        upstream("a") + "retrys = 1",
        upstream("a") + "Retries = 1",
        upstream("a") + "[other]",
        upstream("a").replace("upstreams", "upstream"),
    ] {
        assert!(!read(&toml) && !passes(&schema, &toml), "{toml}");
    }
    // A variable may hold what the file leaves out, so that this is not wrong by itself.
    assert!(["", "[upstreams]", "[upstreams.a]"].iter().all(|toml| passes(&schema, toml)));
}

/// 9.1: below another root table; what lies outside it is not looked at.
#[test]
fn c9_1_below_another_table() {
    let schema = schema("plugin.http");
    let seed = "[plugins]\nenabled = [1]\n[plugin.other]\nx = 1\n[plugin.http.upstreams.a]\nbase_url = \"http://a\"\n";
    let read = |toml: &str| Loader::new().text("a.toml", toml).table("plugin.http").load().is_ok();
    assert!(read(seed) && passes(&schema, seed));
    for toml in [
        seed.to_owned() + "retries = -1\n",
        seed.to_owned() + "[plugin.http.upstream.b]\n",
        seed.to_owned() + "[plugin.http]\nretries = 1\n",
        "plugin = 1".to_owned(),
        "plugin.http = []".to_owned(),
    ] {
        assert!(!read(&toml) && !passes(&schema, &toml), "{toml}");
    }
    let refused = steadfast::config::schema("plugin..http").unwrap_err().to_string();
    assert_eq!(refused, "expected the root table as names with dots, such as plugin.http; found \"plugin..http\"");
}

/// The whole text, so that a change of it is seen.
#[test]
fn the_schema_as_it_is() {
    let text = serde_json::to_string_pretty(&schema("")).unwrap();
    insta::assert_snapshot!("schema", text.replace(env!("CARGO_PKG_VERSION"), "<version>"));
}

/// Patterns are read by many engines: nothing is in them that one of those lacks.
#[test]
fn patterns_are_plain() {
    fn walk(value: &Value, patterns: &mut Vec<String>) {
        match value {
            Value::Object(entries) => {
                for (name, below) in entries {
                    if let ("pattern", Some(text)) = (name.as_str(), below.as_str()) {
                        patterns.push(text.to_owned());
                    }
                    walk(below, patterns);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, patterns)),
            _ => {}
        }
    }
    let mut patterns = Vec::new();
    walk(&schema(""), &mut patterns);
    assert!(patterns.len() > 20);
    for pattern in patterns {
        assert!(!["(?", "\\d", "\\w", "\\s", "\\b", "\\p", "&&", "--"].iter().any(|odd| pattern.contains(odd)));
        assert!((pattern.starts_with('^') && pattern.ends_with('$')) || pattern == "[1-9]", "{pattern}");
    }
}

static SCHEMA: LazyLock<Value> = LazyLock::new(|| schema(""));

/// A text for a key, as TOML.
fn quoted(text: &str) -> String {
    // What JSON escapes, TOML reads; it escapes DEL itself.
    json!(text).to_string().replace('\u{7f}', "\\u007f")
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(9), cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// 9.1: a duration's text is read if and only if it passes.
    #[test]
    fn c9_1_durations_as_text(
        number in "0{0,3}([0-9]{1,3}|[0-9]{1,16}|24|1440|86400|86399|86400000)",
        fraction in "(\\.[0-9]{0,3}|\\.[0-9]{8,14}|\\.[0-9]{10}(5|25|75|50)0{0,2}|\\.0{1,9})?",
        unit in "(ns|us|ms|s|m|h|)",
        key in prop_oneof![Just("total_timeout"), Just("bulkhead_wait")],
    ) {
        let schema = &*SCHEMA;
        let toml = file(key, &quoted(&format!("{number}{fraction}{unit}")));
        prop_assert_eq!(read(&toml), passes(schema, &toml), "{}", toml);
    }

    /// The same of every text that has rules of its own.
    #[test]
    fn c9_2_other_texts(
        text in prop_oneof!["\\PC{0,6}", "[ -~]{0,8}", "[ a\\t\\n\\x00\\x7fé]{0,4}", "(?i)(accept|cookie|host|x-a|te|user-agent)"],
        key in prop_oneof![Just("user_agent"), Just("deadline_header"), Just("tls_identity"), Just("headers")],
        as_name in any::<bool>(),
    ) {
        let schema = &*SCHEMA;
        let text = quoted(&text);
        let value = match (key, as_name) {
            ("headers", true) => format!("{{ {text} = \"x\" }}"),
            ("headers", false) => format!("{{ X-A = {text} }}"),
            _ => text,
        };
        let toml = file(key, &value);
        prop_assert_eq!(read(&toml), passes(schema, &toml), "{}", toml);
    }

    /// Addresses and names: whatever the reader accepts passes.
    #[test]
    fn c9_3_addresses(
        url in "(?i)https?://(a|\\[::1\\]|127\\.0\\.0\\.1|b_c-d\\.e\\.)(:[0-9]{1,6})?(/[a-z%.~é ]{0,3}){0,3}[?#@]?",
        name in "([a-z0-9._:-]{1,6}|::[0-9a-f]{1,4}|10\\.0\\.0\\.[0-9]{1,3})",
    ) {
        let schema = &*SCHEMA;
        for toml in [file("base_url", &quoted(&url)), file("tls_server_name", &quoted(&name))] {
            prop_assert!(!read(&toml) || passes(schema, &toml), "{}", toml);
        }
    }
}
