//! The system's clock without our own waits. There is no runtime here: a wait that is not skipped panics.

use std::future::ready;

use futures_executor::block_on;
use futures_util::future::join_all;
use steadfast::policy::Time;
use steadfast::policy::breaker::State;
use steadfast::policy::line::RateConfig;
use steadfast::testing::{Script, ScriptedOperation, Step, fast_mode};
use steadfast::{Clock, ErrorKind, ServiceClient};

use super::{five_a_second, guard};
use crate::harness::{ms, secs};

#[test]
fn p21_waits_are_skipped() {
    let fast = fast_mode();
    let rates = ScriptedOperation::new(&fast, [Err("busy"), Err("busy"), Ok(1)]);
    let guard = guard().build().unwrap();
    let before = fast.clock().now();
    let served = block_on(guard.transient(|_| true).serve(|_| rates.call())).unwrap();
    assert_eq!(*served.value(), 1);
    let waits: Vec<_> = served.report().waits().iter().map(|wait| wait.duration).collect();
    assert_eq!(waits, [secs(1), secs(2)], "the report tells of them all the same");
    assert!(fast.clock().now().since(before) >= secs(3), "and for breakers and limits they have passed");
    assert!(Clock::system().now() >= fast.clock().now().min(Time::from_secs(3)));
}

#[test]
fn p21_waits_that_others_ask_for_are_skipped_too() {
    let fast = fast_mode();
    let script = Script::new(&fast, [Step::status(503).header("retry-after", "20"), Step::status(200)]);
    let client = ServiceClient::builder("http://rates.test").transport(script).build().unwrap();
    let response = block_on(client.get("/x").send()).unwrap();
    assert_eq!((response.status().as_u16(), response.report().waits()[0].duration), (200, secs(20)));
    block_on(Clock::system().wait(secs(3600)));
}

#[test]
fn p21_the_rate_limit_holds_in_skipped_time() {
    let fast = fast_mode();
    let rates = ScriptedOperation::new(&fast, [Ok::<_, &str>(1)]);
    let guard = guard().rate_limit(five_a_second()).build().unwrap();
    let before = fast.clock().now();
    for _ in 0..11 {
        block_on(guard.call(|| rates.call())).unwrap();
    }
    assert!(fast.clock().now().since(before) >= secs(2), "the eleventh starts two seconds after the first");
}

#[test]
fn p21_several_who_skip_at_once_keep_their_turns() {
    let fast = fast_mode();
    let rates = ScriptedOperation::new(&fast, [Ok::<_, &str>(1)]);
    let rate = RateConfig { limit: 1, ..five_a_second() };
    let guard = guard().rate_limit(rate).max_concurrent(1, ms(500)).total_timeout(secs(3600)).build().unwrap();
    let results = block_on(join_all((0..20).map(|_| guard.call(|| rates.call()))));
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert!(fast.clock().now() >= Time::from_secs(19));
}

#[test]
fn p21_advance_ends_a_cool_down() {
    let fast = fast_mode();
    let guard = guard().build().unwrap();
    let error = block_on(guard.transient(|_| true).call(|| ready(Err::<(), _>("503")))).unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::CircuitOpen));
    fast.advance(secs(31));
    block_on(guard.call(|| ready(Ok::<_, &str>(())))).unwrap();
    assert_eq!(guard.snapshot().breaker.state, State::Closed);
}
