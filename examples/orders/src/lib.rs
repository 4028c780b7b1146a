//! A service that calls two others, with everything on. `docs/orders.md` walks through it.
//!
//! | file | has |
//! |---|---|
//! | `show.rs` | the route: an invoice that it cannot do without, and names that it can |
//! | `place.rs` | an order that is placed now and billed later, by a worker |
//! | `answer.rs` | what its callers are told when it cannot answer |
//! | `telemetry.rs` | where its log, traces and metrics go |
//! | `upstreams.rs` | stand-ins for the two others, which can be told to fail |

mod answer;
mod place;
mod show;
pub mod telemetry;
pub mod upstreams;

use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use http::HeaderName;
use steadfast::{Clients, ServiceClient};
use steadfast_axum::{ContextLayer, Health, Prometheus, Readiness, ShedLayer};

/// The longest that any request is worked on: callers of this service have gone by then.
const LONGEST: Duration = Duration::from_secs(5);
/// How many requests are worked on at once; as many may wait.
const AT_ONCE: usize = 100;

/// What the handlers share.
#[derive(Clone)]
struct App {
    billing: ServiceClient,
    catalog: ServiceClient,
    queue: place::Queue,
}

/// The service. It calls the upstreams `billing` and `catalog` of `clients`, and shows what `prometheus` has counted. To be
/// called in a runtime, in which its worker runs.
///
/// # Errors
/// One of the two is not configured.
pub fn service(clients: &Clients, prometheus: Prometheus) -> Result<Router, Box<dyn std::error::Error>> {
    let (billing, catalog) = (clients.client("billing")?, clients.client("catalog")?);
    let queue = place::work(billing.clone());
    let app = App { billing, catalog, queue };
    // What comes with a request goes along with every call that is made for it. A request without a trace starts one.
    let context = ContextLayer::new()
        .deadline_header(HeaderName::from_static("x-time-left-ms"))
        .time_limit(LONGEST)
        .start_traces(true);
    let ready = Readiness::builder().clients(clients).build()?;
    Ok(Router::new()
        .route("/orders/{order_id}", get(show::show))
        .route("/orders", post(place::place))
        .with_state(app)
        // The last is outermost: a request has its context, so its deadline, before it waits for its turn.
        .layer(ShedLayer::new(AT_ONCE))
        .layer(context)
        // Outside of both: a service that is busy must still be able to say so.
        .route_service("/health", Health)
        .route_service("/ready", ready)
        // Not for the public: it names upstreams, and how they fare.
        .route_service("/metrics", prometheus))
}
