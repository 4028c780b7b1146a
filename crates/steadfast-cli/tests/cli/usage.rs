//! Mistakes of usage: exit status 64, a message on standard error, nothing on standard output, and no secret repeated.

use crate::support::{File, steadfast};

#[test]
fn a_mistake_of_usage_exits_with_64() {
    let url = "http://127.0.0.1:9";
    let mistakes: &[&[&str]] = &[
        &[],
        &["cal"],
        &["call"],
        &["call", "GET"],
        &["call", "GET", "/x"],
        &["call", "a", "GET", "/x", "more"],
        &["call", "--url", url, "G T", "/x"],
        &["call", "--url", url, "GET", "/x", "--config", "c.toml"],
        &["call", "--url", url, "GET", "/x", "--table", "plugin.http"],
        &["call", "--url", url, "GET", "/x", "--retry", "maybe"],
        &["call", "--url", url, "GET", "/x", "--timeout", "0"],
        &["call", "--url", url, "GET", "/x", "--timeout", "inf"],
        &["call", "--url", url, "GET", "/x", "--timeout", "2 days"],
        &["call", "--url", url, "GET", "/x", "--repeat", "0"],
        &["call", "--url", url, "GET", "/x", "--concurrency", "0"],
        &["call", "--url", url, "GET", "/x", "--rate", "0"],
        &["call", "--url", url, "GET", "/x", "--output", "xml"],
        &["call", "--url", url, "GET", "/x", "--set", "retries"],
        &["call", "--url", url, "GET", "/x", "--set", "=1"],
        &["call", "--url", url, "GET", "/x", "--set", "base_url=http://127.0.0.1:8"],
        &["call", "--url", url, "GET", "/x", "--proxy"],
        &["call", "--url", url, "GET", "/x", "--proxy", ""],
        &["call", "--url", url, "GET", "/x", "--cacert", ""],
        &["call", "--url", url, "GET", "/x", "--cert", ""],
        &["call", "--url", url, "GET", "/x", "--key", ""],
        &["call", "--url", url, "GET", "/x", "--http2=yes"],
        &["schema", "--table", "plugin..http"],
        &["schema", "steadfast.toml"],
        &["call", "--url", url, "POST", "/x", "--json-body"],
        &["call", "--url", url, "POST", "/x", "--json-body", "-d", "{"],
        &["call", "--url", url, "POST", "/x", "-d", "@/does/not/exist"],
        &["check"],
        &["init", "--print", "here"],
        &["init", "--print", "--force"],
        &["init", "--only", "everything"],
        &["demo", "--duration", "1s"],
        &["demo", "--duration", "2h"],
        &["demo", "--rate", "0"],
        &["demo", "--seed", "x"],
        &["completions", "tcsh"],
    ];
    for args in mistakes {
        let run = steadfast(args);
        assert_eq!((run.code, run.stdout.as_str()), (64, ""), "{args:?}: {run:?}");
        assert!(!run.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_message_repeats_no_secret() {
    let url = "http://127.0.0.1:9";
    let mistakes: &[&[&str]] = &[
        &["call", "--url", url, "GET", "/x", "-H", "Authorization Bearer-secret"],
        &["call", "--url", url, "GET", "/x", "-H", "Authorization: Bearer\nsecret"],
        &["call", "--url", url, "GET", "/x", "-H", "b d: secret"],
        &["call", "--url", url, "POST", "/x", "--json-body", "-d", "{\"token\": secret}"],
        &["call", "--url", url, "GET", "/x", "--set", "secret"],
        &["call", "--url", "http://user:secret@127.0.0.1:9", "GET", "/x"],
        &["call", "--url", url, "GET", "/x", "--set", "headers=X-Key: secret"],
        &["call", "--url", url, "GET", "/x", "--proxy", "http://user:secret@proxy:1", "--set", "retrys=1"],
    ];
    for args in mistakes {
        let run = steadfast(args);
        assert!([64, 78].contains(&run.code), "{args:?}: {run:?}");
        assert!(!run.stdout.contains("secret") && !run.stderr.contains("secret"), "{args:?}: {run:?}");
    }
}

#[test]
fn a_setting_that_is_no_key_or_out_of_bounds_is_a_problem_of_configuration() {
    for (set, words) in [("retrys=1", "retries"), ("retries=many", "retries"), ("total_timeout=0", "total_timeout")] {
        let run = steadfast(&["call", "--url", "http://127.0.0.1:9", "GET", "/x", "--set", set]);
        assert_eq!((run.code, run.stdout.as_str()), (78, ""), "{run:?}");
        assert!(run.stderr.contains(words), "{run:?}");
    }
}

#[test]
fn a_problem_of_a_call_by_url_is_told_in_the_words_that_were_typed() {
    let url = "http://127.0.0.1:9";
    let cases: &[(&[&str], &str)] = &[
        (
            &["--url", url, "--set", "retrys=1", "GET", "/x"],
            "error: --set retrys: unknown key; did you mean `retries`?\n",
        ),
        (&["--url", "127.0.0.1:9", "GET", "/x"], "error: --url: expected an absolute URL"),
        (&["--url", url, "--set", "retries=1", "a.b", "GET", "/x"], "error: UPSTREAM: expected an upstream's name"),
    ];
    for (args, words) in cases {
        let run = steadfast(&[&["call"], *args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (78, ""), "{run:?}");
        assert!(run.stderr.starts_with(words) && !run.stderr.contains("SET_"), "{run:?}");
    }
}

#[test]
fn an_unknown_upstream_is_answered_with_the_known_ones() {
    let config = File::new("unknown.toml", "[upstreams.billing]\nbase_url = \"http://127.0.0.1:9\"\n");
    let run = steadfast(&["call", "--config", config.path(), "biling", "GET", "/x"]);
    assert_eq!(run.code, 64, "{run:?}");
    assert!(run.stderr.contains("'biling'") && run.stderr.contains("billing"), "{run:?}");
    let run = steadfast(&["call", "--config", "/does/not/exist.toml", "billing", "GET", "/x"]);
    assert_eq!(run.code, 78, "{run:?}");
    assert!(run.stderr.contains("/does/not/exist.toml"), "{run:?}");
}

#[test]
fn version_and_help_are_answers() {
    for args in [&["--version"][..], &["--help"], &["-h"], &["call", "--help"], &["demo", "-h"]] {
        let run = steadfast(args);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}: {run:?}");
        assert!(run.stdout.contains("steadfast"), "{args:?}");
    }
}
