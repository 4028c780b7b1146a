//! Worlds by the thousand, on every core; and of a bad one, the smallest that is still bad.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast::policy::Time;

use crate::log::{Entry, What};
use crate::observer::{self, Complaint, Rule};
use crate::plan::Plan;
use crate::run;

/// What one world showed.
pub(crate) struct Found {
    pub(crate) calls: u64,
    pub(crate) attempts: u64,
    /// How many calls came to which end.
    pub(crate) ends: BTreeMap<&'static str, u64>,
    pub(crate) complaints: Vec<Complaint>,
}

/// What many did.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    pub(crate) attempts: u64,
    pub(crate) worlds: u64,
    pub(crate) ends: BTreeMap<&'static str, u64>,
    /// Bad worlds, by their seeds.
    pub(crate) bad: BTreeMap<u64, Vec<Complaint>>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls, {} attempts, {} worlds, {} bad", self.calls, self.attempts, self.worlds, self.bad.len())?;
        self.ends.iter().try_for_each(|(end, count)| write!(f, ", {end} {count}"))
    }
}

/// One world.
pub(crate) fn seed(seed: u64) -> Found {
    world(&Arc::new(Plan::new(seed))).1
}

fn world(plan: &Arc<Plan>) -> (Vec<Entry>, Found) {
    let (log, is_stuck) = match run::run(plan) {
        Ok(log) => (log, false),
        Err(log) => (log, true),
    };
    let mut complaints = observer::complaints(plan, &log);
    if is_stuck {
        let at = log.last().map_or(Time::ZERO, |entry| entry.at);
        let text = "tasks are left that nothing can wake".to_owned();
        complaints.push(Complaint { rule: Rule::Held, at, call: None, text });
    }
    let count = |is: fn(&What) -> bool| log.iter().filter(|entry| is(&entry.what)).count() as u64;
    let calls = count(|what| matches!(what, What::Made { .. }));
    let attempts = count(|what| matches!(what, What::Start { .. }));
    let mut ends = BTreeMap::new();
    for entry in &log {
        let end = match &entry.what {
            What::Done { answer, .. } => answer.report.ended().name(),
            What::Cancelled { .. } => "cancelled",
            _ => continue,
        };
        *ends.entry(end).or_default() += 1;
    }
    (log, Found { calls, attempts, ends, complaints })
}

/// Worlds from seed `first` on, until there were so many calls.
pub(crate) fn calls(first: u64, calls: u64) -> Tally {
    let (next, tally) = (AtomicU64::new(first), Mutex::new(Tally::default()));
    let with =
        |change: &mut dyn FnMut(&mut Tally) -> bool| change(&mut tally.lock().unwrap_or_else(PoisonError::into_inner));
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let found = seed(number);
        let goes_on = with(&mut |tally| {
            tally.worlds += 1;
            tally.calls += found.calls;
            tally.attempts += found.attempts;
            for (end, count) in &found.ends {
                *tally.ends.entry(end).or_default() += count;
            }
            if !found.complaints.is_empty() {
                tally.bad.insert(number, found.complaints.clone());
            }
            tally.calls < calls && tally.bad.len() < 20
        });
        if !goes_on {
            return;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Fails with the first bad world, made as small as it gets.
pub(crate) fn report(tally: Tally) {
    let summary = tally.to_string();
    if let Some((seed, complaints)) = tally.bad.first_key_value() {
        let first = |(seed, complaints): (&u64, &Vec<Complaint>)| format!("seed {seed}: {}\n", complaints[0]);
        let all: String = tally.bad.iter().map(first).collect();
        panic!("{summary}\n{all}\n{}", reproduction(*seed, complaints));
    }
}

/// Everything that is needed to look at a bad world: its seed, what is wrong, and the log of the smallest like it.
pub(crate) fn reproduction(seed: u64, complaints: &[Complaint]) -> String {
    let mut text = format!("seed {seed}\n");
    let Some(first) = complaints.first() else { return text + "nothing to complain of\n" };
    for complaint in complaints.iter().take(5) {
        let _ = writeln!(text, "  {complaint}");
    }
    let plan = smallest(Plan::new(seed), first.rule);
    let (log, found) = world(&Arc::new(plan.clone()));
    let _ = writeln!(text, "with {} callers only: {:#?}", plan.people(), plan.configs);
    for (number, caller) in plan.callers.iter().enumerate() {
        if let Some(caller) = caller {
            let _ = writeln!(text, "call {number}: {caller:?}");
        }
    }
    let samples = |entry: &&Entry| !matches!(entry.what, What::Sampled(_));
    for entry in log.iter().filter(samples) {
        let _ = writeln!(text, "{entry}");
    }
    for complaint in found.complaints.iter().take(5) {
        let _ = writeln!(text, "  {complaint}");
    }
    text
}

/// The plan with as few callers as still break the same rule: taken out by halves, quarters, and so on.
fn smallest(mut plan: Plan, rule: Rule) -> Plan {
    let is_bad = |plan: &Plan| {
        let (_, found) = world(&Arc::new(plan.clone()));
        found.complaints.iter().any(|complaint| complaint.rule == rule)
    };
    let mut chunk = plan.callers.len().div_ceil(2);
    loop {
        let mut from = 0;
        while from < plan.callers.len() {
            let to = (from + chunk).min(plan.callers.len());
            let mut smaller = plan.clone();
            smaller.callers[from..to].fill(None);
            if smaller.people() < plan.people() && is_bad(&smaller) {
                plan = smaller;
            }
            from = to;
        }
        if chunk == 1 {
            return plan;
        }
        chunk = chunk.div_ceil(2);
    }
}
