//! What is sent a second time, and what is in it (A23 to A34, A48, A49, A53, A64, A69, A70).

use http::Method;
use steadfast::testing::Step;
use steadfast::{ErrorKind, Fault, Sent};

use crate::harness::{World, kind, ms, outcomes, status};

#[test]
fn a23_so_many_retries_are_exactly_so_many() {
    for retries in 0..5 {
        let world = World::with([Step::status(503)], |client| client.retries(retries).breaker_failures(100));
        world.get().unwrap();
        assert_eq!(world.upstream.requests(), retries as usize + 1);
    }
}

/// A27: a body is in memory once, however often it is sent: there is no buffer that could outgrow a limit.
#[test]
fn a24_a26_a27_a_retry_has_the_same_body() {
    let body = vec![b'x'; 100 * 1024];
    let world = World::new([Step::status(503), Step::reset(), Step::status(200)]);
    assert_eq!(status(&world.run(world.client.put("/x").body(body.clone()).send())), 200);
    let seen = world.upstream.seen();
    assert_eq!(seen.len(), 3);
    for request in &seen {
        assert_eq!(request.body, body);
        assert_eq!(request.body.as_ptr(), seen[0].body.as_ptr());
    }
}

/// Whatever may not be repeated is sent once all the same, whole, and its answer is returned.
#[test]
fn a25_a26_what_may_not_be_repeated_is_still_sent() {
    for code in [200, 503] {
        let world = World::new([Step::status(code)]);
        assert_eq!(status(&world.post()), code);
        assert_eq!((world.upstream.requests(), &world.upstream.seen()[0].body[..]), (1, &b"abc"[..]));
    }
}

#[test]
fn a28_a_redirect_never_becomes_another_request() {
    for code in [301, 302, 303, 307, 308] {
        for method in [Method::GET, Method::POST] {
            let world = World::new([Step::status(code).header("Location", "/x")]);
            let result = world.run(world.client.request(method, "/x").body("abc").send());
            assert_eq!((status(&result), world.upstream.requests()), (code, 1));
        }
    }
}

/// A29, A30, A31: the guard looks at the request and at what was sent of it; it needs no response.
#[test]
fn a29_a30_a31_a_request_that_may_have_arrived_is_not_sent_twice() {
    let sent = [Sent::Unknown, Sent::Yes];
    let faults = [Fault::Reset, Fault::ReadTimeout, Fault::WriteTimeout, Fault::Incomplete, Fault::Protocol];
    for (fault, sent) in faults.into_iter().flat_map(|fault| sent.map(|sent| (fault, sent))) {
        for method in [Method::POST, Method::PATCH] {
            let world = World::new([Step::fail(fault, sent), Step::status(200)]);
            let result = world.run(world.client.request(method, "/x").body("abc").send());
            assert_eq!(kind(&result), ErrorKind::Unreachable, "{fault} {sent:?}");
            assert_eq!(world.upstream.requests(), 1, "{fault} {sent:?}");
        }
    }
    // A30: a slow one, cut by its own timeout.
    let world = World::with([Step::hang(), Step::status(200)], |client| client.attempt_timeout(ms(50)));
    let result = world.post();
    assert_eq!((kind(&result), world.upstream.requests()), (ErrorKind::Unreachable, 1));
    assert_eq!(outcomes(&result), ["attempt_timeout"]);
}

#[test]
fn a32_one_key_for_all_attempts_and_another_for_the_next_call() {
    let world = World::new([Step::status(503), Step::status(503), Step::status(201)]);
    for key in ["k-1", "k-2"] {
        let result = world.run(world.client.post("/x").body("abc").idempotency_key(key).send());
        assert_eq!(status(&result), 201);
    }
    let keys: Vec<_> = world.upstream.seen().iter().map(|seen| seen.headers["idempotency-key"].clone()).collect();
    assert_eq!(keys, ["k-1", "k-1", "k-1", "k-2"]);
}

/// Nothing was sent, so any method goes again: A33 (on the wire: `sockets/resets.rs`), A69.
#[test]
fn a33_a69_what_was_never_sent_goes_again_whatever_the_method() {
    for fault in [Fault::Dns, Fault::Connect, Fault::ConnectTimeout, Fault::Tls, Fault::Reset] {
        let world = World::new([Step::fail(fault, Sent::No), Step::status(201)]);
        assert_eq!((status(&world.post()), world.upstream.requests()), (201, 2), "{fault}");
    }
}

/// A48, A49, A53: no early data is sent and no connection serves two origins, so these are answers like others.
#[test]
fn a48_a49_a53_421_and_425_are_returned_once() {
    for code in [421, 425] {
        let world = World::new([Step::status(code)]);
        assert_eq!((status(&world.get()), world.upstream.requests()), (code, 1));
        assert_eq!(world.state(), "closed");
    }
}

#[test]
fn a64_an_attempt_that_took_too_long_is_repeated() {
    let world = World::with([Step::hang(), Step::status(200)], |client| client.attempt_timeout(ms(50)));
    assert_eq!((status(&world.get()), world.upstream.requests()), (200, 2));
}

#[test]
fn a70_a_certificate_that_does_not_verify_is_asked_for_once() {
    let world = World::new([Step::fail(Fault::Certificate, Sent::No), Step::status(200)]);
    assert_eq!((kind(&world.get()), world.upstream.requests()), (ErrorKind::Unreachable, 1));
}
