//! What calls write to the log. A process of its own: `tracing` remembers for the whole process whether anybody
//! listens.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use steadfast::ServiceClient;
use steadfast::testing::{Script, Step, VirtualClock};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata};

/// 7.4, 4.9, 8.6, A130, A132: each attempt, wait, refusal, transition and ending is in the log, at its finest level, and
/// nothing of the request is.
#[test]
fn c7_4_c8_6_the_log_tells_what_happened_and_no_secret() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let clock = VirtualClock::new();
        let steps = [Step::status(503).header("Retry-After", "1").header("Set-Cookie", "S3CR3T"), Step::reset()];
        let client = ServiceClient::builder("http://billing.test/pr3fix")
            .name("billing")
            .header("X-Api-Key", "S3CR3T")
            .breaker_failures(4)
            .seed(7)
            .clock(clock.clone())
            .transport(Script::new(clock.clone(), steps))
            .build()
            .unwrap();
        for _ in 0..3 {
            let request = client.put("/bot123:S3CR3T/x?key=S3CR3T").body("S3CR3T").bearer_auth("S3CR3T");
            drop(clock.run(request.send()).unwrap());
        }
    });
    let lines = log.0.lock().unwrap().clone();
    let all = lines.join("\n");
    for expected in [
        "attempt upstream=billing number=1",
        "outcome=503",
        "outcome=reset",
        "retry upstream=billing attempt=2 wait=1s reason=retry_after",
        "reason=backoff",
        "circuit breaker changed its state",
        "refused, nothing sent",
        "kind=circuit_open",
        "ended upstream=billing attempts=3 duration=1.",
        "reason=circuit_open",
    ] {
        assert!(all.contains(expected), "{expected} in\n{all}");
    }
    assert!(lines.iter().all(|line| line.contains("upstream=billing")), "{all}");
    for secret in ["S3CR3T", "bot123", "pr3fix", "billing.test"] {
        assert!(!all.contains(secret), "{secret} in\n{all}");
    }
}

/// Keeps what is logged, the message first.
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
        struct Fields(String, String);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                match field.name() {
                    "message" => self.0 = format!("{value:?}"),
                    name => self.1 += &format!(" {name}={value:?}"),
                }
            }

            fn record_str(&mut self, field: &Field, value: &str) {
                self.1 += &format!(" {field}={value}");
            }
        }
        let mut fields = Fields(String::new(), String::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0 + &fields.1);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
