//! `steadfast test`: plays scenario files through the client, and says which are not as expected.
//!
//! Files are read and played in the order in which they are named, those of a directory by their names; a file that has a
//! mistake does not keep the others from being played. What is printed is the same each time.

mod json;
mod junit;

use std::path::{Path, PathBuf};

use steadfast::config::Problems;
use steadfast_sim::scenario::{Outcome, Scenario, files, play_in_time};

use crate::args::{TestArgs, TestFormat};
use crate::exit::Exit;
use crate::output;

/// What came of a file, or of one scenario in it.
enum Verdict {
    Played {
        outcome: Outcome,
        contract: Vec<String>,
    },
    Unreadable {
        file: String,
        problems: Problems,
    },
    /// It is valid, and cannot be played here: a certificate is missing, for one.
    Unplayable {
        file: String,
        title: String,
        why: String,
    },
}

/// How many there were of each.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    bad: usize,
}

/// Plays what is named, prints, and says how it went.
pub(crate) fn run(args: &TestArgs) -> Exit {
    let found = match find(&args.paths) {
        Ok(found) => found,
        Err(why) => {
            output::note(&format!("error: {why}"));
            return Exit::Usage;
        }
    };
    let mut printer = Printer::new(args.output);
    let mut tally = Tally::default();
    for file in found {
        for verdict in verdicts(&file, args.filter.as_deref()) {
            tally.add(&verdict);
            if printer.one(verdict).is_err() {
                return Exit::Failed;
            }
        }
    }
    if tally.passed + tally.failed + tally.bad == 0 {
        output::note("error: --filter: no scenario has this in its path, its title, or its numbers");
        return Exit::Usage;
    }
    match printer.end(&tally) {
        Err(_) => Exit::Failed,
        Ok(()) if tally.bad > 0 => Exit::Config,
        Ok(()) if tally.failed > 0 => Exit::Failed,
        Ok(()) => Exit::Ok,
    }
}

/// The files that are meant. A directory without any is a mistake: what nobody plays passes.
fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        let below = files(path).map_err(|error| format!("{}: {error}", path.display()))?;
        if below.is_empty() {
            return Err(format!("{}: no file in it, or below it, ends in .toml", path.display()));
        }
        found.extend(below);
    }
    Ok(found)
}

fn verdicts(file: &Path, filter: Option<&str>) -> Vec<Verdict> {
    match Scenario::read(file) {
        Ok(scenarios) => {
            let wanted = scenarios.into_iter().filter(|scenario| filter.is_none_or(|text| is_meant(scenario, text)));
            wanted.map(played).collect()
        }
        Err(problems) => vec![Verdict::Unreadable { file: file.to_string_lossy().into_owned(), problems }],
    }
}

/// By a part of the path, the title or the variant in any case, or by one of the numbers.
fn is_meant(scenario: &Scenario, text: &str) -> bool {
    let lower = text.to_lowercase();
    [&scenario.file, &scenario.title, &scenario.variant].iter().any(|part| part.to_lowercase().contains(&lower))
        || scenario.contract.iter().any(|number| number == text)
}

fn played(scenario: Scenario) -> Verdict {
    match play_in_time(&scenario) {
        Ok(outcome) => Verdict::Played { outcome, contract: scenario.contract },
        Err(error) => Verdict::Unplayable { file: scenario.file, title: scenario.title, why: error.to_string() },
    }
}

impl Tally {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Played { outcome, .. } if outcome.passed() => self.passed += 1,
            Verdict::Played { .. } => self.failed += 1,
            Verdict::Unreadable { .. } | Verdict::Unplayable { .. } => self.bad += 1,
        }
    }

    fn words(&self) -> String {
        let mut words = format!("{} passed, {} failed", self.passed, self.failed);
        if self.bad > 0 {
            words.push_str(&format!(", {} could not be played", self.bad));
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
        Verdict::Unreadable { file, problems } => {
            let lines: Vec<String> = problems.to_string().lines().map(|line| format!("  {line}\n")).collect();
            output::text(&format!("BAD   {file}\n{}", lines.concat()))
        }
        Verdict::Unplayable { file, title, why } => output::text(&format!("BAD   {file}: {title}\n  {why}\n")),
    }
}
