//! The text format 0.0.4 of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>): names, labels, values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::Ordering;

use metrics::{Key, Unit};

use super::series::{Family, Kind, Registry, Series};

const TOTAL: &str = "_total";

/// Everything that has a value.
pub(super) fn write(registry: &Registry) -> String {
    let all = registry.lock();
    let mut text = String::new();
    let mut written = BTreeSet::new();
    for (base, family) in &all.families {
        let name = full_name(base, family);
        // Two names of the facade can be one of Prometheus: it reads no page that has it twice.
        if !family.series.is_empty() && written.insert(name.clone()) {
            write_family(&mut text, &name, family);
        }
    }
    text
}

fn write_family(text: &mut String, name: &str, family: &Family) {
    // Writing to a string does not fail.
    if !family.help.is_empty() {
        let _ = writeln!(text, "# HELP {name} {}", family.help.replace('\\', r"\\").replace('\n', r"\n"));
    }
    let _ = writeln!(text, "# TYPE {name} {}", family.kind.name());
    for (labels, series) in &family.series {
        match series {
            Series::Counter(counter) => {
                let _ = writeln!(text, "{name}{} {}", braces(labels, ""), counter.load(Ordering::Acquire));
            }
            Series::Gauge(gauge) => {
                let value = number(f64::from_bits(gauge.load(Ordering::Acquire)));
                let _ = writeln!(text, "{name}{} {value}", braces(labels, ""));
            }
            Series::Histogram(buckets) => {
                let mut count = 0;
                for (bound, up_to) in buckets.up_to() {
                    let le = format!("le=\"{}\"", number(bound));
                    let _ = writeln!(text, "{name}_bucket{} {up_to}", braces(labels, &le));
                    count = up_to;
                }
                let labels = braces(labels, "");
                let _ = writeln!(text, "{name}_sum{labels} {}\n{name}_count{labels} {count}", number(buckets.sum()));
            }
        }
    }
}

fn braces(labels: &str, more: &str) -> String {
    match (labels.is_empty(), more.is_empty()) {
        (true, true) => String::new(),
        (false, false) => format!("{{{labels},{more}}}"),
        _ => format!("{{{labels}{more}}}"),
    }
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        // `NaN` is the word in both.
        value => value.to_string(),
    }
}

/// The name without what its unit and kind add to it.
pub(super) fn base_name(kind: Kind, name: &str) -> String {
    let name = word(name, |letter| letter.is_ascii_alphanumeric() || letter == ':');
    match name.strip_suffix(TOTAL) {
        Some(base) if kind == Kind::Counter => base.to_owned(),
        _ => name,
    }
}

fn full_name(base: &str, family: &Family) -> String {
    let mut name = base.to_owned();
    let unit = match family.unit {
        None | Some(Unit::Count) => "",
        Some(Unit::Percent) => "ratio",
        Some(unit) => unit.as_str(),
    };
    if !unit.is_empty() && !name.ends_with(unit) {
        name.extend(["_", unit]);
    }
    if family.kind == Kind::Counter {
        name.push_str(TOTAL);
    }
    name
}

/// What stands between the braces, in the order of the labels' names: to the facade it makes no difference in which they
/// come. Of two labels of one name the first counts.
pub(super) fn labels(kind: Kind, key: &Key) -> String {
    let mut sorted = BTreeMap::new();
    for label in key.labels() {
        let mut name = word(label.key(), |letter| letter.is_ascii_alphanumeric());
        // A histogram has one of its own.
        if kind == Kind::Histogram && name == "le" {
            name.push('_');
        }
        let value = label.value().replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        sorted.entry(name).or_insert(value);
    }
    let mut text = String::new();
    for (name, value) in sorted {
        let comma = if text.is_empty() { "" } else { "," };
        // Cannot fail: it is a string.
        let _ = write!(text, "{comma}{name}=\"{value}\"");
    }
    text
}

/// Letters that are allowed, `_` for all others, and no digit in front.
fn word(name: &str, is_allowed: impl Fn(char) -> bool) -> String {
    let mut word: String = name.chars().map(|letter| if is_allowed(letter) { letter } else { '_' }).collect();
    if word.is_empty() || word.starts_with(|letter: char| letter.is_ascii_digit()) {
        word.insert(0, '_');
    }
    word
}
