//! The results as lines of JSON: one for each scenario or unreadable file, then a summary.

use std::io;

use serde::Serialize;
use steadfast_sim::scenario::{Difference, Moment, Scenario};

use super::{Tally, Verdict};
use crate::output::{self, Ms};

#[derive(Serialize)]
struct Played<'a> {
    event: &'static str,
    file: &'a str,
    title: &'a str,
    variant: &'a str,
    contract: &'a [String],
    passed: bool,
    /// By the scenario's own clock.
    took_ms: Ms,
    differences: Vec<Differs<'a>>,
    /// Of one that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    time_line: Vec<Happened<'a>>,
}

#[derive(Serialize)]
struct Differs<'a> {
    step: usize,
    line: usize,
    action: &'a str,
    what: &'a str,
    expected: &'a str,
    seen: &'a str,
}

#[derive(Serialize)]
struct Happened<'a> {
    at_ms: Ms,
    step: usize,
    who: &'a str,
    what: &'a str,
}

#[derive(Serialize)]
struct Unplayable<'a> {
    event: &'static str,
    file: &'a str,
    title: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct LeftOut<'a> {
    event: &'static str,
    file: &'a str,
    title: &'a str,
    variant: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct Summary {
    event: &'static str,
    passed: usize,
    failed: usize,
    bad: usize,
    /// Over sockets.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

pub(super) fn one(verdict: &Verdict) -> io::Result<()> {
    match verdict {
        Verdict::Played { outcome, contract } => {
            let time_line = if outcome.passed() { &[] } else { outcome.moments.as_slice() };
            output::json_line(&Played {
                event: "scenario",
                file: &outcome.file,
                title: &outcome.title,
                variant: &outcome.variant,
                contract,
                passed: outcome.passed(),
                took_ms: outcome.took.into(),
                differences: outcome.differences.iter().map(differs).collect(),
                time_line: time_line.iter().map(happened).collect(),
            })
        }
        Verdict::Unreadable(unreadable) => unreadable.print_json(),
        Verdict::Unplayable { file, title, why } => {
            output::json_line(&Unplayable { event: "unplayable", file, title, why })
        }
        Verdict::LeftOut { scenario, why } => {
            let Scenario { file, title, variant, .. } = &**scenario;
            output::json_line(&LeftOut { event: "left_out", file, title, variant, why })
        }
    }
}

pub(super) fn summary(tally: &Tally) -> io::Result<()> {
    let Tally { passed, failed, bad, left_out } = *tally;
    output::json_line(&Summary { event: "summary", passed, failed, bad, left_out })
}

/// Steps are counted from 1, as the text counts them.
fn differs(difference: &Difference) -> Differs<'_> {
    let Difference { step, line, action, what, expected, seen, .. } = difference;
    Differs { step: step + 1, line: *line, action, what, expected, seen }
}

fn happened(moment: &Moment) -> Happened<'_> {
    Happened { at_ms: moment.at.into(), step: moment.step + 1, who: &moment.who, what: &moment.what }
}
