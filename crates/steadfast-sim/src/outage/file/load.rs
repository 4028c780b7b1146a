//! `[workload]`: who calls, and how often.

use std::time::Duration;

use super::fields::Fields;
use super::keys::{MOST_CALLERS, MOST_CALLS, MOST_KEPT, MOST_VISITS};
use super::read::Reader;
use crate::outage::{Effect, Simulation, Workload};

/// Which key goes with which way.
const WITH: [(&str, &str); 2] = [("even", "rate"), ("think", "callers")];

impl Reader<'_, '_> {
    /// How many clients there are, and the load they make.
    pub(super) fn workload(&mut self, fields: &Fields) -> Option<(usize, Workload)> {
        let way = self.one_of(fields, &["rate", "callers", "arrivals"])?;
        for (key, with) in WITH {
            if let Some(at) = fields.place(key).filter(|_| way != with) {
                self.says(at, &fields.path_of(key), format!("only with `{with}`"));
            }
        }
        let clients = usize::try_from(fields.value::<u64>("clients").unwrap_or(1)).ok()?;
        let workload = match way {
            "rate" => {
                let per_second: f64 = fields.value("rate")?;
                match fields.value("even") {
                    Some(true) => Workload::Even { per_second },
                    _ => Workload::Open { per_second },
                }
            }
            "callers" => {
                if !fields.has("think") {
                    self.says(fields.at, &fields.path_of("think"), "missing beside `callers`");
                }
                Workload::Closed {
                    callers: usize::try_from(fields.value::<u64>("callers")?).ok()?,
                    think: fields.value("think")?,
                }
            }
            _ => {
                let at: Vec<Duration> = fields.value("arrivals")?;
                if !at.is_sorted() {
                    self.says(fields.place("arrivals")?, &fields.path_of("arrivals"), "expected instants in order");
                }
                Workload::Recorded { at }
            }
        };
        Some((clients, workload))
    }

    /// A slip of the pen must not take the machine's memory, or its time for days.
    pub(super) fn check_amount(&mut self, fields: &Fields, simulation: &Simulation, policies: usize) {
        let (key, per_second) = match simulation.workload {
            Workload::Open { per_second } | Workload::Even { per_second } => ("rate", per_second),
            Workload::Closed { callers, think } => {
                let callers = simulation.clients as f64 * callers as f64;
                if callers > MOST_CALLERS {
                    let message = format!("expected at most {MOST_CALLERS} in all: clients times callers");
                    self.says(fields.place("callers").unwrap_or(fields.at), &fields.path_of("callers"), message);
                }
                ("think", callers / think.as_secs_f64())
            }
            Workload::Recorded { .. } => return self.check_kept(fields, simulation, policies),
        };
        let (mut factor, mut more) = (1.0, Duration::ZERO);
        for trigger in &simulation.triggers {
            if let Effect::Load { factor: times } = trigger.effect {
                (factor, more) = (factor * times.max(1.0), more.saturating_add(trigger.lasts));
            }
        }
        let length = simulation.lasts;
        let calls = per_second * (length.as_secs_f64() + (factor - 1.0) * more.min(length).as_secs_f64());
        self.check_kept(fields, simulation, policies);
        if calls > MOST_CALLS {
            let message = format!("expected at most {MOST_CALLS} calls in all; this may come to {calls:.0}");
            self.says(fields.place(key).unwrap_or(fields.at), &fields.path_of(key), message);
        }
    }

    /// The same of what is remembered: figures of each interval, and when which trigger comes to which replica.
    fn check_kept(&mut self, fields: &Fields, simulation: &Simulation, policies: usize) {
        let intervals = simulation.lasts.as_nanos().div_ceil(simulation.interval.as_nanos().max(1));
        let kept = intervals * simulation.upstreams.len() as u128 * policies.max(1) as u128;
        if kept > MOST_KEPT {
            let message =
                format!("too many: `length` by `interval`, models and policies come to {kept}, at most {MOST_KEPT}");
            self.says(fields.at, "interval", message);
        }
        let visits = simulation.triggers.iter().map(|trigger| {
            let times =
                trigger.pulse.map_or(1, |pulse| trigger.lasts.as_nanos().div_ceil(pulse.every.as_nanos().max(1)));
            let replicas = simulation.upstreams.get(trigger.hop).map_or(1, |upstream| upstream.replicas);
            times.max(1) * if trigger.replica.is_some() { 1 } else { replicas as u128 }
        });
        let visits: u128 = visits.sum();
        if visits > MOST_VISITS {
            let message = format!(
                "too many: times and replicas that all triggers befall come to {visits}, at most {MOST_VISITS}"
            );
            self.says(fields.at, "trigger", message);
        }
    }
}
