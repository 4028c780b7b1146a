//! The outages, and what is read from a run of one.

use super::client::Rules;
use super::run::Record;
use super::sheet::Runs;
use super::world::{Scenario, Weather};

/// Fair weather, the trigger, and 72 s of fair weather.
pub(crate) fn outage(load: f64, clients: u32, seconds: u64, trigger: Weather) -> Scenario {
    Scenario::new(load, clients, [(20, Weather::FAIR), (seconds, trigger), (72, Weather::FAIR)])
}

/// The same without what comes after, but for the time that the last calls need.
pub(crate) fn episode(load: f64, clients: u32, seconds: u64, trigger: Weather) -> Scenario {
    Scenario::new(load, clients, [(20, Weather::FAIR), (seconds, trigger), (2, Weather::FAIR)])
}

pub(crate) fn slow(load: f64, clients: u32) -> Scenario {
    outage(load, clients, 10, Weather::SLOW)
}

pub(crate) fn frozen(load: f64, clients: u32) -> Scenario {
    outage(load, clients, 10, Weather::FROZEN)
}

pub(crate) fn spike(load: f64, clients: u32) -> Scenario {
    outage(load, clients, 10, Weather::SPIKE)
}

pub(crate) fn brownout(load: f64, clients: u32) -> Scenario {
    outage(load, clients, 30, Weather::brownout(1.05, load))
}

pub(crate) fn costly(load: f64, clients: u32) -> Scenario {
    outage(load, clients, 30, Weather::costly(0.2))
}

pub(crate) fn down(load: f64, clients: u32) -> Scenario {
    outage(load, clients, 30, Weather::DOWN)
}

pub(crate) fn hanging(load: f64, clients: u32) -> Scenario {
    outage(load, clients, 30, Weather::HANGING)
}

pub(crate) fn replica_refuses(load: f64, clients: u32) -> Scenario {
    outage(load, clients, 30, Weather::DOWN).with_three_replicas()
}

pub(crate) fn replica_hangs(load: f64, clients: u32) -> Scenario {
    outage(load, clients, 30, Weather::HANGING).with_three_replicas()
}

/// Goodput from 30 to 70 s after the trigger.
pub(crate) fn after(scenario: &Scenario) -> impl Fn(&Record) -> f64 {
    let end = scenario.end_of_trigger();
    move |record| record.good(end + 30..end + 70)
}

/// Goodput while the trigger lasts.
pub(crate) fn during(scenario: &Scenario) -> impl Fn(&Record) -> f64 {
    let trigger = scenario.trigger()..scenario.end_of_trigger();
    move |record| record.good(trigger.clone())
}

/// The share of the calls of these seconds that succeed.
pub(crate) fn success(from: usize, to: usize) -> impl Fn(&Record) -> f64 {
    move |record| record.success(from..to)
}

pub(crate) type Build = fn(f64, u32) -> Scenario;

/// Without retries and breaker it makes no difference how many clients there are: one base for all of them.
pub(crate) fn without_retries(build: Build, load: f64) -> Runs {
    Runs::of(&build(load, 1), Rules::NO_RETRY)
}
