//! The tests that belong to the client of `resilient_client`: how a user of this library tests a client of their own. The
//! cases W1 to W5 of the second seed.
//!
//! The client knows nothing of its tests. What is built while a fake clock lives is on that clock: waits take no time and
//! are recorded, so that what is asserted is exact.

use std::ops::RangeInclusive;
use std::time::Duration;

use steadfast::testing::{FakeClock, fake_clock};
use steadfast::{ErrorKind, GuardError};

use crate::programs::resilient_client::{Failed, GetError, ResilientClient, Step, Transport};

const DOWN: Step = Ok(503);
const UP: Step = Ok(200);

fn client<const N: usize>(clock: &FakeClock, scripts: [(&str, &[Step]); N]) -> ResilientClient {
    ResilientClient::new(Transport::new(clock, scripts))
}

/// The limit that ended a call.
fn limit(result: Result<u16, GetError>) -> Option<ErrorKind> {
    match result {
        Err(GetError::Call(error)) => error.limit(),
        other => panic!("{other:?}"),
    }
}

fn assert_in(range: RangeInclusive<u64>, sleep: Duration) {
    let millis = Duration::from_millis(*range.start())..=Duration::from_millis(*range.end());
    assert!(millis.contains(&sleep), "{sleep:?} is not in {millis:?}");
}

#[tokio::test]
async fn w1_failures_are_retried_after_waits_that_grow() {
    let clock = fake_clock();
    let client = client(&clock, [("a.test", &[DOWN, Err(Failed::Connection), UP])]);
    let _limits = clock.disable_rate_limits();

    assert_eq!(client.get("https://a.test/x").await.unwrap(), 200);
    assert_eq!(client.transport.calls_to("a.test"), 3);
    let [first, second] = clock.sleeps()[..] else { panic!("{:?}", clock.sleeps()) };
    assert_in(200..=300, first);
    assert_in(400..=500, second);
}

#[tokio::test]
async fn w2_a_client_error_is_not_retried() {
    let clock = fake_clock();
    let client = client(&clock, [("b.test", &[Ok(404)])]);
    let _limits = clock.disable_rate_limits();

    let error = client.get("https://b.test/missing").await.unwrap_err();
    assert!(
        matches!(error, GetError::Call(GuardError::Operation { error: Failed::Client(404), .. })),
        "it passes through as it is: {error:?}"
    );
    assert_eq!(client.transport.calls_to("b.test"), 1);
    assert_eq!(clock.sleeps(), []);
}

#[tokio::test]
async fn w3_an_open_circuit_fails_fast_and_is_the_hosts_own() {
    let clock = fake_clock();
    let client = client(&clock, [("down.test", &[DOWN]), ("up.test", &[UP])]);
    let _limits = clock.disable_rate_limits();

    let Err(GetError::Call(error)) = client.get("https://down.test/x").await else { panic!("it is down") };
    assert_eq!(error.limit(), Some(ErrorKind::CircuitOpen));
    assert_eq!(error.operation(), Some(&Failed::Server(503)), "what opened it is not lost");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(client.transport.calls_to("down.test"), 3);

    assert_eq!(limit(client.get("https://down.test/y").await), Some(ErrorKind::CircuitOpen));
    assert_eq!(client.transport.calls_to("down.test"), 3, "nothing is sent");
    assert_eq!(client.get("https://up.test/").await.unwrap(), 200, "another host is unaffected");
}

#[tokio::test]
async fn w4_after_its_recovery_time_one_call_closes_it() {
    let clock = fake_clock();
    let client = client(&clock, [("down.test", &[DOWN])]);
    let _limits = clock.disable_rate_limits();
    client.get("https://down.test/x").await.unwrap_err();
    client.transport.host("down.test").unwrap().play([UP]);

    clock.advance(Duration::from_secs(29));
    assert_eq!(limit(client.get("https://down.test/y").await), Some(ErrorKind::CircuitOpen));
    assert_eq!(client.transport.calls_to("down.test"), 3, "too early");

    clock.advance(Duration::from_secs(2));
    assert_eq!(client.get("https://down.test/z").await.unwrap(), 200);
    assert_eq!(client.get("https://down.test/z").await.unwrap(), 200);
}

#[tokio::test]
async fn w5_the_rate_limit_waits_and_does_not_fail() {
    let clock = fake_clock();
    let client = client(&clock, [("rate.test", &[UP])]);

    for number in 0..6 {
        assert_eq!(client.get(&format!("https://rate.test/{number}")).await.unwrap(), 200);
    }
    assert_eq!(client.transport.calls_to("rate.test"), 6);
    assert_eq!(clock.sleeps(), [Duration::from_secs(1)], "five at once, and the sixth a second after the first");
}
