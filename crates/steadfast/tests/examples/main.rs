//! The programs in `examples/`: each prints the facts that it is there to show.
//!
//! Time is virtual and jitter has a seed, so that a program prints the same each time, on any machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod binaries;
mod client_page;
mod programs;

use programs::{ai_api, database_query, resilient_client, send_mail, tariffs, webhook_delivery};

/// What a program printed, line by line.
fn lines(out: &[u8]) -> Vec<&str> {
    std::str::from_utf8(out).unwrap().lines().collect()
}

/// What the second seed's program prints, and two lines about what it only asserts. The waits are this seed's; their bounds
/// are in `w1_`.
const RESILIENT_CLIENT: [&str; 7] = [
    "retried twice, waits: [0.24, 0.48]",
    "404 raised without retrying: the host answered 404, 1 request",
    "circuit for down.example.com open, retry in 30s",
    "  the next call: circuit breaker 'down.example.com' is open, 0 sent",
    "  api.example.com answers 200",
    "circuit closed again after recovery",
    "rate limit waited: [1.0]",
];

/// The third seed's trace of five calls and its probe; the page that is served meanwhile; a probe that fails.
const TARIFFS: [&str; 11] = [
    "call 1: left, failed: the service does not answer (state closed, failures 1)",
    "call 2: left, failed: the service does not answer (state closed, failures 2)",
    "call 3: left, failed: the service does not answer (state open, failures 3)",
    "call 4: refused BEFORE it left: circuit breaker 'provider.tariffs' is open",
    "call 5: refused BEFORE it left: circuit breaker 'provider.tariffs' is open",
    "calls that really left: 3",
    "the page shows: 13.50 (estimated)",
    "the page says: without provider.tariffs (circuit_open), again in 30 s",
    "31 s later a probe goes: failed true, state open",
    "31 s later a probe goes: 8.55",
    "state after the probe that was answered: closed",
];

#[tokio::test]
async fn w1_to_w5_the_resilient_client_prints_the_facts_of_the_second_seed() {
    let mut out = Vec::new();
    resilient_client::run(&mut out).await.unwrap();
    assert_eq!(lines(&out), RESILIENT_CLIENT);
}

#[test]
fn k_a_k_b_k9_tariffs_prints_the_trace_of_the_third_seed() {
    let mut out = Vec::new();
    tariffs::run(&mut out).unwrap();
    assert_eq!(lines(&out), TARIFFS);
}

#[test]
fn k2_a_database_repeats_what_was_rolled_back_and_nothing_else() {
    let mut out = Vec::new();
    database_query::run(&mut out).unwrap();
    assert_eq!(
        lines(&out),
        [
            "a deadlock: order 1 is stored at attempt 2",
            "a number that is taken: SQLSTATE 23505 after attempt 1",
            "a connection that broke: order 2 is stored at attempt 2",
            "one that broke too late: SQLSTATE 08006 in the commit after attempt 1",
            "  so the database is asked: order 3 is stored, true",
            "report 1: the report",
            "report 2: the report",
            "report 3: too many calls to upstream 'orders-db' are in flight",
            "connections in use at most: 2",
            "a report of a minute: SQLSTATE 57014 after 9.9 s, not repeated",
            "the breaker is closed",
        ]
    );
}

#[tokio::test]
async fn k8_no_mail_is_sent_twice() {
    let mut out = Vec::new();
    send_mail::run(&mut out).await.unwrap();
    assert_eq!(
        lines(&out),
        [
            "anna: taken at attempt 1, after 0 s",
            "bert, greylisted: taken at attempt 2, after 60 s",
            "cleo, greylisted: the relay answered 451: attempt 1, to the queue, again in 900 s",
            "dora, unknown: the relay answered 550: attempt 1, not repeated",
            "emil: the line went dead after the text was handed over: attempt 1, not repeated",
            "fay, with a key: taken at attempt 2, after 0 s",
            r#"copies taken: {"anna": 1, "bert": 1, "emil": 1, "fay": 1}"#,
        ]
    );
}

#[tokio::test]
async fn webhooks_are_signed_limited_for_each_tenant_and_queued_where_they_cannot_be_delivered() {
    let mut out = Vec::new();
    webhook_delivery::run(&mut out).await.unwrap();
    assert_eq!(
        lines(&out),
        [
            " 0.0 s  evt-1 to acme: delivered at attempt 2",
            " 1.0 s  evt-2 to globex: queued for 60.0 s: upstream 'globex' could not be reached in 2 attempts (connect)",
            " 3.0 s  evt-3 to globex: queued for 60.0 s: upstream 'globex' could not be reached in 2 attempts (connect)",
            " 5.0 s  evt-4 to globex: queued for 58.4 s: circuit breaker 'globex' is open",
            " 6.0 s  evt-5 to initech: delivered at attempt 1",
            " 6.0 s  evt-6 to initech: delivered at attempt 1",
            " 6.0 s  evt-7 to initech: queued for 1.0 s: the rate limit of upstream 'initech' has no place in time",
            " 7.0 s  evt-7 to initech: delivered at attempt 1",
            " 8.0 s  evt-8 to umbrella: gone, subscription removed",
            "61.4 s  evt-2 to globex: queued for 2.0 s: circuit breaker 'globex' is open",
            "63.4 s  evt-2 to globex: delivered at attempt 1",
            "63.4 s  evt-3 to globex: delivered at attempt 1",
            "63.4 s  evt-4 to globex: queued for 1.0 s: the rate limit of upstream 'globex' has no place in time",
            "64.4 s  evt-4 to globex: delivered at attempt 1",
            "evt-2: 3 requests, 1 idempotency key, 2 signatures",
            "13 requests, all signed: true",
        ]
    );
}

/// RFC 4231, section 4.3.
#[test]
fn a_webhooks_signature_is_hmac_sha256() {
    let hex = webhook_delivery::hmac_sha256(b"Jefe", b"what do ya want for nothing?").unwrap();
    assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

#[tokio::test]
async fn a_model_that_is_overloaded_is_stood_in_for_by_a_smaller_one() {
    let mut out = Vec::new();
    ai_api::run(&mut out).await.unwrap();
    assert_eq!(
        lines(&out),
        [
            "429 with Retry-After: waited 7 s, then Yes.",
            "a late first token:",
            "  25.0 s  one",
            "  25.3 s  two",
            "  25.6 s  three",
            "asked the large model 3 times: Roughly: yes. Without: large (attempts_exhausted)",
            "asked the large model 0 times: Roughly: yes. Without: large (circuit_open)",
            "later: Yes. Degraded: false",
            "no prompt: upstream 'large' answered 400 Bad Request",
            "all of it in 68 s of virtual time",
        ]
    );
}
