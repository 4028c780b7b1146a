//! The demo's summary for people: both clients side by side, and what the figures say.

use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use comfy_table::Table;

use super::scenario::Kind;
use super::stage::{Lane, Stage};
use crate::output::{self, human};

/// Columns of the terminal that the whole table needs.
const WIDE: usize = 106;

/// The summary's text.
pub(crate) fn text(stage: &Stage, width: Option<usize>) -> String {
    let table = table(stage, width);
    let mut text = format!("{table}\n\n");
    for lane in stage.lanes.iter().filter(|lane| lane.kind == Kind::Down) {
        let _ = write!(text, "{}", outage(lane, &stage.timeline.outage()));
    }
    let not_repeated: u64 = stage.lanes.iter().map(|lane| lane.steadfast.tally.counts().not_repeated).sum();
    let resent: u64 = stage.lanes.iter().map(|lane| lane.blind.upstream.seen().unsafe_resends).sum();
    let _ = writeln!(
        text,
        "Whether a POST without an idempotency key was carried out, a failure does not tell. Steadfast did not send\n\
         {not_repeated} of them again, and their callers saw the failure; the blind client resent such POSTs {resent} times.\n\
         Requests and resends are counted at the upstreams."
    );
    text
}

/// All columns where there is room, and the first six where there is not.
fn table(stage: &Stage, width: Option<usize>) -> Table {
    const FIRST: [&str; 6] =
        ["\nupstream", "\ncalls", "succeeded\nSteadfast", "\nblind", "requests\nSteadfast", "\nblind"];
    const REST: [&str; 4] = ["p99\nSteadfast", "\nblind", "unsafe resends\nSteadfast", "\nblind"];
    let columns = if width.is_none_or(|width| width >= WIDE) { FIRST.len() + REST.len() } else { FIRST.len() };
    let mut table = output::table(FIRST);
    table.set_header(FIRST.into_iter().chain(REST).take(columns));
    table.add_rows(stage.lanes.iter().map(|lane| row(lane).into_iter().take(columns)));
    table
}

fn row(lane: &Lane) -> [String; 10] {
    let (ours, theirs) = (lane.steadfast.upstream.seen(), lane.blind.upstream.seen());
    let (us, them) = (lane.steadfast.tally.counts(), lane.blind.tally.counts());
    let p99 = |latencies: &output::Latencies| latencies.at(0.99).map_or_else(String::new, human);
    [
        lane.kind.name().to_owned(),
        us.calls.to_string(),
        percent(us.succeeded, us.outcomes.values().sum()),
        percent(them.succeeded, them.outcomes.values().sum()),
        ours.requests.to_string(),
        theirs.requests.to_string(),
        p99(&us.latencies),
        p99(&them.latencies),
        ours.unsafe_resends.to_string(),
        theirs.unsafe_resends.to_string(),
    ]
}

/// What the outage looked like from the upstream's side, and what the breaker cost the caller.
fn outage(lane: &Lane, outage: &Range<Duration>) -> String {
    let (ours, theirs) = (lane.steadfast.upstream.seen(), lane.blind.upstream.seen());
    let us = lane.steadfast.tally.counts();
    if us.calls_while_down == 0 {
        return String::new();
    }
    let changes = lane.client.transitions();
    let opened = changes.iter().find_map(|change| change.opened_with).map_or(0, |opened| u64::from(opened.streak));
    let probes = changes.iter().filter(|change| change.to == "half_open" && outage.contains(&change.at)).count() as u64;
    let others = match ours.while_down.saturating_sub(opened + probes) {
        0 => String::new(),
        n => format!(" ({n} more had been sent when it opened)"),
    };
    format!(
        "While `down` was down, {} calls were made. The blind client sent it {} requests. Steadfast sent {}: {opened} opened\n\
         the breaker{others}, {probes} were probes, one per cool-down. After the outage it refused {} more calls until the\n\
         next probe: that is the price.\n\n",
        us.calls_while_down, theirs.while_down, ours.while_down, us.refused_after_outage,
    )
}

/// A share in per cent, and the number behind it.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::from("–");
    }
    #[allow(clippy::cast_precision_loss)] // Counts of a demo.
    let share = part as f64 * 100.0 / whole as f64;
    // Never round up to a hundred what is not.
    if part < whole && share > 99.9 { String::from("99.9 %") } else { format!("{share:.1} %") }
}
