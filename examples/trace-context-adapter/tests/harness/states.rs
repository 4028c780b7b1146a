//! The cases about `tracestate`.

use crate::case::{Case, Probe, lines, valid};

pub(crate) fn cases() -> Vec<Case> {
    [presence(), members(), keys(), limits()].into_iter().flatten().collect()
}

fn with(states: &[&str]) -> Probe {
    states.iter().fold(valid(), |probe, state| probe.line(format!("tracestate: {state}")))
}

fn presence() -> Vec<Case> {
    let named = |name: &str| valid().line(format!("{name}: foo=1"));
    vec![
        Case::new(
            "without a traceparent",
            ["foo=1", "foo=1,bar=2"].map(|state| lines([format!("tracestate: {state}")]).begins_anew().no_state()),
        ),
        Case::new("with one", [with(&["foo=1,bar=2"]).state(["foo=1", "bar=2"])]),
        Case::new("other names", [named("trace-state").no_state(), named("trace.state").no_state()]),
        Case::new("casing", ["TraceState", "TrAcEsTaTe", "TRACESTATE"].map(|name| named(name).state(["foo=1"]))),
        Case::new(
            "empty",
            [with(&[""]).no_state(), with(&["foo=1", ""]).state(["foo=1"]), with(&["", "foo=1"]).state(["foo=1"])],
        ),
        Case::new(
            "several lines",
            [with(&["foo=1,bar=2", "rojo=1,congo=2", "baz=3"]).state(["foo=1", "bar=2", "rojo=1", "congo=2", "baz=3"])],
        ),
    ]
}

fn members() -> Vec<Case> {
    let twice = |states: &[&str]| with(states).one_of(&[&["foo=1"], &["foo=2"]]);
    let key = "abcdefghijklmnopqrstuvwxyz0123456789_-*/";
    let value: String = (' '..='~').filter(|letter| !",=".contains(*letter)).collect();
    // A space that ends a value is none of the value's.
    let value = format!("{value}\u{20}~");
    let whole = [format!("{key}={value}"), format!("{key}@a-z0-9_-*/={value}")];
    vec![
        Case::new("a key twice", [twice(&["foo=1,foo=1"]), twice(&["foo=1,foo=2"]), twice(&["foo=1", "foo=2"])]),
        Case::new("all characters", whole.map(|member| with(&[&member]).state([member.clone()]))),
        Case::new(
            "spaces",
            [
                with(&["foo=1 \t , \t bar=2, \t baz=3"]).state(["foo=1", "bar=2", "baz=3"]),
                with(&["foo=1\t \t,\t \tbar=2,\t \tbaz=3"]).state(["foo=1", "bar=2", "baz=3"]),
                with(&[" foo=1"]).state(["foo=1"]),
                with(&["\tfoo=1"]).state(["foo=1"]),
                with(&["foo=1 "]).state(["foo=1"]),
                with(&["foo=1\t"]).state(["foo=1"]),
                with(&["\t foo=1 \t"]).state(["foo=1"]),
            ],
        ),
    ]
}

fn keys() -> Vec<Case> {
    vec![
        Case::new(
            "keys of other characters",
            [with(&["foo =1"]).lacks("foo "), with(&["FOO=1"]).lacks("FOO"), with(&["foo.bar=1"]).lacks("foo.bar")],
        ),
        Case::new(
            "at signs",
            [
                with(&["foo@=1,bar=2"]).state(["foo@=1", "bar=2"]),
                with(&["foo@@bar=1,bar=2"]).state(["foo@@bar=1", "bar=2"]),
                with(&["foo@bar@baz=1,bar=2"]).state(["foo@bar@baz=1", "bar=2"]),
                with(&["@foo=1,bar=2"]).no_state(),
            ],
        ),
        Case::new("values of other characters", [with(&["foo=bar=baz"]).no_state(), with(&["foo=,bar=3"]).no_state()]),
    ]
}

fn limits() -> Vec<Case> {
    let member = |number: usize| format!("bar{number:02}={number:02}");
    let in_four_lines = |most: usize| {
        let members: Vec<String> = (1..=most).map(member).collect();
        let lines: Vec<String> = members.chunks(most.div_ceil(4)).map(|line| line.join(",")).collect();
        (with(&lines.iter().map(String::as_str).collect::<Vec<_>>()), members)
    };
    let (just, all) = in_four_lines(32);
    let (more, _) = in_four_lines(33);
    let keyed = |key: String| (with(&[&format!("foo=1,{key}=1")]), ["foo=1".to_owned(), format!("{key}=1")]);
    let kept = |key: String| {
        let (probe, members) = keyed(key);
        probe.state(members)
    };
    vec![
        Case::new("32 members", [just.state(all), more.lacks("bar01")]),
        Case::new(
            "the length of keys",
            [
                kept("z".repeat(256)),
                keyed("z".repeat(257)).0.no_state(),
                kept(format!("{}@{}", "t".repeat(241), "v".repeat(14))),
                kept(format!("{}@v", "t".repeat(242))),
                kept(format!("t@{}", "v".repeat(15))),
            ],
        ),
    ]
}
