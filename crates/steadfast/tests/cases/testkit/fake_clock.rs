//! A clock that sleeps move.

use std::future::{pending, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_executor::block_on;
use futures_util::future::join;
use steadfast::policy::Time;
use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::State;
use steadfast::report::WaitReason;
use steadfast::testing::{FakeClock, Reply, Script, ScriptedOperation, Stalled, Step, fake_clock};
use steadfast::{Clock, ErrorKind, Guard, ServiceClient};

use super::{exact, five_a_second, guard};
use crate::harness::{ms, secs};

#[test]
fn p20_a_backoff_ends_at_once_is_recorded_and_moves_the_clock() {
    let time = fake_clock();
    let rates = ScriptedOperation::new(&time, [Err("503"), Err("reset"), Ok(200)]);
    let guard = guard().build().unwrap();
    assert_eq!(block_on(guard.transient(|_| true).call(|| rates.call())).unwrap(), 200);
    assert_eq!(time.sleeps(), [secs(1), secs(2)]);
    assert_eq!((time.now(), time.elapsed()), (Time::from_secs(3), secs(3)));
    let starts: Vec<_> = rates.seen().iter().map(|call| call.at).collect();
    assert_eq!(starts, [Time::ZERO, Time::from_secs(1), Time::from_secs(3)]);

    time.clear();
    assert!(time.sleeps().is_empty());
    assert_eq!(time.elapsed(), secs(3), "the clock goes on from where it is");
}

#[test]
fn p20_a_wait_of_nothing_is_a_sleep_too() {
    let time = fake_clock();
    let rates = ScriptedOperation::new(&time, [Err("busy"), Err("busy"), Ok(1)]);
    let at_once = Backoff { base: Duration::ZERO, jitter: Jitter::None, ..exact() };
    let guard = guard().backoff(at_once).build().unwrap();
    block_on(guard.transient(|_| true).call(|| rates.call())).unwrap();
    assert_eq!(time.sleeps(), [Duration::ZERO, Duration::ZERO]);
}

#[test]
fn p20_what_an_upstream_asks_for_is_waited_out_exactly() {
    let time = fake_clock();
    let busy = Step::status(429).header("retry-after", "7");
    let script = Script::new(&time, [busy, Step::status(200)]);
    let client = ServiceClient::builder("http://rates.test").transport(script.clone()).build().unwrap();
    let response = block_on(client.get("/x").send()).unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(time.sleeps(), [secs(7)]);
    assert_eq!(response.report().waits()[0].duration, secs(7));
    let told = "attempt 1: 429 after 0.0ns; waited 7.0s (retry_after); attempt 2: 200 after 0.0ns; ended: response";
    assert_eq!(response.report().to_string(), told);
}

#[test]
fn w5_p20_the_rate_limit_waits_instead_of_failing() {
    let time = fake_clock();
    let rates = ScriptedOperation::new(&time, [Ok::<_, &str>(200)]);
    let guard = guard().rate_limit(five_a_second()).build().unwrap();
    for _ in 0..6 {
        block_on(guard.call(|| rates.call())).unwrap();
    }
    assert_eq!(time.sleeps(), [secs(1)], "only the sixth waits, and five have not slept at all");
}

#[test]
fn p20_the_wait_for_a_slot_is_the_work_of_others_and_no_sleep() {
    let time = fake_clock();
    let rates = ScriptedOperation::new(&time, [Reply::from(Ok::<_, &str>(200)).after(ms(300))]);
    let guard = guard().max_concurrent(1, secs(1)).build().unwrap();
    let (first, second) = block_on(join(guard.serve(|_| rates.call()), guard.serve(|_| rates.call())));
    assert!(first.is_ok());
    let second = second.unwrap();
    assert_eq!(second.report().waits()[0].reason, WaitReason::Bulkhead);
    assert_eq!(second.report().waits()[0].duration, ms(300));
    assert!(time.sleeps().is_empty());
    assert_eq!((rates.peak(), time.elapsed()), (1, ms(600)));
}

#[test]
fn w3_w4_p20_advance_is_what_a_breaker_waits_for() {
    let time = fake_clock();
    let rates = ScriptedOperation::new(&time, [Err("503")]);
    let guard = guard().build().unwrap();
    let call = || block_on(guard.transient(|_| true).call(|| rates.call()));
    assert_eq!(call().unwrap_err().limit(), Some(ErrorKind::CircuitOpen));
    assert_eq!(rates.calls(), 3);
    assert_eq!(call().unwrap_err().retry_after(), Some(secs(30)));
    assert_eq!(rates.calls(), 3, "refused without asking");

    rates.play([Ok(200)]);
    time.advance(secs(31));
    assert_eq!(call().unwrap(), 200);
    assert_eq!(guard.snapshot().breaker.state, State::Closed);
}

/// Polls a future so often that one that only had to have its turn would be over.
fn is_stuck<F: Future + Unpin>(future: &mut F) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    (0..100).all(|_| pin!(&mut *future).poll(&mut cx).is_pending())
}

#[test]
fn p22_c11_6_a_limit_on_real_work_comes_when_the_test_says_so() {
    let time = fake_clock();
    let guard = guard().attempt_timeout(secs(2)).build().unwrap();
    let mut call = pin!(guard.call(pending::<Result<(), &str>>));
    assert!(is_stuck(&mut call));
    time.advance(ms(1_999));
    assert!(is_stuck(&mut call), "the attempt has a millisecond left");
    time.advance(ms(1));
    let Poll::Ready(result) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { panic!("late") };
    assert_eq!(result.unwrap_err().report().attempts().next().unwrap().outcome.name(), "attempt_timeout");
    assert_eq!((time.elapsed(), time.armed_timers()), (secs(2), 0));
}

#[test]
fn p22_c11_6_run_goes_on_to_the_limit_of_real_work() {
    let time = fake_clock();
    let guard = guard().build().unwrap();
    let error = time.run(guard.call(pending::<Result<(), &str>>)).unwrap().unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::Timeout));
    assert_eq!((time.elapsed(), time.sleeps()), (secs(30), vec![]));
    assert_eq!(time.run(pending::<()>()), Err(Stalled));
}

#[test]
fn c11_6_scripted_work_takes_time_up_to_the_first_limit() {
    let time = fake_clock();
    let slow = ScriptedOperation::new(&time, [Reply::from(Ok::<_, &str>(1)).after(secs(60))]);
    let error = block_on(guard().build().unwrap().call(|| slow.call())).unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::Timeout));
    assert_eq!((time.elapsed(), slow.in_flight()), (secs(30), 0));

    let time = fake_clock();
    let slow = ScriptedOperation::new(&time, [Reply::from(Ok::<_, &str>(1)).after(secs(29))]);
    assert_eq!(block_on(guard().build().unwrap().call(|| slow.call())).unwrap(), 1);
    assert_eq!((time.elapsed(), time.sleeps()), (secs(29), vec![]));
}

#[test]
fn c11_6_what_hangs_is_ended_by_the_first_limit() {
    let time = fake_clock();
    let stuck = ScriptedOperation::new(&time, [Reply::<(), &str>::hang()]);
    let error = block_on(guard().build().unwrap().call(|| stuck.call())).unwrap_err();
    assert_eq!((error.limit(), time.elapsed()), (Some(ErrorKind::Timeout), secs(30)));

    let time = fake_clock();
    let stuck = ScriptedOperation::new(&time, [Reply::hang(), Ok::<_, &str>(1).into()]);
    let guard = guard().attempt_timeout(secs(2)).build().unwrap();
    assert_eq!(block_on(guard.transient(|_| true).call(|| stuck.call())).unwrap(), 1);
    assert_eq!((time.elapsed(), time.sleeps(), time.armed_timers()), (secs(3), vec![secs(1)], 0));
}

#[test]
fn c11_6_an_upstream_that_hangs_or_stalls_is_ended_too() {
    fn with(step: Step) -> (FakeClock, ServiceClient) {
        let time = fake_clock();
        let script = Script::new(&time, [step]);
        let builder = ServiceClient::builder("http://rates.test").retries(0).total_timeout(secs(5));
        (time, builder.transport(script).build().unwrap())
    }
    let (time, client) = with(Step::hang());
    assert_eq!(block_on(client.get("/x").send()).unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(time.elapsed(), secs(5));

    let (time, client) = with(Step::drip(ms(10)));
    assert_eq!(block_on(client.get("/x").send()).unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(time.elapsed(), secs(5));

    let (time, client) = with(Step::status(200).piece(secs(1), "begun").stall());
    let body = block_on(async { client.get("/x").send_streaming().await.unwrap().bytes(1_000).await });
    assert!(body.is_err());
    assert_eq!(time.elapsed(), secs(5));
}

#[test]
fn c11_6_waiting_on_the_clock_is_a_sleep() {
    let time = fake_clock();
    let clock = Clock::system();
    block_on(clock.wait(secs(3600)));
    block_on(clock.wait_until(Time::from_secs(60)));
    assert_eq!(time.sleeps(), [secs(3600), Duration::ZERO]);
    assert_eq!(clock.now(), Time::from_secs(3600));
}

#[test]
fn c11_6_a_seed_makes_jitter_and_keys_the_same_each_time() {
    let run = |seed: u64, own: Option<u64>| {
        let time = fake_clock().seed(seed);
        let rates = ScriptedOperation::new(&time, [Err("a"), Err("b"), Ok(1)]);
        let builder = Guard::builder("rates");
        let guard = own.into_iter().fold(builder, |builder, own| builder.seed(own)).build().unwrap();
        let call = guard.transient(|_| true).call_with(|context| rates.call_with(context));
        block_on(call).unwrap();
        (time.sleeps(), rates.seen()[0].key)
    };
    assert_eq!(run(1, None), run(1, None));
    assert_ne!(run(1, None), run(2, None));
    assert_eq!(run(1, Some(3)), run(2, Some(3)), "a builder's own seed wins");

    let jitter = |seed: u64| {
        let time = fake_clock().seed(seed);
        let script = Script::new(&time, [Step::status(503)]);
        let client = ServiceClient::builder("http://rates.test").transport(script).build().unwrap();
        block_on(client.get("/x").send()).unwrap();
        time.sleeps()
    };
    assert_eq!(jitter(1), jitter(1));
    assert_ne!(jitter(1), jitter(2));
    assert_eq!(jitter(1).len(), 2);
}

#[test]
fn c11_6_operations_may_be_anything() {
    let time = fake_clock();
    let guard = guard().build().unwrap();
    assert_eq!(block_on(guard.call(|| ready(Ok::<_, &str>(1)))).unwrap(), 1);
    assert_eq!(time.elapsed(), Duration::ZERO);
}
