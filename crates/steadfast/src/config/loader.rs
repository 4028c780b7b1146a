//! Files and the environment, merged into one valid configuration or into everything that is wrong with it (9.1-9.4).
//!
//! For `base_url` the environment wins, because an address depends on where the service runs; for every other key the
//! file wins, because those are the service's shape. An upstream stands in one file: of two that define it neither is
//! better, so that is refused.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Config;
use super::draft::{self, check_name, join};
use super::env::{self, Environment, Variable};
use super::file::{self, MOST_UPSTREAMS, Section, UPSTREAMS};
use super::keys::{self, KEYS};
use super::nearest::{fold, nearest};
use super::problem::{Origin, Place, Problem, Problems, Warning, quote};

/// The largest file that is read. A configuration is a few kilobytes; a wrong path may be anything.
const MOST_BYTES: u64 = 1 << 20;
/// What variables begin with unless the service says otherwise.
const PREFIX: &str = "STEADFAST_";

/// Reads a configuration from files, text, and the environment. Nothing is read or refused before
/// [`load`](Self::load).
///
/// ```
/// use steadfast::config::Loader;
///
/// let toml = r#"
///     [upstreams.billing]
///     base_url = "http://billing:8010"
///     read_timeout = "5s"
/// "#;
/// let config = Loader::new().text("app.toml", toml).load()?;
/// assert_eq!(config.upstream("billing").unwrap().settings().retries, 2);
/// # Ok::<(), steadfast::config::Problems>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Loader {
    sources: Vec<Source>,
    table: String,
    prefix: String,
    /// A value that is not UTF-8 is `None`.
    env: Vec<(String, Option<String>)>,
}

/// Without what was given to it: files and variables hold secrets.
impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").field("table", &self.table).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

#[derive(Clone)]
enum Source {
    File(PathBuf),
    Text { name: String, toml: String },
}

impl Default for Loader {
    fn default() -> Self {
        Self::new()
    }
}

impl Loader {
    /// A loader that reads nothing yet, not even the environment.
    pub fn new() -> Self {
        Self { sources: Vec::new(), table: String::new(), prefix: PREFIX.to_owned(), env: Vec::new() }
    }

    /// Also reads this file. An upstream may stand in one file only.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(Source::File(path.into()));
        self
    }

    /// Also reads this TOML text; `name` stands for the file in problems and origins.
    pub fn text(mut self, name: impl Into<String>, toml: impl Into<String>) -> Self {
        self.sources.push(Source::Text { name: name.into(), toml: toml.into() });
        self
    }

    /// The root table of every file, such as `plugin.http`. What lies outside it is not read. The top level, if empty or
    /// never said.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = table.into();
        self
    }

    /// What the names of variables begin with, instead of `STEADFAST_`.
    pub fn env_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Also reads these variables, as if they were in the environment.
    pub fn env<K: Into<String>, V: Into<String>>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Self {
        self.env.extend(variables.into_iter().map(|(name, value)| (name.into(), Some(value.into()))));
        self
    }

    /// Also reads the environment of this process, as it is now.
    pub fn process_env(mut self) -> Self {
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()));
        self.env.extend(std::env::vars_os().filter_map(text));
        self
    }

    /// Reads, merges, and checks everything. Each warning is logged once, here. Blocks while files are read.
    ///
    /// # Errors
    /// Every mistake in every file and variable at once; then nothing is in force.
    pub fn load(self) -> Result<Config, Problems> {
        let mut merge = Merge { root: self.table.clone(), ..Merge::default() };
        match root_of(&self.table) {
            Ok(root) => self.sources.iter().for_each(|source| merge.source(source, &root)),
            Err(message) => {
                merge.blind = true;
                merge.problems.push(Problem::new(Place::Everywhere, "", message));
            }
        }
        merge.environment(env::read(&self.prefix, &self.env, &table_path(&self.table)));
        let config = merge.finish(&self.prefix, &self.sources)?;
        config.warnings.iter().for_each(|warning| tracing::warn!(key = warning.path(), "{}", warning.message()));
        Ok(config)
    }
}

/// The names in a dotted table name.
pub(super) fn root_of(table: &str) -> Result<Vec<String>, String> {
    if table.is_empty() {
        return Ok(Vec::new());
    }
    let bare = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if table.split('.').all(bare) {
        return Ok(table.split('.').map(str::to_owned).collect());
    }
    Err(format!("expected the root table as names with dots, such as plugin.http; found {}", quote(table)))
}

impl Source {
    /// What problems call it.
    fn name(&self) -> Cow<'_, str> {
        match self {
            Self::File(path) => path.to_string_lossy(),
            Self::Text { name, .. } => Cow::Borrowed(name),
        }
    }

    fn read(&self) -> Result<Cow<'_, str>, String> {
        match self {
            Self::File(path) => read_file(path).map(Cow::Owned),
            Self::Text { toml, .. } => check_size(toml.len()).map(|()| Cow::Borrowed(toml.as_str())),
        }
    }
}

fn check_size(bytes: usize) -> Result<(), String> {
    if bytes as u64 > MOST_BYTES {
        Err(format!("larger than {MOST_BYTES} bytes: is it a configuration?"))
    } else {
        Ok(())
    }
}

/// A file's text.
fn read_file(path: &Path) -> Result<String, String> {
    let refuse = |error: std::io::Error| format!("cannot be read: {error}");
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(refuse)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(refuse)?;
    check_size(bytes.len())?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        format!("not UTF-8, from line {} on", valid.iter().filter(|byte| **byte == b'\n').count() + 1)
    })
}

/// What has been read so far.
#[derive(Default)]
struct Merge {
    root: String,
    sections: Vec<Section>,
    /// The index of each upstream by its folded name.
    by_name: HashMap<String, usize>,
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
    /// Of each file that defines no upstream, why.
    nothing: Vec<Problem>,
    /// Whether some file could not be read, so that what seems missing may stand there.
    blind: bool,
}

impl Merge {
    fn source(&mut self, source: &Source, root: &[String]) {
        let name = source.name();
        match source.read() {
            Ok(text) => {
                let contents = file::read(&name, &text, root);
                self.blind |= !contents.readable;
                self.problems.extend(contents.problems);
                self.nothing.extend(contents.nothing);
                contents.sections.into_iter().for_each(|section| self.section(section));
            }
            Err(message) => {
                self.blind = true;
                self.problems.push(Problem::new(Place::File(name.into_owned()), "", message));
            }
        }
    }

    fn path(&self, upstream: &str) -> String {
        join(&table_path(&self.root), upstream)
    }

    /// Adds a file's upstream, unless its name is taken (B14).
    fn section(&mut self, section: Section) {
        let Some(twin) = self.by_name.get(&fold(&section.name)).and_then(|index| self.sections.get(*index)) else {
            return self.add(section);
        };
        let message = if twin.name == section.name {
            format!("already defined at {}; an upstream stands in one file", twin.origin)
        } else {
            let why = "names are one if they differ only in case or in `-` and `_`";
            format!("already defined at {} as {}; {why}", twin.origin, quote(&twin.name))
        };
        self.problems.push(Problem::new(Place::At(section.origin), self.path(&section.name), message));
    }

    fn add(&mut self, section: Section) {
        self.by_name.insert(fold(&section.name), self.sections.len());
        self.sections.push(section);
    }

    fn environment(&mut self, environment: Environment) {
        self.problems.extend(environment.problems);
        self.warnings.extend(environment.warnings);
        for variable in environment.variables {
            if !self.by_name.contains_key(&variable.upstream) {
                let origin = Origin::Env { variable: variable.name.clone() };
                self.add(Section::new(variable.upstream.clone(), origin));
            }
            self.variable(variable);
        }
    }

    /// Adds one variable to its upstream.
    fn variable(&mut self, variable: Variable) {
        let Some(section) = self.by_name.get(&variable.upstream).and_then(|index| self.sections.get_mut(*index)) else {
            return;
        };
        let key = &KEYS[variable.key];
        let path = join(&join(&table_path(&self.root), &section.name), key.name);
        let origin = Origin::Env { variable: variable.name };
        let datum = match key.kind.read(&variable.value.anywhere()) {
            Ok(datum) => datum,
            Err(wrongs) => {
                section.draft.refuse(variable.key);
                return self.problems.extend(draft::problems(wrongs, &path, |_| origin.clone()));
            }
        };
        match section.draft.given(variable.key) {
            Some(given) if given.datum == datum => {}
            Some(given) => {
                let (env, file) = (datum.show(), given.datum.show());
                let message = if key.env_wins() {
                    format!("{origin} ({env}) wins over {} ({file})", given.origin)
                } else {
                    format!("{origin} ({env}) is ignored: {} ({file}) wins for this key", given.origin)
                };
                self.warnings.push(Warning { path, message });
                if key.env_wins() {
                    section.draft.set(variable.key, datum, origin);
                }
            }
            None if section.draft.is_refused(variable.key) => {}
            None => section.draft.set(variable.key, datum, origin),
        }
    }

    /// The configuration, or everything that is wrong. `prefix` and `files` are for the words and the order of problems.
    fn finish(mut self, prefix: &str, files: &[Source]) -> Result<Config, Problems> {
        self.check_names();
        let missing: Vec<Problem> =
            self.sections.iter().filter_map(|section| self.missing_address(section, prefix)).collect();
        self.problems.extend(missing);
        let mut upstreams = Vec::new();
        for section in std::mem::take(&mut self.sections) {
            let path = self.path(&section.name);
            if let Some((effective, warnings)) = section.draft.finish(&section.name, &path, &mut self.problems) {
                upstreams.push(effective);
                self.warnings.extend(warnings);
            }
        }
        if upstreams.is_empty() && self.problems.is_empty() {
            self.problems = self.no_upstreams(prefix);
        }
        if self.problems.is_empty() {
            let overlooked = |nothing: Problem| Warning { path: String::new(), message: nothing.to_string() };
            self.warnings.extend(self.nothing.into_iter().map(overlooked));
            return Ok(Config { upstreams, warnings: self.warnings });
        }
        let rank = |problem: &Problem| files.iter().position(|file| Some(file.name().as_ref()) == problem.file());
        self.problems.sort_by_cached_key(|problem| {
            let variable = problem.variable().map(str::to_owned);
            (rank(problem).unwrap_or(usize::MAX), problem.line(), problem.column(), variable)
        });
        Err(self.problems.into_iter().collect())
    }

    /// Why there is no upstream at all.
    fn no_upstreams(&mut self, prefix: &str) -> Vec<Problem> {
        if !self.nothing.is_empty() {
            return std::mem::take(&mut self.nothing);
        }
        let variable = format!("${prefix}UPSTREAMS__<NAME>__BASE_URL");
        let message = format!("no upstreams: no file was given, and no variable {variable} is set");
        vec![Problem::new(Place::Everywhere, "", message)]
    }

    /// The names that only the environment has, and how many there are in all.
    fn check_names(&mut self) {
        for section in &self.sections {
            if let (Origin::Env { .. }, Err(wrong)) = (&section.origin, check_name(&section.name)) {
                let path = join(&table_path(&self.root), &section.name);
                self.problems.extend(draft::problems(vec![wrong], &path, |_| section.origin.clone()));
            }
        }
        if self.sections.len() > MOST_UPSTREAMS {
            let message = format!("expected at most {MOST_UPSTREAMS} upstreams; found {}", self.sections.len());
            self.problems.push(Problem::new(Place::Everywhere, table_path(&self.root), message));
        }
    }

    /// The problem of an upstream without an address, unless it may stand where nothing could be read.
    fn missing_address(&self, section: &Section, prefix: &str) -> Option<Problem> {
        let index = keys::find("base_url")?;
        if self.blind || section.draft.given(index).is_some() || section.draft.is_refused(index) {
            return None;
        }
        let variable = format!("${prefix}UPSTREAMS__{}__BASE_URL", fold(&section.name).to_ascii_uppercase());
        let known = self.sections.iter().filter(|other| !matches!(other.origin, Origin::Env { .. }));
        let near = nearest(&section.name, known.map(|other| other.name.as_str()));
        let message = match (&section.origin, near) {
            (Origin::Env { .. }, Some(near)) => format!("no file defines this upstream; did you mean `{near}`?"),
            (Origin::Env { .. }, None) => format!("no file defines this upstream, and {variable} is not set"),
            _ => format!("missing; set it here or in {variable}"),
        };
        let (path, meant) = match section.origin {
            Origin::Env { .. } => (self.path(&section.name), near.map(str::to_owned)),
            _ => (join(&self.path(&section.name), "base_url"), None),
        };
        Some(Problem { nearest: meant, ..Problem::new(Place::At(section.origin.clone()), path, message) })
    }
}

/// The path of the table of upstreams.
fn table_path(root: &str) -> String {
    if root.is_empty() { UPSTREAMS.to_owned() } else { format!("{root}.{UPSTREAMS}") }
}
