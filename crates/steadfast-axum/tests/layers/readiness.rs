//! `/health` and `/ready` (contract 10.1; S83-S86, C43).

use std::future::{pending, ready};
use std::io;
use std::time::Duration;

use http::{Request, Response};
use serde_json::{Value, json};
use steadfast::config::Loader;
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{Clients, Guard, ServiceClient};
use steadfast_axum::{Health, Overall, Readiness, ReadinessError};
use tower::{Service, ServiceExt};

use crate::harness::{Body, json as json_of, ms, request, secs};

fn ask<S>(clock: &VirtualClock, service: S) -> (u16, Value)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = std::convert::Infallible>,
{
    let response = clock.run(service.oneshot(request(&[]))).unwrap().unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["cache-control"], "no-store");
    (response.status().as_u16(), json_of(response))
}

/// A client that one failure stops, over this script.
fn billing(clock: &VirtualClock, steps: impl IntoIterator<Item = Step>) -> (ServiceClient, Script) {
    let script = Script::new(clock.clone(), steps);
    let client = ServiceClient::builder("http://billing.test")
        .name("billing")
        .retries(0)
        .breaker_failures(1)
        .clock(clock.clone())
        .transport(script.clone());
    (client.build().unwrap(), script)
}

/// The whole way of a breaker, and readiness at each step.
#[test]
fn c10_1_c43_a_breaker_degrades_and_never_makes_unavailable() {
    let clock = VirtualClock::new();
    let (client, script) = billing(&clock, [Step::status(503), Step::status(200).after(secs(1))]);
    let service = Readiness::builder().client(&client).clock(clock.clone()).build().unwrap();
    let http = |status: &str, detail: Option<&str>, state: Value| {
        let mut check = json!({ "status": status, "critical": false, "meta": { "breakers": { "billing": state } } });
        if let Some(detail) = detail {
            check["detail"] = json!(detail);
        }
        let overall = if status == "pass" { "ok" } else { "degraded" };
        (200, json!({ "status": overall, "checks": { "http": check } }))
    };
    assert_eq!(ask(&clock, service.clone()), http("pass", None, json!({ "state": "closed" })));
    clock.run(client.get("/x").send()).unwrap().unwrap();
    let open = Some("circuit breaker 'billing' is open");
    assert_eq!(ask(&clock, service.clone()), http("fail", open, json!({ "state": "open", "retry_after": 15.0 })));
    clock.advance(Duration::from_micros(2_999_500));
    assert_eq!(ask(&clock, service.clone()), http("fail", open, json!({ "state": "open", "retry_after": 12.001 })));
    assert_eq!(ask(&clock, Health), (200, json!({ "status": "ok" })));
    clock.advance(secs(3_600));
    let ready = Some("circuit breaker 'billing' is ready to probe, no traffic");
    for _ in 0..3 {
        assert_eq!(
            ask(&clock, service.clone()),
            http("fail", ready, json!({ "state": "open" })),
            "asking probes nothing"
        );
    }
    assert_eq!(script.requests(), 1);
    let probe = async {
        let asked = async {
            steadfast::Clock::from(clock.clone()).wait(ms(500)).await;
            service.report().await
        };
        futures_util::future::join(client.get("/x").send(), asked).await
    };
    let (answer, report) = clock.run(probe).unwrap();
    assert_eq!((answer.unwrap().status().as_u16(), report.status), (200, Overall::Degraded));
    let check = &report.checks["http"];
    assert_eq!(check.detail.as_deref(), Some("circuit breaker 'billing' is half-open, a probe is under way"));
    assert_eq!(check.breakers.as_ref().unwrap()["billing"].state, "half_open");
    assert_eq!(ask(&clock, service.clone()), http("pass", None, json!({ "state": "closed" })));
    client.force_open();
    let forced = Some("circuit breaker 'billing' is forced open");
    assert_eq!(ask(&clock, service), http("fail", forced, json!({ "state": "open" })));
}

#[test]
fn c10_1_guards_are_listed_and_clients_as_they_are_after_a_reload() {
    let clock = VirtualClock::new();
    let load = |text: &str| Loader::new().text("test.toml", text).load().unwrap();
    let clients = Clients::new(&load("[upstreams.billing]\nbase_url = 'http://billing.test'")).unwrap();
    let guard = Guard::database("orders").clock(clock.clone()).build().unwrap();
    let service = Readiness::builder().clients(&clients).guard(&guard).clock(clock.clone()).build().unwrap();
    let names = |report: &Value, check: &str| -> Vec<String> {
        report["checks"][check]["meta"]["breakers"].as_object().unwrap().keys().cloned().collect()
    };
    let (_, report) = ask(&clock, service.clone());
    assert_eq!((names(&report, "http"), names(&report, "guards")), (vec!["billing".into()], vec!["orders".to_owned()]));
    clients.reload(&load("[upstreams.catalog]\nbase_url = 'http://catalog.test'")).unwrap();
    guard.force_open();
    let (status, report) = ask(&clock, service);
    assert_eq!((status, names(&report, "http")), (200, vec!["catalog".to_owned()]));
    assert_eq!(
        (&report["checks"]["http"]["status"], &report["checks"]["guards"]["status"]),
        (&json!("pass"), &json!("fail"))
    );
}

#[test]
fn a_critical_check_that_fails_makes_unavailable_and_another_degraded() {
    let clock = VirtualClock::new();
    let fails = || ready(Err::<(), _>(io::Error::other("postgres://user:s3cret@10.0.0.7/db")));
    let passes = || ready(Ok::<_, io::Error>(()));
    let failed = |critical| json!({ "status": "fail", "critical": critical, "detail": "failed" });
    let build = |builder: steadfast_axum::ReadinessBuilder| builder.clock(clock.clone()).build().unwrap();
    let service = build(Readiness::builder().check("db", passes).optional_check("cache", fails));
    let checks = json!({ "db": { "status": "pass", "critical": true }, "cache": failed(false) });
    assert_eq!(ask(&clock, service), (200, json!({ "status": "degraded", "checks": checks })));
    for builder in [
        Readiness::builder().optional_check("cache", fails).check("db", fails),
        Readiness::builder().check("db", fails).optional_check("cache", fails),
    ] {
        let checks = json!({ "db": failed(true), "cache": failed(false) });
        assert_eq!(ask(&clock, build(builder)), (503, json!({ "status": "unavailable", "checks": checks })));
    }
    assert_eq!(ask(&clock, build(Readiness::builder())), (200, json!({ "status": "ok", "checks": {} })));
}

#[test]
fn all_checks_together_have_one_timeout() {
    let clock = VirtualClock::new();
    let slow = |wait: Duration| {
        let clock = steadfast::Clock::from(clock.clone());
        move || {
            let clock = clock.clone();
            async move {
                clock.wait(wait).await;
                Ok::<_, io::Error>(())
            }
        }
    };
    let builder = Readiness::builder()
        .check("fast", slow(ms(900)))
        .check("just", slow(secs(1)))
        .check("late", slow(ms(1_001)))
        .optional_check("hangs", pending::<Result<(), io::Error>>);
    let service = builder.timeout(secs(1)).clock(clock.clone()).build().unwrap();
    let before = clock.now();
    let report = clock.run(service.report()).unwrap();
    assert_eq!(clock.now().since(before), secs(1), "side by side, and no longer than the timeout");
    let detail = |name: &str| report.checks[name].detail.clone();
    assert_eq!((detail("fast"), detail("just")), (None, None), "what is ready in the same moment wins");
    assert_eq!((detail("late").as_deref(), detail("hangs").as_deref()), (Some("timed out"), Some("timed out")));
    assert_eq!(report.status, Overall::Unavailable);
    assert_eq!(clock.armed_timers(), 0);
}

#[test]
fn a_check_that_panics_has_failed() {
    let clock = VirtualClock::new();
    let builder = Readiness::builder()
        .check("at once", || -> std::future::Ready<Result<(), io::Error>> { panic!("in the closure") })
        .optional_check("later", || async { if true { panic!("in the future") } else { Ok::<_, io::Error>(()) } });
    let (status, report) = ask(&clock, builder.clock(clock.clone()).build().unwrap());
    assert_eq!((status, &report["checks"]["later"]["detail"]), (503, &json!("failed")));
}

#[test]
fn mistakes_are_told_when_it_is_built() {
    let passes = || ready(Ok::<_, io::Error>(()));
    let taken = |name: &str| Some(ReadinessError::NameTaken(name.to_owned()));
    assert_eq!(Readiness::builder().check("db", passes).optional_check("db", passes).build().err(), taken("db"));
    assert_eq!(Readiness::builder().check("http", passes).build().err(), taken("http"));
    assert_eq!(Readiness::builder().check("guards", passes).build().err(), taken("guards"));
    for timeout in [Duration::ZERO, Duration::MAX] {
        let error = Readiness::builder().timeout(timeout).build().err().unwrap();
        assert!(error.to_string().contains("expected a duration above zero and at most 24 h"), "{error}");
    }
}
