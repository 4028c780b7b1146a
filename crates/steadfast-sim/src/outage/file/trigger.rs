//! `[[trigger]]` and `[[phase]]`: what happens when, and the stretches of time with figures of their own.

use std::time::Duration;

use super::ALL;
use super::fields::Fields;
use super::keys::{MOST_PHASES, MOST_PULSES};
use super::model::Model;
use super::read::Reader;
use crate::outage::{Effect, FAST, Of, Phase, Pulse, Simulation, Trigger};

/// Which effects a key says something about.
const OF_EFFECTS: [(&str, &[&str]); 6] = [
    ("speed", &["slow"]),
    ("status", &["answer", "costly"]),
    ("after", &["answer", "refuse"]),
    ("retry_after", &["answer"]),
    ("graceful", &["restart"]),
    ("factor", &["load"]),
];

/// Effects that fall on requests one by one.
const OF_REQUESTS: [&str; 6] = ["down", "answer", "costly", "refuse", "unreachable", "hang"];

impl Reader<'_, '_> {
    pub(super) fn trigger(&mut self, fields: &Fields, models: &[Model]) -> Option<Trigger> {
        let word: String = fields.value("effect")?;
        for (key, effects) in OF_EFFECTS {
            if let Some(at) = fields.place(key).filter(|_| !effects.contains(&word.as_str())) {
                self.says(at, &fields.path_of(key), format!("a key of {}, not of {word}", effects.join(" and ")));
            }
        }
        let mut trigger = Trigger::new(self.effect(&word, fields)?, fields.value("at")?, fields.value("for")?);
        trigger.pulse = self.pulse(fields);
        trigger.stagger = fields.value("stagger").unwrap_or_default();
        trigger.of = self.share(&word, fields);
        if word == "load" {
            for key in ["upstream", "replica", "stagger"] {
                if let Some(at) = fields.place(key) {
                    self.says(at, &fields.path_of(key), "load falls on no upstream: it is the clients'");
                }
            }
            return Some(trigger);
        }
        if let Some(name) = fields.value::<String>("upstream") {
            let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
            let at = fields.place("upstream").unwrap_or(fields.at);
            self.known(at, &fields.path_of("upstream"), &name, "no model of this name", &names);
            trigger.hop = names.iter().position(|known| *known == name)?;
        }
        trigger.replica = fields.value::<u64>("replica").and_then(|replica| usize::try_from(replica).ok());
        let replicas = models.get(trigger.hop).map_or(1, |model| model.upstream.replicas);
        if trigger.replica.is_some_and(|replica| replica >= replicas) {
            let at = fields.place("replica").unwrap_or(fields.at);
            self.says(
                at,
                &fields.path_of("replica"),
                format!("expected a replica of the model, 0 to {}", replicas - 1),
            );
        }
        Some(trigger)
    }

    fn effect(&mut self, word: &str, fields: &Fields) -> Option<Effect> {
        let status = u16::try_from(fields.value::<u64>("status").unwrap_or(503)).unwrap_or(503);
        let after = fields.value("after").unwrap_or(FAST);
        Some(match word {
            "slow" => Effect::Slow { speed: self.needed(fields, "speed")? },
            "freeze" => Effect::FROZEN,
            "down" => Effect::DOWN,
            "answer" => Effect::Answer { status, after, retry_after: fields.value("retry_after") },
            "costly" => Effect::Costly { status },
            "refuse" => Effect::Refuse { after },
            "unreachable" => Effect::Unreachable,
            "hang" => Effect::Hang,
            "reset" => Effect::Reset,
            "restart" => Effect::Restart { graceful: fields.value("graceful").unwrap_or(true) },
            _ => Effect::Load { factor: self.needed(fields, "factor")? },
        })
    }

    /// The value of a key that this effect cannot do without.
    fn needed(&mut self, fields: &Fields, key: &str) -> Option<f64> {
        if !fields.has(key) && !fields.is_meant(key) {
            self.says(fields.at, &fields.path_of(key), "missing: this effect is nothing without it");
        }
        fields.value(key)
    }

    fn pulse(&mut self, fields: &Fields) -> Option<Pulse> {
        for (key, with) in [("every", "each"), ("each", "every")] {
            if let Some(at) = fields.place(key).filter(|_| !fields.has(with)) {
                self.says(at, &fields.path_of(key), format!("only with `{with}`"));
            }
        }
        let (every, lasts): (Duration, Duration) = (fields.value("every")?, fields.value("each")?);
        if lasts > every {
            self.says(fields.place("each")?, &fields.path_of("each"), "expected at most `every`");
        }
        let span: Duration = fields.value("for")?;
        if span.as_nanos() / every.as_nanos().max(1) > MOST_PULSES {
            let message = format!("expected it to come at most {MOST_PULSES} times within `for`");
            self.says(fields.place("every")?, &fields.path_of("every"), message);
            return None;
        }
        Some(Pulse { every, lasts })
    }

    fn share(&mut self, effect: &str, fields: &Fields) -> Of {
        let (attempts, calls) = (fields.value("share_of_attempts"), fields.value("share_of_calls"));
        let of_attempts = fields.place("share_of_attempts").map(|at| ("share_of_attempts", at));
        let of_calls = fields.place("share_of_calls").map(|at| ("share_of_calls", at));
        if let (Some(_), Some((key, at))) = (of_attempts, of_calls) {
            self.says(at, &fields.path_of(key), "either this or `share_of_attempts`");
        }
        if let Some((key, at)) = of_attempts.or(of_calls).filter(|_| !OF_REQUESTS.contains(&effect)) {
            self.says(at, &fields.path_of(key), format!("{effect} does not fall on single requests"));
        }
        attempts.map(Of::Attempts).or(calls.map(Of::Calls)).unwrap_or(Of::All)
    }

    /// The phases that are counted: those of the triggers, those of the file, and all.
    pub(super) fn phases(&mut self, tables: &[Fields], simulation: &Simulation) -> Vec<Phase> {
        let mut phases = simulation.phases_in_force();
        if !phases.iter().any(|phase| phase.name == ALL) {
            phases.push(Phase { name: ALL.to_owned(), from: simulation.warm_up, to: simulation.lasts });
        }
        for fields in tables {
            let (Some(name), Some(from), Some(to)) =
                (fields.value::<String>("name"), fields.value("from"), fields.value("to"))
            else {
                continue;
            };
            if phases.iter().any(|phase| phase.name == name) {
                let at = fields.place("name").unwrap_or(fields.at);
                self.says(at, &fields.path_of("name"), "a phase of this name is there already");
            } else if from >= to {
                let at = fields.place("to").unwrap_or(fields.at);
                self.says(at, &fields.path_of("to"), "expected it to be later than `from`");
            } else {
                phases.push(Phase { name, from, to });
            }
        }
        if let Some(fields) = tables.get(MOST_PHASES) {
            self.says(
                fields.at,
                &fields.path,
                format!("expected at most {MOST_PHASES} phases; found {}", tables.len()),
            );
            phases.truncate(MOST_PHASES);
        }
        // One that has no length, such as the time before a trigger at the start, has no calls.
        phases.retain(|phase| phase.from < phase.to);
        phases
    }
}
