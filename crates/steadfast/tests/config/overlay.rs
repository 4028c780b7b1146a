//! A text that is about something else, and brings the settings that it needs.

use steadfast::config::Loader;

const SERVICE: &str =
    "[plugin.http.upstreams.billing]\nbase_url = \"http://billing\"\nretries = 5\nread_timeout = \"4s\"\n";

fn service() -> Loader {
    Loader::new().text("service.toml", SERVICE).table("plugin.http")
}

#[test]
fn it_wins_key_by_key_over_files_and_environment_and_may_say_other_things() {
    let over = "title = \"x\"\n[[step]]\ncall = \"billing\"\n[upstreams.billing]\nretries = 1\nbase_url = \"http://here\"\n[upstreams.new]\n\
                base_url = \"http://new\"\n[guards.mail]\nretries = 7\n";
    let variable = ("STEADFAST_UPSTREAMS__BILLING__BASE_URL", "http://there");
    let config = service().overlay("over.toml", over).env([variable]).load().unwrap();
    let billing = config.upstream("billing").unwrap();
    assert_eq!(billing.settings().retries, 1);
    assert_eq!(billing.settings().read_timeout.as_secs(), 4);
    assert_eq!(billing.settings().base_url.to_string(), "http://here");
    assert_eq!(config.upstream("new").unwrap().settings().base_url.to_string(), "http://new");
    assert_eq!(config.guard_settings("mail").unwrap().retries, Some(7));
    let origin = billing.entries().find(|entry| entry.key == "retries").unwrap().origin.to_string();
    assert_eq!(origin, "over.toml:5:11");
    // What is set by hand wins over that as well.
    let config = service().overlay("over.toml", over).set("billing", "retries", "2").load().unwrap();
    assert_eq!(config.upstream("billing").unwrap().settings().retries, 2);
}

#[test]
fn alone_it_is_a_configuration_and_its_mistakes_are_told_with_their_lines() {
    let problems = |over: &str| Loader::new().overlay("over.toml", over).load().unwrap_err().to_string();
    assert_eq!(
        problems("x = 1\n[upstreams.a]\nbase_url = \"http://a\"\nretrys = 1\n"),
        "over.toml:4:1: upstreams.a.retrys: unknown key; did you mean `retries`?"
    );
    assert_eq!(problems("[upstreams.a]\nretries = -1\n").lines().count(), 2);
    assert!(problems("[other.upstreams.a]\nbase_url = \"http://a\"\n").contains("no upstreams"));
    assert!(Loader::new().overlay("over.toml", "x = 1\n[upstreams.a]\nbase_url = \"http://a\"\n").load().is_ok());
}

/// From below other tables: several sets of settings can stand in one text, and where there is none nothing is laid over.
#[test]
fn it_may_stand_below_other_tables() {
    let over = "[policies.quick]\nbreaker = false\n[policies.quick.upstreams.billing]\nretries = 1\n[policies.off]\n\
                [policies.bad.upstreams.billing]\nretrys = 1\n";
    let below = |name: &str| service().overlay_below(&["policies", name], "over.toml", over).load();
    let retries = |name: &str| below(name).unwrap().upstream("billing").unwrap().settings().retries;
    assert_eq!((retries("quick"), retries("off"), retries("nowhere")), (1, 5, 5));
    let told = below("bad").unwrap_err().to_string();
    assert_eq!(told, "over.toml:7:1: policies.bad.upstreams.billing.retrys: unknown key; did you mean `retries`?");
}
