//! Compressed bodies, through a whole client: what is on is asked for and decoded, and nothing else.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use steadfast::testing::Step;
use steadfast::{ClientBuilder, ErrorKind};

use crate::harness::{World, kind};

const TEXT: &[u8] = b"a small text, a small text, a small text";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn br(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 16);
    encoder.write_all(bytes).unwrap();
    encoder.into_inner()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn encoded(coding: &str, body: Vec<u8>) -> Step {
    Step::status(200).header("Content-Encoding", coding).body(body)
}

/// The `Accept-Encoding` that went out; `None`: there was none.
fn asked_for(world: &World) -> Option<String> {
    let seen = world.upstream.seen();
    seen[0].headers.get("accept-encoding").map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn c7_5_each_coding_is_asked_for_and_decoded() {
    for (coding, body) in [("gzip", gzip(TEXT)), ("br", br(TEXT)), ("zstd", zstd(TEXT))] {
        let world = World::new([encoded(coding, body)]);
        let response = world.get().unwrap();
        assert_eq!(response.bytes(), TEXT, "{coding}");
        assert!(!response.headers().contains_key("content-encoding"));
        assert_eq!(asked_for(&world).as_deref(), Some("gzip, br, zstd"));
    }
}

/// What was not asked for is returned as it is, with the head that says what it is.
#[test]
fn a_coding_that_is_off_is_neither_asked_for_nor_decoded() {
    let world = World::with([encoded("gzip", gzip(TEXT))], |client| client.gzip(false));
    let response = world.get().unwrap();
    assert_eq!(response.bytes(), &gzip(TEXT));
    assert_eq!(response.header("content-encoding").unwrap(), "gzip");
    assert_eq!(asked_for(&world).as_deref(), Some("br, zstd"));
}

#[test]
fn what_the_configuration_asks_for_wins() {
    let configure = |client: ClientBuilder| client.header("Accept-Encoding", "identity");
    let world = World::with([Step::status(200)], configure);
    world.get().unwrap();
    assert_eq!(asked_for(&world).as_deref(), Some("identity"));
}

/// A58. 2.4, for each coding: repeated, and never taken for the whole.
#[test]
fn a58_c2_4_a_body_without_its_end_is_repeated() {
    for (coding, body) in [("gzip", gzip(TEXT)), ("br", br(TEXT)), ("zstd", zstd(TEXT))] {
        let cut = body[..body.len() - 1].to_vec();
        let world = World::new([encoded(coding, cut), encoded(coding, body)]);
        let response = world.get().unwrap();
        assert_eq!(response.bytes(), TEXT, "{coding}");
        let outcomes: Vec<_> =
            response.report().attempts().map(|attempt| attempt.outcome.name().into_owned()).collect();
        assert_eq!(outcomes, ["decode", "200"], "{coding}");
    }
}

/// 7.5: the limit is that of the decoded bytes.
#[test]
fn c7_5_the_limit_counts_decoded_bytes() {
    let zeros = vec![0; 100_000];
    for (coding, body) in [("gzip", gzip(&zeros)), ("br", br(&zeros)), ("zstd", zstd(&zeros))] {
        assert!(body.len() < 1_000);
        let world = World::with([encoded(coding, body)], |client| client.max_response_bytes(99_999));
        assert_eq!(kind(&world.get()), ErrorKind::Unreachable, "{coding}");
        assert_eq!(world.upstream.requests(), 1, "{coding}");
    }
}
