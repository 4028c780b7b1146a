//! The demo for people: on a terminal a table that is redrawn, elsewhere a line per breaker transition.

use std::fmt::Write;
use std::io;

use comfy_table::Table;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::scenario::BLIND_RETRIES;
use super::stage::{Lane, Side, Stage};
use super::summary;
use super::tally::Counts;
use super::transitions::{Change, News};
use crate::args::DemoArgs;
use crate::output::{self, human};

/// Transitions shown under the table.
const LATEST: usize = 5;
/// Columns of the terminal that the whole table needs.
const WIDE: usize = 120;

/// The view.
#[derive(Debug)]
pub(crate) struct Live {
    screen: Option<ProgressBar>,
    news: News,
    latest: Vec<String>,
}

impl Live {
    /// Says what will be seen.
    pub(crate) fn new(args: DemoArgs, stage: &Stage) -> io::Result<Self> {
        let intro = format!(
            "Five upstreams, {} calls a second to each for {}, through Steadfast and through a client with {BLIND_RETRIES} blind \
             retries.\nAn open breaker stays so for {} here (breaker_cool_down). Seed {}. `steadfast demo --help` says what \
             each upstream does.\n\n",
            args.rate,
            human(stage.timeline.duration()),
            human(stage.timeline.cool_down()),
            args.seed,
        );
        output::text(&output::folded(&intro, output::width()))?;
        let screen = crate::is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            match ProgressStyle::with_template("{msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Ok(Self { screen, news: News::default(), latest: Vec::new() })
    }

    /// Shows what is new.
    pub(crate) fn refresh(&mut self, stage: &Stage) -> io::Result<()> {
        for (lane, change) in self.news.read(stage.lanes.iter().map(|lane| lane.client.transitions())) {
            let name = stage.lanes.get(lane).map_or("", |lane| lane.kind.name());
            let line = transition(name, &change);
            if self.screen.is_none() {
                output::text(&format!("{line}\n"))?;
            }
            self.latest.push(line);
        }
        if let Some(screen) = &self.screen {
            screen.set_message(self.frame(stage));
            screen.tick();
        }
        Ok(())
    }

    /// Takes the screen down and shows the summary.
    pub(crate) fn finish(self, stage: &Stage) -> io::Result<()> {
        if let Some(screen) = &self.screen {
            screen.finish_and_clear();
            for line in &self.latest {
                output::text(&format!("{line}\n"))?;
            }
        }
        let width = output::width();
        output::text(&output::folded(&format!("\n{}", summary::text(stage, width)), width))
    }

    fn frame(&self, stage: &Stage) -> String {
        let table = table(stage, output::width());
        let (now, end) = (stage.timeline.now(), stage.timeline.duration());
        let mut frame = format!("{:.1} s of {}\n{table}\n", now.min(end).as_secs_f64(), human(end));
        for line in self.latest.iter().rev().take(LATEST).rev() {
            let _ = writeln!(frame, "{line}");
        }
        frame
    }
}

/// All columns where there is room, and those that matter most where there is not.
fn table(stage: &Stage, width: Option<usize>) -> Table {
    if width.is_none_or(|width| width >= WIDE) {
        let mut table = output::table([
            "\nupstream",
            "\nbreaker",
            "\ncalls",
            "\nsucceeded",
            "\nrequests",
            "\np50",
            "\np99",
            "\nfailed calls",
            "blind:\nsucceeded",
            "\nrequests",
            "\np99",
        ]);
        table.add_rows(stage.lanes.iter().map(row));
        return table;
    }
    let mut table = output::table([
        "\nupstream",
        "\nbreaker",
        "\ncalls",
        "\nsuccess",
        "\nsent",
        "\np99",
        "blind:\nsuccess",
        "\nsent",
    ]);
    table.add_rows(stage.lanes.iter().map(|lane| {
        let [name, breaker, calls, succeeded, requests, _, p99, _, blind_succeeded, blind_requests, _] = row(lane);
        [name, breaker, calls, succeeded, requests, p99, blind_succeeded, blind_requests]
    }));
    table
}

fn row(lane: &Lane) -> [String; 11] {
    let (calls, succeeded, requests, [p50, p99], failures) = figures(&lane.steadfast);
    let (_, blind_succeeded, blind_requests, [_, blind_p99], _) = figures(&lane.blind);
    let breaker = lane.client.breaker().replace('_', " ");
    [
        lane.kind.name().to_owned(),
        breaker,
        calls,
        succeeded,
        requests,
        p50,
        p99,
        failures,
        blind_succeeded,
        blind_requests,
        blind_p99,
    ]
}

/// Calls, successes, requests that reached the upstream, latencies, and what the other calls ended as.
fn figures(side: &Side) -> (String, String, String, [String; 2], String) {
    let (seen, counts) = (side.upstream.seen(), side.tally.counts());
    let at = |quantile| counts.latencies.at(quantile).map_or_else(String::new, human);
    (
        counts.calls.to_string(),
        summary::percent(counts.succeeded, counts.outcomes.values().sum()),
        seen.requests.to_string(),
        [at(0.5), at(0.99)],
        failures(&counts),
    )
}

fn failures(counts: &Counts) -> String {
    let failed = |outcome: &str| outcome.parse().map_or(true, |status: u16| status >= 400);
    let failures: Vec<_> = counts
        .outcomes
        .iter()
        .filter(|(outcome, _)| failed(outcome))
        .map(|(outcome, n)| format!("{n} × {}", outcome.replace('_', " ")))
        .collect();
    failures.join(", ")
}

/// A transition in words.
fn transition(upstream: &str, change: &Change) -> String {
    let why = change.why.replace('_', " ");
    let why = match change.opened_with {
        Some(opened) if change.why == "streak" => format!("{} failures in a row", opened.streak),
        Some(opened) => format!("{why}: {} of {} attempts failed", opened.failures, opened.calls),
        None => why,
    };
    let at = change.at.as_secs_f64();
    format!("{at:5.1} s  {upstream}: {} → {} ({why})", change.from.replace('_', " "), change.to.replace('_', " "))
}
