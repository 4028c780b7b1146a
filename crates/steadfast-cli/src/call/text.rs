//! Results for people: a row per call, or a row per kind of ending when there are many; a bar while it takes long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use comfy_table::Table;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::record::{Line, Record};
use crate::output::{self, Latencies, human};

/// Up to so many calls have a row of their own.
const ROWS: u64 = 25;
/// A bar appears when a run takes longer than this.
const LONG: Duration = Duration::from_millis(700);

/// Collects what the table will say.
#[derive(Debug)]
pub(crate) struct Report {
    each: Option<Vec<(u64, [String; 7])>>,
    kinds: BTreeMap<(String, String), Kind>,
}

/// Calls that ended alike.
#[derive(Debug)]
struct Kind {
    calls: u64,
    attempts: u64,
    latencies: Latencies,
}

impl Report {
    /// For so many calls.
    pub(crate) fn new(repeat: u64) -> Self {
        Self { each: (repeat <= ROWS).then(Vec::new), kinds: BTreeMap::new() }
    }

    /// One more call.
    pub(crate) fn add(&mut self, record: &Record) {
        let line = &record.line;
        if let Some(each) = &mut self.each {
            each.push((line.call, row(record)));
        }
        let kind = self.kinds.entry((line.outcome().into_owned(), line.ended.to_string())).or_insert_with(|| Kind {
            calls: 0,
            attempts: 0,
            latencies: Latencies::new(),
        });
        kind.calls += 1;
        kind.attempts += line.attempts.len() as u64;
        kind.latencies.record(record.elapsed);
    }

    /// The table.
    pub(crate) fn table(mut self) -> Table {
        if let Some(mut each) = self.each.take() {
            let mut table = output::table(["call", "result", "attempts", "waits", "ended", "took", "breaker"]);
            each.sort_unstable_by_key(|(call, _)| *call);
            table.add_rows(each.into_iter().map(|(_, row)| row));
            return table;
        }
        let mut table = output::table(["result", "ended", "calls", "attempts", "p50", "p99", "max"]);
        for ((outcome, ended), kind) in self.kinds {
            let at = |quantile| kind.latencies.at(quantile).map_or_else(String::new, human);
            table.add_row([
                outcome,
                words(&ended),
                kind.calls.to_string(),
                kind.attempts.to_string(),
                at(0.5),
                at(0.99),
                at(1.0),
            ]);
        }
        table
    }
}

/// A call in words.
fn row(record: &Record) -> [String; 7] {
    let line = &record.line;
    let attempts: Vec<_> = line.attempts.iter().map(|attempt| words(&attempt.outcome)).collect();
    [
        line.call.to_string(),
        words(&line.outcome()),
        if attempts.is_empty() { String::from("none") } else { attempts.join(", ") },
        waits(line),
        words(line.ended),
        human(record.elapsed),
        words(line.breaker),
    ]
}

fn waits(line: &Line) -> String {
    let waits: Vec<_> = line.waits.iter().map(|wait| format!("{} ({})", wait.ms, words(wait.reason))).collect();
    waits.join(", ")
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// The bar: hidden until the run takes long, and always without a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    shown: bool,
}

impl Progress {
    /// For so many calls.
    pub(crate) fn new(repeat: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(repeat), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} calls, {per_sec}, {eta} left") {
            bar.set_style(style);
        }
        Self { bar, began: Instant::now(), shown: false }
    }

    /// One more call.
    pub(crate) fn add(&mut self) {
        if !self.shown && self.began.elapsed() > LONG {
            self.shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }

    /// Says something on standard error without tearing the bar.
    pub(crate) fn note(&self, line: &str) {
        self.bar.suspend(|| output::note(line));
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
