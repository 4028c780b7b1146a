//! The results for people: plots over time, the policies beside one another, and what was missed.

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use steadfast::config::reading::show_duration;
use steadfast_sim::outage::file::{ALL, Measure, Outcome, SimulationFile};
use steadfast_sim::outage::{Run, Spread};

use super::{Verdict, plot};
use crate::output;

/// Columns of a plot where no terminal says how many there are.
const COLUMNS: usize = 70;
/// What stands before a plot.
const MARGIN: usize = 22;

/// How it is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    ascii: bool,
    columns: usize,
}

impl Style {
    /// Plain ASCII where nobody is watching, or on a terminal that says it can do no more.
    pub(super) fn of_this_terminal() -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let ascii = is_dumb || !crate::is_terminal();
        let width = output::width().filter(|_| !ascii);
        let columns = width.map_or(COLUMNS, |width| width.saturating_sub(MARGIN + 1).clamp(20, 120));
        Self { ascii, columns }
    }
}

pub(super) fn one(verdict: &Verdict, style: Style) -> String {
    match verdict {
        Verdict::Ran { file, outcome } => summary(file, outcome, style),
        Verdict::Unreadable(unreadable) => format!("{}\n", unreadable.text()),
        Verdict::Unplayable { file, why } => format!("BAD   {file}\n  {why}\n\n"),
    }
}

fn summary(file: &SimulationFile, outcome: &Outcome, style: Style) -> String {
    let word = match (outcome.missed.is_empty(), file.expectations.is_empty()) {
        (true, true) => "DONE  ",
        (true, false) => "PASS  ",
        _ => "MISS  ",
    };
    let mut text = format!("{word}{}: {}\n", file.file, file.title);
    let simulation = &file.simulation;
    let clients = match simulation.clients {
        1 => "one client".to_owned(),
        clients => format!("{clients} clients"),
    };
    let seeds = match &outcome.seeds[..] {
        [first, .., last] => format!("seeds {first} to {last}: mean (least to most)"),
        [seed] => format!("seed {seed}"),
        [] => String::new(),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "      {clients} of {}, {}, {seeds}\n",
        file.models.join(" -> "),
        show_duration(simulation.lasts)
    );
    plots(&mut text, file, outcome, style);
    let _ = writeln!(text, "\n{}\n", table(file, outcome, style));
    for missed in &outcome.missed {
        let _ = writeln!(text, "  {missed}");
    }
    if !outcome.missed.is_empty() {
        text.push('\n');
    }
    text
}

/// Calls made, answered well, and attempts sent a second, of each policy at the same scale.
fn plots(text: &mut String, file: &SimulationFile, outcome: &Outcome, style: Style) {
    let series = |runs: &[Run], of: fn(&Run, usize) -> u64| -> Vec<f64> {
        let intervals = runs.iter().map(|run| run.calls.len()).max().unwrap_or(0);
        let seconds = file.simulation.interval.as_secs_f64();
        let mean = |index| Spread::of(runs.iter().map(|run| of(run, index) as f64 / seconds)).mean;
        plot::columns(&(0..intervals).map(mean).collect::<Vec<f64>>(), style.columns)
    };
    let lines: Vec<[Vec<f64>; 3]> = outcome
        .runs
        .iter()
        .map(|runs| {
            let sent = |run: &Run, index: usize| {
                run.upstreams.first().and_then(|intervals| intervals.get(index)).map_or(0, |server| server.requests)
            };
            [
                series(runs, |run, index| tally_of(run, index).0),
                series(runs, |run, index| tally_of(run, index).1),
                series(runs, sent),
            ]
        })
        .collect();
    let full = lines.iter().flatten().flatten().copied().fold(0.0, f64::max);
    let columns = lines.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let edge = if style.ascii { '|' } else { '│' };
    for (policy, lines) in file.policies.iter().zip(&lines) {
        for (what, line) in ["offered", "answered", "sent"].iter().zip(lines) {
            let name = if *what == "offered" { clipped(&policy.name) } else { String::new() };
            let drawn = plot::line(line, full, style.ascii);
            let _ = writeln!(text, "  {name:<10} {what:>8}{edge}{drawn}{edge}");
        }
    }
    let length = file.simulation.lasts;
    if let Some((from, to)) = file.simulation.trouble() {
        let marks = plot::marks(from, to, length, columns, style.ascii);
        let _ = writeln!(text, "  {:<10} {:>8} {marks}", "", "trouble");
    }
    let end = show_duration(length);
    let _ = writeln!(text, "  {:<10} {:>8} {:<room$}{end}", "", "", "0s", room = columns.saturating_sub(end.len()));
    let _ =
        writeln!(text, "  full height: {full:.0} a second; offered are calls made, answered those with a good answer,");
    let _ = writeln!(text, "  sent the attempts that went to {}", file.models.first().map_or("", String::as_str));
}

fn tally_of(run: &Run, index: usize) -> (u64, u64) {
    run.calls.get(index).map_or((0, 0), |tally| (tally.offered, tally.ok))
}

/// A name in the room there is.
fn clipped(name: &str) -> String {
    if name.len() <= 10 { name.to_owned() } else { format!("{}~", name.get(..9).unwrap_or_default()) }
}

/// The measures that are shown of every phase.
const OF_PHASES: [Measure; 5] =
    [Measure::Goodput, Measure::InTime, Measure::Amplification, Measure::Refused, Measure::P99];
/// Those of all of it, beside what is sent to each upstream.
const OF_ALL: [Measure; 5] =
    [Measure::Goodput, Measure::Amplification, Measure::Wasted, Measure::Opened, Measure::Recovery];

fn table(file: &SimulationFile, outcome: &Outcome, style: Style) -> Table {
    let mut table = Table::new();
    table.load_style(if style.ascii { presets::ASCII_BORDERS_ONLY_CONDENSED } else { presets::UTF8_FULL_CONDENSED });
    if !style.ascii {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    let header = ["phase", "figure"].into_iter().chain(file.policies.iter().map(|policy| policy.name.as_str()));
    table.set_header(header);
    let simulation = &file.simulation;
    let (all, phases): (Vec<_>, Vec<_>) = simulation.phases.iter().partition(|phase| phase.name == ALL);
    let is_shown = |measure: &&Measure| match measure {
        Measure::InTime => simulation.in_time < Duration::MAX,
        Measure::Recovery => !simulation.triggers.is_empty(),
        _ => true,
    };
    // What happens by itself, without a trigger, is all there is.
    let of_all = if phases.is_empty() { &OF_PHASES[..] } else { &OF_ALL[..] };
    let parts = phases.iter().map(|phase| (*phase, &OF_PHASES[..])).chain(all.iter().map(|phase| (*phase, of_all)));
    for (phase, measures) in parts {
        let mut span = format!("{} ({} to {})", phase.name, show_duration(phase.from), show_duration(phase.to));
        let mut row = |what: String, of: &dyn Fn(&Run) -> Option<f64>, measure: Measure| {
            let cells = outcome.runs.iter().map(|runs| cell(runs, measure, of));
            table.add_row([std::mem::take(&mut span), what].into_iter().chain(cells));
        };
        for measure in measures.iter().filter(is_shown) {
            row(words(*measure).to_owned(), &|run| measure.of(run, &phase.name), *measure);
        }
        for (hop, model) in file.models.iter().enumerate().filter(|_| phase.name == ALL) {
            let of = |run: &Run| Measure::Requests.of_hop(run, &phase.name, hop);
            row(format!("sent to {model}"), &of, Measure::Requests);
        }
    }
    table
}

fn words(measure: Measure) -> &'static str {
    match measure {
        Measure::Goodput => "good answers",
        Measure::InTime => "in time",
        Measure::Amplification => "sent per call",
        Measure::Refused => "refused by us",
        Measure::Wasted => "work for nobody",
        Measure::Requests => "requests sent",
        Measure::P50 => "p50 of good answers",
        Measure::P99 => "p99 of good answers",
        Measure::Opened => "breakers opened",
        Measure::Recovery => "recovered after",
    }
}

/// The figure, or its mean and its spread over the seeds.
fn cell(runs: &[Run], measure: Measure, of: &dyn Fn(&Run) -> Option<f64>) -> String {
    let there: Vec<f64> = runs.iter().filter_map(of).collect();
    let missing = runs.len() - there.len();
    let Spread { mean, min, max } = Spread::of(there.iter().copied());
    let spread = || format!("{} ({} to {}", measure.show(mean), measure.show(min), measure.show(max));
    match (there.len(), missing) {
        (0, _) => measure.nothing().to_owned(),
        (_, 0) if min == max => measure.show(mean),
        (_, 0) => format!("{})", spread()),
        _ => format!("{}, {missing} {})", spread(), measure.nothing()),
    }
}
