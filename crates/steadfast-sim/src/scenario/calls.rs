//! Making the calls of a step: so many, some of them at once, each given up after a while. The same on every stage.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use http::HeaderMap;
use steadfast::{CallContext, Clock, Error, GuardError, Response, ServiceClient, StreamingResponse};

use super::cast::{Cast, Guarded};
use super::model::{Call, CallKind, Ending, GuardCall, HttpCall, OperationError};
use super::stage::{CallEnd, Work};

/// The calls of a step as work. `None`: the target is not there, which the reader has seen to.
pub(super) fn work(cast: &Cast, call: &Call) -> Option<Work> {
    let (call, clock) = (Rc::new(call.clone()), cast.clock.clone());
    let target = match &call.kind {
        CallKind::Http(_) => Target::Client(cast.client(&call.target)?),
        CallKind::Guard(_) => Target::Guard(cast.guards.get(&call.target)?.clone()),
    };
    Some(Box::pin(all(target, call, clock)))
}

#[derive(Clone)]
enum Target {
    Client(ServiceClient),
    Guard(Guarded),
}

/// As many callers as there may be calls at once; each makes the next until all are made.
async fn all(target: Target, call: Rc<Call>, clock: Clock) -> Vec<CallEnd> {
    let ends: Rc<RefCell<Vec<Option<CallEnd>>>> = Rc::new(RefCell::new(vec![None; call.times as usize]));
    let next = Rc::new(Cell::new(0_usize));
    let callers = (0..call.concurrent.min(call.times)).map(|_| {
        let (target, call, clock) = (target.clone(), call.clone(), clock.clone());
        let (ends, next) = (ends.clone(), next.clone());
        Box::pin(async move {
            while next.get() < call.times as usize {
                let number = next.replace(next.get() + 1);
                let end = one(&target, &call, &clock).await;
                if let Some(place) = ends.borrow_mut().get_mut(number) {
                    *place = Some(end);
                }
            }
        })
    });
    join(callers.collect()).await;
    ends.take().into_iter().flatten().collect()
}

/// One call, up to its end or until its caller gives it up. An end that is there in the same instant wins.
async fn one(target: &Target, call: &Call, clock: &Clock) -> CallEnd {
    let began = clock.now();
    let mut end = {
        let mut running: Pin<Box<dyn Future<Output = CallEnd>>> = match (target, &call.kind) {
            (Target::Client(client), CallKind::Http(http)) => Box::pin(over_http(client, call, http)),
            (Target::Guard(guarded), CallKind::Guard(own)) => Box::pin(guarded_call(guarded, call, own)),
            _ => Box::pin(std::future::ready(given_up())),
        };
        match call.cancel_after {
            None => running.await,
            Some(after) => {
                let mut limit = pin!(clock.limit(began + after));
                poll_fn(|cx| match running.as_mut().poll(cx) {
                    Poll::Ready(end) => Poll::Ready(end),
                    Poll::Pending => limit.as_mut().poll(cx).map(|()| given_up()),
                })
                .await
            }
        }
    };
    end.took = clock.now().since(began);
    end
}

fn given_up() -> CallEnd {
    CallEnd {
        ending: Ending::CANCELLED,
        report: None,
        took: std::time::Duration::ZERO,
        message: None,
        body: None,
        degraded: false,
    }
}

async fn over_http(client: &ServiceClient, call: &Call, http: &HttpCall) -> CallEnd {
    let mut request = client.request(http.method.clone(), &http.path);
    for (name, value) in &http.headers {
        request = request.header(name, value);
    }
    if let Some(body) = &http.body {
        request = request.body(body.clone());
    }
    if let Some(key) = &http.idempotency_key {
        request = request.idempotency_key(key);
    }
    if let Some(retry) = http.retry {
        request = request.retry(retry);
    }
    if let Some(timeout) = call.timeout {
        request = request.timeout(timeout);
    }
    if let Some(context) = context(call) {
        request = request.context(&context);
    }
    request = request.timeout_is_evidence(http.timeout_is_evidence);
    if http.stream { streamed(request.send_streaming().await).await } else { end_of(request.send().await) }
}

/// What is kept of a body that is read as it comes.
const MOST_BYTES: usize = 1 << 20;

/// Reads the body to its end, and tells how that came.
async fn streamed(head: Result<StreamingResponse, Error>) -> CallEnd {
    let mut response = match head {
        Ok(response) => response,
        Err(error) => return refused(&error),
    };
    let mut body = Vec::new();
    let end = loop {
        match response.chunk().await {
            Ok(Some(piece)) => {
                let room = MOST_BYTES.saturating_sub(body.len());
                body.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            Ok(None) => {
                let (ending, report) = (Ending::Status(response.status().as_u16()), Some(response.report().clone()));
                break CallEnd { ending, report, ..given_up() };
            }
            Err(error) => break refused(&error),
        }
    };
    CallEnd { body: Some(String::from_utf8_lossy(&body).into_owned()), ..end }
}

fn end_of(result: Result<Response, Error>) -> CallEnd {
    match result {
        Ok(response) => CallEnd {
            ending: Ending::Status(response.status().as_u16()),
            report: Some(response.report().clone()),
            body: Some(response.text().into_owned()),
            ..given_up()
        },
        Err(error) => refused(&error),
    }
}

fn refused(error: &Error) -> CallEnd {
    CallEnd {
        ending: Ending::of_kind(error.kind()),
        report: Some(error.report().clone()),
        message: Some(error.to_string()),
        ..given_up()
    }
}

async fn guarded_call(guarded: &Guarded, call: &Call, own: &GuardCall) -> CallEnd {
    let operation = || guarded.operation.clone().call();
    let mut prepared = guarded.guard.key(&own.rate_limit_key);
    if let Some(timeout) = call.timeout {
        prepared = prepared.timeout(timeout);
    }
    if let Some(context) = context(call) {
        prepared = prepared.context(&context);
    }
    let served = match (own.classify, &own.fallback) {
        (true, None) => prepared.classify(class).serve(|_| operation()).await,
        (true, Some(value)) => prepared.classify(class).fallback(value.clone()).serve(|_| operation()).await,
        (false, None) => prepared.serve(|_| operation()).await,
        (false, Some(value)) => prepared.fallback(value.clone()).serve(|_| operation()).await,
    };
    match served {
        Ok(served) => CallEnd {
            ending: Ending::OK,
            report: Some(served.report().clone()),
            degraded: served.is_degraded(),
            body: Some(served.into_value()),
            ..given_up()
        },
        Err(GuardError::Limit { error, .. }) => refused(&error),
        Err(error) => CallEnd {
            ending: Ending::OPERATION,
            report: Some(error.report().clone()),
            message: Some(error.to_string()),
            ..given_up()
        },
    }
}

fn class(error: &OperationError) -> steadfast::ErrorClass {
    error.class
}

/// What the call inherits from the request being served, if one is.
fn context(call: &Call) -> Option<CallContext> {
    if call.inbound.is_empty() && call.time_left.is_none() {
        return None;
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &call.inbound {
        headers.append(name, value.clone());
    }
    let context = CallContext::extract(&headers);
    Some(match call.time_left {
        Some(left) => context.with_time_left(left),
        None => context,
    })
}

/// Polls all of them until each has ended.
async fn join<F: Future<Output = ()> + Unpin>(mut futures: Vec<F>) {
    poll_fn(|cx| {
        futures.retain_mut(|future| Pin::new(future).poll(cx).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
