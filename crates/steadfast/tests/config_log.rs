//! What loading a configuration logs, and putting it in force. A process of its own: `tracing` remembers for the whole process whether anybody
//! listens.

#![allow(clippy::unwrap_used)]

mod log_support;

use steadfast::Clients;
use steadfast::config::{Config, Loader};

use log_support::Log;

/// 9.4: each warning is also logged, once, when the configuration is loaded.
#[test]
fn c9_4_each_warning_is_logged_once() {
    let log = Log::default();
    let config = tracing::subscriber::with_default(log.clone(), || {
        let variables = [("STEADFAST_UPSTREAMS__A__BASE_URL", "http://b"), ("STEADFAST_UPSTREAMS__A__RETRIES", "9")];
        Loader::new()
            .text("app.toml", "[upstreams.a]\nbase_url = \"http://a\"\nretries = 1")
            .env(variables)
            .load()
            .unwrap()
    });
    let logged = log.lines();
    assert_eq!(logged.len(), 2);
    for (warning, line) in config.warnings().iter().zip(logged) {
        assert!(
            line.starts_with("WARN") && line.contains(warning.message()) && line.contains(warning.path()),
            "{line}"
        );
    }
}

/// 9.5: one client tells what all of them tell; without a change nobody tells anything.
#[test]
fn c9_5_a_reload_is_logged_whoever_is_reloaded() {
    let with_retries = |retries: u32| -> Config {
        let text = format!("[upstreams.a]\nbase_url = 'http://a'\nretries = {retries}");
        Loader::new().text("app.toml", text).load().unwrap()
    };
    let settings = |retries| with_retries(retries).upstreams().next().unwrap().1.settings().clone();
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let all = Clients::new(&with_retries(1)).unwrap();
        assert!(!all.reload(&with_retries(2)).unwrap().is_empty());
        assert!(all.reload(&with_retries(2)).unwrap().is_empty());
        let one = all.client("a").unwrap();
        assert!(one.reload(settings(3)).unwrap());
        assert!(!one.reload(settings(3)).unwrap());
    });
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("INFO") && lines[0].contains("other settings are in force"), "{lines:?}");
    assert!(lines[0].contains("changed=[\"a\"] added=[] removed=[]"), "{lines:?}");
    assert_eq!(lines[0], lines[1]);
}
