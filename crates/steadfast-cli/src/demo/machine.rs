//! The demo for machines: a line per breaker transition as it happens, then one per upstream, then a summary.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::scenario::{BLIND_RETRIES, Kind};
use super::stage::{Lane, Side, Stage};
use super::transitions::{Change, News, OpenedWith};
use crate::args::DemoArgs;
use crate::output::{self, Ms, Percentiles, json_line};

/// The view.
#[derive(Debug)]
pub(crate) struct Machine {
    news: News,
}

#[derive(Serialize)]
struct Start {
    event: &'static str,
    seed: u64,
    duration_ms: u64,
    calls_per_second: u32,
    breaker_cool_down_ms: u64,
    blind_retries: u32,
    down_from_ms: u64,
    down_until_ms: u64,
}

#[derive(Serialize)]
struct Transition<'a> {
    event: &'static str,
    upstream: &'static str,
    at_ms: Ms,
    from: &'a str,
    to: &'a str,
    why: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_with: Option<OpenedWith>,
}

/// One upstream: the figures through Steadfast, and in `blind` the same of the other client.
#[derive(Serialize)]
struct UpstreamLine {
    event: &'static str,
    upstream: &'static str,
    #[serde(flatten)]
    ours: Figures,
    breaker: &'static str,
    breaker_transitions: Vec<Step>,
    /// Failed calls that were not repeated because they may not be.
    not_repeated: u64,
    /// Calls refused by the open breaker after the outage had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_after_outage: Option<u64>,
    blind: Figures,
}

#[derive(Serialize)]
struct Step {
    at_ms: Ms,
    from: &'static str,
    to: &'static str,
    why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_with: Option<OpenedWith>,
}

#[derive(Serialize)]
struct Figures {
    calls: u64,
    requests_at_upstream: u64,
    succeeded: u64,
    outcomes: BTreeMap<Cow<'static, str>, u64>,
    latency_ms: Option<Percentiles>,
    /// Requests beyond the first of a call that may not be sent twice.
    unsafe_resends: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    while_down: Option<WhileDown>,
}

#[derive(Serialize)]
struct WhileDown {
    calls: u64,
    requests: u64,
}

#[derive(Default, Serialize)]
struct Sum {
    calls: u64,
    requests_at_upstream: u64,
    succeeded: u64,
    unsafe_resends: u64,
}

#[derive(Serialize)]
struct Summary {
    event: &'static str,
    summary: bool,
    steadfast: Sum,
    blind: Sum,
}

impl Machine {
    /// Says what will be run.
    pub(crate) fn new(args: DemoArgs, stage: &Stage) -> io::Result<Self> {
        let outage = stage.timeline.outage();
        json_line(&Start {
            event: "start",
            seed: args.seed,
            duration_ms: output::ceil_ms(stage.timeline.duration()),
            calls_per_second: args.rate,
            breaker_cool_down_ms: output::ceil_ms(stage.timeline.cool_down()),
            blind_retries: BLIND_RETRIES,
            down_from_ms: output::ceil_ms(outage.start),
            down_until_ms: output::ceil_ms(outage.end),
        })?;
        Ok(Self { news: News::default() })
    }

    /// Tells what the breakers did.
    pub(crate) fn refresh(&mut self, stage: &Stage) -> io::Result<()> {
        let breakers = stage.lanes.iter().map(|lane| lane.client.transitions());
        for (lane, change) in self.news.read(breakers) {
            let Change { at, from, to, why, opened_with } = change;
            let upstream = stage.lanes.get(lane).map_or("", |lane| lane.kind.name());
            json_line(&Transition { event: "transition", upstream, at_ms: at.into(), from, to, why, opened_with })?;
        }
        Ok(())
    }

    /// Tells what it came to.
    pub(crate) fn finish(self, stage: &Stage) -> io::Result<()> {
        let (mut ours, mut theirs) = (Sum::default(), Sum::default());
        for lane in &stage.lanes {
            let line = UpstreamLine::of(lane);
            ours.add(&line.ours);
            theirs.add(&line.blind);
            json_line(&line)?;
        }
        json_line(&Summary { event: "summary", summary: true, steadfast: ours, blind: theirs })
    }
}

impl UpstreamLine {
    fn of(lane: &Lane) -> Self {
        let step = |change: &Change| Step {
            at_ms: change.at.into(),
            from: change.from,
            to: change.to,
            why: change.why,
            opened_with: change.opened_with,
        };
        let counts = lane.steadfast.tally.counts();
        Self {
            event: "upstream",
            upstream: lane.kind.name(),
            ours: Figures::of(lane.kind, &lane.steadfast),
            breaker: lane.client.breaker(),
            breaker_transitions: lane.client.transitions().iter().map(step).collect(),
            not_repeated: counts.not_repeated,
            refused_after_outage: (lane.kind == Kind::Down).then_some(counts.refused_after_outage),
            blind: Figures::of(lane.kind, &lane.blind),
        }
    }
}

impl Figures {
    fn of(kind: Kind, side: &Side) -> Self {
        let (seen, counts) = (side.upstream.seen(), side.tally.counts());
        Self {
            calls: counts.calls,
            requests_at_upstream: seen.requests,
            succeeded: counts.succeeded,
            outcomes: counts.outcomes,
            latency_ms: counts.latencies.percentiles(),
            unsafe_resends: seen.unsafe_resends,
            while_down: (kind == Kind::Down)
                .then_some(WhileDown { calls: counts.calls_while_down, requests: seen.while_down }),
        }
    }
}

impl Sum {
    fn add(&mut self, figures: &Figures) {
        self.calls += figures.calls;
        self.requests_at_upstream += figures.requests_at_upstream;
        self.succeeded += figures.succeeded;
        self.unsafe_resends += figures.unsafe_resends;
    }
}
