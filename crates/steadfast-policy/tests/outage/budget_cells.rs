//! The retry budget in an outage: what is left of the goodput afterwards, what noise is repaired, what an outage is sent.

use super::client::{BreakerRule, Rules};
use super::scenarios::*;
use super::sheet::{Runs, Sheet};
use super::world::{Scenario, Weather};

/// A. For clients with more than a few calls a second the upstream recovers as if nobody retried.
///
/// The bound on single runs is for the five seeds: near saturation one run in thirty or so is at 70 (replica refuses,
/// 0.95), while the mean of thirty is 98.
#[test]
fn a_the_upstream_recovers_as_without_retries() {
    let cells: [(&str, Build, &[f64], f64); 7] = [
        ("slow", slow, &[0.5, 0.7, 0.85], 95.0),
        ("frozen", frozen, &[0.5, 0.7, 0.85], 92.0),
        ("spike", spike, &[0.5, 0.7, 0.85], 98.0),
        ("brownout", brownout, &[0.5, 0.7, 0.85, 0.95], 98.0),
        ("costly", costly, &[0.5, 0.7, 0.85, 0.95], 98.0),
        ("replica refuses", replica_refuses, &[0.5, 0.7, 0.85, 0.95], 98.0),
        ("replica hangs", replica_hangs, &[0.5, 0.7, 0.85, 0.95], 98.0),
    ];
    let mut sheet = Sheet::default();
    for (name, build, loads, least) in cells {
        for &load in loads {
            let base = without_retries(build, load);
            let least = if load > 0.9 { 95.0 } else { least };
            // With room to spare nothing is close: one cell is enough.
            let sizes: &[u32] = if load < 0.8 { &[1] } else { &[1, 10, 100] };
            for &clients in sizes {
                let scenario = build(load, clients);
                let runs = Runs::of(&scenario, Rules::shipped_budget());
                let figure = runs.percent_of(&base, after(&scenario));
                sheet.at_least_each(&format!("after {name} {load}, N={clients}"), figure, least, 75.0);
            }
        }
    }
    sheet.finish();
}

/// B. For clients with less than a call a second each.
#[test]
fn b_a_thousand_quiet_clients_delay_the_recovery_but_do_not_prevent_it() {
    let cells: [(&str, Build, f64, f64); 7] = [
        ("slow", slow, 0.85, 75.0),
        ("slow", slow, 0.7, 95.0),
        ("frozen", frozen, 0.85, 50.0),
        ("frozen", frozen, 0.7, 95.0),
        ("brownout", brownout, 0.95, 60.0),
        ("costly", costly, 0.95, 95.0),
        ("replica refuses", replica_refuses, 0.95, 95.0),
    ];
    let mut sheet = Sheet::default();
    for (name, build, load, least) in cells {
        let scenario = build(load, 1000);
        let runs = Runs::of(&scenario, Rules::shipped_budget());
        let figure = runs.percent_of(&without_retries(build, load), after(&scenario));
        sheet.at_least(&format!("after {name} {load}, N=1000"), figure, least);
    }
    sheet.finish();
}

/// C. While a share of attempts fails, retries repair more than they cost.
#[test]
fn c_retries_pay_while_a_share_of_attempts_fails() {
    let cells: [(&str, Build, f64, f64); 3] = [
        ("costly", costly, 0.95, 100.0),
        ("replica refuses", replica_refuses, 0.95, 90.0),
        ("replica refuses", replica_refuses, 0.85, 110.0),
    ];
    let mut sheet = Sheet::default();
    for (name, build, load, least) in cells {
        let base = without_retries(build, load);
        for clients in [1, 10, 100] {
            let scenario = build(load, clients);
            let runs = Runs::of(&scenario, Rules::shipped_budget());
            let figure = runs.percent_of(&base, during(&scenario));
            sheet.at_least(&format!("during {name} {load}, N={clients}"), figure, least);
        }
    }
    sheet.finish();
}

/// D. Independent failures are repaired: of 20 % the ceiling of the default ratio repairs most, a ratio of 0.5 nearly all.
#[test]
fn d_noise_is_repaired() {
    let mut sheet = Sheet::default();
    let mut cell = |name: &str, weather, clients, ratio, least| {
        let scenario = episode(0.7, clients, 60, weather);
        let rules = Rules::shipped_budget().with_ratio(ratio);
        let figure = Runs::of(&scenario, rules).figure(success(scenario.trigger(), scenario.end_of_trigger()));
        sheet.at_least(&format!("success in {name}, ratio {ratio}, N={clients}"), figure, least);
    };
    for (clients, default, half) in [(1, 95.5, 99.0), (10, 96.0, 99.0), (100, 98.0, 98.3), (1000, 97.5, 97.5)] {
        cell("noise 5 %", Weather::noise(0.05), clients, 0.2, 99.9);
        cell("hangs 5 %", Weather::hangs(0.05), clients, 0.2, 99.5);
        cell("noise 20 %", Weather::noise(0.2), clients, 0.2, default);
        cell("noise 20 %", Weather::noise(0.2), clients, 0.5, half);
    }
    sheet.finish();
}

/// E. An outage is sent hardly more than its calls, and with the breaker next to nothing.
#[test]
fn e_an_outage_is_sent_hardly_more_than_its_calls() {
    let mut sheet = Sheet::default();
    let mut cell = |name: &str, weather, load, clients, breaker, most| {
        let scenario = episode(load, clients, 30, weather);
        let rules = Rules::shipped_budget().with_breaker(breaker);
        let figure = Runs::of(&scenario, rules)
            .figure(|record| record.sent_per_call(scenario.trigger()..scenario.end_of_trigger()));
        sheet.at_most(&format!("sent per call, {name} {load}, breaker {breaker:?}, N={clients}"), figure, most);
    };
    for load in [0.5, 0.85] {
        for (clients, down, hanging) in [(1, 1.02, 1.01), (10, 1.02, 1.01), (100, 1.03, 1.02), (1000, 1.15, 1.08)] {
            cell("down", Weather::DOWN, load, clients, BreakerRule::Off, down);
            cell("hanging", Weather::HANGING, load, clients, BreakerRule::Off, hanging);
            if clients <= 100 {
                cell("down", Weather::DOWN, load, clients, BreakerRule::Shipped, 0.07);
            }
        }
    }
    sheet.finish();
}

/// F. Nothing is held against the upstream afterwards: noise of 5 % is repaired again at once.
#[test]
fn f_retries_are_back_soon_after_an_episode() {
    let noise = Weather::noise(0.05);
    let mut sheet = Sheet::default();
    for (clients, after_outage) in [(1, 99.9), (10, 99.9), (100, 99.9), (1000, 98.0)] {
        let scenario = Scenario::new(0.7, clients, [(20, Weather::FAIR), (60, Weather::noise(0.2)), (15, noise)]);
        let end = scenario.end_of_trigger();
        let figure = Runs::of(&scenario, Rules::shipped_budget()).figure(success(end, end + 10));
        sheet.at_least(&format!("success in the 10 s after noise 20 %, N={clients}"), figure, 99.7);
        let scenario = Scenario::new(0.7, clients, [(20, Weather::FAIR), (30, Weather::DOWN), (20, noise)]);
        let end = scenario.end_of_trigger();
        let figure = Runs::of(&scenario, Rules::shipped_budget()).figure(success(end + 5, end + 15));
        sheet.at_least(&format!("success 5 to 15 s after an outage, N={clients}"), figure, after_outage);
    }
    sheet.finish();
}

/// H. The ceiling alone keeps the upstream down, in this very harness.
#[test]
fn h_the_ceiling_alone_never_lets_it_recover() {
    let mut sheet = Sheet::default();
    let base = without_retries(slow, 0.85);
    for clients in [1, 10, 100] {
        let scenario = slow(0.85, clients);
        let figure = Runs::of(&scenario, Rules::seed_budget()).percent_of(&base, after(&scenario));
        sheet.at_most(&format!("ceiling alone, after slow 0.85, N={clients}"), figure, 1.0);
    }
    sheet.finish();
}
