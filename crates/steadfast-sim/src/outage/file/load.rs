//! `[workload]`: who calls, and how often.

use std::time::Duration;

use super::fields::Fields;
use super::keys::MOST_CALLS;
use super::read::Reader;
use crate::outage::Workload;

/// Which key goes with which way.
const WITH: [(&str, &str); 2] = [("even", "rate"), ("think", "callers")];

impl Reader<'_, '_> {
    /// How many clients there are, and the load they make.
    pub(super) fn workload(&mut self, fields: &Fields, length: Duration) -> Option<(usize, Workload)> {
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
                if per_second * length.as_secs_f64() > MOST_CALLS {
                    let message = format!("expected at most {MOST_CALLS} calls in all: rate times length");
                    self.says(fields.place("rate")?, &fields.path_of("rate"), message);
                }
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
}
