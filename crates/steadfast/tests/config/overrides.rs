//! What is set by hand: over files and variables, read as a variable is.

use insta::assert_snapshot;
use steadfast::config::{Config, Loader, Origin, Problems};

use crate::entry;

const FILE: &str = r#"
[upstreams.billing]
base_url = "http://a:8010"
retries = 1
proxy = "http://me:hunter2@proxy.internal:3128"
tls_roots = ["/etc/ca.pem"]
"#;

fn with(settings: &[(&str, &str, &str)]) -> Result<Config, Problems> {
    let variables =
        [("STEADFAST_UPSTREAMS__BILLING__RETRIES", "9"), ("STEADFAST_UPSTREAMS__BILLING__BASE_URL", "http://b:8010")];
    let loader = Loader::new().text("app.toml", FILE).env(variables);
    settings.iter().fold(loader, |loader, (upstream, key, text)| loader.set(*upstream, *key, *text)).load()
}

/// Over a file where that wins, over a variable where that wins, and over what nobody set.
#[test]
fn it_wins_over_everything() {
    let config = with(&[
        ("billing", "base_url", "http://c:8010"),
        ("billing", "retries", "3"),
        ("billing", "proxy", "false"),
        ("billing", "total_timeout", "250ms"),
        ("Billing", "tls_roots", r#"["/a,b.pem", "/c.pem"]"#),
    ])
    .unwrap();
    for (key, value) in [
        ("base_url", "http://c:8010"),
        ("retries", "3"),
        ("proxy", "false"),
        ("total_timeout", "250ms"),
        ("tls_roots", "/a,b.pem, /c.pem"),
    ] {
        assert_eq!(entry(&config, "billing", key), (value.to_owned(), "override".to_owned()), "{key}");
    }
    let origins = config.upstream("billing").unwrap().entries();
    assert_eq!(origins.filter(|entry| entry.origin == Origin::Override).count(), 5);
}

/// The later of two counts; the empty text brings the default back.
#[test]
fn the_later_counts_and_the_empty_text_takes_away() {
    let config = with(&[("billing", "retries", "7"), ("billing", "retries", "4"), ("billing", "proxy", "")]).unwrap();
    assert_eq!(entry(&config, "billing", "retries").0, "4");
    assert_eq!(entry(&config, "billing", "proxy"), ("true".to_owned(), "default".to_owned()));
    let missing = with(&[("billing", "base_url", "")]).unwrap_err().to_string();
    assert_snapshot!(missing, @"app.toml:2:12: upstreams.billing.base_url: missing; set it here or in $STEADFAST_UPSTREAMS__BILLING__BASE_URL");
}

/// A mistake has no place, but the key's path; a secret is not repeated.
#[test]
fn c9_2_mistakes() {
    let problems = with(&[
        ("billing", "retrys", "1"),
        ("billing", "retries", "many"),
        ("billing", "headers", "X-Key: hunter2"),
        ("billing", "base_url", "http://me:hunter2@c"),
        ("biling", "retries", "1"),
        ("b c", "base_url", "http://a"),
    ])
    .unwrap_err();
    assert!(!problems.to_string().contains("hunter2"), "{problems}");
    assert_snapshot!(problems.to_string(), @r#"
    upstreams.billing.retrys: unknown key; did you mean `retries`?
    upstreams.billing.retries: expected an integer from 0 to 1000; found the string "many"
    upstreams.billing.headers: expected a JSON object of strings, such as {"X-Tenant": "acme"}; found other text
    upstreams.billing.base_url: expected no user name or password before the host: credentials travel in the Authorization header
    upstreams."b c": expected an upstream's name, 1 to 64 of A-Z a-z 0-9 _ -; found "b c"
    upstreams.biling: no file defines this upstream; did you mean `billing`?
    "#);
    let first = problems.iter().next().unwrap();
    assert_eq!((first.file(), first.variable(), first.line()), (None, None, None));
}

/// With an address it defines an upstream by itself; keys that need another see what was set by hand.
#[test]
fn an_upstream_of_its_own() {
    let loader = Loader::new().set("a", "base_url", "https://a").set("a", "tls_identity_key", "/me.key");
    assert_snapshot!(loader.clone().load().unwrap_err().to_string(), @"upstreams.a.tls_identity_key: needs tls_identity, the file with the certificate that this key belongs to");
    let config = loader.set("a", "tls_identity", "/me.pem").load().unwrap();
    assert_eq!(entry(&config, "a", "tls_identity_key").0, "/me.key");
    assert!(config.warnings().is_empty());
}
