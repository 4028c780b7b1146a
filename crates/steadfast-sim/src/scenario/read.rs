//! From a file to a [`Scenario`], or to everything that is wrong with it, each with its line, what was expected, and the
//! nearest known name. The words are those of a configuration's mistakes, and so is the care that nothing secret is quoted.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use steadfast::config::reading::{Document, entries, join};
use steadfast::config::{Config, Loader, Problem, Problems};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::Fields;
use super::keys::{ANSWER, FILE, REPLY, STEP};
use super::kind::Kind;
use super::model::{Act, Action, CallKind, Reply, Scenario, Script, Settings, Step};
use super::read_script::{answer, reply};
use super::read_step::Targets;
use crate::table::{self, A_NAME, KeyType as _, Source, in_order, is_name, read_text, refused, title};

impl Scenario {
    /// Reads a file: one scenario, or one for each of its variants.
    ///
    /// # Errors
    /// Everything that is wrong in it, and in the configuration that it names.
    pub fn read(file: &Path) -> Result<Vec<Self>, Problems> {
        read_text(file, Self::parse)
    }

    /// Reads the text of a file; `name` stands for it in problems, and a `config` that it names is looked for beside it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(name: &str, text: &str) -> Result<Vec<Self>, Problems> {
        let document = Document::parse(name, text);
        let mut problems = document.syntax_problems();
        let scenarios = if document.is_readable() { variants(&document, text, &mut problems) } else { Vec::new() };
        if problems.is_empty() { Ok(scenarios) } else { Err(in_order(problems, name)) }
    }
}

/// The most requests that a scenario may come to, and bytes of their bodies and answers: all of them are kept.
const MOST_REQUESTS: usize = 100_000;
const MOST_BYTES: usize = 256 << 20;

/// The most variants of a file.
const MOST_VARIANTS: usize = 1_000;

/// Every variant; what is wrong goes to `problems`.
fn variants(document: &Document<'_>, text: &str, problems: &mut Vec<Problem>) -> Vec<Scenario> {
    let Some(each) = document.root.get("each") else {
        let source = Source::new(document);
        return Reader { document: &source, problems }.file(text).into_iter().collect();
    };
    let items = match each.get_ref() {
        DeValue::Array(items) if (1..=MOST_VARIANTS).contains(&items.len()) => items,
        _ => {
            let expected = format!("{}, at most {MOST_VARIANTS}", Kind::Variants.expected());
            problems.push(refused(document, "each", each, &expected, false));
            return Vec::new();
        }
    };
    let used = RefCell::new(BTreeSet::new());
    let mut scenarios = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let DeValue::Table(variant) = item.get_ref() else {
            let path = format!("each[{index}]");
            problems.push(refused(document, &path, item, "a table", false));
            continue;
        };
        let source = Source::of_variant(document, variant, &used);
        scenarios.extend(Reader { document: &source, problems }.file(text));
        for (name, _) in entries(variant) {
            if !used.borrow().contains(name.get_ref().as_ref()) {
                let path = join(&format!("each[{index}]"), name.get_ref());
                let message = "no value of this file is \"{name}\" with this name in the braces";
                problems.push(document.says(name.span().start, &path, message));
            }
        }
    }
    scenarios
}

/// Reads one variant of a file. Mistakes are noted, and reading goes on.
pub(super) struct Reader<'a, 'd, 't> {
    pub(super) document: &'a Source<'d, 't>,
    pub(super) problems: &'a mut Vec<Problem>,
}

impl<'t> Reader<'_, '_, 't> {
    pub(super) fn says(&mut self, at: usize, path: &str, message: impl Into<String>) {
        self.problems.push(self.document.says(at, path, message));
    }

    fn file(&mut self, text: &str) -> Option<Scenario> {
        let document = self.document;
        let root = &document.root;
        let fields = Fields::read(self.document, &FILE, "", 0, root, self.problems);
        let settings = self.settings(&fields, text);
        let mut targets = Targets::of(settings.as_ref().map(Settings::config), root);
        targets.scripts = self.script_names(root);
        if let (Some(name), Some(at)) = (targets.name_of_both(), fields.place("guards")) {
            self.says(at, &join("guards", name), "an upstream has this name as well: steps could not tell them apart");
        }
        let mut steps = Vec::new();
        for (index, (at, table)) in self.tables(root.get("step"), "step").into_iter().enumerate() {
            let fields = Fields::read(self.document, &STEP, &format!("step[{index}]"), at, table, self.problems);
            steps.extend(self.step(&fields, &mut targets));
        }
        self.at_the_end(&mut targets);
        let scripts = self.scripts(root, &targets);
        if let Some(settings) = &settings {
            self.check_amount(root, settings, &scripts, &steps);
        }
        Some(Scenario {
            file: self.document.file.to_owned(),
            title: title(&fields.value::<String>("title")?),
            variant: document.words(),
            contract: fields.value("contract").unwrap_or_default(),
            why: fields.value("why")?,
            seed: fields.value("seed").unwrap_or(1),
            virtual_only: fields.value::<String>("virtual_only").map(|why| title(&why)),
            settings: settings?,
            scripts,
            steps,
        })
    }

    /// The upstreams and guards with their settings.
    fn settings(&mut self, fields: &Fields, text: &str) -> Option<Settings> {
        let mut loader = Loader::new();
        match (fields.value::<String>("config"), fields.place("table")) {
            (Some(config), _) => {
                loader = table::loader(self.document.file, config, fields.value("table"));
            }
            (None, Some(at)) => self.says(at, "table", "goes with `config`: it is a table of that file"),
            (None, None) if !fields.has("upstreams") && !fields.has("guards") && !fields.has("config") => {
                self.says(0, "upstreams", "missing: [upstreams.NAME], [guards.NAME], or the `config` that has them");
                return None;
            }
            (None, None) => {}
        }
        let loader = loader.overlay(self.document.file, text);
        match loader.clone().load() {
            Ok(config) => Some(Settings { loader, config }),
            Err(problems) => {
                self.problems.extend(problems.iter().cloned());
                None
            }
        }
    }

    /// A slip of the pen must not take the machine's memory.
    fn check_amount(
        &mut self,
        root: &DeTable<'t>,
        settings: &Settings,
        scripts: &BTreeMap<String, Script>,
        steps: &[Step],
    ) {
        let answer = |reply: &Reply| match &reply.act {
            Act::Respond(respond) => respond.body.len(),
            _ => 0,
        };
        let longest = |script: &Script| match script {
            Script::Replies(replies) => replies.iter().map(answer).max().unwrap_or_default(),
            Script::Answers(_) => 0,
        };
        let longest = scripts.values().map(longest).max().unwrap_or_default();
        let (mut requests, mut bytes) = (0_usize, 0_usize);
        for step in steps {
            let Action::Call(call) = &step.action else { continue };
            let own = match &call.kind {
                CallKind::Http(http) => http.body.as_ref().map_or(0, Vec::len),
                CallKind::Guard(_) => 0,
            };
            let upstream = settings.config().upstreams().find(|(name, _)| *name == call.target);
            let attempts = upstream.map_or(1, |(_, upstream)| upstream.settings().retries as usize + 1);
            let of_step = (call.times as usize).saturating_mul(attempts);
            requests = requests.saturating_add(of_step);
            bytes = bytes.saturating_add(of_step.saturating_mul(own.saturating_add(longest)));
        }
        let at = root.get("step").map_or(0, |steps| steps.span().start);
        if requests > MOST_REQUESTS {
            let message =
                format!("its calls may come to {requests} requests, retries included; at most {MOST_REQUESTS}");
            self.says(at, "step", message);
        }
        if bytes > MOST_BYTES {
            let message =
                format!("bodies and answers may come to {bytes} bytes, retries included; at most {MOST_BYTES}");
            self.says(at, "step", message);
        }
    }

    /// A list of tables, each with where it begins.
    fn tables<'v>(&mut self, value: Option<&'v Spanned<DeValue<'t>>>, path: &str) -> Vec<(usize, &'v DeTable<'t>)> {
        let Some(value) = value else { return Vec::new() };
        let DeValue::Array(items) = value.get_ref() else {
            let expected = if path == "step" { Kind::Steps } else { Kind::Scripts }.expected();
            self.problems.push(refused(self.document, path, value, &expected, false));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match item.get_ref() {
                DeValue::Table(table) => tables.push((item.span().start, table)),
                _ => {
                    let here = format!("{path}[{index}]");
                    self.problems.push(refused(self.document, &here, item, "a table", false));
                }
            }
        }
        if items.is_empty() {
            self.says(value.span().start, path, "expected at least one");
        }
        tables
    }

    /// The names of all scripts, and where they stand.
    fn script_names(&mut self, root: &DeTable<'t>) -> BTreeMap<String, usize> {
        let Some(value) = root.get("script") else { return BTreeMap::new() };
        let DeValue::Table(scripts) = value.get_ref() else {
            let expected = Kind::Scripts.expected();
            self.problems.push(refused(self.document, "script", value, &expected, false));
            return BTreeMap::new();
        };
        for (name, _) in entries(scripts) {
            if !is_name(name.get_ref()) {
                let path = join("script", name.get_ref());
                self.says(name.span().start, &path, format!("expected {A_NAME}"));
            }
        }
        entries(scripts).into_iter().map(|(name, _)| (name.get_ref().to_string(), name.span().start)).collect()
    }

    /// Every script, as that of an upstream or of a guard: by its own name, or by who plays it.
    fn scripts(&mut self, root: &DeTable<'t>, targets: &Targets) -> BTreeMap<String, Script> {
        let mut scripts = BTreeMap::new();
        let Some(DeValue::Table(tables)) = root.get("script").map(Spanned::get_ref) else { return scripts };
        for (name, value) in entries(tables) {
            let name = name.get_ref().to_string();
            let path = join("script", &name);
            let tables = self.tables(Some(value), &path);
            let Some(is_guard) = targets.player(&name) else { continue };
            let table = if is_guard { &ANSWER } else { &REPLY };
            let (mut replies, mut answers) = (Vec::new(), Vec::new());
            for (index, (at, entries)) in tables.into_iter().enumerate() {
                let path = format!("{path}[{index}]");
                let fields = Fields::read(self.document, table, &path, at, entries, self.problems);
                if is_guard {
                    answers.extend(answer(self, &fields));
                } else {
                    replies.extend(reply(self, &fields));
                }
            }
            let script = if is_guard { Script::Answers(answers) } else { Script::Replies(replies) };
            scripts.insert(name, script);
        }
        scripts
    }

    /// What only the whole list of steps shows.
    fn at_the_end(&mut self, targets: &mut Targets) {
        for (name, at) in std::mem::take(&mut targets.begun) {
            let message = format!("no step awaits these calls: add a step with await = \"{}\"", name);
            self.says(at, "step.as", message);
        }
        // What a step calls has something behind it.
        for (name, at) in std::mem::take(&mut targets.called) {
            if targets.is_known(&name) && !targets.scripts.contains_key(&name) && !targets.is_played(&name) {
                self.says(at, "step.call", format!("nothing says what {name} does: add [[script.{name}]]"));
            }
        }
        for (name, at) in targets.unused_scripts() {
            let known: Vec<&str> = targets.names().collect();
            let what = "no upstream or guard has this name, and no step plays it";
            let problem = self.document.unknown(at, &join("script", &name), &name, what, known.into_iter());
            self.problems.push(problem);
        }
    }

    /// The line of the byte `at`.
    pub(super) fn line(&self, at: usize) -> usize {
        self.document.says(at, "", "").line().unwrap_or_default()
    }
}

/// The names of the upstreams and guards, and what is known of them while the steps are read.
impl Targets {
    fn of(config: Option<&Config>, root: &DeTable<'_>) -> Self {
        let mut targets = Self::default();
        match config {
            Some(config) => {
                targets.upstreams = config.upstreams().map(|(name, _)| name.to_owned()).collect();
                targets.guards = config.guards().map(|(name, _)| name.to_owned()).collect();
            }
            // It has a mistake: what this file says of names is known all the same.
            None => {
                let names = |table: &str| match root.get(table).map(Spanned::get_ref) {
                    Some(DeValue::Table(table)) => table.keys().map(|name| name.get_ref().to_string()).collect(),
                    _ => Vec::new(),
                };
                (targets.upstreams, targets.guards) = (names("upstreams"), names("guards"));
                targets.is_partial = root.contains_key("config");
            }
        }
        targets
    }
}
