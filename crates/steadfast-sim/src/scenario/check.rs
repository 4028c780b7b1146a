//! Compares what a step did with what is expected of it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use steadfast::config::reading::is_secret;
use steadfast::report::WaitReason;
use steadfast_axum::ReadyReport;

use super::model::{Ending, Expect, SeenExpect};
use super::range::Range;
use super::stage::{CallEnd, Slack};
use super::timeline::show;
use super::upstream::Seen;
use super::words::fits;

/// What a step came to.
#[derive(Debug)]
pub(super) struct Observed {
    /// The calls that were waited for.
    pub(super) ends: Option<Vec<CallEnd>>,
    /// Requests that the target read since the step before.
    pub(super) requests: u64,
    /// The same, whole; of an upstream.
    pub(super) seen: Vec<Seen>,
    pub(super) breaker: &'static str,
    pub(super) in_flight: u64,
    pub(super) ready: Option<ReadyReport>,
    pub(super) is_guard: bool,
}

/// Of a key: what was expected, and what was seen.
pub(super) type Difference = (String, String, String);

/// Everything that is not as expected.
pub(super) fn differences(expect: &Expect, observed: &Observed, slack: Slack) -> Vec<Difference> {
    let mut found = Found(Vec::new());
    if let Some(ends) = &observed.ends {
        calls(expect, ends, slack, &mut found);
    }
    found.figure("requests", expect.requests.as_ref(), observed.requests);
    if let Some(breaker) = &expect.breaker {
        found.equal("breaker", breaker, &observed.breaker);
    }
    found.figure("in_flight", expect.in_flight.as_ref(), observed.in_flight);
    readiness(expect, observed, &mut found);
    if let Some(expected) = &expect.seen {
        if observed.seen.is_empty() {
            found.differs("seen", "a request", "none");
        }
        for (index, seen) in observed.seen.iter().enumerate() {
            let which = if observed.seen.len() > 1 { format!(" of request {}", index + 1) } else { String::new() };
            request(expected, seen, &which, &mut found);
        }
    }
    found.0
}

struct Found(Vec<Difference>);

impl Found {
    fn differs(&mut self, what: impl Into<String>, expected: impl Display, seen: impl Display) {
        self.0.push((what.into(), expected.to_string(), seen.to_string()));
    }

    fn equal<A: Display + PartialEq<B>, B: Display>(&mut self, what: &str, expected: &A, seen: &B) {
        if expected != seen {
            self.differs(what, expected, seen);
        }
    }

    fn figure(&mut self, what: &str, expected: Option<&Range<u64>>, seen: u64) {
        if let Some(range) = expected.filter(|range| !range.holds(seen)) {
            self.differs(what, range, seen);
        }
    }

    /// The first call for which `look` finds a difference, and how many others there are.
    fn each(&mut self, key: &str, ends: &[CallEnd], look: impl Fn(&CallEnd) -> Option<(String, String)>) {
        let mut wrong = ends.iter().enumerate().filter_map(|(index, end)| Some((index, look(end)?)));
        let Some((index, (expected, seen))) = wrong.next() else { return };
        let others = wrong.count();
        let mut what = key.to_owned();
        if ends.len() > 1 {
            what.push_str(&format!(" of call {}", index + 1));
        }
        let more = if others > 0 { format!(" (and {others} calls more)") } else { String::new() };
        self.differs(what, expected, format!("{seen}{more}"));
    }
}

/// What is expected of each call, and of all together.
fn calls(expect: &Expect, ends: &[CallEnd], slack: Slack, found: &mut Found) {
    if let Some(expected) = expect.result {
        found.each("result", ends, |end| unequal(expected, end.ending));
    }
    if !expect.results.is_empty() {
        results(&expect.results, ends, found);
    }
    let report = |end: &CallEnd| end.report.clone().unwrap_or_default();
    if let Some(expected) = &expect.attempts {
        found.each("attempts", ends, |end| outside(expected, u64::from(report(end).attempt_count())));
    }
    if let Some(expected) = &expect.outcomes {
        let words = |end: &CallEnd| report(end).attempts().map(|attempt| attempt.outcome.name().into_owned()).collect();
        found.each("outcomes", ends, |end| {
            let seen: Vec<String> = words(end);
            unequal(list(expected), list(&seen))
        });
    }
    if expect.waits.is_some() {
        found.each("waits", ends, |end| waits(expect, end, slack));
    }
    if let Some(expected) = &expect.ended {
        let word = |end: &CallEnd| end.report.as_ref().map_or("cancelled", |report| report.ended().name());
        found.each("ended", ends, |end| unequal(expected.as_str(), word(end)));
    }
    if let Some(expected) = expect.retry_after {
        let range = expected.loosened(slack.0, slack.0);
        found.each("retry_after", ends, |end| match report(end).retry_after() {
            Some(seen) if range.holds(seen) => None,
            Some(seen) => Some((expected.to_string(), show(seen))),
            None => Some((expected.to_string(), "none".to_owned())),
        });
    }
    if let Some(expected) = expect.took {
        found.each("took", ends, |end| {
            // Who waited for others waited less if it came later than they did.
            let queued = report(end).waits().iter().any(|wait| is_in_line(wait.reason));
            let range = expected.loosened(if queued { slack.0 } else { Duration::ZERO }, slack.0);
            (!range.holds(end.took)).then(|| (expected.to_string(), show(end.took)))
        });
    }
    texts(expect, ends, found);
}

fn texts(expect: &Expect, ends: &[CallEnd], found: &mut Found) {
    for (key, expected, seen) in [
        ("message", &expect.message, (|end| &end.message) as fn(&CallEnd) -> &Option<String>),
        ("body", &expect.body, |end| &end.body),
    ] {
        if let Some(expected) = expected {
            found.each(key, ends, |end| match seen(end) {
                Some(seen) if fits(expected, seen) => None,
                Some(seen) => Some((quoted(expected), quoted(seen))),
                None => Some((quoted(expected), "none".to_owned())),
            });
        }
    }
    if let Some(expected) = expect.degraded {
        found.each("degraded", ends, |end| unequal(expected, end.degraded));
    }
}

fn results(expected: &[(Ending, Range<u64>)], ends: &[CallEnd], found: &mut Found) {
    let mut seen: BTreeMap<Ending, u64> = BTreeMap::new();
    for end in ends {
        *seen.entry(end.ending).or_default() += 1;
    }
    let is_met = expected.iter().all(|(ending, range)| range.holds(seen.get(ending).copied().unwrap_or_default()));
    let is_known = |ending: &Ending| expected.iter().any(|(known, _)| known == ending);
    if !is_met || !seen.keys().all(is_known) {
        let expected: Vec<String> = expected.iter().map(|(ending, range)| format!("{ending}: {range}")).collect();
        let seen: Vec<String> = seen.iter().map(|(ending, count)| format!("{ending}: {count}")).collect();
        found.differs("results", list(&expected), list(&seen));
    }
}

fn waits(expect: &Expect, end: &CallEnd, slack: Slack) -> Option<(String, String)> {
    let expected = expect.waits.as_deref().unwrap_or_default();
    let report = end.report.clone().unwrap_or_default();
    let seen = report.waits();
    let fit = |((reason, range), wait): (&(_, Range<_>), &steadfast::report::WaitRecord)| {
        let below = if is_in_line(*reason) { slack.0 } else { Duration::ZERO };
        *reason == wait.reason && range.loosened(below, slack.0).holds(wait.duration)
    };
    if expected.len() == seen.len() && expected.iter().zip(seen).all(fit) {
        return None;
    }
    let expected: Vec<String> = expected.iter().map(|(reason, range)| format!("{} {range}", reason.name())).collect();
    let seen: Vec<String> = seen.iter().map(|wait| format!("{} {}", wait.reason.name(), show(wait.duration))).collect();
    Some((list(&expected), list(&seen)))
}

/// Whether it is others that end such a wait.
fn is_in_line(reason: WaitReason) -> bool {
    matches!(reason, WaitReason::Bulkhead | WaitReason::RateLimit)
}

fn readiness(expect: &Expect, observed: &Observed, found: &mut Found) {
    let Some(report) = &observed.ready else { return };
    if let Some(expected) = &expect.ready {
        let seen = match report.status {
            steadfast_axum::Overall::Ok => "ok",
            steadfast_axum::Overall::Degraded => "degraded",
            steadfast_axum::Overall::Unavailable => "unavailable",
        };
        found.equal("ready", expected, &seen);
    }
    if let Some(expected) = &expect.ready_detail {
        let check = if observed.is_guard { "guards" } else { "http" };
        let seen = report.checks.get(check).and_then(|check| check.detail.clone()).unwrap_or_default();
        if !fits(expected, &seen) {
            found.differs("ready_detail", quoted(expected), quoted(&seen));
        }
    }
}

fn request(expected: &SeenExpect, seen: &Seen, which: &str, found: &mut Found) {
    if let Some(method) = &expected.method {
        found.equal(&format!("seen.method{which}"), method, &seen.method);
    }
    if let Some(path) = expected.path.as_ref().filter(|path| !fits(path, &seen.path)) {
        // A query may hold a secret; what differs is shown without it.
        let (path, seen) = (super::words::path(path), super::words::path(&seen.path));
        let seen = if path == seen { "the same path with another query".to_owned() } else { seen };
        found.differs(format!("seen.path{which}"), path, seen);
    }
    let body = String::from_utf8_lossy(&seen.body);
    if let Some(expected) = expected.body.as_ref().filter(|expected| !fits(expected, &body)) {
        found.differs(format!("seen.body{which}"), quoted(expected), quoted(&body));
    }
    for (name, pattern) in &expected.headers {
        let values: Vec<String> =
            seen.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into()).collect();
        if !matches!(&values[..], [value] if fits(pattern, value)) {
            let seen = match values.len() {
                0 => "none".to_owned(),
                1 if is_secret(name) => "another value, which may be a secret".to_owned(),
                _ if is_secret(name) => format!("{} values, which may be secrets", values.len()),
                _ => list(&values),
            };
            let expected = if is_secret(name) { "the value that the file says" } else { pattern.as_str() };
            found.differs(format!("seen.headers.{name}{which}"), expected, seen);
        }
    }
    for name in expected.no_headers.iter().filter(|name| seen.headers.contains_key(*name)) {
        found.differs(format!("seen.no_headers{which}"), format!("no {name}"), format!("a {name}"));
    }
}

fn unequal<T: Display + PartialEq>(expected: T, seen: T) -> Option<(String, String)> {
    (expected != seen).then(|| (expected.to_string(), seen.to_string()))
}

fn outside(range: &Range<u64>, seen: u64) -> Option<(String, String)> {
    (!range.holds(seen)).then(|| (range.to_string(), seen.to_string()))
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

fn quoted(text: &str) -> String {
    steadfast::config::reading::quote(text)
}
