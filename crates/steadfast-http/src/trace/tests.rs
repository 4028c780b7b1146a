//! The cases of the W3C's own test harness (level 2, strict), as data, and what they leave out.

use http::HeaderMap;
use proptest::prelude::*;

use super::*;

const TRACE: &str = "12345678901234567890123456789012";
const PARENT: &str = "1234567890123456";

fn valid() -> String {
    format!("00-{TRACE}-{PARENT}-01")
}

fn parse(parents: &[&str], states: &[&str]) -> Option<TraceContext> {
    TraceContext::parse(parents.iter().map(|line| line.as_bytes()), states.iter().map(|line| line.as_bytes()))
}

fn kept(parent: &str) -> bool {
    parse(&[parent], &[]).is_some_and(|context| context.to_string().starts_with(&format!("00-{TRACE}-{PARENT}-")))
}

/// The state that goes out with a valid parent.
fn state(lines: &[&str]) -> Option<String> {
    let valid = valid();
    let context = parse(&[&valid], lines).expect("a bad tracestate leaves the traceparent");
    context.state().map(|state| state.to_str().unwrap().to_owned())
}

/// 8.5
#[test]
fn c8_5_traceparent_as_the_w3c_reads_it() {
    for (parent, expected) in [
        (valid(), true),
        // Version 00 ends after the flags.
        (format!("{}.", valid()), false),
        (format!("{}-", valid()), false),
        (format!("{}-what-the-future-will-be-like", valid()), false),
        // Later versions may go on after a dash.
        (format!("cc-{TRACE}-{PARENT}-01"), true),
        (format!("cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like"), true),
        (format!("cc-{TRACE}-{PARENT}-01-"), true),
        (format!("cc-{TRACE}-{PARENT}-01.what-the-future-will-be-like"), false),
        (format!("01-{TRACE}-{PARENT}-01"), true),
        (format!("fe-{TRACE}-{PARENT}-01"), true),
        (format!("ff-{TRACE}-{PARENT}-01"), false),
        (format!(".0-{TRACE}-{PARENT}-01"), false),
        (format!("0.-{TRACE}-{PARENT}-01"), false),
        (format!("CC-{TRACE}-{PARENT}-01"), false),
        (format!("000-{TRACE}-{PARENT}-01"), false),
        (format!("0000-{TRACE}-{PARENT}-01"), false),
        (format!("0-{TRACE}-{PARENT}-01"), false),
        // The trace id.
        (format!("00-{}-{PARENT}-01", "0".repeat(32)), false),
        (format!("00-.{}-{PARENT}-01", &TRACE[1..]), false),
        (format!("00-{}.-{PARENT}-01", &TRACE[..31]), false),
        (format!("00-{TRACE}3-{PARENT}-01"), false),
        (format!("00-{}-{PARENT}-01", &TRACE[..31]), false),
        (format!("00-{}A-{PARENT}-01", &TRACE[..31]), false),
        // The parent id.
        (format!("00-{TRACE}-{}-01", "0".repeat(16)), false),
        (format!("00-{TRACE}-.{}-01", &PARENT[1..]), false),
        (format!("00-{TRACE}-{}.-01", &PARENT[..15]), false),
        (format!("00-{TRACE}-{PARENT}7-01"), false),
        (format!("00-{TRACE}-{}-01", &PARENT[..15]), false),
        (format!("00-{TRACE}-{}F-01", &PARENT[..15]), false),
        // The flags.
        (format!("00-{TRACE}-{PARENT}-.0"), false),
        (format!("00-{TRACE}-{PARENT}-0."), false),
        (format!("00-{TRACE}-{PARENT}-001"), false),
        (format!("00-{TRACE}-{PARENT}-1"), false),
        (format!("00-{TRACE}-{PARENT}-0A"), false),
        (format!("00-{TRACE}-{PARENT}-ff"), true),
        // Blanks around it are none of it.
        (format!(" {}", valid()), true),
        (format!("\t{}", valid()), true),
        (format!("{} ", valid()), true),
        (format!("{}\t", valid()), true),
        (format!("\t {} \t", valid()), true),
        // The dashes.
        (format!("00_{TRACE}-{PARENT}-01"), false),
        (format!("00-{TRACE}_{PARENT}-01"), false),
        (format!("00-{TRACE}-{PARENT}_01"), false),
        (String::new(), false),
        ("00".to_owned(), false),
        (format!("{},{}", valid(), valid()), false),
    ] {
        assert_eq!(kept(&parent), expected, "{parent:?}");
        assert_eq!(parse(&[&parent], &[]).is_some(), expected, "{parent:?}");
    }
}

/// 8.5: two are as good as none, also if they say the same.
#[test]
fn c8_5_one_traceparent_only() {
    let other = format!("00-{}-{PARENT}-01", TRACE.replace('1', "2"));
    assert_eq!(parse(&[&valid(), &other], &[]), None);
    assert_eq!(parse(&[&valid(), &valid()], &[]), None);
    assert_eq!(parse(&[], &["foo=1"]), None);
    assert_eq!(parse(&[], &["foo=1,bar=2"]), None);
    assert_eq!(parse(&["no"], &["foo=1"]), None);
}

/// 8.5: names of headers are compared without case, and no other name will do.
#[test]
fn c8_5_names_of_headers() {
    let extract = |pairs: &[(&str, &str)]| {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        TraceContext::extract(&headers)
    };
    let valid = valid();
    for name in ["traceparent", "TraceParent", "TrAcEpArEnT", "TRACEPARENT"] {
        assert!(extract(&[(name, &valid)]).is_some(), "{name}");
    }
    for name in ["trace-parent", "trace.parent"] {
        assert_eq!(extract(&[(name, &valid)]), None, "{name}");
    }
    for (name, expected) in [
        ("tracestate", true),
        ("TraceState", true),
        ("TRACESTATE", true),
        ("trace-state", false),
        ("trace.state", false),
    ] {
        let context = extract(&[("traceparent", &valid), (name, "foo=1")]).unwrap();
        assert_eq!(context.state().is_some(), expected, "{name}");
    }
    let lines = extract(&[("tracestate", "a=1"), ("traceparent", &valid), ("tracestate", "b=2")]).unwrap();
    assert_eq!(lines.state().unwrap(), "a=1,b=2");
}

/// 8.5
#[test]
fn c8_5_tracestate_lists() {
    let keys: String = ('a'..='z').chain('0'..='9').chain("_-*/".chars()).collect();
    let values: String = (' '..='~').filter(|char| !matches!(char, ',' | '=')).collect();
    let all = format!("{keys}={}", &values[1..]);
    let tenant = format!("{keys}@a-z0-9_-*/={}", &values[1..]);
    let same = |line: &'static str| (vec![line], Some(line.to_owned()));
    for (lines, expected) in [
        same("foo=1,bar=2"),
        (vec!["foo=1,bar=2", "rojo=1,congo=2", "baz=3"], Some("foo=1,bar=2,rojo=1,congo=2,baz=3".to_owned())),
        // Empty lines and members.
        (vec![""], None),
        (vec![], None),
        (vec!["foo=1", ""], Some("foo=1".to_owned())),
        (vec!["", "foo=1"], Some("foo=1".to_owned())),
        (vec![" \t", ",", "foo=1,,bar=2,"], Some("foo=1,bar=2".to_owned())),
        // A key that occurs twice.
        (vec!["foo=1,foo=1"], Some("foo=1".to_owned())),
        (vec!["foo=1,foo=2"], Some("foo=1".to_owned())),
        (vec!["foo=1", "foo=2"], Some("foo=1".to_owned())),
        (vec!["foo=1,bar=3", "foo=2"], Some("foo=1,bar=3".to_owned())),
        // Everything that is allowed.
        (vec![all.as_str()], Some(all.clone())),
        (vec![tenant.as_str()], Some(tenant.clone())),
        (vec!["1a=b"], Some("1a=b".to_owned())),
        // Blanks.
        (vec!["foo=1 \t , \t bar=2, \t baz=3"], Some("foo=1,bar=2,baz=3".to_owned())),
        (vec!["foo=1\t \t,\t \tbar=2,\t \tbaz=3"], Some("foo=1,bar=2,baz=3".to_owned())),
        (vec![" foo=1"], Some("foo=1".to_owned())),
        (vec!["\tfoo=1\t"], Some("foo=1".to_owned())),
        (vec!["foo= 1 2"], Some("foo= 1 2".to_owned())),
        // Keys that are none.
        (vec!["foo =1"], None),
        (vec!["FOO=1"], None),
        (vec!["foo.bar=1"], None),
        (vec!["=1"], None),
        (vec!["foo"], None),
        (vec!["_a=1"], None),
        (vec!["bar=2,foo\t=1"], None),
        // At signs: one key grammar since level 2.
        (vec!["foo@=1,bar=2"], Some("foo@=1,bar=2".to_owned())),
        (vec!["foo@@bar=1,bar=2"], Some("foo@@bar=1,bar=2".to_owned())),
        (vec!["foo@bar@baz=1,bar=2"], Some("foo@bar@baz=1,bar=2".to_owned())),
        (vec!["@foo=1,bar=2"], None),
        // Values that are none.
        (vec!["foo=bar=baz"], None),
        (vec!["foo=,bar=3"], None),
        (vec!["foo= ,bar=3"], None),
        (vec!["foo=a\tb"], None),
        (vec!["foo=\u{e4}"], None),
        (vec!["foo=\u{7f}"], None),
    ] {
        assert_eq!(state(&lines), expected, "{lines:?}");
    }
}

/// 8.5: 32 members, 256 characters.
#[test]
fn c8_5_tracestate_limits() {
    let members = |numbers: std::ops::RangeInclusive<u32>| {
        numbers.map(|number| format!("bar{number:02}={number:02}")).collect::<Vec<_>>().join(",")
    };
    let four = [members(1..=10), members(11..=20), members(21..=30), members(31..=32)];
    let lines: Vec<&str> = four.iter().map(String::as_str).collect();
    assert_eq!(state(&lines), Some(members(1..=32)));
    assert_eq!(state(&[&members(1..=33)]), None);
    assert_eq!(state(&[&members(1..=32), "", ","]), Some(members(1..=32)));

    let keep = |key: String| state(&[&format!("foo=1,{key}=1")]) == Some(format!("foo=1,{key}=1"));
    assert!(keep("z".repeat(256)));
    assert!(!keep("z".repeat(257)));
    assert_eq!(state(&[&format!("foo=1,{}=1", "z".repeat(257))]), None);
    assert!(keep(format!("{}@{}", "t".repeat(241), "v".repeat(14))));
    assert!(keep(format!("{}@v", "t".repeat(242))));
    assert!(keep(format!("t@{}", "v".repeat(15))));

    assert!(state(&[&format!("a={}", "v".repeat(256))]).is_some());
    assert!(state(&[&format!("a={}", "v".repeat(257))]).is_none());
}

/// 8.5: level 2 keeps the random flag, and no flag that it does not define.
#[test]
fn c8_5_flags() {
    for (flags, expected) in [("00", 0), ("01", 1), ("02", 2), ("03", 3), ("04", 0), ("08", 0), ("ff", 3), ("fe", 2)] {
        let context = parse(&[&format!("00-{TRACE}-{PARENT}-{flags}")], &[]).unwrap();
        assert_eq!(context.flags(), expected, "{flags}");
        assert_eq!(context.is_sampled(), expected & 1 == 1, "{flags}");
        assert_eq!(context.child([9; 8]).flags(), expected, "{flags}");
    }
}

/// 2.8, 8.5, A136: an attempt keeps the trace and has a span of its own.
#[test]
fn a136_a_child_has_a_parent_id_of_its_own() {
    let served = parse(&[&format!("cc-{TRACE}-{PARENT}-01-later")], &["foo=1"]).unwrap();
    let first = served.child([0xab; 8]);
    assert_eq!(first.to_string(), format!("00-{TRACE}-abababababababab-01"));
    assert_eq!(first.traceparent(), first.to_string());
    assert_eq!(first.trace_id(), served.trace_id());
    assert_eq!(first.parent_id(), [0xab; 8]);
    assert_eq!(first.state(), served.state());
    assert_eq!(served.child([0; 8]).parent_id(), [0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_root_is_valid_whatever_was_drawn() {
    assert_eq!(TraceContext::root(0, 0, false).to_string(), format!("00-{:032x}-{:016x}-02", 1, 1));
    let root = TraceContext::root(u128::MAX, 7, true);
    assert_eq!(root.to_string(), format!("00-{}-0000000000000007-03", "f".repeat(32)));
    assert_eq!(parse(&[&root.to_string()], &[]), Some(root));
}

proptest! {
    #![proptest_config(crate::testing::seeded())]

    #[test]
    fn no_bytes_panic(
        parents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..70), 0..3),
        states in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..70), 0..3),
    ) {
        let parents = parents.iter().map(Vec::as_slice);
        let context = TraceContext::parse(parents, states.iter().map(Vec::as_slice));
        prop_assert_eq!(context.is_some(), false);
        let valid = valid();
        let _ = TraceContext::parse([valid.as_bytes()], states.iter().map(Vec::as_slice)).unwrap();
    }

    /// What goes out is read back the same, whatever came in.
    #[test]
    fn what_is_written_is_read_back(
        trace in any::<u128>(), span in any::<u64>(), child in any::<[u8; 8]>(), sampled in any::<bool>(),
        list in prop::collection::vec("[ \t]{0,2}[a-z0-9@][a-z@_*/-]{0,3}=[ -~]{0,5}", 0..5),
    ) {
        let root = TraceContext::root(trace, span, sampled);
        let list = list.join(",");
        let read = parse(&[&root.to_string()], &[&list]).unwrap();
        prop_assert_eq!(read.trace_id(), root.trace_id());
        let child = read.child(child);
        let state = child.state().map(|state| state.to_str().unwrap().to_owned());
        prop_assert_eq!(parse(&[&child.to_string()], &[state.as_deref().unwrap_or("")]), Some(child));
    }

    /// One changed character: never a panic, and never an id that was not there.
    #[test]
    fn near_misses(at in 0..55_usize, byte in any::<u8>()) {
        let mut line = valid().into_bytes();
        line[at] = byte;
        if let Some(context) = TraceContext::parse([line.as_slice()], []) {
            let text = context.to_string();
            prop_assert_eq!(&text.as_bytes()[3..52], &line[3..52]);
            prop_assert!(text.starts_with("00-"));
        }
    }
}
