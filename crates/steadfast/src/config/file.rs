//! One configuration file: from its root table down to the keys of each upstream and guard. Every mistake is noted and reading
//! goes on, so that all are reported at once.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{Document, Entry, entries, item};
use super::draft::{self, Draft, check_name, join};
use super::guard;
use super::keys::{self, KEYS};
use super::kind::Wrong;
use super::nearest::nearest;
use super::problem::{Origin, Place, Problem, Problems, part};

/// The most upstreams of one configuration, and the most guards.
pub(super) const MOST: usize = 1_000;
/// How deep an `[upstreams]` that stands elsewhere is looked for.
const DEPTH: usize = 4;

/// What a table is about. Each sort has a key of its own in the root table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Subject {
    #[default]
    Upstream,
    Guard,
}

impl Subject {
    pub(super) const ALL: [Self; 2] = [Self::Upstream, Self::Guard];

    /// The key of the root table.
    pub(super) const fn table(self) -> &'static str {
        match self {
            Self::Upstream => "upstreams",
            Self::Guard => "guards",
        }
    }

    /// The word for one.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Guard => "guard",
        }
    }

    /// Whether the key of this index in [`KEYS`] may stand in such a table.
    pub(super) fn takes(self, key: usize) -> bool {
        self == Self::Upstream || guard::takes(key)
    }

    /// The index in [`KEYS`] of the key `name` of such a table.
    pub(super) fn find(self, name: &str) -> Option<usize> {
        keys::find(name).filter(|key| self.takes(*key))
    }
}

/// One upstream's table, or one guard's.
pub(super) struct Section {
    pub(super) subject: Subject,
    pub(super) name: String,
    /// Where its name stands.
    pub(super) origin: Origin,
    pub(super) draft: Draft,
}

impl Section {
    pub(super) fn new(subject: Subject, name: String, origin: Origin) -> Self {
        Self { subject, name, origin, draft: Draft::new() }
    }
}

/// What may stand in the root table besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    Nothing,
    /// Something else, which others read.
    Anything,
}

/// What a file says.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) sections: Vec<Section>,
    pub(super) problems: Vec<Problem>,
    /// Whether its upstreams could be read at all.
    pub(super) readable: bool,
    /// Why it defines nothing, where that is not a mistake by itself: the environment may define them all.
    pub(super) nothing: Option<Problem>,
}

/// Reads the upstreams and guards below the table `root` (empty: the top level) of a file.
pub(super) fn read(file: &str, text: &str, root: &[String], beside: Beside) -> Contents {
    let document = Document::parse(file, text);
    let mut contents = Contents { problems: document.syntax_problems(), ..Contents::default() };
    if document.is_readable() {
        contents.readable = true;
        let path = root.iter().fold(String::new(), |path, name| join(&path, name));
        Reader { document: &document, contents: &mut contents, beside }.root(root, &path);
    }
    contents
}

/// Reads a text that is one upstream's table without its header: a profile.
pub(super) fn read_keys(file: &str, text: &str) -> (Draft, Vec<Problem>) {
    let document = Document::parse(file, text);
    let mut contents = Contents { problems: document.syntax_problems(), ..Contents::default() };
    let mut section = Section::new(Subject::Upstream, file.to_owned(), document.origin(0));
    if document.is_readable() {
        let mut reader = Reader { document: &document, contents: &mut contents, beside: Beside::Nothing };
        for (key, value) in entries(&document.root) {
            reader.key(key, value, "", &mut section);
        }
    }
    (section.draft, contents.problems)
}

struct Reader<'a, 't> {
    document: &'a Document<'t>,
    contents: &'a mut Contents,
    beside: Beside,
}

impl Reader<'_, '_> {
    fn wrong(&mut self, at: usize, path: &str, wrong: Wrong) {
        self.contents.problems.push(self.document.problem(at, path, wrong));
    }

    fn nothing(&mut self, message: String) {
        self.contents.nothing = Some(Problem::new(Place::File(self.document.file.to_owned()), "", message));
    }

    /// Goes down to the root table.
    fn root(&mut self, root: &[String], path: &str) {
        let mut table = &self.document.root;
        let mut above = String::new();
        for name in root {
            let here = join(&above, name);
            match table.get(name.as_str()) {
                Some(value) => match value.get_ref() {
                    DeValue::Table(next) => table = next,
                    _ => {
                        let found = item(value).value.describe(true);
                        return self.wrong(value.span().start, &here, Wrong::mismatch("a table", found));
                    }
                },
                None => {
                    let near = nearest(name, table.keys().map(|key| key.get_ref().as_ref()));
                    let hint = near.map(|near| format!("; did you mean [{}]?", join(&above, near))).unwrap_or_default();
                    return self.nothing(format!("no table [{path}] in this file{hint}"));
                }
            }
            above = here;
        }
        self.root_table(table, path);
    }

    fn root_table(&mut self, table: &DeTable<'_>, path: &str) {
        if path.is_empty()
            && self.beside == Beside::Nothing
            && !Subject::ALL.iter().any(|subject| table.contains_key(subject.table()))
            && let Some((place, at)) = upstreams_elsewhere(table, "", DEPTH)
        {
            let upstreams = Subject::Upstream.table();
            let message = format!("no [{upstreams}] at the top level; to read these, name their table: `{place}`");
            return self.wrong(at, &join(&place, upstreams), Wrong::says(message));
        }
        for (key, value) in entries(table) {
            match Subject::ALL.iter().find(|subject| key.get_ref() == subject.table()) {
                Some(subject) => self.tables(*subject, key, value, path),
                None if self.beside == Beside::Anything => {}
                None => self.unknown_at_root(key, path),
            }
        }
        if self.contents.sections.is_empty() && self.contents.problems.is_empty() {
            let table = join(path, Subject::Upstream.table());
            let what = if self.document.root.is_empty() { "the file is empty" } else { "no upstreams in this file" };
            self.nothing(format!("{what}: expected [{table}.<name>] with a base_url"));
        }
    }

    fn unknown_at_root(&mut self, key: &Spanned<Cow<'_, str>>, path: &str) {
        let name = key.get_ref().as_ref();
        let [upstreams, guards] = Subject::ALL.map(Subject::table);
        let near = nearest(name, [upstreams, guards].into_iter());
        let message = match near {
            Some(near) => format!("unknown key; did you mean `{near}`?"),
            None if keys::find(name).is_some() => misplaced(Subject::Upstream, name, path),
            None => format!("unknown key; only `{upstreams}` and `{guards}` are known here"),
        };
        let problem = self.document.problem(key.span().start, &join(path, name), Wrong::says(message));
        self.contents.problems.push(Problem { nearest: near.map(str::to_owned), ..problem });
    }

    fn tables(&mut self, subject: Subject, key: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>, path: &str) {
        let here = join(path, subject.table());
        let DeValue::Table(table) = value.get_ref() else {
            let found = item(value).value.describe(true);
            let expected = format!("a table of {}, [{here}.<name>]", subject.table());
            return self.wrong(key.span().start, &here, Wrong::mismatch(expected, found));
        };
        if table.len() > MOST {
            let wrong = Wrong::mismatch(format!("at most {MOST} {}", subject.table()), table.len().to_string());
            return self.wrong(key.span().start, &here, wrong);
        }
        for entry in entries(table) {
            self.table(subject, entry, &here, path);
        }
    }

    fn table(&mut self, subject: Subject, (key, value): Entry<'_, '_>, above: &str, root: &str) {
        let (name, at) = (key.get_ref().as_ref(), key.span().start);
        let path = join(above, name);
        let DeValue::Table(table) = value.get_ref() else {
            if subject.find(name).is_some() {
                let message = format!("unknown {}; {}", subject.word(), misplaced(subject, name, root));
                return self.wrong(at, &path, Wrong::says(message));
            }
            let found = item(value).value.describe(true);
            return self.wrong(at, &path, Wrong::mismatch(format!("a table, [{path}]"), found));
        };
        let mut section = Section::new(subject, name.to_owned(), self.document.origin(at));
        if let Err(wrong) = check_name(subject, name) {
            self.wrong(at, &path, wrong);
            // Of a table that is no upstream, nothing is missing.
            section.draft.refuse_all();
        }
        for (key, value) in entries(table) {
            self.key(key, value, &path, &mut section);
        }
        self.contents.sections.push(section);
    }

    fn key(&mut self, key: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>, above: &str, section: &mut Section) {
        let name = key.get_ref().as_ref();
        let path = join(above, name);
        let Some(index) = section.subject.find(name) else {
            let place = Place::At(self.document.origin(key.span().start));
            if self.contents.problems.len() >= Problems::MOST {
                // It will only be counted, and looking for the nearest name takes the most time of all.
                return self.contents.problems.push(Problem::new(place, path, ""));
            }
            let problem = unknown_key(section.subject, place, path, name);
            // What is only misspelt is not missing as well.
            if let Some(meant) = problem.nearest().and_then(keys::find) {
                section.draft.refuse(meant);
            }
            return self.contents.problems.push(problem);
        };
        let item = item(value);
        match KEYS[index].kind.read(&item) {
            Ok(datum) => section.draft.set(index, datum, self.document.origin(item.at)),
            Err(wrongs) => {
                section.draft.refuse(index);
                let origin = |at: Option<usize>| self.document.origin(at.unwrap_or(item.at));
                self.contents.problems.extend(draft::problems(wrongs, &path, origin));
            }
        }
    }
}

/// The problem of a key that no such table has, with the key that was probably meant.
pub(super) fn unknown_key(subject: Subject, place: Place, path: String, name: &str) -> Problem {
    if keys::find(name).is_some() {
        return Problem::new(place, path, "a key of upstreams only: a guard does not speak HTTP");
    }
    let known = KEYS.iter().enumerate().filter(|(key, _)| subject.takes(*key));
    let near = nearest(name, known.map(|(_, key)| key.name));
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Problem { nearest: near.map(str::to_owned), ..Problem::new(place, path, format!("unknown key{hint}")) }
}

fn misplaced(subject: Subject, name: &str, root: &str) -> String {
    let table = join(root, subject.table());
    let article = if subject == Subject::Upstream { "an" } else { "a" };
    format!("`{}` is a key of {article} {} and belongs in [{table}.<name>]", part(name), subject.word())
}

/// The first table below `table` that has a table `upstreams`, and where that stands.
fn upstreams_elsewhere(table: &DeTable<'_>, path: &str, depth: usize) -> Option<(String, usize)> {
    entries(table).into_iter().find_map(|(key, value)| {
        let DeValue::Table(below) = value.get_ref() else {
            return None;
        };
        let here = join(path, key.get_ref());
        match below.get_key_value(Subject::Upstream.table()) {
            Some((upstreams, value)) if value.get_ref().is_table() => Some((here, upstreams.span().start)),
            _ if depth > 1 => upstreams_elsewhere(below, &here, depth - 1),
            _ => None,
        }
    })
}
