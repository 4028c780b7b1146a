//! A service that the W3C's trace context harness can call (level 2): `POST /test` with a JSON array of `url` and
//! `arguments`; the service posts each one's arguments to its URL, and answers when all are done.
//!
//! There is nothing about traces in its handler: [`ContextLayer`] takes the context from the request, and the client gives
//! each attempt its own span of it.
//!
//! It calls the harness, and nobody else: a URL of another origin is refused.

#![allow(clippy::missing_errors_doc, reason = "an example")]

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::Value;
use steadfast::client::BuildError;
use steadfast::{Error, ServiceClient};
use steadfast_axum::ContextLayer;

/// More than the harness ever asks for.
const MOST_CALLS: usize = 50;

/// One call that the harness wants to see.
#[derive(Deserialize)]
struct Callback {
    url: String,
    arguments: Value,
}

#[derive(Clone)]
struct Adapter {
    harness: ServiceClient,
    base_url: String,
    retries: bool,
}

/// The service, calling the harness at `base_url` (`http://127.0.0.1:7777`); with `retries` each callback that fails is
/// made again, though it is a POST.
pub fn service(base_url: &str, retries: bool) -> Result<Router, BuildError> {
    let base_url = base_url.trim_end_matches('/').to_owned();
    let mut harness = ServiceClient::builder(&base_url).name("harness");
    if retries {
        // Half of all attempts are to fail here: what protects an upstream from that would end the trial.
        harness = harness.retry_budget_ratio(1.0).retry_budget_min_per_second(100.0).retry_budget_gate(false);
        harness = harness.backoff_base(Duration::from_millis(1));
        harness = harness.breaker_failure_rate(1.0).breaker_minimum_calls(1_000).breaker_failures(1_000);
    }
    let harness = harness.build()?;
    let adapter = Adapter { harness, base_url, retries };
    let layer = ContextLayer::new().start_traces(true);
    Ok(Router::new().route("/test", post(test)).layer(layer).with_state(adapter))
}

async fn test(State(adapter): State<Adapter>, Json(callbacks): Json<Vec<Callback>>) -> Response {
    if callbacks.len() > MOST_CALLS {
        return (StatusCode::BAD_REQUEST, "expected at most 50 callbacks").into_response();
    }
    let mut calls = Vec::new();
    for callback in &callbacks {
        let path = callback.url.strip_prefix(&adapter.base_url);
        let Some(path) = path.filter(|path| path.starts_with('/')) else {
            return (StatusCode::BAD_REQUEST, "expected URLs of the harness that this adapter was started for")
                .into_response();
        };
        calls.push(adapter.harness.post(path).json(&callback.arguments).retry(adapter.retries).send());
    }
    // All of them are made, whatever becomes of the first.
    let answers: Result<Vec<_>, Error> = join_all(calls).await.into_iter().collect();
    match answers {
        Ok(_) => Json(Value::Null).into_response(),
        Err(error) => error.into_response(),
    }
}
