//! The policies that are compared: the settings as they are, without protection, with blind retries, and the candidates of
//! the file. Each is a configuration of the shipped client, one for every upstream of the chain.

use steadfast::config::reading::entries;
use steadfast::config::{Loader, Settings};
use toml::de::DeValue;

use super::fields::{Fields, Named};
use super::model::Model;
use super::read::Reader;
use super::{BLIND, CONFIGURED, NONE};
use crate::outage::Policy;
use crate::table;

impl Reader<'_, '_> {
    /// Every policy, in the order `none`, `blind`, `configured`, and then the candidates.
    pub(super) fn policies(&mut self, text: &str, file: &Fields, models: &[Model]) -> Vec<Policy> {
        self.check_names(&[], models, file.has("config"));
        let Some(loader) = self.loader(text, file, models) else { return Vec::new() };
        let Some(configured) = self.settings(loader.clone(), models) else { return Vec::new() };
        let of = |policy: fn(&Settings) -> Policy| configured.iter().map(|each| policy(each).settings).collect();
        let mut policies: Vec<Policy> = [
            policy(NONE, of(Policy::none), false),
            policy(BLIND, of(|each| Policy::blind(each, each.retries.max(1))), false),
            policy(CONFIGURED, configured.clone(), true),
        ]
        .into_iter()
        .flatten()
        .collect();
        for Named { name, fields } in file.value::<Vec<Named>>("policies").unwrap_or_default() {
            if let Some(taken) = [NONE, BLIND, CONFIGURED].iter().find(|taken| **taken == name) {
                let message = format!("`{taken}` is there already: a candidate has another name");
                self.says(fields.at, &fields.path, message);
                continue;
            }
            let tables = ["policies", name.as_str()];
            self.check_names(&tables, models, false);
            let laid_over = loader.clone().overlay_below(&tables, self.document.file, text);
            if let Some(settings) = self.settings(laid_over, models) {
                policies.extend(policy(&name, settings, fields.value("breaker").unwrap_or(true)));
            }
        }
        policies
    }

    /// What reads the settings of the simulation's upstreams. The environment is not asked. `None`: there is no telling.
    fn loader(&mut self, text: &str, file: &Fields, models: &[Model]) -> Option<Loader> {
        let mut loader = Loader::new();
        match (file.has("config"), file.value::<String>("config"), file.place("table")) {
            (true, config, _) => {
                loader = table::loader(self.document.file, config?, file.value("table"));
            }
            (false, _, Some(at)) => self.says(at, "table", "only with `config`"),
            // Nobody sends anything there, so that no model is to be without an upstream.
            (false, _, None) => {
                let base = |model: &Model| format!("[upstreams.{0}]\nbase_url = \"http://{0}\"\n", model.name);
                loader = loader.overlay("defaults", models.iter().map(base).collect::<String>());
            }
        }
        Some(loader.overlay(self.document.file, text))
    }

    /// The settings of every model's upstream.
    fn settings(&mut self, loader: Loader, models: &[Model]) -> Option<Vec<Settings>> {
        let config = match loader.load() {
            Ok(config) => config,
            Err(problems) => {
                self.problems.extend(problems.iter().cloned());
                return None;
            }
        };
        let mut all = Vec::new();
        for model in models {
            match config.upstream(&model.name) {
                Some(upstream) => all.push(upstream.settings().clone()),
                None => {
                    let names: Vec<&str> = config.upstreams().map(|(name, _)| name).collect();
                    self.known(model.fields.at, &model.fields.path, &model.name, "no upstream of this name", &names);
                }
            }
        }
        (all.len() == models.len()).then_some(all)
    }

    /// An upstream that is set and has no model is misspelt.
    fn check_names(&mut self, tables: &[&str], models: &[Model], may_be_others: bool) {
        let mut table = Some(&self.document.root);
        for name in tables.iter().chain(["upstreams"].iter()) {
            table = table.and_then(|table| match table.get(*name)?.get_ref() {
                DeValue::Table(below) => Some(below),
                _ => None,
            });
        }
        let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        for (name, _) in table.filter(|_| !may_be_others).map(entries).unwrap_or_default() {
            let path = tables.iter().map(|table| format!("{table}.")).collect::<String>();
            let path = format!("{path}upstreams.{}", name.get_ref());
            self.known(name.span().start, &path, name.get_ref(), "no model of this name", &names);
        }
    }
}

/// `None`: there is no model, which has been said already.
fn policy(name: &str, settings: Vec<Settings>, breaker: bool) -> Option<Policy> {
    let mut policy = Policy::new(name, settings.first()?.clone());
    policy.breaker = breaker;
    if settings.len() == 1 {
        return Some(policy);
    }
    Some(policy.built_by(move |member| match settings.get(member.hop) {
        Some(settings) => member.builder_of(settings.clone()).build(),
        None => member.builder().build(),
    }))
}
