use std::collections::BTreeSet;

use super::super::{KEYS, Loader, Origin, SettingsBuilder, keys};
use super::*;

/// What an address, a secret, or a choice of the operator's is: no profile knows it.
const NOT_OF_A_SORT: [&str; 8] =
    ["base_url", "profile", "headers", "user_agent", "forward_authorization", "proxy", "deadline_header", "rate_limit"];

/// Every file is read by the table of keys, with its bounds, and nothing in it is refused.
#[test]
fn every_profile_is_without_a_problem() {
    for profile in Profile::ALL {
        let (values, problems) = read(*profile);
        assert!(problems.is_empty(), "{profile}: {problems:?}");
        assert!(values.len() >= 8, "{profile}: {values:?}");
        assert_eq!(values, profile.values());
        let lines = profile.toml().lines().filter(|line| line.contains(" = ") && !line.starts_with('#'));
        assert_eq!(lines.count(), values.len(), "{profile}");
    }
}

/// A file with a mistake in it would be noticed: an unknown key, a value out of bounds, a key that is set twice.
#[test]
fn a_faulty_profile_would_be_noticed() {
    for (text, said) in [
        ("retrys = 1", "x:1:1: retrys: unknown key; did you mean `retries`?"),
        ("retries = 1001", "x:1:11: retries: expected an integer from 0 to 1000; found the integer 1001"),
        ("retries = 1\nretries = 2", "x:2:1: duplicate key `retries`"),
        ("retries =", "x:1:10: TOML syntax: string values must be quoted, expected literal string"),
    ] {
        let (_, problems) = file::read_keys("x", text);
        let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(found, [said], "{text}");
    }
}

/// A profile says nothing that holds anyway, and nothing that only an operator can know.
#[test]
fn every_value_is_one_of_a_sort_and_not_the_default() {
    for profile in Profile::ALL {
        for (key, datum) in profile.values() {
            let key = &KEYS[*key];
            assert_ne!(key.default().as_ref(), Some(datum), "{profile}: {}", key.name);
            assert!(!NOT_OF_A_SORT.contains(&key.name) && !key.name.starts_with("tls_"), "{profile}: {}", key.name);
        }
    }
}

#[test]
fn names_are_words_of_the_key() {
    let names: BTreeSet<&str> = Profile::ALL.iter().map(|profile| profile.name()).collect();
    assert_eq!(names.len(), Profile::ALL.len());
    let key = &KEYS[keys::find("profile").unwrap()];
    assert_eq!(key.bounds(), Profile::ALL.iter().map(|profile| profile.name()).collect::<Vec<_>>().join(", "));
    assert_eq!(Profile::Webhook.to_string(), "webhook");
}

/// Whatever is set beside it, no profile makes a warning, and none a refusal.
#[test]
fn no_profile_makes_a_warning_or_a_refusal() {
    for profile in Profile::ALL {
        for url in ["http://a", "https://a"] {
            for beside in ["", "http_version = \"http1\"", "rate_limit = 10000", "rate_limit_style = \"window\""] {
                let toml = format!("[upstreams.a]\nbase_url = {url:?}\nprofile = {:?}\n{beside}\n", profile.name());
                let config = Loader::new().text("a.toml", toml).load().unwrap();
                assert!(config.warnings().is_empty(), "{profile}: {:?}", config.warnings());
            }
        }
    }
}

/// The timeouts of a profile fit into each other: each can run out, and the deadline leaves time for what follows.
#[test]
fn timeouts_fit_into_the_deadline() {
    for profile in Profile::ALL {
        let settings = SettingsBuilder::new("https://a").profile(*profile).build().unwrap();
        let attempt = settings.attempt_timeout.unwrap_or(settings.read_timeout);
        assert!(settings.connect_timeout < attempt && attempt < settings.total_timeout, "{profile}");
        assert!(settings.read_timeout <= settings.total_timeout && settings.write_timeout <= settings.total_timeout);
        assert!(settings.max_retry_after < settings.total_timeout, "{profile}");
        assert!(settings.bulkhead_wait < settings.total_timeout, "{profile}");
        assert!(settings.backoff_base <= settings.backoff_max, "{profile}");
        // A status that the breaker takes for a failure is one that another attempt can fix.
        assert!(settings.breaker_statuses.iter().all(|status| settings.retry_statuses.contains(status)), "{profile}");
    }
}

/// A setter wins, whichever of the two was called first; and of two profiles the later counts, whole.
#[test]
fn a_setter_wins_over_the_profile_before_and_after_it() {
    let builder = || SettingsBuilder::new("https://a");
    let before = builder().retries(0).profile(Profile::Ai).build().unwrap();
    let after = builder().profile(Profile::Ai).retries(0).build().unwrap();
    assert_eq!(before, after);
    assert_eq!((before.retries, before.max_concurrent, before.profile), (0, 20, Some(Profile::Ai)));
    let twice = builder().profile(Profile::Ai).profile(Profile::Webhook).build().unwrap();
    assert_eq!(twice, builder().profile(Profile::Webhook).build().unwrap());
    assert_eq!((twice.retries, twice.retry_statuses.contains(529)), (1, false));
    // A value that a setter has wrong is not covered by the profile's.
    assert!(builder().retries(5_000).profile(Profile::Ai).build().is_err());
}

#[test]
fn the_origin_of_a_profiles_value_is_the_profile() {
    let effective = SettingsBuilder::new("https://a").profile(Profile::Mail).retries(9).build_effective().unwrap();
    for entry in effective.entries() {
        let origin = match entry.key {
            "base_url" | "retries" | "profile" => Origin::Builder,
            key if Profile::Mail.values().iter().any(|(of_profile, _)| KEYS[*of_profile].name == key) => {
                Origin::Profile(Profile::Mail)
            }
            _ => Origin::Default,
        };
        assert_eq!(entry.origin, origin, "{}", entry.key);
    }
}
