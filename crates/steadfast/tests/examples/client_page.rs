//! The tests that belong to the client of `resilient_client`: how a user of this library tests a client of their own. The
//! cases W1 to W5 of the second seed.
//!
//! A virtual clock makes waits instant and a seed makes jitter the same each time, so what is asserted is exact: how many
//! requests the transport saw, and how long the call waited.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use steadfast::report::WaitReason;
use steadfast::testing::VirtualClock;
use steadfast::{ErrorKind, GuardError, Served};

use crate::programs::resilient_client::{Failed, FakeTransport, GetError, ResilientClient, Response, Step, waits};

/// A client over a script of each host.
struct Page {
    clock: VirtualClock,
    transport: Arc<FakeTransport>,
    client: ResilientClient,
}

impl Page {
    fn new<const N: usize>(scripts: [(&str, &[Step]); N]) -> Self {
        let clock = VirtualClock::new();
        let transport = FakeTransport::new(scripts);
        let client = ResilientClient::new(Arc::clone(&transport), clock.clone());
        Self { clock, transport, client }
    }

    fn get(&self, url: &str) -> Result<Served<Response>, GuardError<Failed>> {
        match self.clock.run(self.client.get(url)).expect("the client waits for the clock alone") {
            Ok(served) => Ok(served),
            Err(GetError::Call(error)) => Err(error),
            Err(GetError::Settings(problems)) => panic!("{problems}"),
        }
    }
}

#[test]
fn w1_failures_are_retried_after_waits_that_grow() {
    let page = Page::new([("a.test", &[Step::Status(503), Step::Reset, Step::Status(200)])]);
    let served = page.get("https://a.test/x").unwrap();
    assert_eq!(served.value().status, 200);
    assert_eq!(page.transport.calls_to("a.test"), 3);
    let [first, second] = waits(served.report(), WaitReason::Backoff)[..] else { panic!("two waits") };
    assert_in(0.2..=0.3, first);
    assert_in(0.4..=0.5, second);
    assert!(page.clock.now().since(Default::default()) < Duration::from_secs(1), "nothing else was waited for");
}

#[test]
fn w2_a_client_error_is_not_retried() {
    let page = Page::new([("b.test", &[Step::Status(404)])]);
    let error = page.get("https://b.test/missing").unwrap_err();
    assert!(matches!(error, GuardError::Operation { error: Failed::Client(404), .. }), "{error:?}");
    assert_eq!(page.transport.calls_to("b.test"), 1);
    assert_eq!(page.clock.now(), Default::default(), "nothing was waited for");
}

#[test]
fn w3_an_open_circuit_fails_fast_and_is_the_hosts_own() {
    let page = Page::new([("down.test", &[Step::Status(503)]), ("up.test", &[Step::Status(200)])]);
    let error = page.get("https://down.test/x").unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::CircuitOpen));
    assert_eq!(error.operation(), Some(&Failed::Server(503)), "what opened it is not lost");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(page.transport.calls_to("down.test"), 3);

    let error = page.get("https://down.test/y").unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::CircuitOpen));
    assert_eq!(page.transport.calls_to("down.test"), 3, "nothing was sent");

    assert_eq!(page.get("https://up.test/").unwrap().value().status, 200);
}

#[test]
fn w4_after_its_recovery_time_one_call_closes_it() {
    let page = Page::new([("down.test", &[Step::Status(503)])]);
    page.get("https://down.test/x").unwrap_err();
    page.transport.play("down.test", &[Step::Status(200)]);

    page.clock.advance(Duration::from_secs(29));
    page.get("https://down.test/y").unwrap_err();
    assert_eq!(page.transport.calls_to("down.test"), 3, "too early");

    page.clock.advance(Duration::from_secs(2));
    assert_eq!(page.get("https://down.test/z").unwrap().value().status, 200);
    assert_eq!(page.get("https://down.test/z").unwrap().value().status, 200);
    assert_eq!(page.transport.calls_to("down.test"), 5);
}

#[test]
fn w5_the_rate_limit_waits_and_does_not_fail() {
    let page = Page::new([("rate.test", &[Step::Status(200)])]);
    let mut waited = Vec::new();
    for number in 0..6 {
        let served = page.get(&format!("https://rate.test/{number}")).unwrap();
        waited.extend(waits(served.report(), WaitReason::RateLimit));
    }
    assert_eq!(page.transport.calls_to("rate.test"), 6);
    assert_eq!(waited, [1.0], "five at once, and the sixth a second after the first");
}

fn assert_in(range: RangeInclusive<f64>, seconds: f64) {
    assert!(range.contains(&seconds), "{seconds} s is not in {range:?}");
}
