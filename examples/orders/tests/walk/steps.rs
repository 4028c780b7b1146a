use std::time::Duration;

use serde_json::json;

use crate::setting::Setting;

#[tokio::test]
async fn an_order_is_shown_and_what_came_with_the_request_goes_along() {
    let setting = Setting::start().await;
    let asked = [("x-request-id", "r-7"), ("authorization", "Bearer ada"), ("x-time-left-ms", "1500")];
    let answer = setting.get_with("/orders/7", &asked).await;
    assert_eq!(answer.status, 200);
    let order = json!({ "order": 7, "total": "19.90", "article": "a7", "name": "Article number 7" });
    assert_eq!((answer.json(), answer.header("x-request-id")), (order, Some("r-7")));

    let (billing, catalog) = (setting.billing.last(), setting.catalog.last());
    assert_eq!(
        (&billing["x-request-id"], &catalog["x-request-id"]),
        (&"r-7".parse().unwrap(), &"r-7".parse().unwrap())
    );
    assert_eq!(billing.get("authorization"), None, "billing is told no token");
    assert_eq!(catalog["authorization"], "Bearer ada");
    let left: u64 = billing["x-time-left-ms"].to_str().unwrap().parse().unwrap();
    assert!((1..=1500).contains(&left), "{left}");
    let trace = |headers: &http::HeaderMap| headers["traceparent"].to_str().unwrap().to_owned();
    let (at_billing, at_catalog) = (trace(&billing), trace(&catalog));
    assert_eq!(at_billing[..35], at_catalog[..35], "one trace");
    assert_ne!(at_billing[36..52], at_catalog[36..52], "two spans");
}

#[tokio::test]
async fn an_order_that_billing_does_not_know_is_not_found() {
    let setting = Setting::start().await;
    let answer = setting.get_with("/orders/1000", &[("x-request-id", "r-8")]).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (404, Some("application/problem+json")));
    let problem = answer.json();
    assert_eq!((&problem["detail"], &problem["request_id"]), (&json!("no invoice for this order"), &json!("r-8")));
    assert_eq!(setting.get("/orders/seven").await.status, 400, "not a number: axum's own answer");
}

#[tokio::test]
async fn without_catalog_the_order_is_shown_and_says_that_it_is_not_whole() {
    let setting = Setting::start().await;
    setting.catalog_is("down").await;
    let answer = setting.get("/orders/7").await;
    assert_eq!((answer.status.as_u16(), answer.header("x-degraded")), (200, Some("catalog")));
    assert_eq!(answer.json(), json!({ "order": 7, "total": "19.90", "article": "a7" }));
    setting.catalog_is("garbled").await;
    let answer = setting.get("/orders/7").await;
    assert_eq!((answer.status.as_u16(), answer.header("x-degraded")), (200, Some("catalog")), "nor is that an order");
    setting.catalog_is("up").await;
    assert_eq!(setting.get("/orders/7").await.header("x-degraded"), None);
}

#[tokio::test]
async fn a_flaky_billing_is_not_noticed() {
    let setting = Setting::start().await;
    setting.billing_is("flaky").await;
    assert_eq!(setting.get("/orders/7").await.status, 200);
    assert_eq!(setting.billing.requests(), 2, "one was answered 503, and made again");
}

#[tokio::test]
async fn a_billing_that_is_down_is_left_alone_after_five_attempts_and_the_service_stays_ready() {
    let setting = Setting::start().await;
    setting.billing_is("down").await;
    for _ in 0..10 {
        let answer = setting.get("/orders/7").await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (503, Some("application/problem+json")));
    }
    assert_eq!(setting.billing.requests(), 5);
    assert_eq!(setting.catalog.requests(), 0);

    let answer = setting.get("/orders/7").await;
    let problem = answer.json();
    assert_eq!(problem["detail"], "circuit breaker 'billing' is open");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=15).contains(&wait), "{wait}");

    let ready = setting.get("/ready").await;
    assert_eq!((ready.status.as_u16(), &ready.json()["status"]), (200, &json!("degraded")));
    assert_eq!(ready.json()["checks"]["http"]["meta"]["breakers"]["billing"]["state"], "open");
    assert_eq!(setting.get("/health").await.json(), json!({ "status": "ok" }));
}

#[tokio::test]
async fn what_happened_is_counted() {
    let setting = Setting::start().await;
    setting.billing_is("flaky").await;
    assert_eq!(setting.get("/orders/7").await.status, 200);
    let answer = setting.get("/metrics").await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    // Other tests of this process count in the same places.
    for (series, least) in [
        ("steadfast_calls_total{ended=\"response\",upstream=\"billing\"", 1.0),
        ("steadfast_retries_total{reason=\"backoff\",upstream=\"billing\"", 1.0),
        ("steadfast_circuit_breaker_state{state=\"closed\",upstream=\"catalog\"", 1.0),
    ] {
        let line = text.lines().find(|line| line.starts_with(series)).unwrap_or_else(|| panic!("{series}\n{text}"));
        let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(value >= least, "{line}");
    }
}

#[tokio::test]
async fn a_bug_of_billing_is_told_as_unavailable_and_not_repeated() {
    let setting = Setting::start().await;
    setting.billing_is("broken").await;
    let answer = setting.get("/orders/7").await;
    assert_eq!((answer.status.as_u16(), setting.billing.requests()), (503, 1));
    assert_eq!(answer.json()["upstream"], "billing");
}

#[tokio::test]
async fn a_request_whose_time_is_up_is_not_worked_on() {
    let setting = Setting::start().await;
    let answer = setting.get_with("/orders/7", &[("x-time-left-ms", "0")]).await;
    assert_eq!((answer.status.as_u16(), setting.billing.requests()), (504, 0));
}

#[tokio::test]
async fn an_order_is_placed_now_and_billed_later_once_under_the_same_request_id() {
    let setting = Setting::start().await;
    // The first attempt is answered 503: it is made again, and is the same order.
    setting.billing_is("flaky").await;
    let asked = [("x-request-id", "r-9"), ("authorization", "Bearer ada")];
    let answer = setting.post("/orders", &asked, r#"{"article": "a3"}"#).await;
    assert_eq!(answer.status, 202);
    let order = answer.json()["order"].as_u64().unwrap();
    let billed = async {
        while setting.billing.billed().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), billed).await.unwrap();
    let sent = setting.billing.last();
    assert_eq!(
        (&sent["x-request-id"], &sent["idempotency-key"]),
        (&"r-9".parse().unwrap(), &format!("order-{order}").parse().unwrap())
    );
    assert_eq!(sent.get("authorization"), None, "a job has no token");
    assert_eq!(setting.billing.requests(), 2);
    setting.billing_is("up").await;
    assert_eq!(setting.get(&format!("/orders/{order}")).await.json()["name"], "Article number 3");
}
