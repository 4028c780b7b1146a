//! A snapshot as data: its fields keep their names, and nothing of a request is in it (8.6).

use std::time::Duration;

use steadfast::config::Loader;
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{Clients, Guard};

use crate::harness::{World, secs};

fn json(snapshot: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(snapshot).unwrap()
}

#[test]
fn c4_9_an_open_breaker_with_the_counts_that_opened_it() {
    let world = World::with((0..5).map(|_| Step::status(503)), |builder| builder.retries(0));
    world.get_many(5);
    world.run(world.wait(Duration::from_micros(1_500)));
    insta::assert_snapshot!(json(&world.client.snapshot()));
}

#[test]
fn what_has_no_limit_is_null() {
    let tariffs = Guard::http("tariffs").without_bulkhead().without_retry_budget().build().unwrap();
    tariffs.force_open();
    insta::assert_snapshot!(json(&tariffs.snapshot()));
}

#[test]
fn c8_6_all_clients_in_the_order_of_their_names_and_no_secret() {
    let text = "[upstreams.orders]\nbase_url = 'http://orders.test/pr3fix'\nheaders = { x-api-key = 'S3CR3T' }\n\
                [upstreams.billing]\nbase_url = 'http://billing.test'\nmax_concurrent = 7\n";
    let config = Loader::new().text("app.toml", text).load().unwrap();
    let clients = Clients::new(&config).unwrap();
    let data = serde_json::to_value(clients.snapshot()).unwrap();
    assert_eq!(data[0]["upstream"], "billing");
    assert_eq!(data[0]["line"]["slots"], 7);
    assert_eq!(data[1]["upstream"], "orders");
    assert_eq!(data[1]["pool"], serde_json::json!({"open": 0, "idle": 0}));
    let text = data.to_string();
    assert!(!text.contains("S3CR3T") && !text.contains("pr3fix") && !text.contains(".test"), "{text}");
}

#[test]
fn times_are_rounded_up() {
    let clock = VirtualClock::new();
    let steps = (0..5).map(|_| Step::reset());
    let client = steadfast::ServiceClient::builder("http://billing.test")
        .retries(0)
        .breaker_cool_down(secs(15))
        .clock(clock.clone())
        .transport(Script::new(clock.clone(), steps))
        .build()
        .unwrap();
    for _ in 0..5 {
        clock.run(client.get("/x").send()).unwrap().unwrap_err();
    }
    clock.run(steadfast::Clock::from(clock.clone()).wait(Duration::from_nanos(1))).unwrap();
    let data = serde_json::to_value(client.snapshot()).unwrap();
    assert_eq!(data["breaker"]["retry_after_ms"], 15_000, "one nanosecond less is still as many");
}
