//! What calls write to the log. A process of its own: `tracing` remembers for the whole process whether anybody
//! listens.

#![allow(clippy::unwrap_used)]

mod log_support;

use steadfast::ServiceClient;
use steadfast::testing::{Script, Step, VirtualClock};

use log_support::Log;

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
    let lines = log.lines();
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
        "call ended upstream=billing ended=attempts_exhausted answered=true attempts=3 duration=1.",
        "ended=circuit_open",
    ] {
        assert!(all.contains(expected), "{expected} in\n{all}");
    }
    assert!(lines.iter().all(|line| line.contains("upstream=billing")), "{all}");
    for secret in ["S3CR3T", "bot123", "pr3fix", "billing.test"] {
        assert!(!all.contains(secret), "{secret} in\n{all}");
    }
}
