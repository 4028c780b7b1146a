//! `steadfast check`: every problem of a configuration, or what it comes to and where each value came from.
//!
//! It reads the file and this process's environment as a service would. Secrets are masked by the library.

use serde::Serialize;
use steadfast::config::{Config, Effective, Entry, GuardSettings, Origin, Problem, Problems};

use crate::args::{CheckArgs, Format};
use crate::exit::Exit;
use crate::settings::Unusable;
use crate::{output, settings};

/// Checks, prints, and says how it went.
pub(crate) fn run(args: &CheckArgs) -> Exit {
    let result = settings::from_file(Some(&args.file), args.table.as_deref(), &args.env_prefix).load();
    let json = args.output == Format::Json;
    let (exit, printed) = match &result {
        Ok(config) => {
            settings::warn(config);
            match settings::clients(config) {
                Ok(_) if json => (Exit::Ok, output::json_line(&Document::of(config))),
                Ok(_) => (Exit::Ok, text(config)),
                Err(unusable) if json => (Exit::Config, output::json_line(&Document::of_unusable(config, &unusable))),
                Err(unusable) => {
                    unusable.report(&[]);
                    (Exit::Config, Ok(()))
                }
            }
        }
        Err(problems) if json => (Exit::Config, output::json_line(&Document::of_problems(problems))),
        Err(problems) => {
            settings::report(problems);
            let n = problems.len();
            output::note(&format!("{n} problem{}", if n == 1 { "" } else { "s" }));
            (Exit::Config, Ok(()))
        }
    };
    match printed {
        Ok(()) => exit,
        Err(_) => Exit::Failed,
    }
}

fn text(config: &Config) -> std::io::Result<()> {
    let mut text = String::new();
    for (name, upstream) in config.upstreams() {
        text.push_str(&format!("upstream {name}\n{}\n\n", table(upstream.entries())));
    }
    for (name, guard) in config.guards() {
        text.push_str(&format!("guard {name}, all else as the code says\n{}\n\n", table(guard.entries())));
    }
    output::text(&text)
}

fn table(entries: impl Iterator<Item = Entry>) -> impl std::fmt::Display {
    let mut table = output::table(["key", "value", "from"]);
    table.add_rows(entries.map(|entry| [entry.key.to_owned(), entry.value, entry.origin.to_string()]));
    table
}

/// The whole result as one JSON object.
#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    problems: Vec<Fault<'a>>,
    warnings: Vec<Note<'a>>,
    upstreams: Vec<Upstream<'a>>,
    /// What is said of each guard; all else is as the code says.
    guards: Vec<Upstream<'a>>,
}

#[derive(Serialize)]
struct Fault<'a> {
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    variable: Option<&'a str>,
    path: &'a str,
    message: &'a str,
    nearest: Option<&'a str>,
}

#[derive(Serialize)]
struct Note<'a> {
    path: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Upstream<'a> {
    name: &'a str,
    settings: Vec<Setting>,
}

#[derive(Serialize)]
struct Setting {
    key: &'static str,
    value: String,
    origin: Source,
}

/// Where a value came from; `from` says which of the others is there.
#[derive(Default, Serialize)]
struct Source {
    from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'static str>,
}

impl<'a> Document<'a> {
    fn of(config: &'a Config) -> Self {
        let note = |warning: &'a steadfast::config::Warning| Note { path: warning.path(), message: warning.message() };
        let upstream = |(name, effective): (&'a str, &'a Effective)| Upstream {
            name,
            settings: effective.entries().map(Setting::from).collect(),
        };
        let guard = |(name, guard): (&'a str, &'a GuardSettings)| Upstream {
            name,
            settings: guard.entries().map(Setting::from).collect(),
        };
        Self {
            ok: true,
            problems: Vec::new(),
            warnings: config.warnings().iter().map(note).collect(),
            upstreams: config.upstreams().map(upstream).collect(),
            guards: config.guards().map(guard).collect(),
        }
    }

    fn of_problems(problems: &'a Problems) -> Self {
        let fault = |problem: &'a Problem| Fault {
            file: problem.file(),
            line: problem.line(),
            column: problem.column(),
            variable: problem.variable(),
            path: problem.path(),
            message: problem.message(),
            nearest: problem.nearest(),
        };
        Self {
            ok: false,
            problems: problems.iter().map(fault).collect(),
            warnings: Vec::new(),
            upstreams: Vec::new(),
            guards: Vec::new(),
        }
    }
}

impl<'a> Document<'a> {
    fn of_unusable(config: &'a Config, unusable: &'a Unusable) -> Self {
        let (file, line, column, variable) = match &unusable.origin {
            Some(Origin::File { file, line, column }) => (Some(file.as_str()), Some(*line), Some(*column), None),
            Some(Origin::Env { variable }) => (None, None, None, Some(variable.as_str())),
            _ => (None, None, None, None),
        };
        let (path, message) = (unusable.path.as_str(), unusable.message.as_str());
        let problem = Fault { file, line, column, variable, path, message, nearest: None };
        Self { ok: false, problems: vec![problem], upstreams: Vec::new(), guards: Vec::new(), ..Self::of(config) }
    }
}

impl From<Entry> for Setting {
    fn from(entry: Entry) -> Self {
        Self { key: entry.key, value: entry.value, origin: entry.origin.into() }
    }
}

impl From<Origin> for Source {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::File { file, line, column } => {
                Self { from: "file", file: Some(file), line: Some(line), column: Some(column), ..Self::default() }
            }
            Origin::Env { variable } => Self { from: "env", variable: Some(variable), ..Self::default() },
            Origin::Profile(profile) => Self { from: "profile", profile: Some(profile.name()), ..Self::default() },
            Origin::Builder => Self { from: "builder", ..Self::default() },
            Origin::Override => Self { from: "override", ..Self::default() },
            _ => Self { from: "default", ..Self::default() },
        }
    }
}
