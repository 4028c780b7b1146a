//! A response that is read as it comes (contract 7.6).

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Body;
use steadfast::testing::Step;
use steadfast::{Error, Event, Fault, StreamingResponse};

use crate::harness::{World, ms, secs};

impl World {
    fn stream(&self) -> StreamingResponse {
        self.run(self.client.get("/x").send_streaming()).expect("a head")
    }

    fn chunk(&self, response: &mut StreamingResponse) -> Result<Option<Bytes>, Error> {
        self.run(response.chunk())
    }

    fn rest(&self, mut response: StreamingResponse) -> Result<String, Error> {
        let mut text = String::new();
        while let Some(piece) = self.chunk(&mut response)? {
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        Ok(text)
    }

    fn slots_in_use(&self) -> u32 {
        self.client.snapshot().line.in_use
    }

    fn streak(&self) -> u32 {
        self.client.snapshot().breaker.streak
    }
}

fn two_pieces() -> Step {
    Step::status(200).piece(ms(100), "one ").piece(ms(200), "two")
}

#[test]
fn c7_6_the_head_comes_first_and_the_pieces_as_they_come() {
    let world = World::new([two_pieces()]);
    let mut response = world.stream();
    assert_eq!((response.status().as_u16(), world.clock.now().since(Default::default())), (200, ms(0)));
    assert_eq!(world.chunk(&mut response).unwrap().unwrap(), "one ");
    assert_eq!(world.clock.now().since(Default::default()), ms(100));
    assert_eq!(world.rest(response).unwrap(), "two");
    assert_eq!(world.clock.now().since(Default::default()), ms(300));
    world.assert_at_rest();
}

/// RFC 9110 7.6.1: the same as of a response that is read whole; a length fits until some of the body is read.
#[test]
fn a_stream_that_goes_on_is_without_its_connection() {
    let step = || two_pieces().header("content-length", "7").header("connection", "x-hop").header("x-hop", "1");
    for read in [false, true] {
        let world = World::new([step()]);
        let mut response = world.stream();
        if read {
            world.chunk(&mut response).unwrap();
        }
        assert!(response.headers().contains_key("x-hop"));
        let response = response.into_http();
        let names: Vec<_> = response.headers().keys().map(|name| name.as_str()).collect();
        assert_eq!(names, if read { &[][..] } else { &["content-length"] });
    }
}

/// 5.2, A93: the slot covers the body, and comes back at its end or when it is dropped.
#[test]
fn c5_2_the_slot_is_held_until_the_body_ends_or_is_dropped() {
    let world = World::new([two_pieces()]);
    let response = world.stream();
    assert_eq!(world.slots_in_use(), 1);
    world.rest(response).unwrap();
    assert_eq!(world.slots_in_use(), 0);
    let mut response = world.stream();
    world.chunk(&mut response).unwrap();
    drop(response);
    world.assert_at_rest();
}

#[test]
fn a_body_without_a_byte_holds_nothing() {
    let world = World::new([Step::status(204)]);
    let response = world.stream();
    assert_eq!(world.slots_in_use(), 0);
    assert!(response.into_body().is_end_stream());
}

/// 7.6: the verdict is the end of the body.
#[test]
fn c7_6_a_body_that_comes_whole_ends_the_streak() {
    let world = World::new([Step::status(503), Step::status(503), Step::status(503), two_pieces()]);
    assert_eq!(world.get().unwrap().status().as_u16(), 503);
    assert_eq!(world.streak(), 3);
    let response = world.stream();
    assert_eq!(world.streak(), 3, "not before the end");
    world.rest(response).unwrap();
    assert_eq!(world.streak(), 0);
}

#[test]
fn c7_6_a_cut_by_the_upstream_is_a_failure_and_is_not_retried() {
    let world = World::new([Step::status(200).piece(ms(100), "one ").cut(Fault::Incomplete)]);
    let mut response = world.stream();
    world.chunk(&mut response).unwrap();
    let error = world.chunk(&mut response).unwrap_err();
    assert!(error.is_unreachable());
    assert_eq!(error.report().ended().name(), "body_failed");
    let last = *error.report().attempts().last().unwrap();
    assert_eq!((last.number, last.outcome.name().as_ref(), last.duration), (1, "incomplete", ms(100)));
    assert_eq!(world.chunk(&mut response).unwrap(), None, "the error is told once");
    assert_eq!((world.upstream.requests(), world.streak()), (1, 1));
    drop(response);
    world.assert_at_rest();
}

#[test]
fn c7_6_a_drop_after_the_head_is_no_verdict() {
    let world = World::new([Step::reset(), two_pieces(), Step::reset()]);
    let failed = world.post();
    assert!(failed.is_err());
    let mut response = world.stream();
    world.chunk(&mut response).unwrap();
    drop(response);
    assert_eq!(world.streak(), 1, "neither a success nor a failure");
    let snapshot = world.client.snapshot();
    assert_eq!((snapshot.breaker.calls, snapshot.breaker.failures), (1, 1));
}

#[test]
fn c7_6_the_deadline_ends_the_stream_and_is_no_verdict() {
    let world =
        World::with([Step::status(200).piece(ms(100), "one ").stall()], |builder| builder.total_timeout(secs(1)));
    let mut response = world.stream();
    world.chunk(&mut response).unwrap();
    let error = world.chunk(&mut response).unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(error.report().ended().name(), "deadline");
    assert_eq!(world.clock.now().since(Default::default()), secs(1));
    assert_eq!(world.streak(), 0);
    assert_eq!(world.client.snapshot().breaker.calls, 0);
    drop(response);
    world.assert_at_rest();
}

/// 7.6, 5.2: the slot is a lease.
#[test]
fn c7_6_the_deadline_frees_the_slot_even_if_nobody_reads() {
    let world = World::with([two_pieces(), Step::status(200)], |builder| {
        builder.total_timeout(secs(1)).max_concurrent(1).bulkhead_wait(secs(5))
    });
    let unread = world.stream();
    let second = world.run(async {
        world.wait(ms(500)).await;
        world.client.get("/y").send().await
    });
    assert!(second.is_ok());
    assert_eq!(world.clock.now().since(Default::default()), secs(1), "at the deadline of the first");
    let error = world.rest(unread).unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    world.assert_at_rest();
}

/// 0.1: what is ready in the poll in which the deadline passes is handed over; what comes after it is not.
#[test]
fn c0_1_a_piece_at_the_deadline_is_handed_over_and_none_after_it() {
    let world = World::with([Step::status(200).piece(secs(1), "at it").piece(ms(0), "right behind")], |builder| {
        builder.total_timeout(secs(1))
    });
    let mut response = world.stream();
    assert_eq!(world.chunk(&mut response).unwrap().unwrap(), "at it");
    world.clock.advance(ms(1));
    assert!(world.chunk(&mut response).unwrap_err().is_timeout());
}

/// 7.6, A73: a probe that is answered closes at the head; what its body does later cannot reopen.
#[test]
fn c7_6_a_probe_closes_at_the_head() {
    let world = World::new([Step::refuse()]);
    while world.state() == "closed" {
        assert!(world.post().is_err());
    }
    world.upstream.play([Step::status(200).piece(ms(100), "one ").cut(Fault::Incomplete)]);
    world.clock.advance(secs(15));
    let response = world.stream();
    assert_eq!(world.state(), "closed");
    assert!(world.rest(response).unwrap_err().is_unreachable());
    assert_eq!((world.state(), world.streak()), ("closed", 0));
    world.assert_at_rest();
}

#[test]
fn c4_6_a_probe_whose_head_is_a_failure_reopens() {
    let world = World::with([Step::refuse()], |builder| builder.retries(0));
    while world.state() == "closed" {
        assert!(world.get().is_err());
    }
    world.upstream.play([Step::status(503).body("no")]);
    world.clock.advance(secs(15));
    let response = world.stream();
    assert_eq!((response.status().as_u16(), world.state()), (503, "open"));
    assert_eq!(world.rest(response).unwrap(), "no");
}

/// 7.1: what may be followed by another attempt is read whole.
#[test]
fn c7_1_a_retryable_response_is_read_whole_and_retried() {
    let world = World::new([Step::status(503).piece(ms(50), "busy"), two_pieces()]);
    let response = world.stream();
    assert_eq!((response.status().as_u16(), response.report().attempt_count()), (200, 2));
    assert_eq!(world.rest(response).unwrap(), "one two");
    world.assert_at_rest();
}

#[test]
fn c7_1_the_last_retryable_response_comes_back_with_its_body() {
    let world = World::new([Step::status(503).body("first"), Step::status(503).body("second"), Step::reset()]);
    let response = world.stream();
    assert_eq!((response.status().as_u16(), response.report().attempt_count()), (503, 3));
    assert_eq!(world.rest(response).unwrap(), "second");
    world.assert_at_rest();
}

#[test]
fn c2_4_what_is_not_repeated_is_handed_over_as_it_comes() {
    for (step, post, ended) in [
        (Step::status(503).piece(ms(100), "later"), true, "not_repeatable"),
        (Step::status(500).piece(ms(100), "later"), false, "not_retryable"),
        (Step::status(200).piece(ms(100), "later"), true, "response"),
    ] {
        let world = World::new([step]);
        let request = if post { world.client.post("/x") } else { world.client.get("/x") };
        let response = world.run(request.send_streaming()).unwrap();
        assert_eq!(response.report().ended().name(), ended);
        assert_eq!(world.clock.now(), Default::default(), "the body is still to come");
        assert_eq!(world.rest(response).unwrap(), "later");
        world.assert_at_rest();
    }
}

/// 7.6: the budget settles at the head.
#[test]
fn c7_6_the_budget_settles_at_the_head() {
    let world = World::new([two_pieces()]);
    let before = world.client.snapshot().budget;
    let response = world.stream();
    let after = world.client.snapshot().budget;
    assert_eq!(after.requests, before.requests + 1);
    drop(response);
    assert_eq!(world.client.snapshot().budget, after);
}

#[test]
fn c7_2_no_head_at_all_is_the_same_error_as_without_streaming() {
    let world = World::new([Step::reset()]);
    let error = world.run(world.client.get("/x").send_streaming()).unwrap_err();
    assert!(error.is_unreachable());
    assert_eq!(error.attempts(), 3);
    world.assert_at_rest();
}

/// 7.7: a stream counts as running.
#[test]
fn c7_7_close_waits_for_a_stream_to_its_deadline_at_the_longest() {
    let world = World::with([two_pieces()], |builder| builder.total_timeout(secs(3)));
    let response = world.stream();
    world.run(async {
        let close = world.client.close();
        let read = async {
            world.wait(secs(1)).await;
            drop(response);
        };
        futures_util::future::join(close, read).await;
    });
    assert_eq!(world.clock.now().since(Default::default()), secs(1));
    let world = World::with([two_pieces()], |builder| builder.total_timeout(secs(3)));
    let kept = world.stream();
    world.run(world.client.close());
    assert_eq!(world.clock.now().since(Default::default()), secs(3));
    drop(kept);
    world.assert_at_rest();
}

/// 10 000 streams that are dropped, each at another point, leave nothing.
#[test]
fn ten_thousand_dropped_streams_leave_nothing() {
    let world = World::new([two_pieces()]);
    for round in 0..10_000_u32 {
        let mut response = world.stream();
        for _ in 0..round % 3 {
            world.chunk(&mut response).unwrap();
        }
        if round % 5 == 0 {
            // Dropped while it waits.
            let mut waiting = pin!(response.chunk());
            let _: Poll<_> = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
    world.assert_at_rest();
    assert_eq!(world.client.snapshot().breaker.failures, 0);
    assert_eq!(world.get().unwrap().status().as_u16(), 200);
}

#[test]
fn the_end_of_the_body_is_an_event() {
    let world = World::new([two_pieces(), two_pieces().cut(Fault::Reset)]);
    for _ in 0..2 {
        let response = world.stream();
        let _ = world.rest(response);
    }
    let events = world.events.lock().unwrap();
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::BodyEnded { fault, bytes, duration, .. } => Some((*fault, *bytes, *duration)),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(None, 7, ms(300)), (Some(Fault::Reset), 7, ms(300))]);
}

/// 8.6
#[test]
fn c8_6_debug_shows_no_header_and_no_body() {
    let world = World::new([Step::status(200).header("x-key", "S3CR3T").piece(ms(1), "S3CR3T")]);
    let mut response = world.stream();
    world.chunk(&mut response).unwrap();
    let shown = format!("{response:?}");
    assert!(!shown.contains("S3CR3T") && shown.contains("billing"), "{shown}");
}

#[test]
fn bytes_reads_the_rest_up_to_a_limit() {
    let world = World::new([two_pieces()]);
    let response = world.stream();
    assert_eq!(world.run(response.bytes(7)).unwrap(), "one two");
    let response = world.stream();
    let error = world.run(response.bytes(6)).unwrap_err();
    assert_eq!(error.report().attempts().last().unwrap().outcome.name(), "too_large");
    assert_eq!(world.streak(), 0, "the upstream is up");
    world.assert_at_rest();
}
