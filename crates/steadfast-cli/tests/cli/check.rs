//! `steadfast check`: what applies and where it came from, or everything that is wrong.

use serde_json::Value;

use crate::support::{File, Run, command, finish, steadfast};

const GOOD: &str = r#"
[plugin.http.upstreams.billing]
base_url = "http://127.0.0.1:8010/api"
retries = 1
total_timeout = "5s"
headers = { Accept = "application/json", X-Api-Key = "a-secret" }

[somebody.elses]
table = true
"#;

fn check(file: &File, args: &[&str]) -> Run {
    steadfast(&[&["check", file.path()], args].concat())
}

/// The setting of this key.
fn setting<'a>(document: &'a Value, key: &str) -> &'a Value {
    let settings = document["upstreams"][0]["settings"].as_array().expect("settings");
    settings.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("no {key}: {document}"))
}

#[test]
fn a_good_file_shows_each_setting_and_where_it_came_from() {
    let file = File::new("good.toml", GOOD);
    let run = check(&file, &["--table", "plugin.http"]);
    assert_eq!(run.code, 0, "{run:?}");
    for text in ["upstream billing", "total_timeout", "default", &format!("{}:4:", file.path())] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("a-secret"), "{}", run.stdout);
}

#[test]
fn machines_get_one_object() {
    let file = File::new("machines.toml", GOOD);
    let mut command = command(&["check", file.path(), "--table", "plugin.http", "--output", "json"]);
    command.env("STEADFAST_UPSTREAMS__BILLING__READ_TIMEOUT", "3s").env("STEADFAST_UPSTREAMS__BILLING__RETRIES", "9");
    let run = finish(command);
    let lines = run.lines();
    assert_eq!((run.code, lines.len()), (0, 1), "{run:?}");
    let document = &lines[0];
    assert_eq!((&document["ok"], &document["upstreams"][0]["name"]), (&true.into(), &"billing".into()));
    let retries = setting(document, "retries");
    assert_eq!((&retries["value"], &retries["origin"]["from"]), (&"1".into(), &"file".into()));
    assert_eq!((&retries["origin"]["line"], &retries["origin"]["file"]), (&4.into(), &file.path().into()));
    let read = setting(document, "read_timeout");
    assert_eq!(read["origin"]["variable"], "STEADFAST_UPSTREAMS__BILLING__READ_TIMEOUT", "{read}");
    assert_eq!(setting(document, "jitter")["origin"]["from"], "default");
    assert!(document["warnings"].to_string().contains("RETRIES"), "{document}");
    assert!(!run.stdout.contains("a-secret"), "{}", run.stdout);
}

/// What nobody set comes from the profile, and says so, to people and to machines.
#[test]
fn a_profile_is_where_a_value_came_from() {
    let text = "[upstreams.model]\nbase_url = \"https://model.test\"\nprofile = \"ai\"\nretries = 1\n";
    let file = File::new("profile.toml", text);
    let run = check(&file, &[]);
    let row = run.stdout.lines().find(|line| line.contains("total_timeout")).unwrap_or_default();
    assert!(run.code == 0 && row.contains("10m") && row.contains("profile ai"), "{run:?}");
    let run = check(&file, &["--output", "json"]);
    let document = &run.lines()[0];
    let origin = |key: &str| setting(document, key)["origin"].to_string();
    assert_eq!(origin("total_timeout"), r#"{"from":"profile","profile":"ai"}"#);
    assert!(origin("retries").contains(r#""from":"file""#), "{document}");
    assert_eq!(origin("breaker_failures"), r#"{"from":"default"}"#);

    let file = File::new("unknown.toml", &text.replace("\"ai\"", "\"webhooks\""));
    let run = check(&file, &[]);
    let known = r#"one of "ai", "mail", "webhook", "documents", "payment""#;
    for said in [&format!("{}:3:11: ", file.path()), known, "did you mean \"webhook\"?"] {
        assert!(run.code == 78 && run.stderr.contains(said), "{said}: {run:?}");
    }
}

/// Guards have tables of their own, with what is said and nothing else.
#[test]
fn guards_are_shown_with_what_is_said_of_them() {
    let file = File::new("guards.toml", "[guards.relay]\nretries = 1\nprofile = \"mail\"\n");
    let run = check(&file, &[]);
    assert!(run.code == 0 && run.stdout.starts_with("guard relay, all else as the code says\n"), "{run:?}");
    assert!(run.stdout.contains("profile mail") && !run.stdout.contains("default"), "{run:?}");
    let document = &check(&file, &["--output", "json"]).lines()[0];
    let guard = &document["guards"][0];
    assert_eq!((&document["upstreams"], &guard["name"]), (&serde_json::json!([]), &"relay".into()));
    let settings = guard["settings"].as_array().expect("settings");
    let retries = settings.iter().find(|setting| setting["key"] == "retries").expect("what the file says");
    assert_eq!((&retries["value"], &retries["origin"]["line"]), (&"1".into(), &2.into()));

    let file = File::new("foreign.toml", "[guards.relay]\nread_timeout = 1\n");
    let run = check(&file, &[]);
    assert!(run.code == 78 && run.stderr.contains("guards.relay.read_timeout: a key of upstreams only"), "{run:?}");
}

#[test]
fn another_prefix_of_the_environment() {
    let file = File::new("prefix.toml", "");
    let mut command = command(&["check", file.path(), "--env-prefix", "APP_"]);
    command.env("APP_UPSTREAMS__BILLING__BASE_URL", "http://127.0.0.1:8010");
    let run = finish(command);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("$APP_UPSTREAMS__BILLING__BASE_URL"), "{}", run.stdout);
}

#[test]
fn every_problem_is_told_with_its_place_and_its_cure() {
    let text = "[upstreams.a]\nbase_url = \"nowhere\"\nretrys = 1\n[upstreams.b]\nread_timeout = true\n";
    let file = File::new("faulty.toml", text);
    let run = check(&file, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (78, ""), "{run:?}");
    let places = [":2:", ":3:", ":5:"].map(|place| format!("{}{place}", file.path()));
    for text in places.iter().map(String::as_str).chain(["retries", "upstreams.b.base_url", "upstreams.b.read_timeout"])
    {
        assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
    }
    let run = check(&file, &["--output", "json"]);
    let document = &run.lines()[0];
    assert_eq!((run.code, &document["ok"]), (78, &false.into()), "{run:?}");
    let problems = document["problems"].as_array().expect("problems");
    assert_eq!(problems.len(), 4, "{document}");
    let misspelt = problems.iter().find(|problem| problem["line"] == 3).expect("the misspelt key");
    assert_eq!((&misspelt["path"], &misspelt["nearest"]), (&"upstreams.a.retrys".into(), &"retries".into()));
}

#[test]
fn a_file_that_cannot_be_read_or_parsed_is_a_problem_too() {
    let run = steadfast(&["check", "/does/not/exist.toml"]);
    assert_eq!(run.code, 78, "{run:?}");
    let file = File::new("broken.toml", "[upstreams.a\n");
    let run = check(&file, &[]);
    assert_eq!(run.code, 78, "{run:?}");
    assert!(run.stderr.contains(&format!("{}:1:", file.path())), "{run:?}");
}

#[test]
fn the_wrong_table_is_a_problem_that_names_the_right_one() {
    let file = File::new("wrong-table.toml", GOOD);
    for args in [&[][..], &["--table", "plugin.htp"]] {
        let run = check(&file, args);
        assert_eq!(run.code, 78, "{run:?}");
        assert!(run.stderr.contains("plugin.http"), "{run:?}");
    }
}

#[test]
fn roots_that_cannot_be_read_are_a_problem_of_the_file_that_names_them() {
    let text = "[upstreams.a]\nbase_url = \"https://127.0.0.1:9\"\ntls_roots = [\"/does/not/exist.pem\"]\n";
    let file = File::new("roots.toml", text);
    for args in [&["check", file.path()][..], &["call", "--config", file.path(), "a", "GET", "/x"]] {
        let run = steadfast(args);
        assert_eq!((run.code, run.stdout.as_str()), (78, ""), "{run:?}");
        let place = format!("error: {}:3:13: upstreams.a.tls_roots: ", file.path());
        assert!(run.stderr.starts_with(&place) && run.stderr.contains("/does/not/exist.pem"), "{run:?}");
    }
    let run = check(&file, &["--output", "json"]);
    let document = &run.lines()[0];
    let problem = &document["problems"][0];
    assert_eq!((run.code, &document["ok"], &problem["line"]), (78, &false.into(), &3.into()), "{run:?}");
    assert_eq!(problem["path"], "upstreams.a.tls_roots", "{problem}");
}
