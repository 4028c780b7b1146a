//! The programs in `examples/`: each prints the facts that it is there to show.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod client_page;
mod programs;

use programs::resilient_client;

/// What a program prints, line by line.
fn printed(run: impl FnOnce(&mut Vec<u8>) -> Result<(), Box<dyn std::error::Error>>) -> Vec<String> {
    let mut out = Vec::new();
    run(&mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_resilient_client_shows_the_five_behaviours() {
    let lines = printed(|out| resilient_client::run(out));
    assert_eq!(
        lines,
        [
            "retried twice, waits: [0.28, 0.42]",
            "404 raised without retrying: the host answered 404, 1 request",
            "circuit for down.example.com open, retry in 30s",
            "  the next call: circuit breaker 'down.example.com' is open, 0 sent",
            "  api.example.com answers 200",
            "circuit closed again after recovery",
            "rate limit waited: [1.0]",
        ]
    );
}
