//! What loading a configuration logs. A process of its own: `tracing` remembers for the whole process whether anybody
//! listens.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use steadfast::config::Loader;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata};

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
    let logged = log.0.lock().unwrap().clone();
    assert_eq!(logged.len(), 2);
    for (warning, line) in config.warnings().iter().zip(logged) {
        assert!(
            line.starts_with("WARN") && line.contains(warning.message()) && line.contains(warning.path()),
            "{line}"
        );
    }
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Fields(String);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!(" {field}={value:?}");
            }

            fn record_str(&mut self, field: &Field, value: &str) {
                self.0 += &format!(" {field}={value}");
            }
        }
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
