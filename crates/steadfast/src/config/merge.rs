//! What files, the environment, and the command line say, merged into one configuration or into everything that is wrong
//! with it (9.3, 9.4). Which source wins is decided here.
//!
//! For `base_url` the environment wins over a file, because an address depends on where the service runs; for every
//! other key the file wins, because those are the service's shape. What is set by hand wins over both. An upstream stands
//! in one file: of two that define it neither is better, so that is refused.

use std::collections::HashMap;

use super::Config;
use super::draft::{self, check_name, join};
use super::env::{Environment, Variable, value_of};
use super::file::{self, Beside, MOST, Section, Subject, unknown_key};
use super::keys::{self, KEYS};
use super::loader::{Setting, Source};
use super::nearest::{fold, nearest};
use super::problem::{Origin, Place, Problem, Problems, Warning, quote};

/// What has been read so far.
#[derive(Default)]
pub(super) struct Merge {
    root: String,
    sections: Vec<Section>,
    /// The index of each upstream and guard by its folded name.
    by_name: HashMap<(Subject, String), usize>,
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
    /// Of each file that defines nothing, why.
    nothing: Vec<Problem>,
    /// Whether some file could not be read, so that what seems missing may stand there.
    blind: bool,
}

impl Merge {
    pub(super) fn source(&mut self, source: &Source, root: &[String]) {
        if matches!(source, Source::Overlay { .. }) {
            return;
        }
        let Some(contents) = self.contents(source, root, Beside::Nothing) else { return };
        self.nothing.extend(contents.nothing);
        contents.sections.into_iter().for_each(|section| self.section(section));
    }

    /// What is laid over all that was said so far.
    pub(super) fn overlays(&mut self, sources: &[Source]) {
        for source in sources {
            let Source::Overlay { below, .. } = source else { continue };
            let Some(contents) = self.contents(source, below, Beside::Anything) else { continue };
            for section in contents.sections {
                match self.index(section.subject, &section.name).and_then(|index| self.sections.get_mut(index)) {
                    Some(below) => below.draft.lay_over(section.draft),
                    None => self.add(section),
                }
            }
        }
    }

    /// What a source says; the problems in it are noted.
    fn contents(&mut self, source: &Source, root: &[String], beside: Beside) -> Option<file::Contents> {
        let name = source.name();
        match source.read() {
            Ok(text) => {
                let mut contents = file::read(&name, &text, root, beside);
                self.blind |= !contents.readable;
                self.problems.append(&mut contents.problems);
                Some(contents)
            }
            Err(message) => {
                self.blind = true;
                self.problems.push(Problem::new(Place::File(name.into_owned()), "", message));
                None
            }
        }
    }

    /// Notes that the sources could not even be looked at.
    pub(super) fn unreadable(root: &str, problem: Problem) -> Self {
        Self { problems: vec![problem], blind: true, ..Self::below(root) }
    }

    /// Nothing yet, below the root table `root`.
    pub(super) fn below(root: &str) -> Self {
        Self { root: root.to_owned(), ..Self::default() }
    }

    fn path(&self, subject: Subject, name: &str) -> String {
        join(&table_path(&self.root, subject), name)
    }

    fn index(&self, subject: Subject, name: &str) -> Option<usize> {
        self.by_name.get(&(subject, fold(name))).copied()
    }

    /// Adds what a file defines, unless its name is taken (B14).
    fn section(&mut self, section: Section) {
        let subject = section.subject;
        let Some(twin) = self.index(subject, &section.name).and_then(|index| self.sections.get(index)) else {
            return self.add(section);
        };
        let message = if twin.name == section.name {
            let what = if subject == Subject::Upstream { "an upstream" } else { "a guard" };
            format!("already defined at {}; {what} stands in one file", twin.origin)
        } else {
            let why = "names are one if they differ only in case or in `-` and `_`";
            format!("already defined at {} as {}; {why}", twin.origin, quote(&twin.name))
        };
        self.problems.push(Problem::new(Place::At(section.origin), self.path(subject, &section.name), message));
    }

    fn add(&mut self, section: Section) {
        self.by_name.insert((section.subject, fold(&section.name)), self.sections.len());
        self.sections.push(section);
    }

    pub(super) fn environment(&mut self, environment: Environment) {
        self.problems.extend(environment.problems);
        self.warnings.extend(environment.warnings);
        for variable in environment.variables {
            if self.index(variable.subject, &variable.of).is_none() {
                let origin = Origin::Env { variable: variable.name.clone() };
                self.add(Section::new(variable.subject, variable.of.clone(), origin));
            }
            self.variable(variable);
        }
    }

    /// Adds one variable to its upstream or guard.
    fn variable(&mut self, variable: Variable) {
        let index = self.index(variable.subject, &variable.of);
        let Some(section) = index.and_then(|index| self.sections.get_mut(index)) else {
            return;
        };
        let key = &KEYS[variable.key];
        let path = join(&join(&table_path(&self.root, variable.subject), &section.name), key.name);
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

    /// Sets one key of one upstream over all else; the empty text takes away what was set.
    pub(super) fn setting(&mut self, setting: &Setting) {
        let Setting { upstream, key: name, text } = setting;
        let place = || Place::At(Origin::Override);
        let subject = Subject::Upstream;
        let known = self.index(subject, upstream).and_then(|index| self.sections.get(index));
        let path = join(&self.path(subject, known.map_or(upstream, |section| &section.name)), name);
        let Some(index) = subject.find(name) else {
            return self.problems.push(unknown_key(subject, place(), path, name));
        };
        if known.is_none() {
            self.add(Section::new(subject, upstream.clone(), Origin::Override));
        }
        let Some(section) = self.index(subject, upstream).and_then(|index| self.sections.get_mut(index)) else {
            return;
        };
        if text.is_empty() {
            return section.draft.unset(index);
        }
        let kind = &KEYS[index].kind;
        match value_of(kind, text).map_err(|wrong| vec![wrong]).and_then(|value| kind.read(&value.anywhere())) {
            Ok(datum) => section.draft.set(index, datum, Origin::Override),
            Err(wrongs) => {
                section.draft.refuse(index);
                self.problems.extend(draft::problems(wrongs, &path, |_| Origin::Override));
            }
        }
    }

    /// The configuration, or everything that is wrong. `prefix` and `files` are for the words and the order of problems.
    pub(super) fn finish(mut self, prefix: &str, files: &[Source]) -> Result<Config, Problems> {
        self.check_names();
        let missing: Vec<Problem> =
            self.sections.iter().filter_map(|section| self.missing_address(section, prefix)).collect();
        self.problems.extend(missing);
        self.warn_of_guards();
        let (mut upstreams, mut guards) = (Vec::new(), Vec::new());
        for Section { subject, name, draft, .. } in std::mem::take(&mut self.sections) {
            let path = self.path(subject, &name);
            match subject {
                Subject::Upstream => {
                    if let Some((effective, warnings)) = draft.finish(&name, &path, &mut self.problems) {
                        upstreams.push(effective);
                        self.warnings.extend(warnings);
                    }
                }
                Subject::Guard => guards.extend(draft.finish_guard(&name, &path, &mut self.problems)),
            }
        }
        if upstreams.is_empty() && guards.is_empty() && self.problems.is_empty() {
            self.problems = self.no_upstreams(prefix);
        }
        if self.problems.is_empty() {
            let overlooked = |nothing: Problem| Warning { path: String::new(), message: nothing.to_string() };
            self.warnings.extend(self.nothing.into_iter().map(overlooked));
            return Ok(Config { upstreams, guards, warnings: self.warnings });
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
            // Those of the files were checked where they stand.
            if let (false, Err(wrong)) = (is_of_a_file(section), check_name(section.subject, &section.name)) {
                let path = self.path(section.subject, &section.name);
                self.problems.extend(draft::problems(vec![wrong], &path, |_| section.origin.clone()));
            }
        }
        for subject in Subject::ALL {
            let number = self.sections.iter().filter(|section| section.subject == subject).count();
            if number > MOST {
                let message = format!("expected at most {MOST} {}; found {number}", subject.table());
                self.problems.push(Problem::new(Place::Everywhere, table_path(&self.root, subject), message));
            }
        }
    }

    /// A guard needs no key, so that nothing is missing of one whose name is misspelt in a variable.
    fn warn_of_guards(&mut self) {
        let guards = || self.sections.iter().filter(|section| section.subject == Subject::Guard);
        let known: Vec<&str> = guards().filter(|guard| is_of_a_file(guard)).map(|guard| guard.name.as_str()).collect();
        let warnings = guards().filter(|guard| !is_of_a_file(guard)).filter_map(|guard| {
            let near = nearest(&guard.name, known.iter().copied())?;
            let message = format!("{}: no file defines this guard; did you mean `{near}`?", guard.origin);
            Some(Warning { path: self.path(Subject::Guard, &guard.name), message })
        });
        let warnings: Vec<Warning> = warnings.collect();
        self.warnings.extend(warnings);
    }

    /// The problem of an upstream without an address, unless it may stand where nothing could be read.
    fn missing_address(&self, section: &Section, prefix: &str) -> Option<Problem> {
        let index = keys::find("base_url").filter(|_| section.subject == Subject::Upstream)?;
        if self.blind || section.draft.given(index).is_some() || section.draft.is_refused(index) {
            return None;
        }
        let variable = format!("${prefix}UPSTREAMS__{}__BASE_URL", fold(&section.name).to_ascii_uppercase());
        let known = self.sections.iter().filter(|other| other.subject == section.subject && is_of_a_file(other));
        let near = nearest(&section.name, known.map(|other| other.name.as_str()));
        let (path, meant, message) = match (is_of_a_file(section), near) {
            (true, _) => {
                let path = join(&self.path(section.subject, &section.name), "base_url");
                (path, None, format!("missing; set it here or in {variable}"))
            }
            (false, Some(near)) => {
                let message = format!("no file defines this upstream; did you mean `{near}`?");
                (self.path(section.subject, &section.name), Some(near.to_owned()), message)
            }
            (false, None) => {
                let message = format!("no file defines this upstream, and {variable} is not set");
                (self.path(section.subject, &section.name), None, message)
            }
        };
        Some(Problem { nearest: meant, ..Problem::new(Place::At(section.origin.clone()), path, message) })
    }
}

/// Whether a file defines it.
fn is_of_a_file(section: &Section) -> bool {
    matches!(section.origin, Origin::File { .. })
}

/// The path of the table of upstreams, or of guards.
pub(super) fn table_path(root: &str, subject: Subject) -> String {
    let table = subject.table();
    if root.is_empty() { table.to_owned() } else { format!("{root}.{table}") }
}
