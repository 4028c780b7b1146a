//! The transport of a simulated client: what is between it and the modelled upstream.
//!
//! Enforces what a transport enforces, `connect_timeout` and `read_timeout`; all other limits are the client's own. There
//! are no connections: opening one takes no time.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Response, StatusCode};
use steadfast::config::Settings;
use steadfast::policy::Time;
use steadfast::transport::{Exchange, ExchangeFuture, Outgoing, Progress, ResponseBody, TransportError};
use steadfast::{Clock, Fault, Sent};

use super::engine::{Answer, Engine, Fate, JobId, Quota, Reply, Request};

/// The way from one client to its upstream.
#[derive(Clone)]
pub struct Link {
    engine: Engine,
    clock: Clock,
    client: usize,
    limits: Limits,
}

/// What a transport of these settings would cut, and what its requests say.
#[derive(Clone, Copy)]
struct Limits {
    connect: Duration,
    /// `None` where the client's own limit comes first.
    read: Option<Duration>,
    /// Whether requests carry the deadline.
    tells_deadline: bool,
}

impl Link {
    pub(super) fn new(engine: Engine, clock: Clock, client: usize, settings: &Settings) -> Self {
        let read = settings.read_timeout;
        let own = settings.attempt_timeout.unwrap_or(settings.total_timeout).min(settings.total_timeout);
        let limits = Limits {
            connect: settings.connect_timeout,
            read: (read < own).then_some(read),
            tells_deadline: settings.deadline_header.is_some(),
        };
        Self { engine, clock, client, limits }
    }

    async fn reply(&self, job: JobId) -> Result<Reply, TransportError> {
        let waiting = Waiting { link: self, job };
        let Some(read) = self.limits.read else { return Ok(waiting.reply().await) };
        let mut reply = pin!(waiting.reply());
        let mut limit = pin!(self.clock.limit(self.clock.now() + read));
        std::future::poll_fn(|cx| match reply.as_mut().poll(cx) {
            Poll::Ready(reply) => Poll::Ready(Ok(reply)),
            Poll::Pending => limit.as_mut().poll(cx).map(|()| Err(fault(Fault::ReadTimeout, Sent::Unknown))),
        })
        .await
    }
}

impl Exchange for Link {
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        Box::pin(async move {
            let now = self.clock.now();
            let deadline = if self.limits.tells_deadline { now + outgoing.time_left } else { Time::MAX };
            let route = route_of(outgoing.request.uri().path());
            let reception = self.engine.receive(now, Request { client: self.client, route, deadline });
            let _seen = Seen { engine: &self.engine, replica: reception.replica };
            let answer = match reception.fate {
                Fate::Taken(job) => {
                    progress.hand_over();
                    match self.reply(job).await? {
                        Reply::Answer(answer) => answer,
                        Reply::Reset => return Err(fault(Fault::Reset, Sent::Unknown)),
                    }
                }
                Fate::Answered(answer, after) => {
                    progress.hand_over();
                    self.clock.wait(after).await;
                    answer
                }
                Fate::Refused(after) => {
                    self.clock.wait(after).await;
                    return Err(fault(Fault::Connect, Sent::No));
                }
                Fate::Unreachable => {
                    self.clock.limit(now + self.limits.connect).await;
                    return Err(fault(Fault::ConnectTimeout, Sent::No));
                }
            };
            Ok(response(&answer))
        })
    }
}

fn fault(fault: Fault, sent: Sent) -> TransportError {
    TransportError::new(fault, sent)
}

/// The balancer's view of a request: it is over when its connection is free again, for whatever reason.
struct Seen<'a> {
    engine: &'a Engine,
    replica: usize,
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        self.engine.release(self.replica);
    }
}

/// Waits for a job's reply; dropped, it leaves the job to itself.
struct Waiting<'a> {
    link: &'a Link,
    job: JobId,
}

impl Waiting<'_> {
    async fn reply(self) -> Reply {
        std::future::poll_fn(|cx| self.link.engine.poll_reply(cx, self.job)).await
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.link.engine.abandon(self.link.clock.now(), self.job);
    }
}

/// The paths of all routes.
pub(super) fn paths() -> Arc<[String]> {
    (0..super::workload::ROUTES).map(|route| format!("/{route}")).collect()
}

/// The route is the last segment of the path; another path is route 0.
fn route_of(path: &str) -> u16 {
    path.rsplit('/').next().and_then(|last| last.parse().ok()).unwrap_or(0)
}

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

fn response(answer: &Answer) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(""));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Some(after) = answer.retry_after {
        headers.insert(http::header::RETRY_AFTER, HeaderValue::from(seconds(after)));
    }
    if let Some(Quota { limit, left, period, resets_in }) = answer.quota {
        let now = format!("\"default\";r={left};t={}", seconds(resets_in));
        let policy = format!("\"default\";q={limit};w={}", seconds(period));
        for (name, value) in [(RATE_LIMIT, now), (RATE_LIMIT_POLICY, policy)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
    }
    response
}

/// In whole seconds, rounded up.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
