//! The circuit breaker beside the shipped budget: it stays out of noise, and opens in an outage.

use super::client::{BreakerRule, Rules};
use super::run::Record;
use super::scenarios::*;
use super::sheet::{Figure, Runs, Sheet};
use super::world::{MILLISECOND, Scenario, Weather};

const LOAD: f64 = 0.7;
const MANY: [u32; 4] = [1, 10, 100, 1000];

fn with(breaker: BreakerRule) -> Rules {
    Rules::shipped_budget().with_breaker(breaker)
}

/// An outage of 30 s after a minute of other weather, so that the breaker's window is full.
fn full_window(clients: u32, before: Weather, weather: Weather) -> Scenario {
    Scenario::new(LOAD, clients, [(60, before), (30, weather), (2, Weather::FAIR)])
}

/// The share of calls that succeed while the trigger lasts.
fn succeeding(scenario: &Scenario, breaker: BreakerRule) -> Figure {
    Runs::of(scenario, with(breaker)).figure(success(scenario.trigger(), scenario.end_of_trigger()))
}

/// A. It costs next to nothing in noise: points below no breaker at all, or a floor.
#[test]
fn a_noise_does_not_open_it() {
    let mut sheet = Sheet::default();
    for (clients, points_20, points_35) in [(1, 0.3, 0.5), (10, 0.3, 0.5), (100, 0.8, 3.0), (1000, 1.0, 100.0)] {
        let mut cell = |percent: u32, seconds: u64, points: f64, floor: f64| {
            let scenario = episode(LOAD, clients, seconds, Weather::noise(f64::from(percent) / 100.0));
            let off = succeeding(&scenario, BreakerRule::Off);
            let bound = (off.mean - points).max(floor);
            let name = format!("success in noise {percent} %, N={clients}, off {:.2}", off.mean);
            sheet.at_least(&name, succeeding(&scenario, BreakerRule::Shipped), bound);
        };
        cell(20, 60, points_20, 0.0);
        cell(35, 120, points_35, 70.0);
        cell(5, 60, 100.0, 99.9);
    }
    sheet.finish();
}

/// B. It costs next to nothing where one replica of three is down, or hangs.
#[test]
fn b_one_bad_replica_does_not_open_it() {
    let mut sheet = Sheet::default();
    let cells = [(1, 0.5, 1.0, 0.0), (10, 0.5, 1.0, 0.0), (100, 3.0, 2.5, 0.0), (1000, 100.0, 100.0, 1.0)];
    for (clients, points_503, points_hang, floors) in cells {
        let mut cell = |name: &str, weather, points: f64, floor| {
            let scenario = episode(LOAD, clients, 120, weather).with_three_replicas();
            let off = succeeding(&scenario, BreakerRule::Off);
            let name = format!("success, one of three {name}, N={clients}, off {:.2}", off.mean);
            sheet.at_least(&name, succeeding(&scenario, BreakerRule::Shipped), (off.mean - points).max(floor));
        };
        cell("refuses", Weather::DOWN, points_503, 74.0 * floors);
        cell("hangs", Weather::HANGING, points_hang, 64.0 * floors);
    }
    sheet.finish();
}

/// C. It opens in an outage, and soon: after a quarter second of traffic at most, or ten timeouts.
#[test]
fn c_an_outage_opens_it_soon() {
    let mut sheet = Sheet::default();
    let mut cells = |name: &str, before, weather, bounds: [(f64, f64); 4]| {
        for (clients, (opens, sent)) in MANY.into_iter().zip(bounds) {
            let scenario = full_window(clients, before, weather);
            let trigger = scenario.trigger()..scenario.end_of_trigger();
            let runs = Runs::of(&scenario, with(BreakerRule::Shipped));
            sheet.at_most(&format!("opens after, {name}, N={clients}"), runs.figure(Record::opens_after), opens);
            let figure = runs.figure(|record| record.sent_per_client(trigger.clone()));
            sheet.at_most(&format!("sent per client, {name}, N={clients}"), figure, sent);
        }
    };
    let down = [(0.2, 220.0), (0.2, 30.0), (0.5, 13.0), (5.0, 13.0)];
    cells("down", Weather::FAIR, Weather::DOWN, down);
    let hanging = [(0.55, 420.0), (0.75, 70.0), (1.3, 17.0), (7.0, 13.0)];
    cells("hanging", Weather::FAIR, Weather::HANGING, hanging);
    let unbounded = f64::INFINITY;
    let after_noise = [(0.35, unbounded), (0.35, unbounded), (1.1, unbounded), (6.5, unbounded)];
    cells("down after noise 20 %", Weather::noise(0.2), Weather::DOWN, after_noise);
    sheet.finish();
}

/// D. Where nine of ten attempts fail it opens too.
#[test]
fn d_nine_failures_of_ten_open_it() {
    let mut sheet = Sheet::default();
    for (clients, most) in MANY.into_iter().zip([0.3, 0.6, 1.8, 8.0]) {
        // Two minutes: long enough for the quietest of a thousand.
        let scenario = episode(LOAD, clients, 120, Weather::noise(0.9));
        let figure = Runs::of(&scenario, with(BreakerRule::Shipped)).figure(Record::opens_after);
        sheet.at_most(&format!("opens after, 90 % failing, N={clients}"), figure, most);
    }
    sheet.finish();
}

/// F. A blip of 20 ms does not open it.
#[test]
fn f_a_blip_does_not_open_it() {
    let mut sheet = Sheet::default();
    for clients in MANY {
        let scenario = episode(LOAD, clients, 60, Weather::blips(20 * MILLISECOND));
        sheet.at_least(&format!("success in blips, N={clients}"), succeeding(&scenario, BreakerRule::Shipped), 99.5);
    }
    sheet.finish();
}

/// G. With it the upstream recovers as if nobody retried, and had no breaker.
#[test]
fn g_the_upstream_recovers_as_without_retries() {
    let cells: [(&str, Build, f64); 5] = [
        ("slow", slow, 0.85),
        ("down", down, 0.95),
        ("hanging", hanging, 0.95),
        ("brownout", brownout, 0.95),
        ("replica refuses", replica_refuses, 0.85),
    ];
    let mut sheet = Sheet::default();
    for (name, build, load) in cells {
        let base = without_retries(build, load);
        for clients in [1, 100] {
            let scenario = build(load, clients);
            let runs = Runs::of(&scenario, with(BreakerRule::Shipped));
            sheet.at_least(
                &format!("after {name} {load}, N={clients}"),
                runs.percent_of(&base, after(&scenario)),
                98.0,
            );
        }
    }
    sheet.finish();
}

/// H. The plain rule refuses a busy client most of its calls, in this very harness.
#[test]
fn h_the_plain_rule_fails_busy_clients() {
    let mut sheet = Sheet::default();
    let mut cell = |name: &str, scenario: Scenario, most| {
        sheet.at_most(&format!("plain rule, success in {name}"), succeeding(&scenario, BreakerRule::Seed), most);
    };
    cell("noise 20 %, N=1", episode(LOAD, 1, 60, Weather::noise(0.2)), 35.0);
    cell("noise 20 %, N=10", episode(LOAD, 10, 60, Weather::noise(0.2)), 80.0);
    cell("noise 35 %, N=1", episode(LOAD, 1, 60, Weather::noise(0.35)), 10.0);
    cell("noise 35 %, N=100", episode(LOAD, 100, 60, Weather::noise(0.35)), 60.0);
    cell("blips, N=1", episode(LOAD, 1, 60, Weather::blips(20 * MILLISECOND)), 40.0);
    cell("one of three refuses, N=1", episode(LOAD, 1, 60, Weather::DOWN).with_three_replicas(), 10.0);
    sheet.finish();
}
