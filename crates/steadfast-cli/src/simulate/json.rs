//! The results as lines of JSON: one for each file, then a summary. No figure depends on the wall.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use steadfast_sim::outage::file::{Measure, Missed, Outcome, SimulationFile};
use steadfast_sim::outage::{Level, Run, ServerTally, Spread, Tally};

use super::Verdict;
use crate::output::{self, Ms};

#[derive(Serialize)]
struct Ran<'a> {
    event: &'static str,
    file: &'a str,
    title: &'a str,
    passed: bool,
    seeds: &'a [u64],
    length_ms: Ms,
    interval_ms: Ms,
    clients: usize,
    models: &'a [String],
    /// When the triggers begin and are over.
    trouble_ms: Option<[Ms; 2]>,
    policies: Vec<Policy<'a>>,
    expected: usize,
    missed: Vec<Failure<'a>>,
}

/// What a policy came to, and its runs.
#[derive(Serialize)]
struct Policy<'a> {
    name: &'a str,
    phases: Vec<Phase<'a>>,
    runs: Vec<One>,
}

#[derive(Serialize)]
struct Phase<'a> {
    name: &'a str,
    from_ms: Ms,
    to_ms: Ms,
    /// The figures by the names that `expect` has for them; times are in seconds.
    #[serde(flatten)]
    figures: BTreeMap<&'static str, Option<Figure>>,
}

/// A figure over the seeds.
#[derive(Serialize)]
struct Figure {
    mean: f64,
    min: f64,
    max: f64,
    /// How many seeds have one.
    seeds: usize,
}

/// One run, in columns: a figure for each interval.
#[derive(Serialize)]
struct One {
    seed: u64,
    recovery_s: Option<f64>,
    calls: BTreeMap<&'static str, Vec<u64>>,
    upstream: BTreeMap<&'static str, Vec<u64>>,
    breakers: Vec<Change>,
    /// How many more changes of breakers there were.
    breakers_left_out: u64,
}

#[derive(Serialize)]
struct Change {
    at_ms: Ms,
    hop: usize,
    client: usize,
    from: &'static str,
    to: &'static str,
    why: &'static str,
}

#[derive(Serialize)]
struct Failure<'a> {
    line: usize,
    policy: &'a str,
    phase: &'a str,
    figure: &'static str,
    expected: String,
    measured: &'a [Option<f64>],
    seeds: &'a [u64],
}

#[derive(Serialize)]
struct Unplayable<'a> {
    event: &'static str,
    file: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct Summary {
    event: &'static str,
    passed: usize,
    missed: usize,
    bad: usize,
}

pub(super) fn one(verdict: &Verdict) -> io::Result<()> {
    match verdict {
        Verdict::Ran { file, outcome } => output::json_line(&ran(file, outcome)),
        Verdict::Unreadable(unreadable) => unreadable.print_json(),
        Verdict::Unplayable { file, why } => output::json_line(&Unplayable { event: "unplayable", file, why }),
    }
}

pub(super) fn summary(tally: super::Tally) -> io::Result<()> {
    let super::Tally { passed, missed, bad } = tally;
    output::json_line(&Summary { event: "summary", passed, missed, bad })
}

fn ran<'a>(file: &'a SimulationFile, outcome: &'a Outcome) -> Ran<'a> {
    let simulation = &file.simulation;
    let policies = file.policies.iter().zip(&outcome.runs).map(|(policy, runs)| Policy {
        name: &policy.name,
        phases: phases(file, runs),
        runs: runs.iter().map(run).collect(),
    });
    Ran {
        event: "simulation",
        file: &file.file,
        title: &file.title,
        passed: outcome.missed.is_empty(),
        seeds: &outcome.seeds,
        length_ms: simulation.lasts.into(),
        interval_ms: simulation.interval.into(),
        clients: simulation.clients,
        models: &file.models,
        trouble_ms: simulation.trouble().map(|(from, to)| [from.into(), to.into()]),
        policies: policies.collect(),
        expected: file.expectations.len(),
        missed: outcome.missed.iter().map(failure).collect(),
    }
}

fn phases<'a>(file: &'a SimulationFile, runs: &[Run]) -> Vec<Phase<'a>> {
    let phases = file.simulation.phases.iter().map(|phase| {
        let figure = |measure: Measure| {
            let there: Vec<f64> = runs.iter().filter_map(|run| measure.of(run, &phase.name)).collect();
            let Spread { mean, min, max } = Spread::of(there.iter().copied());
            (measure.name(), (!there.is_empty()).then_some(Figure { mean, min, max, seeds: there.len() }))
        };
        // Recovery is a figure of the run.
        let figures = Measure::ALL.into_iter().filter(|measure| *measure != Measure::Recovery).map(figure).collect();
        Phase { name: &phase.name, from_ms: phase.from.into(), to_ms: phase.to.into(), figures }
    });
    phases.collect()
}

/// A count of an interval, by its name.
type Of<T> = (&'static str, fn(&T) -> u64);

fn run(run: &Run) -> One {
    let calls: [Of<Tally>; 11] = [
        ("offered", |tally| tally.offered),
        ("sent", |tally| tally.sent),
        ("ok", |tally| tally.ok),
        ("in_time", |tally| tally.in_time),
        ("bad_answer", |tally| tally.bad_answer),
        ("unreachable", |tally| tally.unreachable),
        ("timeout", |tally| tally.timeout),
        ("circuit_open", |tally| tally.circuit_open),
        ("bulkhead_full", |tally| tally.bulkhead_full),
        ("rate_limited", |tally| tally.rate_limited),
        ("other", |tally| tally.other),
    ];
    let levels: [Of<Level>; 4] = [
        ("pending", |level| level.calls),
        ("breakers_open", |level| level.open),
        ("breakers_half_open", |level| level.half_open),
        ("queue", |level| level.queue.first().copied().unwrap_or_default()),
    ];
    let servers: [Of<ServerTally>; 5] = [
        ("requests", |server| server.requests),
        ("served", |server| server.served),
        ("wasted", |server| server.wasted),
        ("shed", |server| server.shed),
        ("struck", |server| server.struck),
    ];
    let mut of_calls: BTreeMap<_, Vec<u64>> =
        calls.iter().map(|(name, of)| (*name, run.calls.iter().map(of).collect())).collect();
    let mut of_upstream: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for (name, of) in levels {
        let into = if name == "queue" { &mut of_upstream } else { &mut of_calls };
        into.insert(name, run.levels.iter().map(of).collect());
    }
    let intervals = run.upstreams.first().map_or(&[][..], Vec::as_slice);
    of_upstream.extend(servers.iter().map(|(name, of)| (*name, intervals.iter().map(of).collect())));
    let changes = run.breakers.iter().map(|change| Change {
        at_ms: change.at.into(),
        hop: change.hop,
        client: change.client,
        from: change.from.name(),
        to: change.to.name(),
        why: change.why.name(),
    });
    One {
        seed: run.seed,
        recovery_s: Measure::Recovery.of(run, ""),
        calls: of_calls,
        upstream: of_upstream,
        breakers: changes.collect(),
        breakers_left_out: run.breakers_left_out,
    }
}

fn failure(missed: &Missed) -> Failure<'_> {
    let expectation = &missed.expectation;
    Failure {
        line: expectation.line,
        policy: &expectation.policy,
        phase: &expectation.phase,
        figure: expectation.measure.name(),
        expected: expectation.expected.to_string(),
        measured: &missed.measured,
        seeds: &missed.seeds,
    }
}
