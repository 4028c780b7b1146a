//! What the subcommands print alike: lines of JSON, milliseconds, percentiles, tables.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

/// Writes one value as one line of JSON to standard output, at once.
pub(crate) fn json_line(value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

/// Writes text to standard output.
pub(crate) fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes one line for people to standard error. A closed standard error is nobody's loss.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// How wide the terminal is; `None` where there is none.
pub(crate) fn width() -> Option<usize> {
    Table::new().width().map(usize::from)
}

/// The text with its long lines broken between words, so that the terminal does not break them within.
pub(crate) fn folded(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut folded = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let length = word.trim_end().chars().count();
            if column > 0 && column + length > width {
                folded.truncate(folded.trim_end_matches(' ').len());
                folded.push('\n');
                column = 0;
            }
            folded.push_str(word);
            column += word.chars().count();
        }
    }
    folded
}

/// Below this a terminal is too narrow to fit a table to (or does not know its width); lines may then wrap.
const NARROW: u16 = 60;

/// An empty table in the style of all tables, fitted to the terminal.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    if table.width().is_none_or(|width| width >= NARROW) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(header);
    table
}

/// Milliseconds with one decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ms {
    tenths: u64,
}

impl From<Duration> for Ms {
    fn from(duration: Duration) -> Self {
        let tenths = duration.as_nanos().saturating_add(50_000) / 100_000;
        Self { tenths: u64::try_from(tenths).unwrap_or(u64::MAX) }
    }
}

impl Ms {
    #[allow(clippy::cast_precision_loss)] // Exact below 28 000 years.
    fn as_f64(self) -> f64 {
        self.tenths as f64 / 10.0
    }
}

impl Serialize for Ms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

/// Milliseconds of a wait: a whole number where it is one, so that a `Retry-After` of two seconds reads 2000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitMs(pub(crate) Ms);

impl Serialize for WaitMs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.tenths {
            tenths if tenths % 10 == 0 => serializer.serialize_u64(tenths / 10),
            _ => self.0.serialize(serializer),
        }
    }
}

impl fmt::Display for WaitMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&human(Duration::from_micros(self.0.tenths.saturating_mul(100))))
    }
}

/// Whole milliseconds, rounded up: who waits that long has waited long enough.
pub(crate) fn ceil_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// A duration as people read it: `87 ms`, `1.24 s`, `20 s`.
pub(crate) fn human(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1000.0;
    if ms >= 1000.0 && duration.subsec_nanos() == 0 {
        return format!("{} s", duration.as_secs());
    }
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.2} s", ms / 1000.0)
    }
}

/// How long things took, to three significant figures.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Option<Histogram<u64>>);

/// What is said about latencies, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: Ms,
    pub(crate) p90: Ms,
    pub(crate) p99: Ms,
    pub(crate) max: Ms,
}

impl Latencies {
    /// None yet.
    pub(crate) fn new() -> Self {
        // Three significant figures are within what the library accepts; without it there would be no percentiles.
        Self(Histogram::new(3).ok())
    }

    /// One more.
    pub(crate) fn record(&mut self, duration: Duration) {
        if let Some(histogram) = &mut self.0 {
            // The histogram grows as needed; only what no machine's memory holds is refused, and then it is left out.
            let _ = histogram.record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
        }
    }

    /// The time within which the share `quantile` of all was done; `None` if there were none.
    pub(crate) fn at(&self, quantile: f64) -> Option<Duration> {
        let histogram = self.0.as_ref().filter(|histogram| !histogram.is_empty())?;
        // A bucket's upper edge may lie above the largest value in it.
        Some(Duration::from_micros(histogram.value_at_quantile(quantile).min(histogram.max())))
    }

    /// The usual percentiles; `None` if there was nothing to measure.
    pub(crate) fn percentiles(&self) -> Option<Percentiles> {
        let at = |quantile| self.at(quantile).map(Ms::from);
        Some(Percentiles { p50: at(0.5)?, p90: at(0.9)?, p99: at(0.99)?, max: at(1.0)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_one_decimal_and_waits_are_whole_where_they_are() {
        assert_eq!(serde_json::to_string(&Ms::from(Duration::from_micros(12_340))).unwrap(), "12.3");
        assert_eq!(serde_json::to_string(&Ms::from(Duration::ZERO)).unwrap(), "0.0");
        assert_eq!(serde_json::to_string(&WaitMs(Ms::from(Duration::from_secs(2)))).unwrap(), "2000");
        assert_eq!(serde_json::to_string(&WaitMs(Ms::from(Duration::from_micros(87_250)))).unwrap(), "87.3");
        assert_eq!(ceil_ms(Duration::from_micros(14_999_001)), 15_000);
    }

    #[test]
    fn lines_are_folded_between_words_and_never_within() {
        assert_eq!(folded("ab cd ef\n\ngh\n", Some(5)), "ab cd\nef\n\ngh\n");
        assert_eq!(folded("  ab abcdefg c\n", Some(5)), "  ab\nabcdefg\nc\n");
        assert_eq!(folded("ab cd ef\n", None), "ab cd ef\n");
        assert_eq!(folded("───── ─────\n", Some(11)), "───── ─────\n");
    }

    #[test]
    fn percentiles_are_absent_without_calls_and_never_above_the_largest() {
        let mut latencies = Latencies::new();
        assert!(latencies.percentiles().is_none());
        for ms in 1..=100 {
            latencies.record(Duration::from_millis(ms));
        }
        let percentiles = latencies.percentiles().unwrap();
        assert_eq!(percentiles.max, Duration::from_millis(100).into());
        assert!((percentiles.p50.as_f64() - 50.0).abs() < 0.1 && (percentiles.p99.as_f64() - 99.0).abs() < 0.1);
    }
}
