//! `steadfast simulate`: lives through outages that files describe, and shows the policies beside one another.
//!
//! Files are read and run in the order in which they are named, those of a directory by their names; one that has a mistake
//! does not keep the others from being run. What is printed depends on the files and the seeds and on nothing else: not on
//! the time, the machine, or how many runs go on at once.

mod csv;
mod json;
mod plot;
mod text;

use std::num::NonZero;
use std::path::Path;

use steadfast_sim::outage::file::{Outcome, SimulationFile};

use crate::args::{SimulateArgs, SimulateFormat};
use crate::exit::Exit;
use crate::files::{self, Unreadable};
use crate::output;

/// What came of a file.
enum Verdict {
    Ran {
        file: Box<SimulationFile>,
        outcome: Outcome,
    },
    Unreadable(Unreadable),
    /// It is valid, and cannot be run here: a certificate is missing, for one.
    Unplayable {
        file: String,
        why: String,
    },
}

/// How many there were of each.
#[derive(Clone, Copy, Default)]
struct Tally {
    passed: usize,
    missed: usize,
    bad: usize,
}

/// Runs what is named, prints, and says how it went.
pub(crate) fn run(args: &SimulateArgs) -> Exit {
    let found = match files::meant(&args.paths) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let style = text::Style::of_this_terminal();
    let mut tally = Tally::default();
    let begun = if args.output == SimulateFormat::Csv { csv::header() } else { Ok(()) };
    if begun.is_err() {
        return Exit::Failed;
    }
    for path in found {
        let verdict = verdict(&path, args);
        tally.add(&verdict);
        let printed = match args.output {
            SimulateFormat::Text => output::text(&text::one(&verdict, style)),
            SimulateFormat::Json => json::one(&verdict),
            SimulateFormat::Csv => csv::one(&verdict),
        };
        if printed.is_err() {
            return Exit::Failed;
        }
    }
    let ended = match args.output {
        SimulateFormat::Text => output::text(&format!("{}\n", tally.words())),
        SimulateFormat::Json => json::summary(tally),
        SimulateFormat::Csv => Ok(()),
    };
    files::exit(ended, tally.bad, tally.missed)
}

fn verdict(path: &Path, args: &SimulateArgs) -> Verdict {
    let file = match SimulationFile::read(path) {
        Ok(file) => file,
        Err(problems) => return Verdict::Unreadable(Unreadable::new(path, problems)),
    };
    let cores = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    match file.run(args.seed.unwrap_or(file.seed), args.seeds, args.jobs.unwrap_or_else(cores)) {
        Ok(outcome) => Verdict::Ran { file: Box::new(file), outcome },
        Err(error) => Verdict::Unplayable { file: file.file, why: error.to_string() },
    }
}

impl Tally {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Ran { outcome, .. } if outcome.missed.is_empty() => self.passed += 1,
            Verdict::Ran { .. } => self.missed += 1,
            Verdict::Unreadable(_) | Verdict::Unplayable { .. } => self.bad += 1,
        }
    }

    fn words(self) -> String {
        let mut words = format!("{} as expected, {} not", self.passed, self.missed);
        if self.bad > 0 {
            words.push_str(&format!(", {} could not be run", self.bad));
        }
        words
    }
}
