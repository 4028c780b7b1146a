//! Who is counted, under which name, from when on, and until when.

use std::io;
use std::pin::pin;

use futures_util::future::{join, select};
use metrics::{Key, with_local_recorder};
use steadfast::config::Loader;
use steadfast::metrics::{TABLE, refresh};
use steadfast::testing::{Step, VirtualClock};
use steadfast::{CircuitBreaker, Clients, Guard, Guards, retry};

use crate::recorder::Kept;
use crate::world::{World, refresh_at, secs, world};

#[test]
fn c5_1_gauges_show_what_is_in_flight_and_zero_once_the_client_is_gone() {
    let world = world("gone", [Step::hang()], |builder| builder.max_concurrent(1).bulkhead_wait(secs(5)));
    let name = ("upstream", "gone");
    let look = async {
        world.wait(secs(1)).await;
        world.refresh();
    };
    let both = join(world.client.get("/a").send(), world.client.get("/b").send());
    drop(world.clock.run(select(pin!(both), pin!(look))).unwrap());
    let kept = &world.kept;
    assert_eq!(kept.gauge("steadfast.bulkhead.in_use", &[name]), 1.0);
    assert_eq!(kept.gauge("steadfast.bulkhead.queued", &[name]), 1.0);
    assert_eq!(kept.gauge("steadfast.bulkhead.limit", &[name]), 1.0);
    assert_eq!(kept.gauge("steadfast.call.timeout", &[name]), 30.0);
    let World { kept, client, .. } = world;
    drop(client);
    refresh_at(&kept);
    assert_eq!(kept.gauge("steadfast.bulkhead.in_use", &[name]), 0.0);
    assert_eq!(kept.gauge("steadfast.bulkhead.limit", &[name]), 0.0);
    assert_eq!(kept.gauge("steadfast.circuit_breaker.state", &[name, ("state", "closed")]), 0.0);
}

/// A share of a limit that not all have is no share: an alert on it must not fire.
#[test]
fn c5_1_a_limit_that_not_all_of_a_name_have_is_none() {
    let kept = Kept::new();
    let limited = with_local_recorder(&kept, || Guard::builder("mixed").max_concurrent(2, secs(1)).build().unwrap());
    refresh_at(&kept);
    let limit = || kept.gauge("steadfast.bulkhead.limit", &[("upstream", "mixed")]);
    assert_eq!(limit(), 2.0);
    let unlimited = with_local_recorder(&kept, || {
        Guard::builder("mixed").without_bulkhead().without_retry_budget().build().unwrap()
    });
    refresh_at(&kept);
    assert_eq!(limit(), f64::INFINITY);
    assert_eq!(kept.gauge("steadfast.retry_budget.ceiling_left", &[("upstream", "mixed")]), f64::INFINITY);
    drop(limited);
    refresh_at(&kept);
    assert_eq!(limit(), f64::INFINITY, "it is no limit of nought");
    drop(unlimited);
    refresh_at(&kept);
    assert_eq!(limit(), 0.0);
}

/// 9.5: what a reload changes is what the next refresh shows.
#[test]
fn c9_5_gauges_follow_a_reload_and_a_pool_of_ours_has_its_own() {
    let load = |more: &str| {
        let text = format!("[upstreams.reloaded]\nbase_url = 'http://127.0.0.1:9'\n{more}");
        Loader::new().text("app.toml", &text).load().unwrap()
    };
    let kept = Kept::new();
    let clients = with_local_recorder(&kept, || Clients::new(&load("")).unwrap());
    refresh_at(&kept);
    let name = ("upstream", "reloaded");
    let limits = || ["steadfast.call.timeout", "steadfast.bulkhead.limit"].map(|gauge| kept.gauge(gauge, &[name]));
    assert_eq!(limits(), [30.0, 50.0]);
    assert_eq!(kept.gauge("steadfast.pool.connections", &[name, ("state", "idle")]), 0.0);
    assert_eq!(kept.gauge("steadfast.pool.connections", &[name, ("state", "busy")]), 0.0);
    clients.reload(&load("total_timeout = 7\nmax_concurrent = 3\n")).unwrap();
    refresh_at(&kept);
    assert_eq!(limits(), [7.0, 3.0]);
    let without = "[upstreams.another]\nbase_url = 'http://127.0.0.1:9'";
    clients.reload(&Loader::new().text("app.toml", without).load().unwrap()).unwrap();
    refresh_at(&kept);
    assert_eq!(limits(), [0.0, 0.0], "nobody holds it any more");
}

#[test]
fn a_refresh_without_a_recorder_changes_nothing() {
    let world = world("kept", [Step::status(200)], |builder| builder);
    refresh();
    world.get().unwrap();
    assert_eq!(world.kept.count("steadfast.calls", &[("upstream", "kept"), ("ended", "response")]), 1);
}

#[test]
fn guards_of_one_kind_count_as_one_whatever_their_keys() {
    let (kept, clock) = (Kept::new(), VirtualClock::new());
    let make = |name: &str| Guard::http(name).clock(clock.clone());
    let from_template = Guards::new(make("hosts")).unwrap();
    let template = make("made");
    let made = Guards::with(move |key| template.clone().seed(key.len() as u64));
    let template = make("named");
    let named = Guards::with(move |_| template.clone().metrics_name("partners"));
    with_local_recorder(&kept, || {
        for number in 0..50 {
            for guards in [&from_template, &made, &named] {
                let guard = guards.get(&format!("tenant-{number}")).unwrap();
                clock.run(guard.call(|| async { Err::<(), _>(io::Error::other("no")) })).unwrap().unwrap_err();
            }
        }
    });
    refresh_at(&kept);
    for name in ["hosts", "guards", "partners"] {
        assert_eq!(kept.sum("steadfast.calls", name), 50, "{name}");
        let name = ("upstream", name);
        assert_eq!(kept.count("steadfast.attempts", &[name, ("outcome", "error")]), 50, "{name:?}");
        assert_eq!(kept.gauge("steadfast.circuit_breaker.state", &[name, ("state", "closed")]), 50.0, "{name:?}");
        assert_eq!(kept.gauge("steadfast.bulkhead.limit", &[name]), 2_500.0, "{name:?}");
    }
    assert!(kept.keys().iter().all(|key| !key.labels().any(|label| label.value().contains("tenant"))));
}

/// 11.8: a refresh must not keep guards from being forgotten.
#[test]
fn c11_8_guards_that_are_forgotten_are_gone_from_the_gauges() {
    let (kept, clock) = (Kept::new(), VirtualClock::new());
    let guards = Guards::new(Guard::http("forgotten").clock(clock.clone())).unwrap().max_keys(10);
    with_local_recorder(&kept, || {
        for number in 0..100 {
            guards.get(&format!("tenant-{number}")).unwrap();
            refresh_at(&kept);
        }
    });
    let closed = [("upstream", "forgotten"), ("state", "closed")];
    assert_eq!(kept.gauge("steadfast.circuit_breaker.state", &closed), 10.0);
}

#[test]
fn a_policy_alone_is_counted_and_a_retry_for_one_call_is_not() {
    let (kept, clock) = (Kept::new(), VirtualClock::new());
    with_local_recorder(&kept, || {
        let breaker = CircuitBreaker::builder("alone").clock(clock.clone()).build().unwrap();
        clock.run(breaker.call(|| async { Ok::<_, io::Error>(()) })).unwrap().unwrap();
        let again = retry(|| async { Err::<(), _>(io::Error::other("no")) }).transient(|_| true).name("again");
        clock.run(again.clock(clock.clone()).call()).unwrap().unwrap_err();
    });
    assert_eq!(kept.sum("steadfast.calls", "alone"), 1);
    assert!(kept.keys().iter().all(|key| !key.labels().any(|label| label.value() == "again")));
}

/// 8.6: the label `upstream` is all that a user can put there.
#[test]
fn c8_6_every_time_series_is_in_the_table_and_holds_no_secret() {
    let world = world("closed_sets", [Step::status(500)], |builder| builder.header("X-Api-Key", "S3CR3T"));
    world.get().unwrap();
    world.refresh();
    let is_ours = |key: &Key| key.labels().any(|label| label.value() == "closed_sets");
    let keys: Vec<Key> = world.kept.keys().into_iter().filter(is_ours).collect();
    for key in &keys {
        let metric = TABLE.iter().find(|metric| metric.name == key.name()).expect("in the table");
        let labels: Vec<_> = key.labels().map(|label| label.key()).collect();
        assert_eq!(labels, metric.labels.iter().map(|label| label.name()).collect::<Vec<_>>(), "{metric}");
        for (label, value) in metric.labels.iter().zip(key.labels()) {
            assert!(label.values().is_none_or(|known| known.contains(&value.value())), "{metric}: {value:?}");
        }
    }
    for metric in TABLE {
        // A script has no pool of ours.
        let is_there = keys.iter().any(|key| key.name() == metric.name);
        assert_eq!(is_there, metric.name != "steadfast.pool.connections", "{metric}");
        let (kind, unit, help) = world.kept.description(metric.name).expect("it is described");
        assert_eq!((kind, &*help), (metric.kind, metric.help));
        assert_eq!(unit == Some(metrics::Unit::Seconds), metric.in_seconds);
    }
    // As docs/telemetry.md says.
    let (histograms, single): (Vec<_>, Vec<_>) = keys.iter().partition(|key| world.kept.is_histogram(key));
    assert_eq!((histograms.len(), single.len()), (6, 69));
}
