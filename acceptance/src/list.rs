//! Checks as they are put together, and their cells in words.

use crate::check::{Bound, Check, Measure};
use crate::scenario::{Case, Failing, Scenario};

/// Checks so far.
#[derive(Default)]
pub(crate) struct List(pub(crate) Vec<Check>);

impl List {
    /// One more; what is seldom said is set on what comes back.
    pub(crate) fn add(&mut self, section: &'static str, cell: String, measure: Measure, bound: Bound) -> &mut Check {
        let index = self.0.len();
        self.0.push(Check { section, cell, measure, bound, single: None, known: "", quick: false });
        &mut self.0[index]
    }
}

/// Scenario, load and clients in words.
pub(crate) fn describe(case: Case) -> String {
    let Case { scenario, load, clients, skips_dead_work } = case;
    let how = |failing| if failing == Failing::Hangs { "hangs" } else { "503" };
    let (what, at_load) = match scenario {
        Scenario::Slow => ("slow".to_owned(), true),
        Scenario::Freeze => ("freeze".to_owned(), true),
        Scenario::Spike => ("spike".to_owned(), true),
        Scenario::Brownout => ("brownout".to_owned(), true),
        Scenario::BadReplica(failing) => (format!("replica {}", how(failing)), true),
        Scenario::Costly => ("costly".to_owned(), true),
        Scenario::Down(failing) => (format!("outage {}", how(failing)), true),
        Scenario::Noise { percent, failing: Failing::Answers503, .. } => (format!("noise {percent} %"), true),
        Scenario::Noise { percent, failing: Failing::Hangs, .. } => (format!("noise {percent} % hangs"), true),
        Scenario::AfterNoise => ("after noise 20 %".to_owned(), true),
        Scenario::AfterDown => ("after an outage".to_owned(), true),
        Scenario::Week { percent, failing } => (format!("a call a minute, {percent} % {}", how(failing)), false),
        Scenario::TwoHours { per_minute, fresh } => {
            let process = if fresh { "new process" } else { "after good answers" };
            (format!("two hours of 503, {per_minute} calls a minute, {process}"), false)
        }
        Scenario::OneOf { replicas, failing } => (format!("1 of {replicas} {}", how(failing)), true),
        Scenario::Poison => ("poison 10 %".to_owned(), true),
        Scenario::Dead { failing, noise: 0 } => (format!("down {}", how(failing)), true),
        Scenario::Dead { failing, noise } => (format!("down {} after noise {noise} %", how(failing)), true),
        Scenario::NinetyPercent => ("90 % failing".to_owned(), true),
        Scenario::Blip => ("blip 20 ms".to_owned(), true),
        Scenario::Reset => ("reset".to_owned(), true),
        Scenario::Slots(slots) => (format!("hang, {slots} slots"), true),
        Scenario::Quiet { per_minute, noise } => {
            (format!("{per_minute} calls a minute each, dead after noise {noise} %"), false)
        }
    };
    let load = if at_load { format!(" .{load}") } else { String::new() };
    let skips = if skips_dead_work { ", dead work skipped" } else { "" };
    format!("{what}{load}, N={clients}{skips}")
}
