//! Guards in a configuration: `[guards.<name>]`, as strict as upstreams.

use insta::assert_snapshot;
use steadfast::config::{Config, KEYS, Loader, Profile};

use crate::{complaint, load};

fn said(config: &Config, guard: &str) -> Vec<String> {
    let entries = config.guard_settings(guard).unwrap().entries();
    entries.map(|entry| format!("{} = {} ({})", entry.key, entry.value, entry.origin)).collect()
}

/// What a table says, and nothing else; a profile's values that a guard has.
#[test]
fn c9_1_only_what_is_said() {
    let config = load("[guards.tariffs]\nretries = 4\ntotal_timeout = \"4s\"\n[guards.bare]").unwrap();
    assert_eq!(config.upstreams().count(), 0);
    assert_eq!(config.guards().map(|(name, _)| name).collect::<Vec<_>>(), ["tariffs", "bare"]);
    assert_eq!(said(&config, "tariffs"), ["total_timeout = 4s (app.toml:3:17)", "retries = 4 (app.toml:2:11)"]);
    assert!(said(&config, "bare").is_empty() && config.guard_settings("Tariffs").is_none());
    let settings = config.guard_settings("tariffs").unwrap();
    assert_eq!((settings.retries, settings.max_concurrent, settings.profile), (Some(4), None, None));

    let config = load("[guards.ocr]\nmax_concurrent = 2\nprofile = \"documents\"").unwrap();
    assert_eq!(config.guard_settings("ocr").unwrap().profile, Some(Profile::Documents));
    assert_snapshot!(said(&config, "ocr").join("\n"), @"
    profile = documents (app.toml:3:11)
    total_timeout = 5m (profile documents)
    retries = 3 (profile documents)
    backoff_base = 2s (profile documents)
    backoff_factor = 2.5 (profile documents)
    backoff_max = 35s (profile documents)
    jitter = equal (profile documents)
    max_retry_after = 1m (profile documents)
    breaker_minimum_calls = 10 (profile documents)
    breaker_window = 2m (profile documents)
    breaker_timeout_evidence = 30s (profile documents)
    max_concurrent = 2 (app.toml:2:18)
    bulkhead_wait = 1m (profile documents)
    ");
}

/// Everything that is wrong at once, with file, line, and what was meant.
#[test]
fn c9_2_every_mistake_at_once() {
    let toml = r#"
[guards.tariffs]
retrys = 1
base_url = "http://a"
read_timeout = "5s"
total_timeout = 0
retries = "2"
profile = "emial"
rate_limit = 10001
[guards."a b"]
[guards]
total_timeout = 1
colour = 1
[guard.x]
[upstreams.a]
base_url = "http://a"
retries = -1
"#;
    assert_snapshot!(complaint(toml), @r#"
    app.toml:3:1: guards.tariffs.retrys: unknown key; did you mean `retries`?
    app.toml:4:1: guards.tariffs.base_url: a key of upstreams only: a guard does not speak HTTP
    app.toml:5:1: guards.tariffs.read_timeout: a key of upstreams only: a guard does not speak HTTP
    app.toml:6:17: guards.tariffs.total_timeout: expected a duration above 0s, at most 24h; found the integer 0
    app.toml:7:11: guards.tariffs.retries: expected an integer from 0 to 1000; found the string "2"
    app.toml:8:11: guards.tariffs.profile: expected one of "ai", "mail", "webhook", "documents", "payment"; found the string "emial"; did you mean "mail"?
    app.toml:9:14: guards.tariffs.rate_limit: expected at most 10000 with rate_limit_style = "window" ("smooth" takes up to 1000000000); found 10001
    app.toml:10:9: guards."a b": expected a guard's name, 1 to 64 of A-Z a-z 0-9 _ -; found "a b"
    app.toml:12:1: guards.total_timeout: unknown guard; `total_timeout` is a key of a guard and belongs in [guards.<name>]
    app.toml:13:1: guards.colour: expected a table, [guards.colour]; found an integer
    app.toml:14:2: guard: unknown key; did you mean `guards`?
    app.toml:17:11: upstreams.a.retries: expected an integer from 0 to 1000; found the integer -1
    "#);
}

/// A key that only HTTP has is refused by its name, every one; all others are taken.
#[test]
fn c9_2_keys_of_http_are_refused_by_name() {
    let (mut taken, mut refused) = (0, 0);
    for key in KEYS {
        // No key takes an empty array of tables, so that each is heard of.
        let said = complaint(&format!("[guards.a]\n{} = [{{}}]\n", key.name));
        let is_foreign = said.contains(": a key of upstreams only: a guard does not speak HTTP");
        assert!(said.starts_with("app.toml:2:") && said.contains(&format!("guards.a.{}", key.name)), "{said}");
        assert_eq!(is_foreign, !key.is_of_guards(), "{said}");
        if is_foreign { refused += 1 } else { taken += 1 }
    }
    assert_eq!((taken, refused), (27, KEYS.len() - 27));
}

/// 9.4: variables fill in, define, and are refused, as for upstreams.
#[test]
fn c9_4_variables() {
    let load = |variables: &[(&str, &str)]| {
        let file = "[guards.Tariff-Service]\nretries = 4";
        Loader::new().text("app.toml", file).env(variables.iter().copied()).load()
    };
    let config = load(&[
        ("STEADFAST_GUARDS__TARIFF_SERVICE__RETRIES", "1"),
        ("steadfast_guards__tariff_service__max_concurrent", "7"),
        ("STEADFAST_GUARDS__MAIL__TOTAL_TIMEOUT", "2"),
        ("STEADFAST_GUARDS__TARIF_SERVICE__RETRIES", "0"),
        ("STEADFAST_GUARD__A__RETRIES", "0"),
        ("STEADFAST_GUARDIAN", "x"),
    ])
    .unwrap();
    assert_eq!(
        said(&config, "Tariff-Service"),
        ["retries = 4 (app.toml:2:11)", "max_concurrent = 7 ($steadfast_guards__tariff_service__max_concurrent)"]
    );
    assert_eq!(said(&config, "mail"), ["total_timeout = 2s ($STEADFAST_GUARDS__MAIL__TOTAL_TIMEOUT)"]);
    let warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    assert_snapshot!(warnings.join("\n"), @"
    $STEADFAST_GUARD__A__RETRIES is ignored: it is not of the form $STEADFAST_GUARDS__<NAME>__<KEY>
    guards.Tariff-Service.retries: $STEADFAST_GUARDS__TARIFF_SERVICE__RETRIES (1) is ignored: app.toml:2:11 (4) wins for this key
    guards.tarif_service: $STEADFAST_GUARDS__TARIF_SERVICE__RETRIES: no file defines this guard; did you mean `Tariff-Service`?
    ");

    let problems = load(&[
        ("STEADFAST_GUARDS__A__BASE_URL", "http://a"),
        ("STEADFAST_GUARDS__A__RETRYS", "1"),
        ("STEADFAST_GUARDS__A__RETRIES", "many"),
        ("STEADFAST_GUARDS__RETRIES", "1"),
        ("STEADFAST_GUARDS__A B__RETRIES", "1"),
    ]);
    assert_snapshot!(problems.unwrap_err(), @r#"
    $STEADFAST_GUARDS__A B__RETRIES: guards."a b": expected a guard's name, 1 to 64 of A-Z a-z 0-9 _ -; found "a b"
    $STEADFAST_GUARDS__A__BASE_URL: guards.a.base_url: a key of upstreams only: a guard does not speak HTTP
    $STEADFAST_GUARDS__A__RETRIES: guards.a.retries: expected an integer from 0 to 1000; found the string "many"
    $STEADFAST_GUARDS__A__RETRYS: guards.a.retrys: unknown key; did you mean `retries`?
    $STEADFAST_GUARDS__RETRIES: expected STEADFAST_GUARDS__<NAME>__<KEY>
    "#);
}

/// The same name is another thing in the other table; twice in one it is refused (B14).
#[test]
fn c9_4_b14_names() {
    let both = "[upstreams.mail]\nbase_url = \"http://a\"\n[guards.mail]\nretries = 0";
    let config = load(both).unwrap();
    assert_eq!(config.upstream("mail").unwrap().settings().retries, 2);
    assert_eq!(config.guard_settings("mail").unwrap().retries, Some(0));
    assert_snapshot!(complaint("[guards.mail-a]\n[guards.Mail_A]"), @r#"app.toml:2:9: guards.Mail_A: already defined at app.toml:1:9 as "mail-a"; names are one if they differ only in case or in `-` and `_`"#);
    let twice = Loader::new().text("a.toml", "[guards.a]").text("b.toml", "[guards.a]").load();
    assert_snapshot!(twice.unwrap_err(), @"b.toml:1:9: guards.a: already defined at a.toml:1:9; a guard stands in one file");
}

/// 9.1: below another root table, beside its upstreams.
#[test]
fn c9_1_below_another_table() {
    let toml = "[plugin.http.upstreams.a]\nbase_url = \"http://a\"\n[plugin.http.guards.b]\nretries = 0\nretrys = 1";
    let said = Loader::new().text("app.toml", toml).table("plugin.http").load().unwrap_err().to_string();
    assert_snapshot!(said, @"app.toml:5:1: plugin.http.guards.b.retrys: unknown key; did you mean `retries`?");
}

/// As many as upstreams, and no more.
#[test]
fn c9_1_at_most_a_thousand() {
    let guards = |number: u32| (0..number).map(|n| format!("[guards.g{n}]\n")).collect::<String>();
    assert_eq!(load(&guards(1_000)).unwrap().guards().count(), 1_000);
    assert_snapshot!(complaint(&guards(1_001)), @"app.toml:1:2: guards: expected at most 1000 guards; found 1001");
}

/// 9.2: for each key and each value the schema and the reader agree, of guards as of upstreams.
#[test]
fn c9_2_reader_and_schema_agree() {
    let schema = steadfast::config::schema("").unwrap();
    let values =
        ["0", "1", "-1", "0.5", "\"250ms\"", "\"ai\"", "\"full\"", "\"smooth\"", "true", "[]", "{}", "1e9", "86401"];
    let (mut accepted, mut refused) = (0, 0);
    for key in KEYS {
        for value in values {
            let toml = format!("[guards.a]\n{} = {value}\n", key.name);
            // To JSON Schema a float without a fraction is an integer, and of a pair it knows nothing.
            if (value == "1e9" && key.type_name() == "count") || (value == "86401" && key.name == "rate_limit") {
                continue;
            }
            let read = load(&toml).is_ok();
            assert_eq!(read, crate::schema::passes(&schema, &toml), "{toml}");
            if read { accepted += 1 } else { refused += 1 }
        }
    }
    assert!(accepted > 60 && refused > 300, "{accepted} {refused}");
    let names = ["[guards.a]", "[guards]", "[guards.\"a.b\"]", "guards = 1", "guards.a = 1", "[guards.a.b]"];
    let agree = |toml: &&str| {
        load(&format!("{toml}\n[upstreams.u]\nbase_url = \"http://a\"")).is_ok() == crate::schema::passes(&schema, toml)
    };
    assert!(names.iter().filter(|toml| toml.starts_with('[')).all(agree));
}
