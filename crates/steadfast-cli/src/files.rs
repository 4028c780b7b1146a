//! What `test` and `simulate` do alike: which files are meant, what is said of one that cannot be read, and how the command
//! then ends.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use steadfast::config::{Problem, Problems};
use steadfast_sim::scenario::files;

use crate::exit::Exit;
use crate::output;

/// The files that are meant. `Err`: how the command ends, and why has been said.
pub(crate) fn meant(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Exit> {
    find(paths).map_err(|why| {
        output::note(&format!("error: {why}"));
        Exit::Usage
    })
}

/// A directory without any is a mistake: what nobody plays passes, and what nobody runs misses nothing.
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

/// A file that has mistakes.
pub(crate) struct Unreadable {
    pub(crate) file: String,
    pub(crate) problems: Problems,
}

impl Unreadable {
    pub(crate) fn new(file: &Path, problems: Problems) -> Self {
        Self { file: file.to_string_lossy().into_owned(), problems }
    }

    /// For people, in a line for each problem.
    pub(crate) fn text(&self) -> String {
        let lines: String = self.problems.to_string().lines().map(|line| format!("  {line}\n")).collect();
        format!("BAD   {}\n{lines}", self.file)
    }

    /// Prints it as a line of JSON.
    pub(crate) fn print_json(&self) -> io::Result<()> {
        let problems = self.problems.iter().map(Wrong::of).collect();
        output::json_line(&Line { event: "unreadable", file: &self.file, problems })
    }
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    file: &'a str,
    problems: Vec<Wrong<'a>>,
}

#[derive(Serialize)]
struct Wrong<'a> {
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    path: &'a str,
    message: &'a str,
    nearest: Option<&'a str>,
}

impl<'a> Wrong<'a> {
    fn of(problem: &'a Problem) -> Self {
        Self {
            file: problem.file(),
            line: problem.line(),
            column: problem.column(),
            path: problem.path(),
            message: problem.message(),
            nearest: problem.nearest(),
        }
    }
}

/// How the command ends once all is printed: files that are `bad` hide behind no other result.
pub(crate) fn exit(printed: io::Result<()>, bad: usize, failed: usize) -> Exit {
    match printed {
        Err(_) => Exit::Failed,
        Ok(()) if bad > 0 => Exit::Config,
        Ok(()) if failed > 0 => Exit::Failed,
        Ok(()) => Exit::Ok,
    }
}
