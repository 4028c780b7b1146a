//! What one step says: its one action, the keys that go with it, and what is expected of it.

use std::collections::BTreeMap;

use super::fields::Fields;
use super::model::{Action, Call, CallKind, Expect, GuardCall, HttpCall, SeenExpect, Step};
use super::read::Reader;
use super::read_script::only_one;

/// The keys that say what a step does.
const ACTIONS: [&str; 9] = ["call", "await", "advance", "play", "force_open", "force_close", "reset", "close", "look"];
/// Those that only a call of an upstream has.
const HTTP: [&str; 8] =
    ["method", "path", "headers", "body", "idempotency_key", "retry", "stream", "timeout_is_evidence"];
/// Those that only a call of a guard has.
const GUARD: [&str; 3] = ["classify", "rate_limit_key", "fallback"];
/// Those that every call may have.
const CALL: [&str; 6] = ["times", "concurrent", "as", "cancel_after", "timeout", "inbound"];
/// What is expected of calls that have ended.
const OF_ENDED: [&str; 11] = [
    "result",
    "results",
    "attempts",
    "outcomes",
    "waits",
    "ended",
    "retry_after",
    "took",
    "message",
    "body",
    "degraded",
];

/// The names that steps may use.
#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) upstreams: Vec<String>,
    pub(super) guards: Vec<String>,
    /// Whether there may be others: the configuration that has them could not be read.
    pub(super) is_partial: bool,
    /// Each script, and where it stands.
    pub(super) scripts: BTreeMap<String, usize>,
    /// Who plays which script in a step: script, and target.
    played: Vec<(String, String)>,
    /// The calls that go on, and where that was said.
    pub(super) begun: BTreeMap<String, usize>,
    /// Whom steps call, and where the first of them stands.
    pub(super) called: BTreeMap<String, usize>,
    /// Whose calls they are.
    callers: BTreeMap<String, String>,
}

impl Targets {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.upstreams.iter().chain(&self.guards).map(String::as_str)
    }

    /// A name that an upstream and a guard have.
    pub(super) fn name_of_both(&self) -> Option<&str> {
        self.guards.iter().find(|name| self.upstreams.contains(name)).map(String::as_str)
    }

    pub(super) fn is_known(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    fn is_guard(&self, name: &str) -> bool {
        self.guards.iter().any(|known| known == name)
    }

    /// Whether a step gives this target a script.
    pub(super) fn is_played(&self, target: &str) -> bool {
        self.played.iter().any(|(_, player)| player == target)
    }

    /// Whether this script is a guard's; `None`: nobody plays it.
    pub(super) fn player(&self, script: &str) -> Option<bool> {
        if self.is_known(script) {
            return Some(self.is_guard(script));
        }
        let (_, target) = self.played.iter().find(|(played, _)| played == script)?;
        Some(self.is_guard(target))
    }

    pub(super) fn unused_scripts(&self) -> Vec<(String, usize)> {
        let unused = self.scripts.iter().filter(|(name, _)| !self.is_partial && self.player(name).is_none());
        unused.map(|(name, at)| (name.clone(), *at)).collect()
    }
}

impl Reader<'_, '_, '_> {
    pub(super) fn step(&mut self, fields: &Fields, targets: &mut Targets) -> Option<Step> {
        let action = only_one(self, fields, &ACTIONS);
        let expect = fields.value::<Fields>("expect");
        let action = self.action(fields, action?, targets)?;
        let expect = match expect {
            Some(expect) => self.expect(&expect, &action, targets),
            None => Expect::default(),
        };
        Some(Step { line: self.line(fields.at), action, expect })
    }

    fn action(&mut self, fields: &Fields, action: &'static str, targets: &mut Targets) -> Option<Action> {
        if action != "call" {
            let of_calls = |name: &str| HTTP.contains(&name) || GUARD.contains(&name) || CALL.contains(&name);
            self.goes_with(fields, of_calls, "`call`");
        }
        if action != "play" {
            self.goes_with(fields, |name| name == "script", "`play`");
        }
        match action {
            "advance" => return Some(Action::Advance(fields.value("advance")?)),
            "await" => return self.wait(fields, targets),
            _ => {}
        }
        let target = self.target(fields, action, targets)?;
        Some(match action {
            "call" => Action::Call(Box::new(self.call(fields, target, targets)?)),
            "play" => self.play(fields, target, targets)?,
            "force_open" => Action::ForceOpen(target),
            "force_close" => Action::ForceClose(target),
            "reset" => Action::Reset(target),
            "close" => Action::Close(target),
            _ => Action::Look(target),
        })
    }

    /// Refuses the keys that `is_other` says yes to.
    fn goes_with(&mut self, fields: &Fields, is_other: impl Fn(&str) -> bool, what: &str) {
        for (name, at) in fields.names().filter(|(name, _)| is_other(name)) {
            self.says(at, &fields.path_of(name), format!("goes with {what}"));
        }
    }

    /// The upstream or guard that the action is about.
    fn target(&mut self, fields: &Fields, action: &str, targets: &Targets) -> Option<String> {
        let name: String = fields.value(action)?;
        if !targets.is_known(&name) && !targets.is_partial {
            let at = fields.place(action).unwrap_or(fields.at);
            let what = "there is no upstream and no guard of this name";
            let problem = self.document.unknown(at, &fields.path_of(action), &name, what, targets.names());
            self.problems.push(problem);
            return None;
        }
        Some(name)
    }

    fn wait(&mut self, fields: &Fields, targets: &mut Targets) -> Option<Action> {
        let name: String = fields.value("await")?;
        if targets.begun.remove(&name).is_none() {
            let at = fields.place("await").unwrap_or(fields.at);
            let what = "no calls before this step go on `as` this";
            let known = targets.begun.keys().map(String::as_str);
            self.problems.push(self.document.unknown(at, &fields.path_of("await"), &name, what, known));
            return None;
        }
        Some(Action::Await(name))
    }

    fn play(&mut self, fields: &Fields, target: String, targets: &mut Targets) -> Option<Action> {
        let Some(script) = fields.value::<String>("script") else {
            if !fields.has("script") {
                self.says(fields.at, &fields.path_of("script"), "missing: the script that is played");
            }
            return None;
        };
        if !targets.scripts.contains_key(&script) {
            let at = fields.place("script").unwrap_or(fields.at);
            let known = targets.scripts.keys().map(String::as_str);
            let path = fields.path_of("script");
            self.problems.push(self.document.unknown(at, &path, &script, "there is no script of this name", known));
            return None;
        }
        if targets.player(&script).is_some_and(|is_guard| is_guard != targets.is_guard(&target)) {
            let at = fields.place("script").unwrap_or(fields.at);
            self.says(at, &fields.path_of("script"), "one script cannot be an upstream's and a guard's");
            return None;
        }
        targets.played.push((script.clone(), target.clone()));
        Some(Action::Play { target, script })
    }

    fn call(&mut self, fields: &Fields, target: String, targets: &mut Targets) -> Option<Call> {
        let is_guard = targets.is_guard(&target);
        if is_guard {
            self.goes_with(fields, |name| HTTP.contains(&name), "the call of an upstream, and this is a guard");
        } else if targets.is_known(&target) {
            self.goes_with(fields, |name| GUARD.contains(&name), "the call of a guard, and this is an upstream");
        }
        targets.called.entry(target.clone()).or_insert(fields.place("call").unwrap_or(fields.at));
        let name: Option<String> = fields.value("as");
        if let Some(name) = &name {
            let at = fields.place("as").unwrap_or(fields.at);
            targets.callers.insert(name.clone(), target.clone());
            if targets.begun.insert(name.clone(), at).is_some() {
                self.says(at, &fields.path_of("as"), "calls of this name go on already, and were not awaited");
            }
        }
        let number = |name: &str| fields.value::<u64>(name).and_then(|number| u32::try_from(number).ok());
        let concurrent = number("concurrent").unwrap_or(1);
        let inbound: Option<Fields> = fields.value("inbound");
        let kind = if is_guard { CallKind::Guard(guard_call(fields)) } else { CallKind::Http(http_call(fields)) };
        Some(Call {
            target,
            name,
            times: number("times").unwrap_or(concurrent),
            concurrent,
            cancel_after: fields.value("cancel_after"),
            timeout: fields.value("timeout"),
            time_left: inbound.as_ref().and_then(|inbound| inbound.value("time_left")),
            inbound: inbound.and_then(|inbound| inbound.value("headers")).unwrap_or_default(),
            kind,
        })
    }

    fn expect(&mut self, fields: &Fields, action: &Action, targets: &Targets) -> Expect {
        let target = match action {
            Action::Advance(_) => {
                let message = "an `advance` is about no upstream: expect it of a step that looks, `look`";
                self.says(fields.at, &fields.path, message);
                return Expect::default();
            }
            Action::Await(name) => targets.callers.get(name).cloned().unwrap_or_default(),
            Action::Call(call) => call.target.clone(),
            Action::Play { target, .. } => target.clone(),
            Action::ForceOpen(target)
            | Action::ForceClose(target)
            | Action::Reset(target)
            | Action::Close(target)
            | Action::Look(target) => target.clone(),
        };
        let waits = matches!(action, Action::Await(_)) || matches!(action, Action::Call(call) if call.name.is_none());
        if !waits {
            let what = "calls that have ended: expect it where they are awaited";
            self.goes_with(fields, |name| OF_ENDED.contains(&name), what);
        }
        if targets.is_guard(&target) {
            self.goes_with(fields, |name| name == "seen", "upstreams: a guard sends no requests");
        }
        if let (true, Some(at)) = (fields.has("result"), fields.place("results")) {
            self.says(at, &fields.path_of("results"), "expected only one of `result`, `results`");
        }
        expectation(fields)
    }
}

fn http_call(fields: &Fields) -> HttpCall {
    HttpCall {
        method: fields.value("method").unwrap_or_default(),
        path: fields.value("path").unwrap_or_else(|| "/".to_owned()),
        headers: fields.value("headers").unwrap_or_default(),
        body: fields.value::<String>("body").map(String::into_bytes),
        idempotency_key: fields.value("idempotency_key"),
        retry: fields.value("retry"),
        stream: fields.has("stream"),
        timeout_is_evidence: fields.value("timeout_is_evidence").unwrap_or(true),
    }
}

fn guard_call(fields: &Fields) -> GuardCall {
    GuardCall {
        classify: fields.value("classify").unwrap_or(true),
        rate_limit_key: fields.value("rate_limit_key").unwrap_or_default(),
        fallback: fields.value("fallback"),
    }
}

fn expectation(fields: &Fields) -> Expect {
    Expect {
        result: fields.value("result"),
        results: fields.value("results").unwrap_or_default(),
        requests: fields.value("requests"),
        attempts: fields.value("attempts"),
        outcomes: fields.value("outcomes"),
        waits: fields.value("waits"),
        ended: fields.value("ended"),
        retry_after: fields.value("retry_after"),
        took: fields.value("took"),
        message: fields.value("message"),
        body: fields.value("body"),
        degraded: fields.value("degraded"),
        breaker: fields.value("breaker"),
        in_flight: fields.value("in_flight"),
        ready: fields.value("ready"),
        ready_detail: fields.value("ready_detail"),
        seen: fields.value::<Fields>("seen").map(|seen| SeenExpect {
            method: seen.value("method"),
            path: seen.value("path"),
            body: seen.value("body"),
            headers: seen.value("headers").unwrap_or_default(),
            no_headers: seen.value("no_headers").unwrap_or_default(),
        }),
    }
}
