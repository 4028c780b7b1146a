//! Where a configuration is read from: files, text, the environment, and what is set by hand (9.1, 9.4). Which of them
//! wins is decided in `merge`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::merge::Merge;
use super::problem::{Place, Problem, Problems, quote};
use super::{Config, env};

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
    settings: Vec<Setting>,
}

/// Without what was given to it: files and variables hold secrets.
impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").field("table", &self.table).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// A key that is set by hand.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) upstream: String,
    pub(super) key: String,
    pub(super) text: String,
}

#[derive(Clone)]
pub(super) enum Source {
    File(PathBuf),
    Text {
        name: String,
        toml: String,
    },
    /// What it says wins, and it may say other things.
    Overlay {
        name: String,
        toml: String,
        /// The names of the tables around `upstreams` and `guards`.
        below: Vec<String>,
    },
}

impl Default for Loader {
    fn default() -> Self {
        Self::new()
    }
}

impl Loader {
    /// A loader that reads nothing yet, not even the environment.
    pub fn new() -> Self {
        Self {
            sources: Vec::new(),
            table: String::new(),
            prefix: PREFIX.to_owned(),
            env: Vec::new(),
            settings: Vec::new(),
        }
    }

    /// Also reads this file. An upstream may stand in one file only.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(Source::File(path.into()));
        self
    }

    /// The files that are read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.sources.iter().filter_map(|source| match source {
            Source::File(path) => Some(path.as_path()),
            Source::Text { .. } | Source::Overlay { .. } => None,
        })
    }

    /// Also reads this TOML text; `name` stands for the file in problems and origins.
    pub fn text(mut self, name: impl Into<String>, toml: impl Into<String>) -> Self {
        self.sources.push(Source::Text { name: name.into(), toml: toml.into() });
        self
    }

    /// Also reads `[upstreams.<name>]` and `[guards.<name>]` of this TOML text, key by key over what stands before it, and
    /// over the environment: for a file that is about something else, and brings the settings that it needs. They stand at its
    /// top level, where anything may stand beside them.
    pub fn overlay(self, name: impl Into<String>, toml: impl Into<String>) -> Self {
        self.overlay_below(&[], name, toml)
    }

    /// The same of `upstreams` and `guards` that stand below these tables, from the top level down. Where there is no such
    /// table, nothing is laid over.
    pub fn overlay_below(mut self, tables: &[&str], name: impl Into<String>, toml: impl Into<String>) -> Self {
        let below = tables.iter().map(|table| (*table).to_owned()).collect();
        self.sources.push(Source::Overlay { name: name.into(), toml: toml.into(), below });
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

    /// Sets one key of one upstream over what files and the environment say of it: for what an operator types for this
    /// once. The text is read by the key's type, as that of a variable is; the empty text sets the default, or what
    /// the upstream's profile says instead. Of two for the same key the later counts.
    ///
    /// ```
    /// use steadfast::config::Loader;
    ///
    /// let toml = "[upstreams.billing]\nbase_url = \"http://billing:8010\"\nretries = 5";
    /// let config = Loader::new().text("app.toml", toml).set("billing", "retries", "0").load()?;
    /// assert_eq!(config.upstream("billing").unwrap().settings().retries, 0);
    /// # Ok::<(), steadfast::config::Problems>(())
    /// ```
    pub fn set(mut self, upstream: impl Into<String>, key: impl Into<String>, text: impl Into<String>) -> Self {
        self.settings.push(Setting { upstream: upstream.into(), key: key.into(), text: text.into() });
        self
    }

    /// Reads, merges, and checks everything. Each warning is logged once, here. Blocks while files are read.
    ///
    /// # Errors
    /// Every mistake in every file and variable at once; then nothing is in force.
    pub fn load(self) -> Result<Config, Problems> {
        let mut merge = match root_of(&self.table) {
            Ok(root) => {
                let mut merge = Merge::below(&self.table);
                self.sources.iter().for_each(|source| merge.source(source, &root));
                merge
            }
            Err(message) => Merge::unreadable(&self.table, Problem::new(Place::Everywhere, "", message)),
        };
        merge.environment(env::read(&self.prefix, &self.env, &self.table));
        merge.overlays(&self.sources);
        self.settings.iter().for_each(|setting| merge.setting(setting));
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
    pub(super) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::File(path) => path.to_string_lossy(),
            Self::Text { name, .. } | Self::Overlay { name, .. } => Cow::Borrowed(name),
        }
    }

    pub(super) fn read(&self) -> Result<Cow<'_, str>, String> {
        match self {
            Self::File(path) => read_file(path).map(Cow::Owned),
            Self::Text { toml, .. } | Self::Overlay { toml, .. } => {
                check_size(toml.len()).map(|()| Cow::Borrowed(toml.as_str()))
            }
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
pub fn read_file(path: &Path) -> Result<String, String> {
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
