//! The flags of a call that stand for configuration keys: `--set KEY=VALUE` for any, and short ones for how to connect.
//! They win over the file and the environment. What a short flag says wins over `--set`.
//!
//! Values may hold secrets (a proxy's password, a header): no message quotes one.

use super::plan::{Mistake, mistake};
use crate::args::ConnectionArgs;
use crate::settings::Setting;

/// What was typed, in the order in which it counts. `by_url`: the address is that of `--url`.
pub(super) fn read(set: &[String], connection: &ConnectionArgs, by_url: bool) -> Result<Vec<Setting>, Mistake> {
    let mut settings = Vec::with_capacity(set.len());
    for text in set {
        settings.push(key_and_value(text, by_url)?);
    }
    settings.extend(short(connection)?);
    Ok(settings)
}

fn key_and_value(text: &str, by_url: bool) -> Result<Setting, Mistake> {
    let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
        return mistake("--set expects KEY=VALUE, such as breaker_failures=3");
    };
    let key = key.trim().to_ascii_lowercase().replace('-', "_");
    if by_url && key == "base_url" {
        return mistake("the base URL is that of --url; --set takes the other keys");
    }
    Ok(Setting { flag: format!("--set {}", key.escape_debug()), key, text: value.trim().to_owned() })
}

fn short(connection: &ConnectionArgs) -> Result<Vec<Setting>, Mistake> {
    let ConnectionArgs { http2, proxy, cacert, cert, key } = connection;
    let mut settings = Vec::new();
    let mut set = |flag: &str, key: &str, text: String| {
        settings.push(Setting { flag: flag.to_owned(), key: key.to_owned(), text });
    };
    if *http2 {
        set("--http2", "http_version", "http2".to_owned());
    }
    match proxy.as_deref().map(str::trim) {
        // To the configuration the empty text is the default, which is a proxy; to curl it is none.
        Some("") => return mistake("--proxy expects a URL, or false for none"),
        Some(proxy) => set("--proxy", "proxy", proxy.to_owned()),
        None => {}
    }
    let files = [("--cacert", cacert.as_slice()), ("--cert", cert.as_slice()), ("--key", key.as_slice())];
    if let Some((flag, _)) = files.iter().find(|(_, files)| files.iter().any(String::is_empty)) {
        return mistake(format!("{flag} expects the name of a file"));
    }
    if !cacert.is_empty() {
        // As JSON a name may hold a comma.
        set("--cacert", "tls_roots", serde_json::json!(cacert).to_string());
    }
    if let Some(file) = cert {
        set("--cert", "tls_identity", file.clone());
    }
    if let Some(file) = key {
        set("--key", "tls_identity_key", file.clone());
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use steadfast::config::{Config, Loader, Origin};

    use super::*;
    use crate::args::{Cli, Command};
    use crate::settings;

    const FILE: &str = r#"
[upstreams.billing]
base_url = "https://billing.internal"
proxy = "http://me:hunter2@proxy.internal:3128"
tls_roots = ["/etc/ca.pem"]
retries = 5
"#;

    fn typed(args: &[&str]) -> Vec<Setting> {
        let args = [&["steadfast", "call", "billing", "GET", "/"], args].concat();
        match Cli::try_parse_from(args).unwrap().command {
            Command::Call(args) => read(&args.set, &args.connection, false).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The configured upstream with what was typed.
    fn with(args: &[&str]) -> Config {
        settings::load(Loader::new().text("app.toml", FILE), "billing", &typed(args)).unwrap()
    }

    fn value(config: &Config, key: &str) -> String {
        let effective = config.upstream("billing").unwrap();
        effective.entries().find(|entry| entry.key == key).unwrap().value
    }

    /// Each flag lands in its key, over what the file says; what is not typed stays the file's.
    #[test]
    fn flags_arrive_over_a_configured_upstream() {
        let args = ["--http2", "--proxy", "false", "--cacert", "/a,b.pem", "--cacert", "[c].pem"];
        let config = with(&[&args[..], &["--cert", "/me.pem", "--key", "/me.key", "--set", "retries=0"]].concat());
        for (key, text) in [
            ("http_version", "http2"),
            ("proxy", "false"),
            ("tls_roots", "/a,b.pem, [c].pem"),
            ("tls_identity", "/me.pem"),
            ("tls_identity_key", "/me.key"),
            ("retries", "0"),
        ] {
            assert_eq!(value(&config, key), text, "{key}");
        }
        let origins = config.upstream("billing").unwrap().entries();
        assert_eq!(origins.filter(|entry| entry.origin == Origin::Override).count(), 6);

        let config = with(&[]);
        assert_eq!((value(&config, "retries"), value(&config, "tls_roots")), ("5".into(), "/etc/ca.pem".into()));
        assert!(config.upstream("billing").unwrap().entries().all(|entry| entry.origin != Origin::Override));
    }

    /// A key is written in any case, with `_` or `-`; the later counts, and a flag's own name counts most.
    #[test]
    fn of_two_the_later_counts_and_of_set_and_flag_the_flag() {
        assert_eq!(value(&with(&["--set", "Max-Concurrent=7", "--set", "max_concurrent=8"]), "max_concurrent"), "8");
        assert_eq!(value(&with(&["--http2", "--set", "http_version=http1"]), "http_version"), "http2");
        assert_eq!(value(&with(&["--set", "proxy="]), "proxy"), "true");
    }

    /// The proxy may hold a password.
    #[test]
    fn c8_6_nothing_that_was_typed_is_shown() {
        let typed = typed(&["--proxy", "http://me:hunter2@proxy:1", "--set", "headers={\"X-Key\": \"hunter2\"}"]);
        assert!(!format!("{typed:?}").contains("hunter2"));
    }
}
