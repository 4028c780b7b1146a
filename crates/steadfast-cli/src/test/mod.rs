//! `steadfast test`: plays scenario files through the client, and says which are not as expected.
//!
//! Files are read and played in the order in which they are named, those of a directory by their names; a file that has a
//! mistake does not keep the others from being played. What is printed is the same each time; over sockets, but for times.

mod json;
mod junit;
mod stages;

use std::path::Path;

use steadfast_sim::scenario::{Outcome, Scenario};

use crate::args::{TestArgs, TestFormat};
use crate::exit::Exit;
use crate::files::{self, Unreadable};
use crate::output;

/// What came of a file, or of one scenario in it.
enum Verdict {
    Played {
        outcome: Outcome,
        contract: Vec<String>,
    },
    Unreadable(Unreadable),
    /// It is valid, and cannot be played here: a certificate is missing, for one.
    Unplayable {
        file: String,
        title: String,
        why: String,
    },
    /// It cannot be played over sockets, and says why.
    LeftOut {
        scenario: Box<Scenario>,
        why: String,
    },
}

/// How many there were of each.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    bad: usize,
    left_out: usize,
}

/// Plays what is named, prints, and says how it went.
pub(crate) fn run(args: &TestArgs) -> Exit {
    let found = match files::meant(&args.paths) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let mut printer = Printer::new(args.output);
    let mut tally = Tally::default();
    let read = found.iter().flat_map(|file| read(file, args.filter.as_deref()));
    let mut print = |verdict| {
        tally.add(&verdict);
        printer.one(verdict)
    };
    let printed =
        if args.sockets { stages::sockets(read.collect(), &mut print) } else { stages::in_time(read, &mut print) };
    if printed.is_err() {
        return Exit::Failed;
    }
    if tally.passed + tally.failed + tally.bad + tally.left_out == 0 {
        output::note("error: --filter: no scenario has this in its path, its title, or its numbers");
        return Exit::Usage;
    }
    let exit = files::exit(printer.end(&tally), tally.bad, tally.failed);
    if exit == Exit::Ok && tally.passed == 0 {
        output::note("error: --sockets: all of it was left out, and nothing was played");
        return Exit::Usage;
    }
    exit
}

/// The scenarios of a file that are meant, or what became of it.
fn read(file: &Path, filter: Option<&str>) -> Vec<Result<Scenario, Verdict>> {
    match Scenario::read(file) {
        Ok(scenarios) => {
            let wanted = scenarios.into_iter().filter(|scenario| filter.is_none_or(|text| is_meant(scenario, text)));
            wanted.map(Ok).collect()
        }
        Err(problems) => vec![Err(Verdict::Unreadable(Unreadable::new(file, problems)))],
    }
}

/// By a part of the path, the title or the variant in any case, or by one of the numbers.
fn is_meant(scenario: &Scenario, text: &str) -> bool {
    let lower = text.to_lowercase();
    [&scenario.file, &scenario.title, &scenario.variant].iter().any(|part| part.to_lowercase().contains(&lower))
        || scenario.contract.iter().any(|number| number == text)
}

impl Tally {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Played { outcome, .. } if outcome.passed() => self.passed += 1,
            Verdict::Played { .. } => self.failed += 1,
            Verdict::Unreadable(_) | Verdict::Unplayable { .. } => self.bad += 1,
            Verdict::LeftOut { .. } => self.left_out += 1,
        }
    }

    fn words(&self) -> String {
        let mut words = format!("{} passed, {} failed", self.passed, self.failed);
        if self.bad > 0 {
            words.push_str(&format!(", {} could not be played", self.bad));
        }
        if self.left_out > 0 {
            words.push_str(&format!(", {} left out", self.left_out));
        }
        words
    }
}

/// Prints in one of the forms; JUnit's is one document, which is printed at the end.
enum Printer {
    Text,
    Json,
    Junit(Vec<Verdict>),
}

impl Printer {
    fn new(format: TestFormat) -> Self {
        match format {
            TestFormat::Text => Self::Text,
            TestFormat::Json => Self::Json,
            TestFormat::Junit => Self::Junit(Vec::new()),
        }
    }

    fn one(&mut self, verdict: Verdict) -> std::io::Result<()> {
        match self {
            Self::Text => text(&verdict),
            Self::Json => json::one(&verdict),
            Self::Junit(verdicts) => {
                verdicts.push(verdict);
                Ok(())
            }
        }
    }

    fn end(&self, tally: &Tally) -> std::io::Result<()> {
        match self {
            Self::Text => output::text(&format!("\n{}\n", tally.words())),
            Self::Json => json::summary(tally),
            Self::Junit(verdicts) => output::text(&junit::document(verdicts)),
        }
    }
}

fn text(verdict: &Verdict) -> std::io::Result<()> {
    match verdict {
        Verdict::Played { outcome, .. } => output::text(&format!("{}\n", outcome.to_string().trim_end())),
        Verdict::Unreadable(unreadable) => output::text(&unreadable.text()),
        Verdict::Unplayable { file, title, why } => output::text(&format!("BAD   {file}: {title}\n  {why}\n")),
        Verdict::LeftOut { scenario, why } => {
            output::text(&format!("-     {}: {}\n  not over sockets: {why}\n", scenario.file, scenario.title))
        }
    }
}
