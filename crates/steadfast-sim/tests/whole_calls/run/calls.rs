//! One caller: makes its call, does with the future what its fate is, and notes what it got.

use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use steadfast::policy::Time;
use steadfast::{
    CallContext, Error, ErrorClass, Guard, GuardCall, GuardError, Report, RequestBuilder, Response, Served,
    ServiceClient, StreamingResponse,
};

use super::upstream::{CALL, EXCHANGE, Failure, Upstream};
use super::{Client, Scene};
use crate::log::{Answer, Read, What};
use crate::plan::{Caller, Fate, Reader};

/// The life of caller number `call`.
pub(super) async fn live(scene: Rc<Scene>, call: usize) {
    let caller = scene.plan.caller(call).clone();
    scene.clock.wait_until(Time::ZERO + caller.at).await;
    match &scene.client {
        Client::Http(client) => match caller.reader {
            None => {
                let request = request(client, call, &caller);
                scene.log.note(What::Made { call });
                let result = steer(&scene, call, caller.fate, request.send()).await;
                scene.done(call, result.map(|result| whole(&result)));
            }
            Some(reader) => {
                let request = request(client, call, &caller);
                scene.log.note(What::Made { call });
                let result = steer(&scene, call, caller.fate, request.send_streaming()).await;
                scene.done(call, result.as_ref().map(head));
                if let Some(Ok(response)) = result {
                    read(&scene, call, reader, response).await;
                }
            }
        },
        Client::Guard(guard, upstream) => guarded(&scene, call, &caller, guard, upstream).await,
    }
}

fn request(client: &ServiceClient, call: usize, caller: &Caller) -> RequestBuilder {
    let mut request = if caller.is_post { client.post("/x") } else { client.get("/x") }.header(CALL, call.to_string());
    if let Some(key) = caller.idempotency_key {
        request = request.idempotency_key(key);
    }
    if let Some(retry) = caller.retry {
        request = request.retry(retry);
    }
    if let Some(timeout) = caller.timeout {
        request = request.timeout(timeout);
    }
    if let Some(left) = caller.inherited {
        request = request.context(&CallContext::new().with_time_left(left));
    }
    request.timeout_is_evidence(caller.timeout_is_evidence)
}

async fn guarded(scene: &Scene, call: usize, caller: &Caller, guard: &Guard, upstream: &Upstream) {
    let mut prepared: GuardCall<'_> = guard.key(caller.key);
    if let Some(timeout) = caller.timeout {
        prepared = prepared.timeout(timeout);
    }
    if let Some(left) = caller.inherited {
        prepared = prepared.context(&CallContext::new().with_time_left(left));
    }
    scene.log.note(What::Made { call });
    let operation = |_| upstream.operate(call);
    let result = if caller.retry == Some(false) {
        steer(scene, call, caller.fate, prepared.serve(operation)).await
    } else {
        let prepared = prepared.classify(class).retry_after(|failure: &Failure| failure.retry_after);
        steer(scene, call, caller.fate, prepared.serve(operation)).await
    };
    scene.done(call, result.map(|result| served(&result)));
}

/// What an operation's error means.
fn class(failure: &Failure) -> ErrorClass {
    match failure.status {
        None | Some(502..=504) => ErrorClass::TRANSIENT,
        Some(429) => ErrorClass::Throttled { retry_after: None },
        Some(500) => ErrorClass::Failure,
        Some(_) => ErrorClass::Permanent,
    }
}

/// Does with a call's future what its caller's fate is; `None`: it was dropped.
async fn steer<F: Future>(scene: &Scene, call: usize, fate: Fate, future: F) -> Option<F::Output> {
    // Boxed, so that it can be dropped before this is over.
    let mut future = Some(Box::pin(future));
    let (polls, kept) = match fate {
        Fate::Await => (u32::MAX, Duration::MAX),
        Fate::CancelAfter(after) => (u32::MAX, after),
        Fate::CancelAtPoll(polls) => (polls, Duration::ZERO),
        Fate::NeverPolled(kept) => (0, kept),
        Fate::StopPolling(polls, kept) => (polls, kept),
        Fate::Late(late) => {
            scene.clock.wait(late).await;
            (u32::MAX, Duration::MAX)
        }
    };
    let mut left = polls;
    let mut drop_after = pin!(scene.clock.wait(kept));
    let out = std::future::poll_fn(|cx| {
        if left == polls && polls > 0 {
            scene.log.note(What::Began { call });
        }
        if left > 0 {
            left -= 1;
            if let Some(Poll::Ready(out)) = future.as_mut().map(|future| future.as_mut().poll(cx)) {
                return Poll::Ready(Some(out));
            }
            if left == 0 && matches!(fate, Fate::StopPolling(..)) {
                scene.log.note(What::Stalled { call });
            }
            // Dropped when it is woken for the time after the last: something has just come that it has not seen.
            if matches!(fate, Fate::Await | Fate::Late(_) | Fate::CancelAtPoll(_)) {
                return Poll::Pending;
            }
        }
        drop_after.as_mut().poll(cx).map(|()| None)
    })
    .await;
    if out.is_none() {
        scene.log.note(What::Cancelled { call });
        future = None;
    }
    drop(future);
    out
}

/// Reads a body as its caller does.
async fn read(scene: &Scene, call: usize, reader: Reader, mut response: StreamingResponse) {
    let mut bytes = 0;
    for count in 0_usize.. {
        if let Some((_, kept)) = reader.stops.filter(|(most, _)| count == *most) {
            scene.clock.wait(kept).await;
            return;
        }
        if !reader.pace.is_zero() {
            scene.clock.wait(reader.pace).await;
        }
        let how = match response.chunk().await {
            Ok(Some(piece)) => {
                bytes += piece.len();
                scene.log.note(What::Piece { call });
                continue;
            }
            Ok(None) => Read::Whole(bytes),
            Err(error) => Read::Failed(error.kind()),
        };
        return scene.log.note(What::Read { call, how });
    }
}

fn whole(result: &Result<Response, Error>) -> Answer {
    match result {
        Ok(response) => {
            let exchange = response.header(EXCHANGE).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap();
            answer(Some((exchange, Some(response.bytes().len()))), None, response.report())
        }
        Err(error) => answer(None, Some(error), error.report()),
    }
}

fn head(result: &Result<StreamingResponse, Error>) -> Answer {
    match result {
        Ok(response) => {
            let exchange = response.header(EXCHANGE).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap();
            answer(Some((exchange, None)), None, response.report())
        }
        Err(error) => answer(None, Some(error), error.report()),
    }
}

fn served(result: &Result<Served<(usize, usize)>, GuardError<Failure>>) -> Answer {
    match result {
        Ok(served) => {
            let (exchange, bytes) = *served.value();
            answer(Some((exchange, Some(bytes))), None, served.report())
        }
        Err(GuardError::Limit { error, .. }) => answer(None, Some(error), error.report()),
        Err(error) => answer(None, None, error.report()),
    }
}

fn answer(response: Option<(usize, Option<usize>)>, error: Option<&Error>, report: &Report) -> Answer {
    Answer { response, kind: error.map(Error::kind), report: report.clone() }
}

impl Scene {
    fn done(&self, call: usize, answer: Option<Answer>) {
        if let Some(answer) = answer {
            self.log.note(What::Done { call, answer: Box::new(answer) });
        }
    }
}
