//! `[model.NAME]`: the modelled upstreams, and which of them calls which.

use std::time::Duration;

use super::fields::{Fields, Named};
use super::keys::MOST_MODELS;
use super::read::Reader;
use crate::outage::{Balancer, Cold, DeadWork, Discipline, RateLimiter, ServiceTime, Tells, UpstreamModel};

/// A model that stands in the file.
pub(super) struct Model {
    pub(super) name: String,
    pub(super) fields: Fields,
    pub(super) upstream: UpstreamModel,
}

impl Reader<'_, '_> {
    /// The models in the order in which they call each other, beginning with `first`: the one that is named, or the only
    /// one that none of the others calls.
    pub(super) fn models(&mut self, named: Vec<Named>, first: Option<(String, usize)>, at: usize) -> Vec<Model> {
        let names: Vec<&str> = named.iter().map(|model| model.name.as_str()).collect();
        if names.is_empty() {
            if self.problems.is_empty() {
                self.says(at, "model", "expected at least one model, [model.NAME]");
            }
            return Vec::new();
        }
        if names.len() > MOST_MODELS {
            self.says(at, "model", format!("expected at most {MOST_MODELS} models; found {}", names.len()));
            return Vec::new();
        }
        for model in &named {
            if let Some(next) = model.fields.value::<String>("calls") {
                let place = model.fields.place("calls").unwrap_or(model.fields.at);
                self.known(place, &model.fields.path_of("calls"), &next, "no model of this name", &names);
            }
        }
        let called =
            |name: &str| named.iter().any(|model| model.fields.value::<String>("calls").as_deref() == Some(name));
        let start = match first {
            Some((name, place)) => {
                self.known(place, "workload.calls", &name, "no model of this name", &names);
                Some(name)
            }
            None => match names.iter().filter(|name| !called(name)).collect::<Vec<_>>()[..] {
                [only] => Some((*only).to_owned()),
                _ => {
                    let message = "missing: the clients can call more than one of the models";
                    self.says(at, "workload.calls", message);
                    None
                }
            },
        };
        let mut next = start;
        let mut chain: Vec<Model> = Vec::new();
        let mut left = named;
        while let Some(name) = next.take() {
            let Some(place) = left.iter().position(|model| model.name == name) else {
                if let Some(last) = chain.last().filter(|_| chain.iter().any(|model| model.name == name)) {
                    let place = last.fields.place("calls").unwrap_or(last.fields.at);
                    self.says(
                        place,
                        &last.fields.path_of("calls"),
                        "a model that has been called already: a chain has an end",
                    );
                }
                break;
            };
            let Named { name, fields } = left.swap_remove(place);
            next = fields.value("calls");
            let upstream = self.model(&fields);
            chain.push(Model { name, fields, upstream });
        }
        left.sort_by_key(|model| model.fields.at);
        let is_clear = !chain.is_empty() && self.problems.is_empty();
        for model in left.iter().filter(|_| is_clear) {
            let message = "a model that nobody calls: name it in `calls` of another, or of the workload";
            self.problems.push(self.document.says(model.fields.at, &model.fields.path, message));
        }
        chain
    }

    fn model(&mut self, fields: &Fields) -> UpstreamModel {
        let service = fields.value("service_time").and_then(|times: Fields| self.service_time(&times));
        let mut model = UpstreamModel::new(service.unwrap_or(ServiceTime::Fixed(Duration::from_millis(1))));
        let count = |name| fields.value::<u64>(name).and_then(|count| usize::try_from(count).ok());
        let word = |name| fields.value::<String>(name).unwrap_or_default();
        model.replicas = count("replicas").unwrap_or(model.replicas);
        model.workers = count("workers").unwrap_or(model.workers);
        model.queue = count("queue");
        model.health_check = fields.value("health_check");
        model.discipline = if word("discipline") == "lifo" { Discipline::Lifo } else { Discipline::Fifo };
        model.dead_work = match word("dead_work").as_str() {
            "skipped" => DeadWork::Skipped,
            "cancelled" => DeadWork::Cancelled,
            _ => DeadWork::Served,
        };
        model.balancer = match word("balancer").as_str() {
            "round_robin" => Balancer::RoundRobin,
            "least_busy" => Balancer::LeastBusy,
            _ => Balancer::Random,
        };
        model.cold = fields
            .value("cold")
            .and_then(|cold: Fields| Some(Cold { speed: cold.value("speed")?, lasts: cold.value("for")? }));
        model.rate_limit = fields.value("rate_limit").and_then(|rules: Fields| {
            Some(RateLimiter {
                limit: u32::try_from(rules.value::<u64>("limit")?).unwrap_or(u32::MAX),
                period: rules.value("period").unwrap_or(Duration::from_secs(1)),
                per_client: rules.value("per_client").unwrap_or_default(),
                tells: match rules.value::<String>("tells").as_deref() {
                    Some("nothing") => Tells::Nothing,
                    Some("rate_limit") => Tells::RateLimit,
                    _ => Tells::RetryAfter,
                },
            })
        });
        model
    }

    /// Exactly one way to say it.
    fn service_time(&mut self, fields: &Fields) -> Option<ServiceTime> {
        let ways = ["mean", "fixed", "median", "drawn", "replayed"];
        let way = self.one_of(fields, &ways)?;
        if way == "median" && !fields.has("p99") {
            self.says(fields.at, &fields.path_of("p99"), "missing beside `median`");
        } else if way != "median" && fields.has("p99") {
            self.says(fields.place("p99")?, &fields.path_of("p99"), "only with `median`");
        }
        match way {
            "mean" => Some(ServiceTime::Exponential { mean: fields.value("mean")? }),
            "fixed" => fields.value("fixed").map(ServiceTime::Fixed),
            "median" => {
                let (median, p99): (Duration, Duration) = (fields.value("median")?, fields.value("p99")?);
                if median > p99 {
                    self.says(fields.place("p99")?, &fields.path_of("p99"), "expected it not to be below `median`");
                }
                Some(ServiceTime::LogNormal { median, p99 })
            }
            list => {
                let times: Vec<Duration> = fields.value(list)?;
                if times.is_empty() {
                    self.says(fields.place(list)?, &fields.path_of(list), "expected at least one");
                }
                Some(if list == "drawn" { ServiceTime::Drawn(times) } else { ServiceTime::Replayed(times) })
            }
        }
    }
}
