//! The arguments that both benchmarks understand.

use crate::Failure;

/// What `cargo bench -p steadfast-benches -- …` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A few short rounds: a smoke test, not a measurement.
    pub quick: bool,
    /// One JSON line per figure in place of tables.
    pub json: bool,
    /// The cores of the first and of the second busy thread (for HTTP: of the client and of the server).
    pub pin: Option<(usize, usize)>,
    /// Only the contenders whose name contains this. Without the baseline there are no ratios.
    pub only: Option<String>,
    /// Only the cases whose title contains this.
    pub case: Option<String>,
    /// Rounds in place of the usual number.
    pub rounds: Option<usize>,
    /// Be the HTTP server of a benchmark; the benchmark starts itself this way.
    pub serve: bool,
}

/// What `--help` prints.
pub const HELP: &str = "\
cargo bench -p steadfast-benches -- [OPTIONS]

  --quick         a few short rounds: shows that everything runs, measures nothing
  --json          one JSON line per figure in place of tables
  --pin A,B       keep the client on core A and the server (or the second thread) on core B
  --only NAME     only the contenders whose name contains NAME; no ratios without the baseline
  --case TITLE    only the cases whose title contains TITLE, such as \"pends once\" or \"16 in flight\"
  --rounds N      rounds per case
  --help          this page";

impl Options {
    /// Reads the arguments, without the program's name. `None`: the page was asked for.
    ///
    /// # Errors
    ///
    /// An unknown argument, or a value that does not fit, with what was expected.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Option<Self>, Failure> {
        let mut options =
            Self { quick: false, json: false, pin: None, only: None, case: None, rounds: None, serve: false };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--pin" => options.pin = Some(pair(&value()?)?),
                "--only" => options.only = Some(value()?),
                "--case" => options.case = Some(value()?),
                "--rounds" => options.rounds = Some(value()?.parse().map_err(|_| "--rounds takes a number")?),
                "--serve" => options.serve = true,
                "--help" => return Ok(None),
                // cargo says so to every benchmark.
                "--bench" => {}
                other => return Err(format!("unknown argument {other}\n\n{HELP}").into()),
            }
        }
        Ok(Some(options))
    }

    /// The rounds to run: as asked, or one of the two given numbers.
    pub fn rounds(&self, full: usize, quick: usize) -> usize {
        self.rounds.unwrap_or(if self.quick { quick } else { full }).max(1)
    }

    /// Whether the case of this title is run.
    pub fn runs(&self, title: &str) -> bool {
        self.case.as_deref().is_none_or(|part| title.contains(part))
    }

    /// Whether a contender of this name takes part.
    pub fn includes(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|part| name.contains(part))
    }
}

fn pair(text: &str) -> Result<(usize, usize), Failure> {
    let expected = || format!("--pin takes two core numbers such as 0,1, not {text:?}");
    let (first, second) = text.split_once(',').ok_or_else(expected)?;
    Ok((first.parse().map_err(|_| expected())?, second.parse().map_err(|_| expected())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Options>, Failure> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn reads_what_the_page_names() {
        let options = parse("--bench --quick --json --pin 0,1 --only tower --rounds 7").unwrap().unwrap();
        assert!(options.quick && options.json && !options.serve);
        assert_eq!((options.pin, options.rounds(31, 3)), (Some((0, 1)), 7));
        assert!(options.includes("tower, again") && !options.includes("steadfast"));
        let options = parse("--quick --case pends").unwrap().unwrap();
        assert_eq!((options.rounds(31, 3), options.runs("pends once"), options.runs("ready")), (3, true, false));
        assert_eq!(parse("--help").unwrap(), None);
    }

    #[test]
    fn says_what_was_expected() {
        for (line, expected) in
            [("--pin 1", "two core numbers"), ("--rounds x", "number"), ("--slow", "--slow"), ("--only", "value")]
        {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
