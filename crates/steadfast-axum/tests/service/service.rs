//! The service under test: a route for each thing that its calls can do, and everything of this crate around it.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::HeaderName;
use steadfast::config::{Loader, Problems};
use steadfast::{Clients, Error, Guard, context};
use steadfast_axum::{ContextLayer, Health, Readiness};

use crate::caller::Caller;
use crate::upstream::serve;

/// A service that was started, as its callers reach it.
pub(crate) struct Service {
    pub(crate) caller: Caller,
    pub(crate) clients: Clients,
}

/// Starts it with this configuration, as at a real start: a mistake in it is the end.
pub(crate) async fn start(toml: &str, env: &[(&str, &str)]) -> Result<Service, Problems> {
    let config = Loader::new().text("app.toml", toml).env(env.iter().copied()).load()?;
    let clients = Clients::new(&config).unwrap();
    let ready = Readiness::builder().clients(&clients).build().unwrap();
    let layer = ContextLayer::new()
        .deadline_header(HeaderName::from_static("x-time-left-ms"))
        .time_limit(Duration::from_secs(20));
    let router = Router::new()
        .route("/pass/{*path}", get(pass))
        .route("/own", get(own))
        .route("/elsewhere", get(elsewhere))
        .route("/both/{*path}", get(both))
        .route("/estimate", get(estimate))
        .layer(layer)
        .with_state(clients.clone())
        .route_service("/health", Health)
        .route_service("/ready", ready);
    Ok(Service { caller: Caller::of(serve(router).await), clients })
}

/// The upstream's answer as it is.
async fn pass(State(clients): State<Clients>, Path(path): Path<String>) -> Result<Response, Error> {
    let answer = clients.client("billing").unwrap().get(&path).send().await?;
    let status = StatusCode::from_u16(answer.status().as_u16()).unwrap();
    Ok((status, answer.text().into_owned()).into_response())
}

/// A call with headers of its own.
async fn own(State(clients): State<Clients>) -> Result<(), Error> {
    let billing = clients.client("billing").unwrap();
    billing.get("/").header("X-A", "own").header("X-Request-ID", "own").send().await?;
    Ok(())
}

/// A path that would lead elsewhere, made of what a caller sent.
async fn elsewhere(State(clients): State<Clients>, headers: http::HeaderMap) -> Result<(), Error> {
    let target = headers["target"].to_str().unwrap();
    clients.client("billing").unwrap().get(target).send().await?;
    Ok(())
}

/// One call in the handler's task, and at the same time one in another.
async fn both(State(clients): State<Clients>, Path(path): Path<String>) -> Result<(), Error> {
    let billing = clients.client("billing").unwrap();
    let (other, spawned) = (billing.clone(), path.clone());
    let other = context::spawn(async move { other.get(&spawned).send().await });
    tokio::task::yield_now().await;
    billing.get(&path).send().await?;
    other.await.unwrap()?;
    Ok(())
}

/// A stand-in where billing is down.
async fn estimate(State(clients): State<Clients>) -> String {
    let guard = Guard::builder("billing").build().unwrap();
    let billing = clients.client("billing").unwrap();
    let call = guard.fallback("about 10".to_owned()).call(|| async {
        let answer = billing.get("/exact").send().await?;
        Ok::<_, Error>(answer.text().into_owned())
    });
    call.await.unwrap()
}
