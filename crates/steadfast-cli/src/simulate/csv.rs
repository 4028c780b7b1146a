//! The results for spreadsheets and plotters: a row for each interval of each run.

use std::fmt::Write as _;
use std::io;

use steadfast_sim::outage::Run;

use super::Verdict;
use crate::output;

/// The columns. Calls are counted in the interval in which they were made; `requests` and what follows, of the upstream
/// that the clients call, when it happened.
const COLUMNS: &str = "file,policy,seed,at_s,offered,sent,ok,in_time,bad_answer,unreachable,timeout,circuit_open,\
     bulkhead_full,rate_limited,other,budget_ceiling,budget_efficacy,calls_pending,breakers_open,breakers_half_open,\
     queue,requests,served,wasted,skipped,shed,limited,struck,reset,busy_s,wasted_work_s\n";

pub(super) fn header() -> io::Result<()> {
    output::text(COLUMNS)
}

/// What cannot be run is told on standard error.
pub(super) fn one(verdict: &Verdict) -> io::Result<()> {
    match verdict {
        Verdict::Ran { file, outcome } => {
            let file_name = quoted(&file.file);
            for run in outcome.runs.iter().flatten() {
                output::text(&rows(&file_name, run))?;
            }
            outcome.missed.iter().for_each(|missed| output::note(&format!("{}: {missed}", file.file)));
        }
        Verdict::Unreadable(unreadable) => {
            unreadable.problems.to_string().lines().for_each(|line| output::note(&format!("error: {line}")));
        }
        Verdict::Unplayable { file, why } => output::note(&format!("error: {file}: {why}")),
    }
    Ok(())
}

fn rows(file: &str, run: &Run) -> String {
    let mut rows = String::new();
    let servers = run.upstreams.first().map_or(&[][..], Vec::as_slice);
    for (index, ((tally, level), server)) in run.calls.iter().zip(&run.levels).zip(servers).enumerate() {
        let at = run.interval.as_secs_f64() * index as f64;
        let queue = level.queue.first().copied().unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(rows, "{file},{},{},{at}", run.policy, run.seed);
        let figures = [
            tally.offered,
            tally.sent,
            tally.ok,
            tally.in_time,
            tally.bad_answer,
            tally.unreachable,
            tally.timeout,
            tally.circuit_open,
            tally.bulkhead_full,
            tally.rate_limited,
            tally.other,
            tally.budget_ceiling,
            tally.budget_efficacy,
            level.calls,
            level.open,
            level.half_open,
            queue,
            server.requests,
            server.served,
            server.wasted,
            server.skipped,
            server.shed,
            server.limited,
            server.struck,
            server.reset,
        ];
        figures.iter().for_each(|figure| _ = write!(rows, ",{figure}"));
        let _ = writeln!(rows, ",{:.6},{:.6}", server.busy.as_secs_f64(), server.wasted_work.as_secs_f64());
    }
    rows
}

/// A field as RFC 4180 has it, where it needs quotes.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
