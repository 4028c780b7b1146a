//! What loading a configuration logs. A process of its own: `tracing` remembers for the whole process whether anybody
//! listens.

#![allow(clippy::unwrap_used)]

mod log_support;

use steadfast::config::Loader;

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
