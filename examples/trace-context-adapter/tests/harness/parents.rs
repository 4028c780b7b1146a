//! The cases about `traceparent`.

use crate::case::{Case, PARENT, TRACE, inbound, lines, valid};

pub(crate) fn cases() -> Vec<Case> {
    [whole_headers(), versions(), ids(), flags_and_spaces(), several_calls()].into_iter().flatten().collect()
}

fn of(version: &str, trace: &str, parent: &str, flags: &str) -> String {
    format!("{version}-{trace}-{parent}-{flags}")
}

fn whole_headers() -> Vec<Case> {
    let usual = of("00", TRACE, PARENT, "01");
    let named = |name: &str| lines([format!("{name}: {usual}")]);
    let other = "12345678901234567890123456789011";
    let twice = inbound(&of("00", other, PARENT, "01")).line(format!("traceparent: {usual}"));
    vec![
        Case::new("none", [lines::<String>([]).begins_anew()]),
        Case::new("plain", [valid()]),
        Case::new("twice", [twice.begins_as_none_of([other, TRACE])]),
        Case::new("other names", [named("trace-parent").begins_anew(), named("trace.parent").begins_anew()]),
        Case::new("casing", ["TraceParent", "TrAcEpArEnT", "TRACEPARENT"].map(named)),
    ]
}

fn versions() -> Vec<Case> {
    let usual = of("00", TRACE, PARENT, "01");
    let future = of("cc", TRACE, PARENT, "01");
    let version = |version: &str| inbound(&of(version, TRACE, PARENT, "01")).begins_anew();
    vec![
        Case::new(
            "version 00 has nothing more",
            [
                inbound(&format!("{usual}.")).begins_anew(),
                inbound(&format!("{usual}-what-the-future-will-be-like")).begins_anew(),
            ],
        ),
        Case::new(
            "version cc",
            [
                inbound(&future),
                inbound(&format!("{future}-what-the-future-will-be-like")),
                inbound(&format!("{future}.what-the-future-will-be-like")).begins_anew(),
            ],
        ),
        Case::new("version ff", [version("ff")]),
        Case::new("version of other characters", [version(".0"), version("0.")]),
        Case::new("version too long", [version("000"), version("0000")]),
        Case::new("version too short", [version("0")]),
    ]
}

fn ids() -> Vec<Case> {
    let trace = |trace: &str| inbound(&of("00", trace, PARENT, "01"));
    let parent = |parent: &str| inbound(&of("00", TRACE, parent, "01")).begins_anew();
    let long = format!("{TRACE}3");
    vec![
        Case::new("trace id of zeros", [trace(&"0".repeat(32)).begins_anew()]),
        Case::new(
            "trace id of other characters",
            [trace(&format!(".{}", &TRACE[1..])).begins_anew(), trace(&format!("{}.", &TRACE[..31])).begins_anew()],
        ),
        Case::new("trace id too long", [trace(&long).begins_as_none_of([&long[..32], &long[1..]])]),
        Case::new("trace id too short", [trace(&TRACE[..31]).begins_anew()]),
        Case::new("parent id of zeros", [parent(&"0".repeat(16))]),
        Case::new(
            "parent id of other characters",
            [parent(&format!(".{}", &PARENT[1..])), parent(&format!("{}.", &PARENT[..15]))],
        ),
        Case::new("parent id too long", [parent(&format!("{PARENT}7"))]),
        Case::new("parent id too short", [parent(&PARENT[..15])]),
    ]
}

fn flags_and_spaces() -> Vec<Case> {
    let usual = of("00", TRACE, PARENT, "01");
    let flags = |flags: &str| inbound(&of("00", TRACE, PARENT, flags)).begins_anew();
    let spaced = ["\u{20}X", "\tX", "X\u{20}", "X\t", "\t X \t"];
    vec![
        Case::new("flags of other characters", [flags(".0"), flags("0.")]),
        Case::new("flags too long", [flags("001")]),
        Case::new("flags too short", [flags("1")]),
        Case::new("spaces", spaced.map(|form| inbound(&form.replace('X', &usual)))),
    ]
}

fn several_calls() -> Vec<Case> {
    vec![
        Case::new("three calls", [valid().times(3)]),
        Case::new("three calls of no trace", [lines::<String>([]).begins_anew().times(3)]),
        Case::new(
            "three calls of a trace of zeros",
            [inbound(&of("00", &"0".repeat(32), PARENT, "01")).begins_anew().times(3)],
        ),
        Case::new("level 2: a random trace stays one", [inbound(&of("00", TRACE, PARENT, "02"))]),
    ]
}
