//! A service that calls others, seen from its callers' side: tower layers for axum, and for anything else on hyper.
//!
//! | to | use |
//! |---|---|
//! | let the service's calls inherit from the request: id, trace, bearer, deadline | [`ContextLayer`] |
//! | tell the caller which answers are stand-ins | [`ContextLayer`] again, by the header `X-Degraded` |
//! | answer `/health` and `/ready` | [`Health`], [`Readiness`] |
//! | answer `/metrics` | `Prometheus`, behind the feature `prometheus` |
//! | turn requests away that cannot be served in time | [`ShedLayer`] |
//! | let an error of a call be the answer | return [`steadfast::Error`] or [`steadfast::GuardError`] from a handler (feature `axum`, on by default), or send [`to_problem`](steadfast::Error::to_problem)`().to_response()` |
//!
//! ```
//! use axum::Router;
//! use axum::routing::get;
//! use steadfast::{Error, ServiceClient};
//! use steadfast_axum::{ContextLayer, Health, Readiness, ShedLayer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let billing = ServiceClient::builder("http://localhost:8010").name("billing").build()?;
//! let ready = Readiness::builder().client(&billing).build()?;
//!
//! let invoice = move || async move {
//!     // Request id, trace and deadline of the request go along; where nothing comes, the error is the answer.
//!     let invoice = billing.get("/invoices/7").send().await?;
//!     Ok::<_, Error>(invoice.text().into_owned())
//! };
//! let service: Router = Router::new()
//!     .route("/invoice", get(invoice))
//!     // What is added last is outermost: a request has its context before it queues.
//!     .layer(ShedLayer::new(100))
//!     .layer(ContextLayer::new())
//!     // Never behind the queue: an orchestrator must be answered by a service that is busy.
//!     .route_service("/health", Health)
//!     .route_service("/ready", ready);
//! # let _ = service;
//! # Ok(())
//! # }
//! ```
//!
//! The layers take any request and response of the `http` crate. Without axum, `hyper_util::service::TowerToHyperService`
//! makes a hyper service of the stack.
//!
//! # gRPC
//!
//! What does not fit: a gRPC status is in the trailers of a response whose HTTP status is 200, so a client or layer that
//! judges HTTP statuses takes every failed call for a good one, and [`ShedLayer`]'s answers are no gRPC statuses. What does:
//! a [`Guard`](steadfast::Guard), or its layer, around the stub, which is told what its errors mean; and [`ContextLayer`]
//! with `grpc-timeout` as its deadline header, since that is about headers alone.

mod context;
mod degraded;
#[cfg(doctest)]
mod doctests;
mod health;
mod ids;
#[cfg(feature = "prometheus")]
mod prometheus;
mod readiness;
mod shed;

pub use context::{ContextFuture, ContextLayer, ContextService};
pub use health::Health;
#[cfg(feature = "prometheus")]
pub use prometheus::{MOST_SERIES, Prometheus};
pub use readiness::{Breaker, Readiness};
pub use readiness::{CheckReport, CheckStatus, Overall, ReadinessBuilder, ReadinessError, ReadyReport};
pub use shed::{ShedFuture, ShedLayer, ShedService, ShedSnapshot};
