//! `POST /orders`: the order is taken now, and billed by a worker later.
//!
//! A job keeps the request's id and trace, so that one grep and one trace lead from the request to what the worker did for it;
//! it does not keep the user's token, nor the request's deadline. The order's own id is the idempotency key: whatever is sent
//! twice, billing bills once. A real service's queue is in a database; this one is a channel, and is lost with the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use steadfast::{CallContext, ServiceClient, context};
use tokio::sync::mpsc;

use crate::App;
use crate::answer::Answer;

/// How many orders may wait for the worker.
const LONGEST_QUEUE: usize = 1_000;

/// What the caller wants.
#[derive(Deserialize)]
pub(crate) struct NewOrder {
    article: String,
}

/// What billing is told.
#[derive(Serialize)]
struct NewInvoice {
    order: u64,
    article: String,
}

/// An order that is to be billed. It is text, as in any queue.
#[derive(Serialize, Deserialize)]
struct Job {
    order: u64,
    article: String,
    context: CallContext,
}

/// Where jobs go.
#[derive(Clone)]
pub(crate) struct Queue {
    jobs: mpsc::Sender<String>,
    last_order: Arc<AtomicU64>,
}

/// Starts the worker, which ends with the last clone of its queue.
pub(crate) fn work(billing: ServiceClient) -> Queue {
    let (jobs, mut waiting) = mpsc::channel::<String>(LONGEST_QUEUE);
    tokio::spawn(async move {
        while let Some(job) = waiting.recv().await {
            match serde_json::from_str::<Job>(&job) {
                Ok(Job { order, article, context }) => {
                    context::scope(context, bill(&billing, NewInvoice { order, article })).await;
                }
                Err(error) => tracing::error!(%error, "a job that cannot be read is left out"),
            }
        }
    });
    // An order's id is its idempotency key, so it must be no other's, of an earlier process neither.
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let first = u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX / 2);
    Queue { jobs, last_order: Arc::new(AtomicU64::new(first)) }
}

pub(crate) async fn place(State(app): State<App>, Json(new): Json<NewOrder>) -> Result<Response, Answer> {
    let order = app.queue.last_order.fetch_add(1, Ordering::Relaxed) + 1;
    let job = Job { order, article: new.article, context: context::for_job() };
    let job = serde_json::to_string(&job).map_err(|_| Answer::Busy)?;
    app.queue.jobs.try_send(job).map_err(|_| Answer::Busy)?;
    Ok((StatusCode::ACCEPTED, Json(serde_json::json!({ "order": order }))).into_response())
}

/// Bills one order. A call that fails is told of in the log; a real worker would put the job back.
async fn bill(billing: &ServiceClient, invoice: NewInvoice) {
    let order = invoice.order;
    let call = billing.post("/invoices").idempotency_key(&format!("order-{order}")).json(&invoice);
    match call.send().await {
        Ok(response) if response.status().is_success() => tracing::info!(order, "billed"),
        Ok(response) => tracing::error!(order, status = %response.status(), "not billed"),
        Err(error) => tracing::error!(order, %error, "not billed"),
    }
}
