//! What each key of a script and of a step does.

use crate::{differs, passes, play};

/// An upstream of this script, and these steps.
fn billing(settings: &str, script: &str, steps: &str) -> String {
    format!("[upstreams.billing]\nbase_url = \"http://billing.test\"\n{settings}\n{script}\n{steps}")
}

#[test]
fn replies_of_an_upstream() {
    for (reply, expect) in [
        ("status = 204", "result = 204, requests = 1"),
        ("status = 200\nheaders = { Content-Type = \"text/plain\" }\nbody = \"a\"", "result = 200, body = \"a\""),
        ("status = 200\nafter = \"3s\"", "result = 200, took = \"3s\""),
        // The pool's limit, which a script has to keep to.
        ("status = 200\nafter = \"10s\"", "result = 200, took = \"10s\""),
        (
            "status = 200\nafter = \"11s\"",
            "result = \"unreachable\", outcomes = [\"read_timeout\"], took = \"10s\", requests = 1",
        ),
        ("hang = true", "result = \"unreachable\", outcomes = [\"read_timeout\"], took = \"10s\", requests = 1"),
        ("refuse = true", "result = \"unreachable\", outcomes = [\"connect\"], requests = 0, attempts = 1"),
        ("refuse = true\nafter = \"1s\"", "result = \"unreachable\", took = \"1s\", requests = 0"),
        ("reset = \"before\"", "result = \"unreachable\", outcomes = [\"reset\"], requests = 0"),
        ("reset = \"after\"", "result = \"unreachable\", outcomes = [\"reset\"], requests = 1"),
        (
            "status = 200\nbody = \"abcdef\"\ncut = 3",
            "result = \"unreachable\", outcomes = [\"incomplete\"], requests = 1",
        ),
        (
            "status = 200\nbody = \"abcdef\"\ncut = 0",
            "result = \"unreachable\", outcomes = [\"incomplete\"], requests = 1",
        ),
        (
            "status = 200\ndrip = \"1s\"",
            "result = \"timeout\", outcomes = [\"deadline\"], took = \"30s\", requests = 1",
        ),
        ("status = 200\ndrip = \"11s\"", "result = \"unreachable\", outcomes = [\"read_timeout\"], took = \"10s\""),
    ] {
        let step = format!("[[step]]\ncall = \"billing\"\nexpect = {{ {expect}, in_flight = 0 }}\n");
        passes(&billing("retries = 0", &format!("[[script.billing]]\n{reply}"), &step));
    }
}

/// What has no body on the wire has none here.
#[test]
fn heads_without_bodies() {
    let script = "[[script.billing]]\nroute = \"/empty\"\nstatus = 204\nbody = \"a\"\n[[script.billing]]\nstatus = 200\nbody = \"a\"";
    let steps = "[[step]]\ncall = \"billing\"\npath = \"/empty\"\nexpect = { result = 204, body = \"\" }\n\
        [[step]]\ncall = \"billing\"\nmethod = \"HEAD\"\nexpect = { result = 200, body = \"\" }\n";
    passes(&billing("", script, steps));
}

#[test]
fn the_last_reply_repeats_and_times_counts() {
    let script = "[[script.billing]]\nstatus = 500\ntimes = 2\n[[script.billing]]\nstatus = 404\n[[script.billing]]\nstatus = 200\ntimes = 9";
    let steps = "[[step]]\ncall = \"billing\"\ntimes = 20\nexpect = { results = { 500 = 2, 404 = 1, 200 = 17 } }\n";
    passes(&billing("", script, steps));
}

/// A route has its own place in the script; what is for all requests comes after every route.
#[test]
fn routes() {
    let script = "[[script.billing]]\nstatus = 200\n\
        [[script.billing]]\nroute = \"POST /a\"\nstatus = 201\n\
        [[script.billing]]\nroute = \"/a\"\nstatus = 404\n\
        [[script.billing]]\nroute = \"/b/*\"\nstatus = 409\n[[script.billing]]\nroute = \"/b/*\"\nstatus = 410";
    let step = |method: &str, path: &str, result: u16| {
        format!(
            "[[step]]\ncall = \"billing\"\nmethod = \"{method}\"\npath = \"{path}\"\nexpect = {{ result = {result} }}\n"
        )
    };
    let steps = [
        step("POST", "/a", 201),
        step("GET", "/a?x=1", 404),
        step("GET", "/b/7", 409),
        step("GET", "/b/8", 410),
        step("GET", "/c", 200),
        step("GET", "/b", 200),
    ];
    passes(&billing("", script, &steps.concat()));
    // Where nothing is for it, it is told so.
    let only = "[[script.billing]]\nroute = \"/a\"\nstatus = 200";
    passes(&billing(
        "",
        only,
        "[[step]]\ncall = \"billing\"\npath = \"/z\"\nexpect = { result = 404, body = \"not scripted\" }\n",
    ));
}

#[test]
fn what_a_call_carries_reaches_the_upstream() {
    let step = "[[step]]\ncall = \"billing\"\nmethod = \"POST\"\npath = \"/x?a=1\"\nbody = \"abc\"\nidempotency_key = \"k-1\"\n\
        headers = { X-A = \"1\" }\n\
        inbound = { headers = { X-Request-ID = \"r-1\", traceparent = \"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\" } }\n\
        [step.expect]\nresult = 200\nrequests = 2\n\
        [step.expect.seen]\nmethod = \"POST\"\npath = \"/x?a=1\"\nbody = \"abc\"\nno_headers = [\"Cookie\"]\n\
        [step.expect.seen.headers]\nIdempotency-Key = \"k-1\"\nX-A = \"1\"\nX-Request-ID = \"r-1\"\n\
        traceparent = \"00-4bf92f3577b34da6a3ce929d0e0e4736-*-01\"\n";
    passes(&billing("", "[[script.billing]]\nstatus = 503\n[[script.billing]]\nstatus = 200", step));
}

#[test]
fn the_words_of_the_caller() {
    let failing = "[[script.billing]]\nstatus = 503\n[[script.billing]]\nstatus = 200";
    for (call, expect) in [
        ("retry = false", "result = 503, requests = 1, ended = \"not_repeatable\""),
        ("method = \"POST\"\nretry = true", "result = 200, requests = 2"),
        ("idempotency_key = \"\"", "result = \"invalid_request\", requests = 0"),
        ("path = \"http://elsewhere.test/x\"", "result = \"invalid_request\", requests = 0"),
    ] {
        passes(&billing("", failing, &format!("[[step]]\ncall = \"billing\"\n{call}\nexpect = {{ {expect} }}\n")));
    }
    let hanging = "[[script.billing]]\nhang = true";
    for (call, expect) in [
        ("timeout = \"2s\"", "result = \"timeout\", took = \"2s\", breaker = \"open\""),
        ("timeout = \"2s\"\ntimeout_is_evidence = false", "result = \"timeout\", took = \"2s\", breaker = \"closed\""),
        ("inbound = { time_left = \"3s\" }", "result = \"timeout\", took = \"3s\""),
        ("cancel_after = \"4s\"", "result = \"cancelled\", took = \"4s\", breaker = \"closed\", in_flight = 0"),
    ] {
        let step = format!("[[step]]\ncall = \"billing\"\n{call}\nexpect = {{ {expect} }}\n");
        passes(&billing("breaker_failures = 1\nread_timeout = \"30s\"", hanging, &step));
    }
}

/// So many, and so many of them at once.
#[test]
fn calls_one_after_the_other_and_at_once() {
    let slow = "[[script.billing]]\nstatus = 200\nafter = \"1s\"";
    for (call, took, in_flight) in
        [("times = 3", "3s", 1), ("concurrent = 3", "1s", 3), ("times = 5\nconcurrent = 2", "3s", 2)]
    {
        let steps = format!(
            "[[step]]\ncall = \"billing\"\n{call}\nas = \"all\"\nexpect = {{ in_flight = {in_flight} }}\n\
             [[step]]\nawait = \"all\"\nexpect = {{ result = 200, took = \"1s\" }}\n"
        );
        let outcome = play(&billing("", slow, &steps));
        assert!(outcome.passed(), "{outcome}");
        assert_eq!(format!("{}s", outcome.took.as_secs()), took, "{call}");
    }
}

#[test]
fn an_operator_and_time() {
    let steps = "[[step]]\nforce_open = \"billing\"\nexpect = { breaker = \"open\", ready = \"degraded\", ready_detail = \"*forced open\" }\n\
        [[step]]\ncall = \"billing\"\nexpect = { result = \"circuit_open\", requests = 0 }\n\
        [[step]]\nadvance = \"1h\"\n\
        [[step]]\ncall = \"billing\"\nexpect = { result = \"circuit_open\", requests = 0 }\n\
        [[step]]\nreset = \"billing\"\nexpect = { breaker = \"closed\" }\n\
        [[step]]\nforce_close = \"billing\"\n\
        [[step]]\ncall = \"billing\"\ntimes = 3\nexpect = { result = 503, breaker = \"closed\" }\n\
        [[step]]\nreset = \"billing\"\n\
        [[step]]\ncall = \"billing\"\nexpect = { result = 503, breaker = \"open\" }\n";
    let outcome = play(&billing("retries = 0\nbreaker_failures = 1", "[[script.billing]]\nstatus = 503", steps));
    assert!(outcome.passed() && outcome.took.as_secs() == 3600, "{outcome}");
}

/// 7.6: what happens after the head ends the body, and is not repeated.
#[test]
fn bodies_that_are_read_as_they_come() {
    for (reply, expect) in [
        ("status = 200\nbody = \"abcdef\"", "result = 200, body = \"abcdef\", ended = \"response\""),
        (
            "status = 200\nbody = \"abcdef\"\ncut = 3",
            "result = \"unreachable\", body = \"abc\", ended = \"body_failed\", outcomes = [\"incomplete\"]",
        ),
        ("status = 200\ndrip = \"1s\"", "result = \"timeout\", body = \".*\", took = \"5s\", breaker = \"closed\""),
        ("hang = true", "result = \"timeout\", took = \"5s\", ended = \"deadline\""),
    ] {
        let step = format!(
            "[[step]]\ncall = \"billing\"\nstream = true\nexpect = {{ {expect}, requests = 1, in_flight = 0 }}\n"
        );
        passes(&billing("total_timeout = \"5s\"", &format!("[[script.billing]]\n{reply}"), &step));
    }
    // A reader that goes away is no verdict, and gives its slot back.
    let step = "[[step]]\ncall = \"billing\"\nstream = true\ncancel_after = \"2s\"\n\
        expect = { result = \"cancelled\", took = \"2s\", breaker = \"closed\", in_flight = 0 }\n";
    passes(&billing("breaker_failures = 1", "[[script.billing]]\nstatus = 200\ndrip = \"1s\"", step));
}

/// 7.7: a closed client takes no new calls, and is closed once those under way have ended.
#[test]
fn closing() {
    let slow = "[[script.billing]]\nstatus = 200\nafter = \"1s\"";
    let steps = "[[step]]\ncall = \"billing\"\nas = \"last\"\n[[step]]\nclose = \"billing\"\n\
        [[step]]\ncall = \"billing\"\nexpect = { result = \"closed\", requests = 0 }\n\
        [[step]]\nawait = \"last\"\nexpect = { result = 200 }\n";
    passes(&billing("", slow, steps));
}

#[test]
fn another_script_and_its_own_again() {
    let script = "[[script.billing]]\nstatus = 201\n[[script.billing]]\nstatus = 202\n[[script.down]]\nstatus = 404";
    let call = |result: u16| format!("[[step]]\ncall = \"billing\"\nexpect = {{ result = {result} }}\n");
    let play = |script: &str| format!("[[step]]\nplay = \"billing\"\nscript = \"{script}\"\n");
    let steps = [call(201), call(202), play("down"), call(404), play("billing"), call(201)];
    passes(&billing("", script, &steps.concat()));
}

/// A guard's operation, its errors, and its keys.
#[test]
fn a_guard() {
    let guard = |settings: &str, script: &str, steps: &str| format!("[guards.mail]\n{settings}\n{script}\n{steps}");
    for (answer, call, expect) in [
        ("value = \"sent\"", "", "result = \"ok\", body = \"sent\", requests = 1"),
        ("error = \"failure\"", "", "result = \"operation\", requests = 1, message = \"failure error\""),
        ("error = \"transient\"", "", "result = \"operation\", requests = 3, ended = \"attempts_exhausted\""),
        (
            "error = \"transient\"\nretry_after = \"2s\"",
            "",
            "requests = 3, waits = [{ retry_after = \"2s\" }, { retry_after = \"2s\" }]",
        ),
        ("error = \"throttled\"", "", "result = \"operation\", requests = 3"),
        ("error = \"permanent\"", "", "result = \"operation\", requests = 1, ended = \"not_retryable\""),
        ("error = \"refused\"", "", "result = \"operation\", requests = 1"),
        (
            "error = \"transient\"",
            "classify = false",
            "result = \"operation\", requests = 1, ended = \"not_repeatable\"",
        ),
        ("error = \"transient\"", "fallback = \"queued\"", "result = \"ok\", body = \"queued\", degraded = true"),
        ("error = \"permanent\"", "fallback = \"queued\"", "result = \"operation\", degraded = false"),
        ("error = \"transient\"", "classify = false\nfallback = \"queued\"", "body = \"queued\", requests = 1"),
        ("hang = true", "", "result = \"timeout\", took = \"30s\""),
        ("hang = true", "timeout = \"1s\"", "result = \"timeout\", took = \"1s\""),
        ("hang = true", "inbound = { time_left = \"2s\" }", "result = \"timeout\", took = \"2s\""),
        ("hang = true", "cancel_after = \"2s\"", "result = \"cancelled\", took = \"2s\", in_flight = 0"),
        ("value = \"sent\"\nafter = \"1s\"\ntimes = 2", "times = 3", "result = \"ok\", took = \"1s\""),
    ] {
        let step = format!("[[step]]\ncall = \"mail\"\n{call}\nexpect = {{ {expect} }}\n");
        passes(&guard("retry_budget_gate = false", &format!("[[script.mail]]\n{answer}"), &step));
    }
    // 6.1, 6.4: places are counted for each key.
    let steps = "[[step]]\ncall = \"mail\"\ntimes = 2\nrate_limit_key = \"a\"\nexpect = { result = \"ok\" }\n\
        [[step]]\ncall = \"mail\"\nrate_limit_key = \"a\"\nexpect = { result = \"rate_limited\", retry_after = \"1s\", requests = 0 }\n\
        [[step]]\ncall = \"mail\"\nrate_limit_key = \"b\"\nexpect = { result = \"ok\" }\n\
        [[step]]\nlook = \"mail\"\nexpect = { ready = \"ok\" }\n[[step]]\nclose = \"mail\"\n\
        [[step]]\ncall = \"mail\"\nexpect = { result = \"closed\" }\n";
    passes(&guard("rate_limit = 2\nrate_limit_wait = \"0s\"", "[[script.mail]]\nvalue = \"sent\"", steps));
}

/// The same seed, the same waits; another, others.
#[test]
fn the_seed_decides_all_chance() {
    let text =
        billing("", "[[script.billing]]\nstatus = 503", "[[step]]\ncall = \"billing\"\nexpect = { took = \"0s\" }\n");
    let seen = |seed: &str| differs(&format!("{seed}{text}"));
    assert_eq!(seen(""), seen("seed = 1\n"));
    assert_ne!(seen(""), seen("seed = 2\n"));
}
