//! Every mistake of a file is told, with its line, what was expected, and the nearest known name.

use steadfast_sim::scenario::Scenario;

const GOOD: &str = r#"title = "a"
why = "b"
[upstreams.billing]
base_url = "http://billing.test"
[guards.mail]
[[script.billing]]
status = 200
[[script.mail]]
value = "sent"
[[step]]
call = "billing"
"#;

/// The problems of a text, each a line.
fn problems(text: &str) -> String {
    match Scenario::parse("a.toml", text) {
        Ok(_) => String::new(),
        Err(problems) => problems.to_string(),
    }
}

/// The good text with one thing in it that is not good.
#[track_caller]
fn with(from: &str, to: &str, expected: &str) {
    let text = GOOD.replacen(from, to, 1);
    assert_ne!(text, GOOD, "{from}");
    assert_eq!(problems(&text), expected, "{text}");
}

#[test]
fn a_good_one_has_none() {
    assert_eq!(problems(GOOD), "");
}

#[test]
fn what_is_missing() {
    with("title = \"a\"\n", "", "a.toml:1:1: title: missing: a string that is not empty");
    with("why = \"b\"\n", "", "a.toml:1:1: why: missing: a string");
    with("[[step]]\ncall = \"billing\"\n", "", "a.toml:1:1: step: missing: a list of tables, [[step]]");
    with(
        "call = \"billing\"\n",
        "",
        "a.toml:10:1: step[0]: expected one of `call`, `await`, `advance`, `play`, `force_open`, `force_close`, `reset`, `close`, `look`",
    );
    with(
        "status = 200",
        "after = \"1s\"",
        "a.toml:6:1: script.billing[0]: expected one of `status`, `hang`, `refuse`, `reset`",
    );
    with("value = \"sent\"", "times = 2", "a.toml:8:1: script.mail[0]: expected one of `value`, `error`, `hang`");
    with(
        "base_url = \"http://billing.test\"\n",
        "",
        "a.toml:3:12: upstreams.billing.base_url: missing; set it here or in $STEADFAST_UPSTREAMS__BILLING__BASE_URL",
    );
    let nothing = "title = \"a\"\nwhy = \"b\"\n[[step]]\nadvance = \"1s\"\n";
    assert_eq!(
        problems(nothing),
        "a.toml:1:1: upstreams: missing: [upstreams.NAME], [guards.NAME], or the `config` that has them"
    );
    assert_eq!(problems(""), problems("").lines().collect::<Vec<_>>().join("\n"));
    assert_eq!(problems("").lines().count(), 4, "{}", problems(""));
}

#[test]
fn what_is_not_known_and_what_was_probably_meant() {
    with("title", "titel", "a.toml:1:1: titel: unknown key; did you mean `title`?");
    with("[[step]]", "[[steps]]", "a.toml:10:3: steps: unknown key; did you mean `step`?");
    with(
        "[upstreams.billing]\n",
        "[upstreams.billing]\nretrys = 1\n",
        "a.toml:4:1: upstreams.billing.retrys: unknown key; did you mean `retries`?",
    );
    with(
        "status = 200",
        "status = 200\nbdy = \"x\"",
        "a.toml:8:1: script.billing[0].bdy: unknown key; did you mean `body`?",
    );
    with(
        "call = \"billing\"",
        "call = \"biling\"",
        "a.toml:11:1: step[0].call: there is no upstream and no guard of this name; did you mean `billing`?",
    );
    with(
        "call = \"billing\"",
        "call = \"billing\"\nexpect = { reslt = 200 }",
        "a.toml:12:12: step[0].expect.reslt: unknown key; did you mean `result`?",
    );
    with(
        "call = \"billing\"",
        "call = \"billing\"\nexpect = { breaker = \"opened\" }",
        "a.toml:12:22: step[0].expect.breaker: expected one of \"closed\", \"open\", \"half_open\"; found the string \"opened\"; did you mean `open`?",
    );
    with(
        "[[script.mail]]",
        "[[script.male]]",
        "a.toml:8:10: script.male: no upstream or guard has this name, and no step plays it; did you mean `mail`?",
    );
    with(
        "call = \"billing\"",
        "play = \"billing\"\nscript = \"mial\"",
        "a.toml:12:1: step[0].script: there is no script of this name; did you mean `mail`?",
    );
    with(
        "call = \"billing\"",
        "await = \"probe\"",
        "a.toml:11:1: step[0].await: no calls before this step go on `as` this",
    );
}

#[test]
fn what_has_another_type_or_is_out_of_bounds() {
    with("title = \"a\"", "title = 1", "a.toml:1:9: title: expected a string that is not empty; found the integer 1");
    with(
        "status = 200",
        "status = \"200\"",
        "a.toml:7:10: script.billing[0].status: expected an HTTP status, 200 to 599; found the string \"200\"",
    );
    with(
        "status = 200",
        "status = 99",
        "a.toml:7:10: script.billing[0].status: expected an HTTP status, 200 to 599; found the integer 99",
    );
    with(
        "status = 200",
        "status = 200\nafter = 1",
        "a.toml:8:9: script.billing[0].after: expected a duration of at most 24h, such as \"250ms\"; found the integer 1",
    );
    with(
        "status = 200",
        "status = 200\ntimes = 0",
        "a.toml:8:9: script.billing[0].times: expected an integer from 1 to 10000; found the integer 0",
    );
    with("status = 200", "hang = false", "a.toml:7:8: script.billing[0].hang: expected true; found the boolean false");
    with(
        "call = \"billing\"",
        "call = \"billing\"\nexpect = { took = \"2s..1s\" }",
        "a.toml:12:19: step[0].expect.took: expected a duration, or a range such as \"0s..100ms\"; found the string \"2s..1s\"",
    );
    with(
        "call = \"billing\"",
        "call = \"billing\"\nexpect = { waits = [{ backof = \"1s\" }] }",
        "a.toml:12:21: step[0].expect.waits[0]: expected a table with one of \"backoff\", \"retry_after\", \"bulkhead\", \"rate_limit\" and a range such as \"0s..100ms\"; found a table",
    );
    with(
        "call = \"billing\"",
        "call = \"billing\"\nexpect = { results = { 99 = 1 } }",
        "a.toml:12:29: step[0].expect.results.99: expected a status or a word of `result`, and a number or a range; found the integer 1",
    );
    with(
        "[[script.billing]]\nstatus = 200",
        "[script.billing]\nstatus = 200",
        "a.toml:6:1: script.billing: expected lists of tables, [[script.NAME]]; found a table",
    );
    with(
        "[[step]]\ncall = \"billing\"\n",
        "[step]\ncall = \"billing\"\n",
        "a.toml:10:1: step: expected a list of tables, [[step]]; found a table",
    );
}

#[test]
fn what_does_not_go_together() {
    with(
        "status = 200",
        "status = 200\nhang = true",
        "a.toml:8:1: script.billing[0].hang: expected only one of `status`, `hang`, `refuse`, `reset`; `status` is there already",
    );
    with(
        "status = 200",
        "refuse = true\nbody = \"x\"",
        "a.toml:8:1: script.billing[0].body: goes with `status`, and not with `refuse`",
    );
    with(
        "status = 200",
        "status = 200\nbody = \"four\"\ncut = 4",
        "a.toml:9:1: script.billing[0].cut: expected less than the 4 bytes of the body; found 4",
    );
    with(
        "status = 200",
        "status = 200\nbody = \"four\"\ndrip = \"1s\"",
        "a.toml:9:1: script.billing[0].drip: a body that drips has no `body` and no `cut`",
    );
    with(
        "status = 200",
        "status = 200\ndrip = \"999us\"",
        "a.toml:8:1: script.billing[0].drip: expected a duration of at least 1ms",
    );
    with(
        "value = \"sent\"",
        "error = \"permanent\"\nretry_after = \"1s\"",
        "a.toml:10:1: script.mail[0].retry_after: goes with `error = \"transient\"` or `error = \"throttled\"`",
    );
    with(
        "value = \"sent\"",
        "status = 200",
        "a.toml:8:1: script.mail[0]: expected one of `value`, `error`, `hang`\na.toml:9:1: script.mail[0].status: unknown key",
    );
    with(
        "call = \"billing\"",
        "call = \"billing\"\nadvance = \"1s\"",
        "a.toml:12:1: step[0].advance: expected only one of `call`, `await`, `advance`, `play`, `force_open`, `force_close`, `reset`, `close`, `look`; `call` is there already",
    );
    with("call = \"billing\"", "look = \"billing\"\nmethod = \"GET\"", "a.toml:12:1: step[0].method: goes with `call`");
    with(
        "call = \"billing\"",
        "call = \"mail\"\nmethod = \"GET\"",
        "a.toml:12:1: step[0].method: goes with the call of an upstream, and this is a guard",
    );
    with(
        "call = \"billing\"",
        "call = \"billing\"\nfallback = \"x\"",
        "a.toml:12:1: step[0].fallback: goes with the call of a guard, and this is an upstream",
    );
    with(
        "call = \"billing\"",
        "call = \"billing\"\nscript = \"billing\"",
        "a.toml:12:1: step[0].script: goes with `play`",
    );
    with(
        "call = \"billing\"",
        "advance = \"1s\"\nexpect = { breaker = \"open\" }",
        "a.toml:12:10: step[0].expect: an `advance` is about no upstream: expect it of a step that looks, `look`",
    );
    with(
        "call = \"billing\"",
        "look = \"billing\"\nexpect = { result = 200 }",
        "a.toml:12:12: step[0].expect.result: goes with calls that have ended: expect it where they are awaited",
    );
    with(
        "call = \"billing\"",
        "call = \"mail\"\nexpect = { seen = { method = \"GET\" } }",
        "a.toml:12:12: step[0].expect.seen: goes with upstreams: a guard sends no requests",
    );
    with(
        "call = \"billing\"",
        "call = \"billing\"\nexpect = { result = 200, results = { 200 = 1 } }",
        "a.toml:12:26: step[0].expect.results: expected only one of `result`, `results`",
    );
    with(
        "call = \"billing\"",
        "call = \"billing\"\nas = \"x\"",
        "a.toml:12:1: step.as: no step awaits these calls: add a step with await = \"x\"",
    );
    with(
        "[[script.billing]]\nstatus = 200\n",
        "",
        "a.toml:9:1: step.call: nothing says what billing does: add [[script.billing]]",
    );
    with(
        "title = \"a\"",
        "table = \"x\"\ntitle = \"a\"",
        "a.toml:1:1: table: goes with `config`: it is a table of that file",
    );
    with(
        "call = \"billing\"",
        "play = \"billing\"\nscript = \"mail\"",
        "a.toml:12:1: step[0].script: one script cannot be an upstream's and a guard's",
    );
}

#[test]
fn one_name_for_two() {
    let text = GOOD.replace("[guards.mail]", "[guards.billing]").replace("[[script.mail]]\nvalue = \"sent\"\n", "");
    let said = problems(&text);
    assert!(said.contains("a.toml:5:2: guards.billing: an upstream has this name as well"), "{said}");
}

#[test]
fn variants() {
    with(
        "title = \"a\"",
        "each = []\ntitle = \"a\"",
        "a.toml:1:8: each: expected an array of tables such as [{ method = \"GET\" }, { method = \"PUT\" }], at most 1000; found an array",
    );
    with("title = \"a\"", "each = [1]\ntitle = \"a\"", "a.toml:1:9: each[0]: expected a table; found the integer 1");
    with(
        "title = \"a\"",
        "each = [{ x = 1 }]\ntitle = \"a\"",
        "a.toml:1:11: each[0].x: no value of this file is \"{name}\" with this name in the braces",
    );
    // A mistake that all variants have is said once; one that is in a variant, where that stands.
    let text = GOOD
        .replace("status = 200", "status = \"{s}\"\nbdy = 1")
        .replace("title", "each = [{ s = 200 }, { s = 20 }]\ntitle");
    assert_eq!(
        problems(&text),
        "a.toml:1:28: script.billing[0].status: expected an HTTP status, 200 to 599; found the integer 20\n\
         a.toml:9:1: script.billing[0].bdy: unknown key; did you mean `body`?"
    );
}

#[test]
fn text_that_is_no_toml_and_files_that_are_not_there() {
    assert_eq!(
        problems("title = \n"),
        "a.toml:1:9: TOML syntax: string values must be quoted, expected literal string"
    );
    let missing = Scenario::read(std::path::Path::new("nowhere/a.toml")).unwrap_err().to_string();
    assert!(missing.starts_with("nowhere/a.toml: cannot be read: "), "{missing}");
    with(
        "title = \"a\"",
        "config = \"nowhere.toml\"\ntitle = \"a\"",
        "nowhere.toml: cannot be read: No such file or directory (os error 2)",
    );
}

/// What a hostile file makes of it: it ends, and says what is wrong.
#[test]
fn odd_texts_are_refused_in_bounded_time_and_words() {
    let many = "x = 1\n".to_owned() + &(0..5_000).map(|number| format!("k{number} = 1\n")).collect::<String>();
    let said = problems(&many);
    assert!(said.lines().count() <= 201 && said.ends_with(" more"), "{}", said.lines().count());
    let deep = format!("x = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(!problems(&deep).is_empty());
    let control = GOOD.replace("call = \"billing\"", "call = \"a\\u001b[31m\"");
    assert!(!problems(&control).contains('\u{1b}'), "{}", problems(&control));
    assert!(!problems(&"y".repeat(2 << 20)).is_empty());
}

#[test]
fn a_slip_of_the_pen_does_not_take_the_machines_memory() {
    let many = "a.toml:10:1: step: its calls may come to 120000 requests, retries included; at most 100000\n";
    let steps = "call = \"billing\"\ntimes = 10000\n".to_owned();
    let four = [steps.as_str(); 4].join("[[step]]\n");
    assert_eq!(problems(&GOOD.replace("call = \"billing\"\n", &four)).trim_end(), many.trim_end());
    let body = format!("call = \"billing\"\nmethod = \"POST\"\ntimes = 1000\nbody = \"{}\"\n", "a".repeat(100_000));
    let said = problems(&GOOD.replace("call = \"billing\"\n", &body));
    assert!(said.contains("bodies and answers may come to 300000000 bytes"), "{said}");
}

#[test]
fn what_would_control_a_terminal_is_escaped() {
    let text = GOOD.replace("title = \"a\"", "title = \"\\u001b[2Jx\"");
    assert_eq!(Scenario::parse("a.toml", &text).unwrap()[0].title, "\\u{1b}[2Jx");
}
