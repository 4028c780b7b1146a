//! What a profile makes of calls, over a scripted upstream: each as its page says.

use std::future::ready;

use steadfast::config::{Loader, Profile};
use steadfast::report::{Ended, WaitReason};
use steadfast::testing::{Step, VirtualClock};
use steadfast::{ErrorKind, Fault, Guard, GuardError, Sent};

use crate::harness::{World, ms, secs};

fn world(profile: Profile, steps: impl IntoIterator<Item = Step>) -> World {
    World::with(steps, |client| client.profile(profile))
}

/// 529 says that all are too many: tried again after a wait, where the caller vouches for the prompt.
#[test]
fn ai_waits_out_a_full_house_for_a_prompt_that_may_be_repeated() {
    let world = world(Profile::Ai, [Step::status(529), Step::status(529), Step::status(200)]);
    let response = world.run(world.client.post("/x").retry(true).body("prompt").send()).unwrap();
    assert_eq!((response.status().as_u16(), response.report().attempt_count()), (200, 3));
    // Equal jitter: at least half of 2 s and of 4 s.
    let waits: Vec<_> = response.report().waits().iter().map(|wait| wait.duration).collect();
    assert!(waits.len() == 2 && waits[0] >= secs(1) && waits[1] >= secs(2), "{waits:?}");
    // A POST that nobody vouches for is not sent twice.
    world.upstream.play([Step::status(529), Step::status(200)]);
    assert_eq!(world.post().unwrap().status(), 529);
    world.assert_at_rest();
}

/// A first byte after four minutes is no fault; a limit per minute is waited for, one per day is not.
#[test]
fn ai_is_patient_within_limits() {
    let world = world(Profile::Ai, [Step::status(200).after(secs(240))]);
    assert_eq!(world.get().unwrap().status(), 200);
    world.upstream.play([Step::status(429).header("Retry-After", "60"), Step::status(200)]);
    let response = world.get().unwrap();
    assert_eq!(
        response.report().waits().iter().map(|wait| (wait.duration, wait.reason)).collect::<Vec<_>>(),
        [(secs(60), WaitReason::RetryAfter)]
    );
    world.upstream.play([Step::status(429).header("Retry-After", "3600"), Step::status(200)]);
    let response = world.get().unwrap();
    assert_eq!((response.status().as_u16(), response.report().ended()), (429, Ended::RetryAfterTooLong));
    world.assert_at_rest();
}

/// 1.5: a call that was given little time is no evidence against an upstream that is slow by nature.
#[test]
fn ai_a_short_call_is_no_evidence() {
    let cut = |profile: Option<Profile>| {
        let world = World::with([Step::hang()], |client| match profile {
            Some(profile) => client.profile(profile).breaker_failures(1),
            None => client.breaker_failures(1),
        });
        let error = world.run(world.client.get("/x").timeout(secs(5)).send()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        world.state()
    };
    assert_eq!((cut(None), cut(Some(Profile::Ai))), ("open", "closed"));
}

/// Nothing that may have been sent goes again; what was provably not sent does.
#[test]
fn mail_is_not_sent_twice() {
    let unknown = [Step::reset(), Step::status(503), Step::fail(Fault::ReadTimeout, Sent::Unknown)];
    for step in unknown {
        let world = world(Profile::Mail, [step, Step::status(202)]);
        let _ = world.post();
        assert_eq!(world.upstream.requests(), 1);
    }
    let world = world(Profile::Mail, [Step::refuse(), Step::status(202)]);
    assert_eq!(world.post().unwrap().status(), 202);
    // With a key the provider knows the mail again.
    world.upstream.play([Step::reset(), Step::status(202)]);
    let keyed = world.client.post("/x").idempotency_key("welcome-17").body("mail").send();
    assert_eq!(world.run(keyed).unwrap().status(), 202);
    world.assert_at_rest();
}

/// One retry, in 15 s at most; a longer wait is the queue's.
#[test]
fn webhook_leaves_the_rest_to_the_queue() {
    let world = world(Profile::Webhook, [Step::hang()]);
    let before = world.clock.now();
    let delivery = || world.client.post("/x").idempotency_key("evt-1").body("event").send();
    let error = world.run(delivery()).unwrap_err();
    assert_eq!((error.kind(), error.report().attempt_count()), (ErrorKind::Timeout, 2));
    assert_eq!(world.clock.now().since(before), secs(15));

    world.upstream.play([Step::status(503).header("Retry-After", "120"), Step::status(200)]);
    let response = world.run(delivery()).unwrap();
    assert_eq!((response.status().as_u16(), response.report().attempt_count()), (503, 1));
    world.assert_at_rest();
}

/// The first attempt with this key still runs: waited for, and asked again.
#[test]
fn payment_asks_again_while_the_first_attempt_runs() {
    let world = world(Profile::Payment, [Step::reset(), Step::status(409), Step::status(200)]);
    let payment = world.client.post("/x").idempotency_key("order-42").body("12.90").send();
    let response = world.run(payment).unwrap();
    assert_eq!((response.status().as_u16(), response.report().attempt_count()), (200, 3));
    // Without a key neither is.
    world.upstream.play([Step::status(409), Step::status(200)]);
    assert_eq!(world.post().unwrap().status(), 409);
    world.assert_at_rest();
}

/// At most four at once; the fifth has a minute to wait for a slot.
#[test]
fn documents_queue_here() {
    let world = world(Profile::Documents, [Step::status(200).after(secs(50))]);
    let results = world.get_many(5);
    assert!(results.iter().all(|result| result.as_ref().is_ok_and(|response| response.status() == 200)));
    assert_eq!(world.upstream.peak(), 4);
    world.assert_at_rest();
}

/// A guard has those of a profile's values that mean something to it, and an operator the last word.
#[test]
fn c11_1_a_guard_with_a_profile_and_an_operator() {
    let file = "[guards.relay]\nretries = 1\n[guards.other]\nretries = 0";
    let config = Loader::new().text("steadfast.toml", file).load().unwrap();
    let clock = VirtualClock::new();
    let attempts = |guard: Guard| {
        let call = guard
            .transient(|_: &&str| true)
            .call_with(|context| ready(Err::<u32, _>(if context.attempt > 1 { "again" } else { "refused" })));
        match clock.run(call).unwrap().unwrap_err() {
            GuardError::Operation { report, .. } => report.attempt_count(),
            other => panic!("{other:?}"),
        }
    };
    let relay = |name: &str| Guard::job(name).clock(clock.clone()).seed(1).profile(Profile::Mail);
    assert_eq!(attempts(relay("relay").build().unwrap()), 3);
    assert_eq!(attempts(relay("relay").attempts(5).build().unwrap()), 5);
    assert_eq!(attempts(relay("relay").attempts(5).configured(&config).build().unwrap()), 2);
    assert_eq!(attempts(relay("unheard-of").attempts(4).configured(&config).build().unwrap()), 4);
    assert_eq!(attempts(config.guard("other").unwrap().clock(clock.clone()).build().unwrap()), 1);
    let unknown = config.guard("relais").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no guard \"relais\" in the configuration; it has: relay, other");
    assert_eq!(unknown.known(), ["relay", "other"]);
}

/// 11.4: the deadline of a kind, of a profile, of the code, of the operator, each over the one before.
#[test]
fn c11_4_the_deadline_of_the_strongest() {
    let config = Loader::new().text("steadfast.toml", "[guards.a]\ntotal_timeout = \"1500ms\"").load().unwrap();
    let clock = VirtualClock::new();
    let ends_after = |guard: steadfast::GuardBuilder| {
        let guard = guard.clock(clock.clone()).build().unwrap();
        let before = clock.now();
        let call = guard.call(std::future::pending::<Result<(), ()>>);
        assert_eq!(clock.run(call).unwrap().unwrap_err().limit(), Some(ErrorKind::Timeout));
        clock.now().since(before)
    };
    assert_eq!(ends_after(Guard::database("a")), secs(10));
    assert_eq!(ends_after(Guard::database("a").profile(Profile::Payment)), secs(120));
    assert_eq!(ends_after(Guard::database("a").total_timeout(secs(3)).profile(Profile::Payment)), secs(3));
    assert_eq!(ends_after(Guard::database("a").configured(&config).total_timeout(secs(3))), ms(1_500));
}
