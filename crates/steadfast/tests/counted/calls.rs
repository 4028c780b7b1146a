//! What calls are counted as.

use std::io;

use futures_util::future::join;
use metrics::with_local_recorder;
use steadfast::testing::{Step, VirtualClock};
use steadfast::{Fault, Guard};

use crate::recorder::Kept;
use crate::world::{ms, secs, world};

#[test]
fn a_call_with_a_retry_is_one_call_two_attempts_one_wait() {
    let world = world("retry", [Step::status(503).after(ms(30)), Step::status(200).after(ms(20))], |builder| builder);
    world.get().unwrap();
    let (kept, name) = (&world.kept, ("upstream", "retry"));
    assert_eq!(kept.count("steadfast.calls", &[name, ("ended", "response")]), 1);
    assert_eq!(kept.count("steadfast.attempts", &[name, ("outcome", "5xx")]), 1);
    assert_eq!(kept.count("steadfast.attempts", &[name, ("outcome", "2xx")]), 1);
    assert_eq!(kept.count("steadfast.retries", &[name, ("reason", "backoff")]), 1);
    assert_eq!(kept.values("steadfast.attempt.duration", &[name]), [0.03, 0.02]);
    let waits = kept.values("steadfast.wait.duration", &[name, ("reason", "backoff")]);
    let calls = kept.values("steadfast.call.duration", &[name]);
    let ([wait], [call]) = (&waits[..], &calls[..]) else { panic!("{waits:?} {calls:?}") };
    assert!((call - wait - 0.05).abs() < 1e-9, "{call} is {wait} and both attempts");
    assert_eq!(kept.sum("steadfast.calls", "retry"), 1);
    assert_eq!(kept.sum("steadfast.attempts", "retry"), 2);
    assert_eq!(kept.sum("steadfast.rejections", "retry"), 0);
}

#[test]
fn c4_9_transitions_and_refusals_are_counted_and_the_state_is_a_gauge() {
    let steps = (0..5).map(|_| Step::reset()).chain([Step::status(200)]);
    let world = world("breaker", steps, |builder| builder.retries(0));
    let (kept, name) = (&world.kept, ("upstream", "breaker"));
    let state = |state| kept.gauge("steadfast.circuit_breaker.state", &[name, ("state", state)]);
    world.refresh();
    assert_eq!((state("closed"), state("open"), state("half_open")), (1.0, 0.0, 0.0));
    for _ in 0..6 {
        world.get().unwrap_err();
    }
    let to = |to, why| kept.count("steadfast.circuit_breaker.transitions", &[name, ("to", to), ("why", why)]);
    assert_eq!(to("open", "streak"), 1);
    assert_eq!(kept.count("steadfast.rejections", &[name, ("kind", "circuit_open")]), 1);
    assert_eq!(kept.count("steadfast.calls", &[name, ("ended", "circuit_open")]), 1);
    assert_eq!(kept.count("steadfast.attempts", &[name, ("outcome", "reset")]), 5);
    world.refresh();
    assert_eq!((state("closed"), state("open"), state("half_open")), (0.0, 1.0, 0.0));
    world.clock.run(world.wait(secs(15))).unwrap();
    world.get().unwrap();
    assert_eq!((to("half_open", "cool_down_over"), to("closed", "probe_succeeded")), (1, 1));
}

#[test]
fn c3_3_denials_are_counted_by_what_said_no() {
    let configure =
        |builder: steadfast::ClientBuilder| builder.retry_budget_min_per_second(0.0).retry_budget_ratio(0.0);
    let world = world("budget", [Step::status(503)], configure);
    world.get().unwrap();
    world.refresh();
    let (kept, name) = (&world.kept, ("upstream", "budget"));
    assert_eq!(kept.count("steadfast.retry_budget.denials", &[name, ("reason", "budget_ceiling")]), 1);
    assert_eq!(kept.count("steadfast.calls", &[name, ("ended", "budget_ceiling")]), 1);
    assert_eq!(kept.gauge("steadfast.retry_budget.ceiling_left", &[name]), 0.0);
    assert!(kept.gauge("steadfast.retry_budget.credit", &[name]) > 0.0);
}

#[test]
fn c6_2_waits_for_a_place_and_for_a_slot_are_told_apart() {
    let steps = (0..3).map(|_| Step::status(200).after(ms(100)));
    let world = world("waits", steps, |builder| builder.max_concurrent(1).rate_limit(2).bulkhead_wait(secs(1)));
    let (one, other) = world.clock.run(join(world.client.get("/a").send(), world.client.get("/b").send())).unwrap();
    assert!(one.is_ok() && other.is_ok());
    let (kept, name) = (&world.kept, ("upstream", "waits"));
    assert_eq!(kept.values("steadfast.wait.duration", &[name, ("reason", "bulkhead")]), [0.1]);
    world.get().unwrap();
    assert_eq!(kept.values("steadfast.wait.duration", &[name, ("reason", "rate_limit")]), [0.8]);
}

#[test]
fn c11_5_a_fallback_that_is_served_is_counted() {
    let (kept, clock) = (Kept::new(), VirtualClock::new());
    let guard = with_local_recorder(&kept, || Guard::http("degraded").clock(clock.clone()).build().unwrap());
    let down = || async { Err::<u32, _>(io::Error::other("down")) };
    assert_eq!(clock.run(guard.fallback(10).call(down)).unwrap().unwrap(), 10);
    assert_eq!(kept.count("steadfast.degraded", &[("upstream", "degraded")]), 1);
}

#[test]
fn c7_6_streamed_bodies_are_counted_by_how_they_ended() {
    let steps = [
        Step::status(200).body("whole"),
        Step::status(200).piece(ms(1), "cut").cut(Fault::Reset),
        Step::status(200).piece(ms(1), "slow").stall(),
    ];
    let world = world("streams", steps, |builder| builder.read_timeout(secs(60)));
    for _ in 0..3 {
        let read = async {
            let mut response = world.client.get("/x").send_streaming().await.unwrap();
            while let Ok(Some(_)) = response.chunk().await {}
        };
        world.clock.run(read).unwrap();
    }
    for ended in ["whole", "failed", "deadline"] {
        let labels = [("upstream", "streams"), ("ended", ended)];
        assert_eq!(world.kept.count("steadfast.streamed_bodies", &labels), 1, "{ended}");
    }
}

#[test]
fn c1_6_a_call_that_is_dropped_is_counted_apart() {
    let world = world("dropped", [Step::hang()], |builder| builder);
    let (kept, name) = (&world.kept, ("upstream", "dropped"));
    assert_eq!(kept.count("steadfast.cancelled_calls", &[name]), 0, "it begins at zero");
    {
        let mut call = std::pin::pin!(world.client.get("/x").send());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(kept.count("steadfast.cancelled_calls", &[name]), 1);
    assert_eq!(kept.sum("steadfast.calls", "dropped"), 0);
}
