//! The arguments.

use std::path::PathBuf;

use crate::Failure;
use crate::check::Check;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many seeds, from 1 on. At least 1; 5, or 1 with `quick`.
    pub seeds: u64,
    /// Only sections that begin with one of these, such as `budget.A` or `breaker`; empty: all.
    pub only: Vec<String>,
    /// Only cells that contain this.
    pub cell: Option<String>,
    /// The few checks that every change has to pass.
    pub quick: bool,
    /// Where to write everything as JSON.
    pub json: Option<PathBuf>,
    /// How many runs at a time: as many as there are cores.
    pub jobs: usize,
}

/// What `--help` prints.
pub const HELP: &str = "\
cargo run --release -p steadfast-acceptance -- [OPTIONS]

  --quick           a few checks, with one seed
  --seeds N         seeds 1 to N (5; with --quick 1)
  --only A,B        only these sections, such as budget.A,breaker
  --cell TEXT       only cells that contain TEXT, such as \"slow .85, N=1\"
  --json FILE       also write every value of every seed to FILE
  --jobs N          runs at a time (one for each core)
  --help            this page

Exit status: 0 all thresholds met, 1 some missed, 2 not run.";

impl Options {
    /// Reads the arguments, without the program's name. `None`: the page was asked for.
    ///
    /// # Errors
    /// An unknown argument, or a value that does not fit, with what was expected.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Option<Self>, Failure> {
        let (mut seeds, mut jobs) = (None, None);
        let mut options = Self { seeds: 0, only: Vec::new(), cell: None, quick: false, json: None, jobs: 0 };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--seeds" => seeds = Some(count("--seeds", &value()?)?),
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--cell" => options.cell = Some(value()?),
                "--json" => options.json = Some(value()?.into()),
                "--jobs" => jobs = Some(count("--jobs", &value()?)?),
                "--help" => return Ok(None),
                other => return Err(format!("unknown argument {other}\n\n{HELP}").into()),
            }
        }
        options.seeds = seeds.unwrap_or(if options.quick { 1 } else { 5 });
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        options.jobs = jobs.map_or_else(cores, |jobs| usize::try_from(jobs).unwrap_or(usize::MAX));
        Ok(Some(options))
    }

    /// Whether this check is among those that are asked for, as far as sections and cells go.
    pub fn includes(&self, check: &Check) -> bool {
        let section = self.only.is_empty() || self.only.iter().any(|part| check.section.starts_with(part.as_str()));
        section && self.cell.as_deref().is_none_or(|part| check.cell.contains(part))
    }
}

fn count(name: &str, text: &str) -> Result<u64, Failure> {
    match text.parse() {
        Ok(count) if (1..=1_000).contains(&count) => Ok(count),
        _ => Err(format!("{name} takes a number from 1 to 1000, not {text:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Options>, Failure> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn reads_what_the_page_names() {
        let options = parse("--seeds 7 --only budget.A,breaker --cell N=1 --json x.json --jobs 2").unwrap().unwrap();
        assert_eq!((options.seeds, options.jobs, options.quick), (7, 2, false));
        assert_eq!(options.only, ["budget.A", "breaker"]);
        assert_eq!((options.cell.as_deref(), options.json), (Some("N=1"), Some("x.json".into())));
        assert_eq!(parse("").unwrap().unwrap().seeds, 5);
        assert_eq!(parse("--quick").unwrap().unwrap().seeds, 1);
        assert_eq!(parse("--quick --seeds 3").unwrap().unwrap().seeds, 3);
        assert_eq!(parse("--help").unwrap(), None);
    }

    #[test]
    fn says_what_was_expected() {
        for (line, expected) in
            [("--seeds 0", "1 to 1000"), ("--jobs x", "number"), ("--slow", "--slow"), ("--only", "value")]
        {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }

    #[test]
    fn sections_and_cells_select() {
        let of = |line: &str| crate::selected(&parse(line).unwrap().unwrap());
        let all = of("");
        assert!(of("--only budget.A").iter().all(|check| check.section == "budget.A"));
        assert_eq!(of("--only budget").len() + of("--only breaker").len(), all.len());
        assert!(of("--only breaker.Z").is_empty());
        assert!(of("--quick").len() >= 12, "what every change has to pass");
    }
}
