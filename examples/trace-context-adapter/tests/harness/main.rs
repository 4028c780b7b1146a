//! The 41 cases of the W3C's trace context harness, level 2 and strict, as a table, over sockets: as they are, and with
//! each callback refused once, so that what arrives is a retry.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod case;
mod exchange;
mod parents;
mod states;

use case::Case;
use exchange::Exchange;

fn all() -> Vec<Case> {
    let cases: Vec<Case> = parents::cases().into_iter().chain(states::cases()).collect();
    assert_eq!(cases.len(), 41);
    cases
}

async fn run(refused_first: bool) {
    let exchange = Exchange::start(refused_first).await;
    let mut wrong = Vec::new();
    for case in all() {
        for probe in &case.probes {
            let callbacks = exchange.ask(&probe.headers, probe.callbacks).await;
            assert_eq!(callbacks.len(), probe.callbacks * if refused_first { 2 } else { 1 });
            if let Err(what) = probe.judge(&callbacks) {
                wrong.push(format!("{}: {:?}\n    {what}", case.name, probe.headers));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn c8_5_every_case_of_the_harness() {
    run(false).await;
}

#[tokio::test]
async fn c8_5_every_case_of_the_harness_with_retries() {
    run(true).await;
}

/// The adapter calls nobody but the harness.
#[tokio::test]
async fn c8_4_a_url_elsewhere_is_refused() {
    let exchange = Exchange::start(false).await;
    for url in ["http://127.0.0.1:1/x", "//elsewhere/", "http://elsewhere.test/", ""] {
        assert_eq!(exchange.status(&[], &[url.to_owned()]).await, 400, "{url}");
    }
    let beyond = vec![exchange.url("x"); 51];
    assert_eq!(exchange.status(&[], &beyond).await, 400);
}
