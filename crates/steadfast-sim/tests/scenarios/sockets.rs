//! Scenarios over real sockets: each thing that a scripted server can do, and the project's own files.

use std::sync::Mutex;
use std::time::Duration;

use steadfast_sim::scenario::{Action, Outcome, Scenario, files, play_over_sockets};

use crate::read;

/// What comes of these tables over sockets and in virtual time: the same.
fn passes_on_both(tables: &str) {
    let scenario = read(&format!("title = \"a\"\nwhy = \"b\"\n{tables}"));
    for outcome in [steadfast_sim::scenario::play_in_time(&scenario).unwrap(), play_over_sockets(&scenario).unwrap()] {
        assert!(outcome.passed(), "{outcome}");
    }
}

fn billing(script: &str, steps: &str) -> String {
    format!("[upstreams.billing]\nbase_url = \"http://billing.test/v1\"\nread_timeout = \"300ms\"\n{script}\n{steps}")
}

const REPLIES: &[(&str, &str)] = &[
    (
        "status = 503\nheaders = { Retry-After = \"0\" }\n[[script.billing]]\nstatus = 200\nbody = \"hello\"",
        "expect = { result = 200, body = \"hello\", outcomes = [\"503\", \"200\"], requests = 2, seen = { path = \"/v1/x\" } }",
    ),
    (
        "hang = true",
        "retry = false\nexpect = { result = \"unreachable\", outcomes = [\"read_timeout\"], took = \"300ms\", requests = 1 }",
    ),
    (
        "refuse = true\n[[script.billing]]\nstatus = 204",
        "expect = { result = 204, outcomes = [\"connect\", \"204\"], requests = 1 }",
    ),
    (
        "refuse = true\ntimes = 3",
        "method = \"POST\"\nexpect = { result = \"unreachable\", attempts = 3, requests = 0 }",
    ),
    (
        "reset = \"after\"\n[[script.billing]]\nstatus = 200",
        "method = \"POST\"\nbody = \"a=b\"\nexpect = { result = \"unreachable\", outcomes = [\"reset\"], requests = 1, ended = \"not_repeatable\", seen = { body = \"a=b\" } }",
    ),
    ("reset = \"before\"\n[[script.billing]]\nstatus = 200", "expect = { result = 200, attempts = 2, requests = 1 }"),
    (
        "status = 200\nbody = \"hello\"\ncut = 2\n[[script.billing]]\nstatus = 200\nbody = \"hello\"",
        "expect = { result = 200, body = \"hello\", outcomes = [\"incomplete\", \"200\"], requests = 2 }",
    ),
    (
        "status = 200\ndrip = \"50ms\"",
        "timeout = \"400ms\"\nexpect = { result = \"timeout\", took = \"400ms\", requests = 1 }",
    ),
    ("status = 200\nafter = \"200ms\"", "expect = { result = 200, took = \"200ms\" }"),
    (
        "hang = true",
        "cancel_after = \"100ms\"\nexpect = { result = \"cancelled\", took = \"100ms\", in_flight = 0, requests = 1 }",
    ),
];

#[test]
fn each_reply_means_the_same_on_both_stages() {
    let tables: Vec<String> = REPLIES
        .iter()
        .map(|(reply, call)| {
            billing(
                &format!("[[script.billing]]\n{reply}"),
                &format!("[[step]]\ncall = \"billing\"\npath = \"/x\"\n{call}"),
            )
        })
        .collect();
    in_parallel(&tables, |tables| passes_on_both(tables));
}

#[test]
fn calls_that_go_on_have_been_sent_before_the_next_step() {
    passes_on_both(&billing(
        "[[script.billing]]\nstatus = 200\nafter = \"200ms\"",
        r#"
[[step]]
call = "billing"
times = 3
concurrent = 3
as = "slow"
expect = { requests = 3, in_flight = 3 }
[[step]]
await = "slow"
expect = { result = 200, took = "200ms" }
"#,
    ));
}

#[test]
fn a_wrong_expectation_fails_over_sockets_and_shows_the_time_line() {
    let scenario = read(&format!(
        "title = \"a\"\nwhy = \"b\"\n{}",
        billing(
            "[[script.billing]]\nstatus = 503",
            "[[step]]\ncall = \"billing\"\nexpect = { result = 200, requests = 3 }"
        )
    ));
    let outcome = play_over_sockets(&scenario).unwrap();
    let [difference] = &outcome.differences[..] else { panic!("{outcome}") };
    assert_eq!((difference.what.as_str(), difference.seen.as_str()), ("result", "503"));
    let text = outcome.to_string();
    assert!(
        text.contains("time line") && text.contains("request GET /v1") && text.contains("attempt 3 ended: 503"),
        "{text}"
    );
}

#[test]
fn an_upstream_at_an_address_behind_tls_or_a_proxy_is_played_on_loopback() {
    for url in ["https://10.1.2.3:8443/v1", "https://billing.test/v1", "http://[2001:db8::1]/v1"] {
        let tables =
            billing("[[script.billing]]\nstatus = 200", "[[step]]\ncall = \"billing\"\nexpect = { result = 200 }");
        let proxied = tables.replace("read_timeout", "proxy = \"http://proxy.test:3128\"\nread_timeout");
        passes_on_both(&proxied.replace("http://billing.test/v1", url));
    }
}

/// All that can be and that do not let much time pass, at once: most of their time is waiting.
#[test]
fn the_scenarios_of_the_project_pass_over_sockets() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = files(&root).unwrap();
    let scenarios: Vec<Scenario> = files.iter().flat_map(|file| Scenario::read(file).unwrap()).collect();
    let real: Vec<Scenario> = scenarios.into_iter().filter(is_short).collect();
    assert!(real.len() >= 10, "{}", real.len());
    let failed = Mutex::new(Vec::new());
    in_parallel(&real, |scenario| {
        let outcome: Outcome = play_over_sockets(scenario).unwrap();
        if !outcome.passed() {
            failed.lock().unwrap().push(outcome.to_string());
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn is_short(scenario: &Scenario) -> bool {
    let passes = scenario.steps.iter().map(|step| match step.action {
        Action::Advance(by) => by,
        _ => Duration::ZERO,
    });
    scenario.virtual_only.is_none() && passes.sum::<Duration>() <= Duration::from_secs(2)
}

/// Does it for each, eight at a time.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}
