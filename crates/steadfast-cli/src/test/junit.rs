//! The results as JUnit's XML, which CI systems show: a suite for each file, a case for each scenario.

use std::time::Duration;

use super::Verdict;
use crate::files::Unreadable;

/// What is said of one case.
struct Case {
    file: String,
    name: String,
    took: Duration,
    body: Option<Body>,
}

/// Why a case did not pass: `failure`, or `error` where it could not be played.
struct Body {
    element: &'static str,
    message: String,
    text: String,
}

pub(super) fn document(verdicts: &[Verdict]) -> String {
    let cases: Vec<Case> = verdicts.iter().map(case).collect();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str(&format!("<testsuites name=\"steadfast\" {}>\n", counts(&cases)));
    for suite in cases.chunk_by(|one, other| one.file == other.file) {
        let name = suite.first().map(|case| escaped(&case.file)).unwrap_or_default();
        xml.push_str(&format!("  <testsuite name=\"{name}\" {}>\n", counts(suite)));
        suite.iter().for_each(|case| element(case, &mut xml));
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn case(verdict: &Verdict) -> Case {
    match verdict {
        Verdict::Played { outcome, .. } => {
            let body = outcome.differences.first().map(|first| {
                let message =
                    format!("line {}: {}: expected {}, seen {}", first.line, first.what, first.expected, first.seen);
                Body { element: "failure", message, text: outcome.details() }
            });
            let name = named(&outcome.title, &outcome.variant);
            Case { file: outcome.file.clone(), name, took: outcome.took, body }
        }
        Verdict::Unreadable(Unreadable { file, problems }) => {
            let message = problems.iter().next().map(ToString::to_string).unwrap_or_default();
            let body = Body { element: "error", message, text: problems.to_string() };
            Case { file: file.clone(), name: "the file is read".to_owned(), took: Duration::ZERO, body: Some(body) }
        }
        Verdict::Unplayable { file, title, why } => {
            let body = Body { element: "error", message: why.clone(), text: why.clone() };
            Case { file: file.clone(), name: title.clone(), took: Duration::ZERO, body: Some(body) }
        }
        Verdict::LeftOut { scenario, why } => {
            let body = Body { element: "skipped", message: why.clone(), text: String::new() };
            let (file, name) = (scenario.file.clone(), named(&scenario.title, &scenario.variant));
            Case { file, name, took: Duration::ZERO, body: Some(body) }
        }
    }
}

fn named(title: &str, variant: &str) -> String {
    if variant.is_empty() { title.to_owned() } else { format!("{title} [{variant}]") }
}

fn counts(cases: &[Case]) -> String {
    let of =
        |element: &str| cases.iter().filter(|case| case.body.as_ref().is_some_and(|b| b.element == element)).count();
    let took: Duration = cases.iter().map(|case| case.took).sum();
    let (failures, errors) = (of("failure"), of("error"));
    format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{:.6}\"", cases.len(), took.as_secs_f64())
}

fn element(case: &Case, xml: &mut String) {
    let (file, name, took) = (escaped(&case.file), escaped(&case.name), case.took.as_secs_f64());
    xml.push_str(&format!("    <testcase classname=\"{file}\" name=\"{name}\" time=\"{took:.6}\""));
    let Some(Body { element, message, text }) = &case.body else {
        return xml.push_str("/>\n");
    };
    let (message, text) = (escaped(message), escaped(text));
    xml.push_str(&format!(">\n      <{element} message=\"{message}\">{text}</{element}>\n    </testcase>\n"));
}

/// Text as XML has it; a character that XML cannot have becomes U+FFFD.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
