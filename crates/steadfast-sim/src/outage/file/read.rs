//! From a file to a [`SimulationFile`], or to everything that is wrong with it, each with its line, what was expected, and
//! the nearest known name.

use std::path::Path;
use std::time::Duration;

use steadfast::config::reading::{Document, nearest};
use steadfast::config::{Problem, Problems};

use super::fields::{Fields, Named};
use super::keys::FILE;
use super::model::Model;
use super::{CONFIGURED, Expectation, SimulationFile};
use crate::outage::{Policy, Simulation};
use crate::table::{Source, in_order, read_text, title};

impl SimulationFile {
    /// Reads a file, and the configuration that it names.
    ///
    /// # Errors
    /// Everything that is wrong in them.
    pub fn read(file: &Path) -> Result<Self, Problems> {
        read_text(file, Self::parse)
    }

    /// Reads the text of a file; `name` stands for it in problems, and a `config` that it names is looked for beside it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(name: &str, text: &str) -> Result<Self, Problems> {
        let document = Document::parse(name, text);
        let mut reader = Reader { document: &document, problems: document.syntax_problems() };
        let file = if document.is_readable() { reader.file(text) } else { None };
        file.filter(|_| reader.problems.is_empty()).ok_or_else(|| in_order(reader.problems, name))
    }
}

/// Notes every mistake, and goes on.
pub(super) struct Reader<'a, 't> {
    pub(super) document: &'a Document<'t>,
    pub(super) problems: Vec<Problem>,
}

impl Reader<'_, '_> {
    fn file(&mut self, text: &str) -> Option<SimulationFile> {
        let source = Source::new(self.document);
        let file = Fields::read(&source, &FILE, "", 0, &source.root, &mut self.problems);
        let load: Fields = file.value("workload").unwrap_or_else(|| Fields::empty("workload"));
        let calls = load.value("calls").zip(load.place("calls"));
        let models = self.models(file.value("model").unwrap_or_default(), calls, load.at);
        let length: Duration = file.value("length").unwrap_or_default();
        let workload = if file.has("workload") { self.workload(&load) } else { None };
        let tables: Vec<Fields> = file.value("trigger").unwrap_or_default();
        let triggers: Vec<_> = tables.iter().filter_map(|fields| self.trigger(fields, &models)).collect();
        let policies = if models.is_empty() { Vec::new() } else { self.policies(text, &file, &models) };
        let policies = self.compared(&file, policies);
        let (clients, workload) = workload?;
        let mut simulation = Simulation::new(models.first()?.upstream.clone(), clients, workload, length);
        simulation.upstreams = models.iter().map(|model| model.upstream.clone()).collect();
        simulation.triggers = triggers;
        simulation.holds_worker = file.value("holds_worker").unwrap_or_default();
        simulation.warm_up = file.value("warm_up").unwrap_or_default();
        simulation.interval = file.value("interval").unwrap_or(simulation.interval);
        simulation.in_time = file.value("in_time").unwrap_or(simulation.in_time);
        simulation.phases = self.phases(&file.value::<Vec<Fields>>("phase").unwrap_or_default(), &simulation);
        let expectations = self.expectations(&file, &simulation, &models, &policies);
        self.check_amount(&load, &simulation, policies.len());
        self.check(&simulation, &file, &models, &tables, &load);
        Some(SimulationFile {
            file: self.document.file.to_owned(),
            title: title(&file.value::<String>("title")?),
            why: file.value("why").unwrap_or_default(),
            seed: file.value("seed").unwrap_or(1),
            models: models.into_iter().map(|model| model.name).collect(),
            simulation,
            policies,
            expectations,
        })
    }

    /// Those of the policies that are to be run, in the order in which they are named.
    fn compared(&mut self, file: &Fields, all: Vec<Policy>) -> Vec<Policy> {
        let Some(named) = file.value::<Vec<(String, usize)>>("compare") else { return all };
        if named.is_empty() {
            self.says(file.place("compare").unwrap_or_default(), "compare", "expected at least one policy");
        }
        let candidates = file.value::<Vec<Named>>("policies").unwrap_or_default();
        let mut names = vec![super::NONE, super::BLIND, CONFIGURED];
        names.extend(candidates.iter().map(|candidate| candidate.name.as_str()));
        let mut compared: Vec<Policy> = Vec::new();
        for (index, (name, at)) in named.iter().enumerate() {
            self.known(*at, &format!("compare[{index}]"), name, "no policy of this name", &names);
            if compared.iter().any(|policy| policy.name == *name) {
                self.says(*at, &format!("compare[{index}]"), "named already");
            } else {
                compared.extend(all.iter().find(|policy| policy.name == *name).cloned());
            }
        }
        compared
    }

    fn expectations(
        &mut self,
        file: &Fields,
        simulation: &Simulation,
        models: &[Model],
        policies: &[Policy],
    ) -> Vec<Expectation> {
        let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
        let phases: Vec<&str> = simulation.phases.iter().map(|phase| phase.name.as_str()).collect();
        let mut all = Vec::new();
        for fields in file.value::<Vec<Fields>>("expect").unwrap_or_default() {
            let name = |key: &str, unless_said: &str| {
                (fields.value(key).unwrap_or_else(|| unless_said.to_owned()), fields.place(key).unwrap_or(fields.at))
            };
            let ((policy, policy_at), (phase, phase_at)) = (name("policy", CONFIGURED), name("phase", super::ALL));
            // Without any policy their settings are wrong, which has been said.
            if !names.is_empty() {
                self.known(policy_at, &fields.path_of("policy"), &policy, "no policy of this name is run", &names);
            }
            self.known(phase_at, &fields.path_of("phase"), &phase, "no phase of this name", &phases);
            let hop = fields.value::<String>("upstream").map_or(0, |name| {
                let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
                let at = fields.place("upstream").unwrap_or(fields.at);
                self.known(at, &fields.path_of("upstream"), &name, "no model of this name", &names);
                names.iter().position(|known| *known == name).unwrap_or(0)
            });
            let found = Expectation::read(&fields, &policy, &phase, hop, |at| self.document.origin(at));
            if found.is_empty() && self.problems.is_empty() {
                self.says(
                    fields.at,
                    &fields.path,
                    "expected a figure with its bounds: without one nothing is expected",
                );
            }
            for (key, message) in Expectation::conflicts(&fields, simulation) {
                self.says(fields.place(key).unwrap_or(fields.at), &fields.path_of(key), message);
            }
            all.extend(found);
        }
        all
    }

    /// What the engine itself has to say, at the table that it is about. It repeats what has been said, so that it is asked
    /// last.
    fn check(&mut self, simulation: &Simulation, file: &Fields, models: &[Model], triggers: &[Fields], load: &Fields) {
        if !self.problems.is_empty() {
            return;
        }
        let Err(invalid) = simulation.check() else { return };
        for problem in invalid.problems {
            let index = |prefix: &str| -> Option<usize> {
                problem.at.strip_prefix(prefix)?.strip_prefix('[')?.split(']').next()?.parse().ok()
            };
            let model = index("upstreams").and_then(|hop| models.get(hop)).map(|model| &model.fields);
            let table = model.or_else(|| triggers.get(index("triggers")?)).unwrap_or(file);
            let table = if problem.at.starts_with("workload") { load } else { table };
            let what = problem.at.rsplit('.').next().unwrap_or_default();
            let key = if what == "lasts" { "length" } else { what };
            let message = format!("{key}: expected {}; found {}", problem.expected, problem.found);
            self.says(file.place(key).unwrap_or(table.at), &table.path, message);
        }
    }

    pub(super) fn says(&mut self, at: usize, path: &str, message: impl Into<String>) {
        self.problems.push(self.document.says(at, path, message));
    }

    /// Notes that a name is none of these, with the nearest; or else which there are.
    pub(super) fn known(&mut self, at: usize, path: &str, name: &str, what: &str, names: &[&str]) {
        if names.contains(&name) {
            return;
        }
        let problem = match nearest(name, names.iter().copied()) {
            Some(_) => self.document.unknown(at, path, name, what, names.iter().copied()),
            None => self.document.says(at, path, format!("{what}: there is {}", names.join(", "))),
        };
        self.problems.push(problem);
    }

    /// The one of these keys that is there.
    pub(super) fn one_of<'k>(&mut self, fields: &Fields, keys: &[&'k str]) -> Option<&'k str> {
        let mut there: Vec<&str> = keys.iter().filter(|key| fields.has(key)).copied().collect();
        there.sort_by_key(|key| fields.place(key));
        match there[..] {
            [one] => Some(one),
            [] if keys.iter().any(|key| fields.is_meant(key)) => None,
            [] => {
                self.says(fields.at, &fields.path, format!("expected one of {}", keys.join(", ")));
                None
            }
            [first, second, ..] => {
                let at = fields.place(second).unwrap_or(fields.at);
                self.says(at, &fields.path_of(second), format!("either this or `{first}`"));
                None
            }
        }
    }
}
