//! As much of PromQL as it takes to see which metrics and labels a query names.

use steadfast::metrics::{Kind, Label, Metric, TABLE};

/// What Prometheus itself puts on every time series, and on those of a histogram.
const OF_PROMETHEUS: &[&str] = &["job", "instance", "le"];

/// Everything in `query` that is not in the table.
pub(crate) fn problems(query: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut metrics = Vec::new();
    for (at, _) in query.match_indices("steadfast_") {
        if query[..at].ends_with(is_of_word) {
            continue;
        }
        let name: &str = &query[at..at + word_length(&query[at..])];
        let Some(metric) = find(name) else {
            problems.push(format!("no metric {name}"));
            continue;
        };
        metrics.push(metric);
        let rest = &query[at + name.len()..];
        if let Some(matchers) = rest.strip_prefix('{') {
            let end = matchers.find('}').expect("it is closed");
            problems.extend(matchers[..end].split(", ").filter_map(|matcher| wrong_matcher(metric, matcher)));
        }
    }
    if metrics.is_empty() {
        problems.push(format!("no metric of ours in {query}"));
    }
    for word in ["by (", "on ("] {
        for (at, _) in query.match_indices(word) {
            let labels = &query[at + word.len()..];
            let labels = labels[..labels.find(')').expect("it is closed")].split(", ");
            let is_known =
                |label: &str| metrics.iter().any(|metric| has(metric, label)) || OF_PROMETHEUS.contains(&label);
            problems
                .extend(labels.filter(|label| !is_known(label)).map(|label| format!("no label {label} in {query}")));
        }
    }
    problems
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|letter| !is_of_word(letter)).unwrap_or(text.len())
}

/// The metric that has a time series of this name.
fn find(name: &str) -> Option<&'static Metric> {
    TABLE.iter().find(|metric| match (metric.kind, name.strip_prefix(&metric.prometheus_name())) {
        (Kind::Histogram, Some(rest)) => ["_bucket", "_sum", "_count"].contains(&rest),
        (_, rest) => rest == Some(""),
    })
}

fn has(metric: &Metric, label: &str) -> bool {
    metric.labels.iter().any(|known| known.name() == label)
}

/// What is wrong with `label="value"`, `label!~"one|other"` and the like.
fn wrong_matcher(metric: &Metric, matcher: &str) -> Option<String> {
    let wrong = || Some(format!("no {matcher} in {metric}"));
    let (label, value) = matcher.split_at(word_length(matcher));
    if OF_PROMETHEUS.contains(&label) {
        return None;
    }
    let Some(known) = metric.labels.iter().find(|known| known.name() == label) else { return wrong() };
    let value = value.trim_start_matches(['=', '!', '~']).trim_matches('"');
    let values = Label::values(*known)?;
    let is_known = |value: &str| value.starts_with('$') || values.contains(&value);
    if value.split('|').all(is_known) { None } else { wrong() }
}

#[test]
fn a_slip_is_found() {
    let good = "sum by (job, upstream, le) (rate(steadfast_call_duration_seconds_bucket{upstream=~\"$upstream\"}[5m])) \
                / steadfast_calls_total{ended!~\"response|deadline\"}";
    assert_eq!(problems(good), [""; 0]);
    for bad in [
        "up",
        "steadfast_calls",
        "steadfast_call_duration_seconds",
        "steadfast_bulkhead_in_use_bucket",
        "steadfast_calls_total{outcome=\"2xx\"}",
        "steadfast_calls_total{ended=\"responses\"}",
        "steadfast_calls_total{ended=~\"response|dedline\"}",
        "sum by (kind) (steadfast_calls_total)",
    ] {
        assert!(!problems(bad).is_empty(), "{bad}");
    }
}
