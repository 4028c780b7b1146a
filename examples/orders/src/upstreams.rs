//! Stand-ins for billing and catalog, which can be told to fail: `PUT /mode` with `up`, `down` (503), `broken` (500), `slow`
//! (2 s), `garbled` (200, with a body that is no JSON), or `flaky` (every other request is answered 503).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// How one of them behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Up,
    Down,
    Broken,
    Slow,
    Garbled,
    Flaky,
}

/// What it has seen. Clones are the same upstream.
#[derive(Clone)]
pub struct Upstream(Arc<Mutex<Seen>>);

struct Seen {
    mode: Mode,
    requests: u64,
    last: HeaderMap,
    /// Invoices that were posted, by idempotency key.
    billed: BTreeMap<String, Value>,
}

impl Upstream {
    /// One that works.
    #[expect(clippy::new_without_default, reason = "it is shared state, not a value")]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Seen {
            mode: Mode::Up,
            requests: 0,
            last: HeaderMap::new(),
            billed: BTreeMap::new(),
        })))
    }

    /// How many requests reached it, `PUT /mode` not counted.
    pub fn requests(&self) -> u64 {
        self.seen().requests
    }

    /// The headers of the last one.
    pub fn last(&self) -> HeaderMap {
        self.seen().last.clone()
    }

    /// What was billed, by idempotency key.
    pub fn billed(&self) -> BTreeMap<String, Value> {
        self.seen().billed.clone()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Billing: orders up to 999 have an invoice, and so has what was billed.
pub fn billing(upstream: &Upstream) -> Router {
    let routes = Router::new().route("/invoices/{order}", get(invoice)).route("/invoices", post(bill));
    with_mode(routes, upstream)
}

/// Catalog: names of articles.
pub fn catalog(upstream: &Upstream) -> Router {
    with_mode(Router::new().route("/articles/{article}", get(article)), upstream)
}

fn with_mode(routes: Router<Upstream>, upstream: &Upstream) -> Router {
    routes
        .layer(middleware::from_fn_with_state(upstream.clone(), behave))
        .route("/mode", put(change))
        .with_state(upstream.clone())
}

async fn behave(State(upstream): State<Upstream>, request: Request, next: Next) -> Response {
    let (mode, number) = {
        let mut seen = upstream.seen();
        seen.requests += 1;
        seen.last = request.headers().clone();
        (seen.mode, seen.requests)
    };
    match mode {
        Mode::Down => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Mode::Flaky if number % 2 == 1 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Mode::Garbled => "not what was agreed on".into_response(),
        Mode::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mode::Slow => {
            tokio::time::sleep(Duration::from_secs(2)).await;
            next.run(request).await
        }
        Mode::Up | Mode::Flaky => next.run(request).await,
    }
}

async fn change(State(upstream): State<Upstream>, mode: String) -> Result<(), (StatusCode, String)> {
    let mode = match mode.trim() {
        "up" => Mode::Up,
        "down" => Mode::Down,
        "broken" => Mode::Broken,
        "slow" => Mode::Slow,
        "garbled" => Mode::Garbled,
        "flaky" => Mode::Flaky,
        other => {
            let problem = format!("unknown mode {other:?}: expected up, down, broken, slow, garbled, or flaky\n");
            return Err((StatusCode::BAD_REQUEST, problem));
        }
    };
    upstream.seen().mode = mode;
    Ok(())
}

async fn invoice(State(upstream): State<Upstream>, Path(order): Path<u64>) -> Response {
    let billed = upstream.seen().billed.get(&format!("order-{order}")).cloned();
    match billed {
        Some(invoice) => Json(invoice).into_response(),
        None if order < 1_000 => {
            Json(json!({ "article": format!("a{}", order % 10), "total": "19.90" })).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// What an order says of itself.
#[derive(Deserialize)]
struct NewInvoice {
    article: String,
}

/// The same key twice is the same invoice.
async fn bill(State(upstream): State<Upstream>, headers: HeaderMap, Json(new): Json<NewInvoice>) -> Response {
    let Some(key) = headers.get("idempotency-key").and_then(|key| key.to_str().ok()) else {
        return (StatusCode::BAD_REQUEST, "an Idempotency-Key is required\n").into_response();
    };
    let invoice = json!({ "article": new.article, "total": "19.90" });
    upstream.seen().billed.entry(key.to_owned()).or_insert(invoice);
    StatusCode::CREATED.into_response()
}

async fn article(Path(article): Path<String>) -> Response {
    match article.strip_prefix('a') {
        Some(number) => Json(json!({ "name": format!("Article number {number}") })).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
