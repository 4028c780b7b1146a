//! Request bodies that come in pieces: what is repeated, and what is not (contract 2.2, 2.8; A24 to A27).

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use steadfast::testing::Step;
use steadfast::transport::{RequestBody, Uploaded};

use crate::harness::{World, ended, kind, ms, outcomes, status};

fn pieces(pieces: &[&'static str]) -> RequestBody {
    let pieces: Vec<Result<Bytes, std::io::Error>> =
        pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
    RequestBody::stream(stream::iter(pieces), None)
}

fn failing() -> RequestBody {
    let pieces = [Ok(Bytes::from_static(b"abc")), Err(std::io::Error::other("the disk is gone: S3CR3T"))];
    RequestBody::stream(stream::iter(pieces), None)
}

fn bodies(world: &World) -> Vec<Bytes> {
    world.upstream.seen().into_iter().map(|seen| seen.body).collect()
}

/// A24, A25, 2.8: what was kept is sent again, byte for byte.
#[test]
fn a24_a_body_in_pieces_is_sent_again_as_it_was() {
    let world = World::new([Step::status(503), Step::status(503), Step::status(200)]);
    let result = world.run(world.client.put("/x").body(pieces(&["ab", "c", "def"])).send());
    assert_eq!(status(&result), 200);
    assert_eq!(bodies(&world), ["abcdef"; 3]);
    world.assert_at_rest();
}

/// A27: the buffer is bounded, and what it cannot hold is sent once, whole.
#[test]
fn a27_a_body_over_the_buffer_is_sent_once_and_whole() {
    let world = World::new([Step::status(503), Step::status(200)]);
    let long: Vec<&'static str> = vec!["0123456789abcdef"; 7_000];
    let result = world.run(world.client.put("/x").body(pieces(&long)).send());
    assert_eq!((status(&result), ended(&result)), (503, "not_repeatable"));
    assert_eq!(bodies(&world).iter().map(Bytes::len).collect::<Vec<_>>(), [7_000 * 16]);
    world.assert_at_rest();
}

#[test]
fn the_buffer_can_be_set_for_one_body() {
    for (keep, sent) in [(6, 2), (5, 1), (0, 1)] {
        let world = World::new([Step::status(503), Step::status(200)]);
        let body = pieces(&["ab", "c", "def"]).keep(keep);
        let _ = world.run(world.client.put("/x").body(body).send());
        assert_eq!(bodies(&world), vec!["abcdef"; sent], "keeping {keep}");
    }
}

/// A26, 2.2: pieces do not make a POST repeatable.
#[test]
fn a26_a_post_in_pieces_is_sent_once() {
    let world = World::new([Step::status(503), Step::status(200)]);
    let result = world.run(world.client.post("/x").body(pieces(&["ab", "c"])).send());
    assert_eq!((status(&result), ended(&result)), (503, "not_repeatable"));
    assert_eq!(bodies(&world), ["abc"]);
}

/// 2.3: nothing was sent, so nothing was read either, and any method goes again.
#[test]
fn c2_3_a_refused_connection_repeats_a_post_in_pieces() {
    let world = World::new([Step::refuse(), Step::status(200)]);
    let result = world.run(world.client.post("/x").body(pieces(&["ab", "c"]).keep(0)).send());
    assert_eq!(status(&result), 200, "{result:?}");
}

/// 4.3: the caller's own trouble is no verdict, and no attempt repairs it.
#[test]
fn c4_3_a_source_that_fails_ends_the_call_and_is_no_verdict() {
    let world = World::new([Step::status(200)]);
    let result = world.run(world.client.put("/x").body(failing()).send());
    assert_eq!((kind(&result).name(), ended(&result)), ("unreachable", "not_retryable"));
    assert_eq!(outcomes(&result), ["request_body"]);
    assert_eq!(world.client.snapshot().breaker.calls, 0);
    let error = result.unwrap_err();
    assert!(!error.to_string().contains("S3CR3T"));
    let source = std::error::Error::source(&error).and_then(std::error::Error::source).unwrap();
    assert_eq!(source.to_string(), "the disk is gone: S3CR3T");
    world.assert_at_rest();
}

#[test]
fn a_body_that_is_not_as_long_as_announced_is_the_callers_mistake() {
    for (announced, text) in [
        (5, "the request's body ended after 3 of the announced 5 bytes"),
        (2, "the request's body has more than the announced 2 bytes"),
    ] {
        let world = World::new([Step::status(200)]);
        let body =
            RequestBody::stream(stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"abc"))]), Some(announced));
        let result = world.run(world.client.put("/x").body(body).send());
        assert_eq!(outcomes(&result), ["request_body"]);
        let error = result.unwrap_err();
        let source = std::error::Error::source(&error).and_then(std::error::Error::source).unwrap();
        assert_eq!(source.to_string(), text);
    }
}

/// What a stream gives is cut as well, the kept pieces of a further attempt too, and nothing of it is lost.
#[test]
fn progress_of_large_pieces_is_told_in_small_steps() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let world = World::new([Step::status(503), Step::status(200)]);
    let sink = Arc::clone(&told);
    let hook = move |uploaded: Uploaded| sink.lock().unwrap().push(uploaded.bytes);
    let large = Bytes::from((0..40_000_u32).map(|n| n as u8).collect::<Vec<_>>());
    let small = Bytes::from_static(b"end");
    let source = stream::iter([large.clone(), small.clone()].map(Ok::<_, std::io::Error>));
    let body = RequestBody::stream(source, Some(40_003));
    let result = world.run(world.client.put("/x").body(body).on_upload(hook).send());
    assert_eq!(status(&result), 200);
    // What is kept is one run of bytes: where its pieces began is not remembered.
    let expected = [16_384, 32_768, 40_000, 40_003, 16_384, 32_768, 40_003];
    assert_eq!(*told.lock().unwrap(), expected);
    let whole = [large, small].concat();
    assert!(bodies(&world).iter().all(|body| *body == whole));
}

#[test]
fn progress_is_told_piece_by_piece_and_starts_again_with_each_attempt() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let world = World::new([Step::status(503), Step::status(200)]);
    let sink = Arc::clone(&told);
    let hook = move |uploaded: Uploaded| sink.lock().unwrap().push((uploaded.bytes, uploaded.total));
    let result = world.run(world.client.put("/x").body(vec![7; 40_000]).on_upload(hook).send());
    assert_eq!(status(&result), 200);
    let once = [(16_384, Some(40_000)), (32_768, Some(40_000)), (40_000, Some(40_000))];
    assert_eq!(*told.lock().unwrap(), [once, once].concat());
    assert_eq!(bodies(&world).iter().map(Bytes::len).collect::<Vec<_>>(), [40_000, 40_000]);
}

#[test]
fn a_reader_is_a_body() {
    let world = World::new([Step::status(503), Step::status(200)]);
    let body = RequestBody::reader(&b"from a file"[..], Some(11));
    let result = world.run(world.client.put("/x").body(body).send());
    assert_eq!(status(&result), 200);
    assert_eq!(bodies(&world), ["from a file"; 2]);
}

/// 1.6: dropped in the middle of an upload, nothing is left.
#[test]
fn c1_6_a_dropped_upload_leaves_nothing() {
    let world = World::new([Step::status(200)]);
    let body = RequestBody::stream(stream::pending::<Result<Bytes, std::io::Error>>(), None);
    world.run(async {
        let call = std::pin::pin!(world.client.put("/x").body(body).send());
        let wait = std::pin::pin!(world.wait(ms(100)));
        futures_util::future::select(call, wait).await;
    });
    world.assert_at_rest();
}
