//! `[workload]`: who calls, and how often.

use std::time::Duration;

use super::fields::Fields;
use super::keys::{MOST_CALLERS, MOST_CALLS};
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
    pub(super) fn check_amount(&mut self, fields: &Fields, simulation: &Simulation) {
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
            Workload::Recorded { .. } => return,
        };
        let (mut factor, mut more) = (1.0, Duration::ZERO);
        for trigger in &simulation.triggers {
            if let Effect::Load { factor: times } = trigger.effect {
                (factor, more) = (factor * times.max(1.0), more.saturating_add(trigger.lasts));
            }
        }
        let length = simulation.lasts;
        let calls = per_second * (length.as_secs_f64() + (factor - 1.0) * more.min(length).as_secs_f64());
        if calls > MOST_CALLS {
            let message = format!("expected at most {MOST_CALLS} calls in all; this may come to {calls:.0}");
            self.says(fields.place(key).unwrap_or(fields.at), &fields.path_of(key), message);
        }
    }
}
