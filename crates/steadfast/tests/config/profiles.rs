//! Profiles in a configuration: below everything that somebody sets, above the defaults.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use steadfast::Clients;
use steadfast::config::{Config, KEYS, Loader, Origin, Profile};

use crate::{complaint, entry, load};

/// An upstream of this profile, and with these lines beside it.
fn with(profile: &str, beside: &str) -> Config {
    load(&format!("[upstreams.a]\nbase_url = \"https://a\"\nprofile = \"{profile}\"\n{beside}")).unwrap()
}

/// The keys that a profile sets, as they are in force.
fn of_profile(profile: Profile) -> Vec<(&'static str, String)> {
    let config = with(profile.name(), "");
    let entries = config.upstream("a").unwrap().entries();
    entries.filter(|entry| entry.origin == Origin::Profile(profile)).map(|entry| (entry.key, entry.value)).collect()
}

/// Defaults, then the profile, then the file; whichever of the two stands first in it.
#[test]
fn c9_1_a_key_of_the_file_wins_before_and_after_it() {
    for toml in [
        "[upstreams.a]\nbase_url = \"https://a\"\nprofile = \"ai\"\nretries = 1",
        "[upstreams.a]\nretries = 1\nprofile = \"ai\"\nbase_url = \"https://a\"",
    ] {
        let config = load(toml).unwrap();
        let settings = config.upstream("a").unwrap().settings();
        assert_eq!((settings.retries, settings.max_concurrent, settings.breaker_failures), (1, 20, 5));
        assert_eq!(settings.profile, Some(Profile::Ai));
        assert!(entry(&config, "a", "retries").1.starts_with("app.toml:"));
        assert_eq!(entry(&config, "a", "max_concurrent"), ("20".into(), "profile ai".into()));
        assert_eq!(entry(&config, "a", "breaker_failures"), ("5".into(), "default".into()));
        assert!(config.warnings().is_empty());
    }
    // A key that says what holds by default wins as well.
    assert_eq!(entry(&with("ai", "total_timeout = 30"), "a", "total_timeout").0, "30s");
}

/// What a file leaves out a variable fills in, the profile itself too; and whoever names the profile, a key wins over it.
#[test]
fn c9_4_variables() {
    let file = |beside: &str| format!("[upstreams.a]\nbase_url = \"https://a\"\n{beside}");
    let load = |beside: &str, variables: &[(&str, &str)]| {
        Loader::new().text("app.toml", file(beside)).env(variables.iter().copied()).load().unwrap()
    };
    let (profile, retries) = ("STEADFAST_UPSTREAMS__A__PROFILE", "STEADFAST_UPSTREAMS__A__RETRIES");

    let config = load("profile = \"ai\"", &[(retries, "0")]);
    assert_eq!(entry(&config, "a", "retries"), ("0".into(), format!("${retries}")));
    assert!(config.warnings().is_empty());

    let config = load("retries = 0", &[(profile, "ai")]);
    assert_eq!(entry(&config, "a", "retries"), ("0".into(), "app.toml:3:11".into()));
    assert_eq!(entry(&config, "a", "profile"), ("ai".into(), format!("${profile}")));
    assert_eq!(entry(&config, "a", "total_timeout"), ("10m".into(), "profile ai".into()));

    // Of two that name one, the file's.
    let config = load("profile = \"ai\"", &[(profile, "mail")]);
    assert_eq!(entry(&config, "a", "max_concurrent"), ("20".into(), "profile ai".into()));
    let warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    assert_snapshot!(warnings.join("\n"), @"upstreams.a.profile: $STEADFAST_UPSTREAMS__A__PROFILE (mail) is ignored: app.toml:3:11 (ai) wins for this key");

    let problem = Loader::new().text("app.toml", file("")).env([(profile, "Webhooks")]).load().unwrap_err();
    assert_snapshot!(problem, @r#"$STEADFAST_UPSTREAMS__A__PROFILE: upstreams.a.profile: expected one of "ai", "mail", "webhook", "documents", "payment"; found the string "Webhooks"; did you mean "webhook"?"#);
}

/// By hand: over all else, and the empty text takes the profile, or what was set beside it, away.
#[test]
fn by_hand() {
    let load = |key: &str, text: &str| {
        let file = "[upstreams.a]\nbase_url = \"https://a\"\nprofile = \"ai\"\nretries = 0";
        Loader::new().text("app.toml", file).set("a", key, text).load().unwrap()
    };
    assert_eq!(entry(&load("profile", "mail"), "a", "max_concurrent"), ("5".into(), "profile mail".into()));
    assert_eq!(entry(&load("profile", ""), "a", "max_concurrent"), ("50".into(), "default".into()));
    assert_eq!(entry(&load("retries", ""), "a", "retries"), ("3".into(), "profile ai".into()));
    assert_eq!(entry(&load("retries", "7"), "a", "retries"), ("7".into(), "override".into()));
}

/// An unknown one is refused with its place, the known ones, and the nearest.
#[test]
fn c9_2_an_unknown_one() {
    let toml = "[upstreams.a]\nbase_url = \"https://a\"\nprofile = \"document\"\nretrys = 1";
    assert_snapshot!(complaint(toml), @r#"
    app.toml:3:11: upstreams.a.profile: expected one of "ai", "mail", "webhook", "documents", "payment"; found the string "document"; did you mean "documents"?
    app.toml:4:1: upstreams.a.retrys: unknown key; did you mean `retries`?
    "#);
    let problems = load(toml).unwrap_err();
    assert_eq!(problems.iter().next().unwrap().nearest(), Some("documents"));
}

/// A value that the file has wrong is not hidden by the profile's, and the pair is judged with the profile's values.
#[test]
fn c9_2_a_profile_mends_no_mistake() {
    let toml = |beside: &str| format!("[upstreams.a]\nbase_url = \"https://a\"\nprofile = \"ai\"\n{beside}");
    assert!(complaint(&toml("retries = -1")).contains("app.toml:4:11: upstreams.a.retries: expected an integer"));
    assert!(complaint(&toml("rate_limit = 10001")).contains("upstreams.a.rate_limit: expected at most 10000"));
}

/// Lines of a profile may stand in a file as they are, and say the same.
#[test]
fn its_text_is_toml_of_an_upstream() {
    for profile in Profile::ALL {
        let toml = format!("[upstreams.a]\nbase_url = \"https://a\"\n{}", profile.toml());
        let written = load(&toml).unwrap();
        for (key, value) in of_profile(*profile) {
            assert_eq!(entry(&written, "a", key).0, value, "{profile}: {key}");
        }
        assert!(crate::schema::passes(&steadfast::config::schema("").unwrap(), &toml), "{profile}");
    }
}

/// 9.5: a reload puts another profile in force, and keeps what is counted.
#[test]
fn c9_5_a_reload_knows_it() {
    let clients = Clients::new(&with("ai", "")).unwrap();
    let client = clients.client("a").unwrap();
    assert_eq!((client.settings().retries, client.settings().profile), (3, Some(Profile::Ai)));
    assert!(clients.reload(&with("ai", "")).unwrap().is_empty());
    let reloaded = clients.reload(&with("webhook", "")).unwrap();
    assert_eq!(reloaded.changed, ["a"]);
    assert_eq!((client.settings().retries, client.settings().max_response_bytes), (1, 1 << 20));
    assert_eq!(clients.reload(&with("webhook", "retries = 1")).unwrap().changed, [""; 0]);
}

/// In code a setter wins, before it and after it, as in a file.
#[test]
fn a_setter_of_a_client_wins() {
    let builder = || steadfast::ServiceClient::builder("https://a");
    for client in [builder().profile(Profile::Documents).retries(0), builder().retries(0).profile(Profile::Documents)] {
        let settings = client.build().unwrap().settings();
        assert_eq!((settings.retries, settings.max_concurrent), (0, 4));
    }
}

const BEGIN: &str = "<!-- profiles: made from their data; `UPDATE_DOCS=1 cargo test -p steadfast` writes it -->\n";
const END: &str = "<!-- end of profiles -->\n";

/// The table of `docs/profiles.md` is made from the data.
#[test]
fn the_page_shows_the_data() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/profiles.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the page has the begin mark");
    let (shown, tail) = rest.split_once(END).expect("the page has the end mark");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{}{END}{tail}", table())).unwrap();
    } else {
        assert_eq!(shown, table(), "docs/profiles.md is out of date: run with UPDATE_DOCS=1");
    }
    for profile in Profile::ALL {
        assert!(text.contains(&format!("\n## `{profile}`\n")), "{profile} has a section");
    }
}

/// A row for each key that any profile sets, a column for each profile.
fn table() -> String {
    let profiles: Vec<_> = Profile::ALL.iter().map(|profile| of_profile(*profile)).collect();
    let names: Vec<String> = Profile::ALL.iter().map(|profile| format!("`{profile}`")).collect();
    let mut table = format!("| Key | {} | Default |\n|---|{}---|\n", names.join(" | "), "---|".repeat(names.len()));
    for key in KEYS {
        let value = |set: &Vec<(&str, String)>| set.iter().find(|(name, _)| *name == key.name).map(|(_, v)| v.clone());
        let values: Vec<Option<String>> = profiles.iter().map(value).collect();
        if values.iter().any(Option::is_some) {
            let cells: Vec<String> = values.into_iter().map(Option::unwrap_or_default).collect();
            writeln!(table, "| `{}` | {} | {} |", key.name, cells.join(" | "), key.default_text()).unwrap();
        }
    }
    table
}
