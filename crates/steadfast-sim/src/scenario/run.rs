//! Plays a scenario on a stage, step by step, and compares what is seen with what is expected. The same for every stage.

use std::collections::BTreeMap;
use std::time::Duration;

use super::calls;
use super::cast::Cast;
use super::check::{Observed, differences};
use super::model::{Action, Call, CallKind, Scenario, Step};
use super::stage::{CallEnd, Slack, Stage, StageError, Ticket, Work};
use super::timeline::{Moment, show};

/// What came of a scenario.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The file.
    pub file: String,
    /// Its title.
    pub title: String,
    /// Which variant of the file it was; empty if there is but one.
    pub variant: String,
    /// What was not as expected; none: it passed.
    pub differences: Vec<Difference>,
    /// What happened.
    pub moments: Vec<Moment>,
    /// How much happened that is not among them: they are bounded in number.
    pub moments_left_out: usize,
    /// How long it took by its own clock.
    pub took: Duration,
}

impl Outcome {
    /// Whether all was as expected.
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Something that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The step, from 0.
    pub step: usize,
    /// The line that it begins in.
    pub line: usize,
    /// What the step does, in words.
    pub action: String,
    /// Which key of `expect`, and of which call if there are several.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What was seen.
    pub seen: String,
}

/// Plays the scenario on this stage, which is fresh.
pub fn play(scenario: &Scenario, stage: &mut dyn Stage) -> Outcome {
    let slack = stage.slack();
    let mut run =
        Run { scenario, stage, slack, begun: BTreeMap::new(), read: BTreeMap::new(), differences: Vec::new() };
    for (index, step) in scenario.steps.iter().enumerate() {
        if let Err(error) = run.step(index, step) {
            run.differs(index, step, "step", "it ends", &error.0);
            break;
        }
    }
    run.end()
}

struct Run<'a> {
    scenario: &'a Scenario,
    stage: &'a mut dyn Stage,
    slack: Slack,
    /// The calls that go on while further steps are played.
    begun: BTreeMap<String, (Ticket, String)>,
    /// How many requests each target had read when the step before ended.
    read: BTreeMap<String, usize>,
    differences: Vec<Difference>,
}

impl Run<'_> {
    fn step(&mut self, index: usize, step: &Step) -> Result<(), StageError> {
        let cast = self.stage.cast();
        cast.line.enter(index);
        cast.line.note(cast.now(), "", words(&step.action));
        let (target, ends) = self.act(&step.action)?;
        let cast = self.stage.cast();
        if let Some(target) = &target {
            let before = self.read.get(target).copied().unwrap_or_default();
            let observed = observe(cast, target, before, ends);
            let action = words(&step.action);
            let found = differences(&step.expect, &observed, self.slack);
            self.differences.extend(found.into_iter().map(|(what, expected, seen)| Difference {
                step: index,
                line: step.line,
                action: action.clone(),
                what,
                expected,
                seen,
            }));
        }
        let names: Vec<String> = cast.upstreams.keys().chain(cast.guards.keys()).cloned().collect();
        self.read = names.into_iter().map(|name| (name.clone(), cast.requests(&name))).collect();
        Ok(())
    }

    /// Does it. Whom it was about, and how the calls ended that were waited for.
    fn act(&mut self, action: &Action) -> Result<(Option<String>, Option<Vec<CallEnd>>), StageError> {
        match action {
            Action::Call(call) => {
                let work = calls::work(self.stage.cast(), call);
                let work = work.ok_or_else(|| StageError(format!("there is no {}", call.target)))?;
                let ticket = self.stage.begin(work);
                match &call.name {
                    None => Ok((Some(call.target.clone()), Some(self.stage.finish(ticket)?))),
                    Some(name) => {
                        self.begun.insert(name.clone(), (ticket, call.target.clone()));
                        Ok((Some(call.target.clone()), None))
                    }
                }
            }
            Action::Await(name) => {
                let begun = self.begun.remove(name);
                let (ticket, target) = begun.ok_or_else(|| StageError(format!("no call is named {name}")))?;
                Ok((Some(target), Some(self.stage.finish(ticket)?)))
            }
            Action::Advance(by) => {
                self.stage.pass(*by);
                Ok((None, None))
            }
            Action::Play { target, script } => {
                if let Some(script) = self.scenario.scripts.get(script) {
                    self.stage.cast().play(target, script);
                }
                Ok((Some(target.clone()), None))
            }
            Action::ForceOpen(target) => self.operate(target, |client| client.force_open(), |guard| guard.force_open()),
            Action::ForceClose(target) => {
                self.operate(target, |client| client.force_close(), |guard| guard.force_close())
            }
            Action::Reset(target) => {
                self.operate(target, |client| client.reset_breaker(), |guard| guard.reset_breaker())
            }
            Action::Close(target) => {
                let ticket = closing(self.stage.cast(), target).map(|work| self.stage.begin(work));
                if let Some(ticket) = ticket {
                    self.stage.finish(ticket)?;
                }
                Ok((Some(target.clone()), None))
            }
            Action::Look(target) => Ok((Some(target.clone()), None)),
        }
    }

    fn operate(
        &self,
        target: &str,
        client: impl FnOnce(&steadfast::ServiceClient),
        guard: impl FnOnce(&steadfast::Guard),
    ) -> Result<(Option<String>, Option<Vec<CallEnd>>), StageError> {
        let cast = self.stage.cast();
        match (cast.guards.get(target), cast.client(target)) {
            (Some(guarded), _) => guard(&guarded.guard),
            (None, Some(ours)) => client(&ours),
            (None, None) => return Err(StageError(format!("there is no {target}"))),
        }
        Ok((Some(target.to_owned()), None))
    }

    fn differs(&mut self, index: usize, step: &Step, what: &str, expected: &str, seen: &str) {
        self.differences.push(Difference {
            step: index,
            line: step.line,
            action: words(&step.action),
            what: what.to_owned(),
            expected: expected.to_owned(),
            seen: seen.to_owned(),
        });
    }

    fn end(mut self) -> Outcome {
        let steps = &self.scenario.steps;
        // A step that never ended holds what it holds.
        if let Some(last) = steps.last().filter(|_| !self.differences.iter().any(|one| one.what == "step")) {
            let held: Vec<String> = self.stage.cast().held().into_iter().chain(self.stage.held()).collect();
            if !held.is_empty() {
                self.differs(steps.len() - 1, last, "at the end", "nothing is held any more", &held.join("; "));
            }
        }
        let cast = self.stage.cast();
        Outcome {
            file: self.scenario.file.clone(),
            title: self.scenario.title.clone(),
            variant: self.scenario.variant.clone(),
            differences: self.differences,
            moments: cast.line.moments(),
            moments_left_out: cast.line.left_out(),
            took: cast.now().since(steadfast::policy::Time::ZERO),
        }
    }
}

fn closing(cast: &Cast, target: &str) -> Option<Work> {
    match cast.guards.get(target) {
        Some(guarded) => {
            let guard = guarded.guard.clone();
            Some(Box::pin(async move {
                guard.close().await;
                Vec::new()
            }))
        }
        None => {
            let client = cast.client(target)?;
            Some(Box::pin(async move {
                client.close().await;
                Vec::new()
            }))
        }
    }
}

fn observe(cast: &Cast, target: &str, before: usize, ends: Option<Vec<CallEnd>>) -> Observed {
    let snapshot = cast.snapshot(target);
    Observed {
        ends,
        requests: cast.requests(target).saturating_sub(before) as u64,
        seen: cast.upstreams.get(target).map(|upstream| upstream.seen_from(before)).unwrap_or_default(),
        breaker: snapshot.as_ref().map_or("", |snapshot| snapshot.breaker.state.name()),
        in_flight: snapshot.map_or(0, |snapshot| u64::from(snapshot.line.in_use)),
        ready: cast.ready(),
        is_guard: cast.guards.contains_key(target),
    }
}

/// What a step does, in words.
pub(super) fn words(action: &Action) -> String {
    match action {
        Action::Call(call) => call_words(call),
        Action::Await(name) => format!("await {name}"),
        Action::Advance(by) => format!("advance {}", show(*by)),
        Action::Play { target, script } => format!("play {target}: {script}"),
        Action::ForceOpen(target) => format!("force_open {target}"),
        Action::ForceClose(target) => format!("force_close {target}"),
        Action::Reset(target) => format!("reset {target}"),
        Action::Close(target) => format!("close {target}"),
        Action::Look(target) => format!("look {target}"),
    }
}

fn call_words(call: &Call) -> String {
    let mut words = format!("call {}", call.target);
    if let CallKind::Http(http) = &call.kind {
        words.push_str(&format!(": {} {}", http.method, super::words::path(&http.path)));
    }
    if call.times > 1 {
        words.push_str(&format!(", {} times", call.times));
    }
    if call.concurrent > 1 {
        words.push_str(&format!(", {} at once", call.concurrent));
    }
    if let Some(name) = &call.name {
        words.push_str(&format!(", as {name}"));
    }
    words
}
