//! An HTTP exchange as an operation of the loop: edges translate, the loop decides.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Extensions, HeaderMap, Method, Response, Uri, Version};
use steadfast_http::headers::CallHeaders;
use steadfast_http::trace::TraceContext;
use steadfast_http::{Fault, Repeat, Sent, judge_fault, judge_response};
use steadfast_policy::{Advice, Answer, Cause, Judgement, Time, Verdict};

use super::Shared;
use crate::error::BoxError;
use crate::operation::{Attempt, Judged, Operation, ResultKind};
use crate::report::Outcome;
use crate::telemetry::Shown;
use crate::transport::request_body::Spare;
use crate::transport::{Outgoing, Progress, RequestBody, ResponseBody, Stale408, TransportError, decode};

/// What a custom classifier says of a response (for APIs that answer 200 with an error inside).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assessment {
    /// What the status says.
    #[default]
    ByStatus,
    /// A good answer, whatever the status.
    Good,
    /// A failure that another attempt may fix; it counts against the upstream. It is repeated only if the request may
    /// be, after `retry_after` where one is given.
    Transient {
        /// How long to wait instead of the backoff.
        retry_after: Option<Duration>,
    },
    /// A failure that another attempt cannot fix. The upstream is up.
    Permanent,
}

/// One attempt about to be sent, for a hook that signs it or fetches a fresh token. Only headers can be changed: where
/// the request goes and what it says are the same on every attempt.
#[non_exhaustive]
pub struct AttemptParts<'a> {
    /// The number of the attempt; the first is 1.
    pub attempt: u32,
    /// The method.
    pub method: &'a Method,
    /// The absolute URI.
    pub uri: &'a Uri,
    /// The body; `None` where it comes in pieces.
    pub body: Option<&'a Bytes>,
    /// The headers as they will be sent.
    pub headers: &'a mut HeaderMap,
}

impl fmt::Debug for AttemptParts<'_> {
    /// Without the URI, the headers and the body: they can hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptParts")
            .field("attempt", &self.attempt)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// The future of a per-attempt hook.
pub type HookFuture<'a> = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send + 'a>>;

type BeforeAttempt = dyn for<'a> Fn(AttemptParts<'a>) -> HookFuture<'a> + Send + Sync;
type Assess = dyn Fn(&http::response::Parts, &Bytes) -> Assessment + Send + Sync;

/// What the user of a client hangs into its calls.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) before_attempt: Option<Arc<BeforeAttempt>>,
    pub(crate) assess: Option<Arc<Assess>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("before_attempt", &self.before_attempt.is_some())
            .field("assess", &self.assess.is_some())
            .finish()
    }
}

/// Everything that is the same on each attempt.
pub(crate) struct Prepared {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) extensions: Extensions,
    pub(crate) headers: Arc<CallHeaders>,
    pub(crate) body: RequestBody,
    pub(crate) repeat: Repeat,
    /// The context of which each attempt is a child of its own.
    pub(crate) trace: Option<TraceContext>,
    pub(crate) reading: Reading,
}

/// How a response that nothing is wrong with is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Whole, so that a cut body can be retried.
    Whole,
    /// By the caller (7.6).
    AsItComes,
    /// By the caller, and still encoded as it was sent.
    #[cfg(feature = "tower")]
    Untouched,
}

/// A response: read whole, or with its body still to come.
pub(crate) struct Answered {
    pub(crate) head: http::response::Parts,
    pub(crate) body: Bytes,
    pub(crate) open: Option<Box<Open>>,
    head_after: Duration,
}

/// A body that is still to come.
pub(crate) struct Open {
    pub(crate) body: ResponseBody,
    /// The request's, where the head came before all of it was sent: if that fails, so does the response's.
    pub(crate) upload: Option<Spare>,
    /// What the head means. It is asked for once: a classifier may say something else the next time.
    judgement: Judgement,
}

/// A request on its way through the loop.
pub(crate) struct HttpOperation<'a> {
    shared: &'a Shared,
    request: &'a Prepared,
    progress: Progress,
    handed_over: Option<Time>,
    /// The attempt's span, where it has one.
    #[cfg(feature = "otel")]
    span: Option<Box<TraceContext>>,
}

impl<'a> HttpOperation<'a> {
    pub(crate) fn new(shared: &'a Shared, request: &'a Prepared) -> Self {
        Self {
            shared,
            request,
            progress: Progress::default(),
            handed_over: None,
            #[cfg(feature = "otel")]
            span: None,
        }
    }

    /// The context that the attempt sends: that of its span, else that of the request being served as a child of its own.
    #[inline]
    fn context(&mut self) -> Option<TraceContext> {
        #[cfg(feature = "otel")]
        if let Some(span) = self.span.take() {
            return Some(*span);
        }
        self.request.trace.as_ref().map(|trace| trace.child(fastrand::u64(1..).to_be_bytes()))
    }

    /// What the attempt hands to the transport, as far as we know it.
    fn outgoing(&mut self, attempt: Attempt) -> Result<Outgoing, TransportError> {
        let context = self.context();
        let mut outgoing = Outgoing::new(self.request()?);
        *outgoing.request.headers_mut() = self.request.headers.for_attempt(context.as_ref(), attempt.time_left());
        outgoing.repeatable = self.request.repeat == Repeat::Yes;
        outgoing.time_left = attempt.time_left();
        Ok(outgoing)
    }

    /// The same once the hook has had its say of the headers. It may have taken its time, which is none of the upstream's.
    async fn hooked(
        &self,
        hook: &BeforeAttempt,
        attempt: Attempt,
        mut outgoing: Outgoing,
    ) -> Result<(Outgoing, Time), TransportError> {
        let request = self.request;
        let parts = AttemptParts {
            attempt: attempt.number,
            method: &request.method,
            uri: &request.uri,
            body: request.body.at_hand(),
            headers: outgoing.request.headers_mut(),
        };
        hook(parts).await.map_err(|error| TransportError::new(Fault::LocalProtocol, Sent::No).with_source(error))?;
        let now = self.shared.upstream.clock.now();
        outgoing.time_left = now.until(attempt.deadline);
        Ok((outgoing, now))
    }

    /// The next attempt's request, but for its headers.
    fn request(&self) -> Result<http::Request<RequestBody>, TransportError> {
        let Some(body) = self.request.body.again() else {
            let lost = TransportError::new(Fault::LocalProtocol, Sent::No);
            return Err(lost.with_source("the request's body cannot be sent again"));
        };
        let mut request = http::Request::new(body);
        *request.method_mut() = self.request.method.clone();
        *request.uri_mut() = self.request.uri.clone();
        *request.version_mut() = self.request.version;
        *request.extensions_mut() = self.request.extensions.clone();
        Ok(request)
    }

    /// Whether the request may be repeated, as far as its body can be.
    fn repeat(&self) -> Repeat {
        if self.request.body.is_replayable() { self.request.repeat } else { Repeat::Forbidden }
    }

    /// Hands the body over as it comes, unless another attempt may follow, which needs this one's response whole (7.1).
    async fn open(&self, response: Response<ResponseBody>, head_after: Duration) -> Result<Answered, TransportError> {
        let decoded = self.request.reading == Reading::AsItComes;
        let (head, body) = if decoded { decode::wrap(response, self.shared.codings) } else { response }.into_parts();
        let mut answered = Answered { head, body: Bytes::new(), open: None, head_after };
        let stale = answered.head.extensions.get::<Stale408>().is_some();
        let judgement = self.assess(&answered);
        if stale || judgement.advice == Advice::Retry {
            answered.body = body.collect(self.shared.settings.max_response_bytes).await?;
        } else {
            let upload = self.request.body.under_way();
            answered.open = Some(Box::new(Open { body, upload, judgement }));
        }
        Ok(answered)
    }

    /// Why the request's own body failed, where that is what ended the attempt.
    fn blame(&self, error: TransportError) -> TransportError {
        error.or_blame(self.request.body.take_failure())
    }

    fn assess(&self, answered: &Answered) -> Judgement {
        let rules = &self.shared.statuses;
        let (status, headers) = (answered.head.status, &answered.head.headers);
        let slow = answered.head_after > self.shared.slow_after;
        // The wall clock is read only where a date may have to be compared with it.
        let fixable = rules.retry.contains(status.as_u16());
        let wall = if fixable { self.shared.upstream.clock.wall() } else { SystemTime::UNIX_EPOCH };
        let by_status = judge_response(rules, self.repeat(), status, headers, slow, wall);
        let Some(assess) = &self.shared.hooks.assess else { return by_status };
        let good = if slow { Answer::SlowOk } else { Answer::Ok };
        let (verdict, answer, advice, retry_after) = match assess(&answered.head, &answered.body) {
            Assessment::ByStatus => return by_status,
            Assessment::Good => (Verdict::Success, good, Advice::Done, None),
            Assessment::Permanent => (Verdict::Success, good, Advice::NotRetryable, None),
            Assessment::Transient { retry_after } => {
                let repeatable = self.repeat().permits(Sent::Yes);
                let advice = if repeatable { Advice::Retry } else { Advice::NotRepeatable };
                (Verdict::Failure, Answer::Failed, advice, retry_after)
            }
        };
        Judgement { verdict: Some(verdict), answer, cause: Cause::Fast, advice, retry_after }
    }
}

impl Operation for HttpOperation<'_> {
    type Out = Result<Answered, TransportError>;

    // No `async fn`, here and on the way of a request over a pooled HTTP/1.1 connection: it would move the request once more
    // at each step.
    fn attempt(&mut self, attempt: Attempt) -> impl Future<Output = Self::Out> + Send {
        async move {
            (self.progress, self.handed_over) = (Progress::default(), None);
            let (mut outgoing, mut handed_over) = (self.outgoing(attempt)?, attempt.started);
            if let Some(hook) = &self.shared.hooks.before_attempt {
                (outgoing, handed_over) = Box::pin(self.hooked(&**hook, attempt, outgoing)).await?;
            }
            self.handed_over = Some(handed_over);
            // Not `map_err`: a response is large, and each step between here and there would move it.
            let mut response = match self.shared.transport.exchange(outgoing, &mut self.progress).await {
                Ok(response) => response,
                Err(error) => return Err(self.blame(error)),
            };
            let head_after = self.shared.upstream.clock.now().since(handed_over);
            if self.request.reading != Reading::Whole {
                return Box::pin(self.open(response, head_after)).await.map_err(|error| self.blame(error));
            }
            let most = self.shared.settings.max_response_bytes;
            decode::in_place(&mut response, self.shared.codings);
            match response.body_mut().read(most).await {
                Ok(body) => Ok(Answered { head: response.into_parts().0, body, open: None, head_after }),
                Err(error) => Err(self.blame(error)),
            }
        }
    }

    fn judge(&self, _: Duration, out: &Self::Out) -> Judged {
        match out {
            Ok(answered) => {
                let open = answered.open.as_ref();
                let mut judgement = open.map_or_else(|| self.assess(answered), |open| open.judgement);
                let outcome = Outcome::Status(answered.head.status.as_u16());
                if answered.head.extensions.get::<Stale408>().is_some() {
                    // It may answer an earlier request: it says nothing about this one, and ends the call.
                    judgement.verdict = None;
                    judgement.advice = Advice::NotRepeatable;
                    return Judged { judgement, outcome, sent: Sent::Unknown, result: ResultKind::StaleResponse };
                }
                let result = if open.is_some() { ResultKind::Open } else { ResultKind::Response };
                Judged { judgement, outcome, sent: Sent::Yes, result }
            }
            Err(error) => judge_transport(self.repeat(), error.fault(), error.sent()),
        }
    }

    fn asked_at(&self, _: Attempt) -> Option<Time> {
        self.handed_over
    }

    fn judge_cut(&self, fault: Fault) -> Judged {
        judge_transport(self.repeat(), fault, self.progress.sent())
    }

    fn shown(&self) -> Option<Shown<'_>> {
        let request = self.request;
        Some(Shown {
            method: &request.method,
            #[cfg(feature = "otel")]
            uri: &request.uri,
            #[cfg(feature = "otel")]
            settings: &self.shared.settings,
            #[cfg(feature = "otel")]
            headers: request.headers.headers(),
            #[cfg(feature = "otel")]
            trace: request.trace.as_ref(),
        })
    }

    #[cfg(feature = "otel")]
    fn in_trace(&mut self, span: TraceContext) {
        self.span = Some(Box::new(span));
    }

    #[cfg(feature = "otel")]
    fn version(out: &Self::Out) -> Option<Version> {
        out.as_ref().ok().map(|answered| answered.head.version)
    }
}

fn judge_transport(repeat: Repeat, fault: Fault, sent: Sent) -> Judged {
    #[cfg(steadfast_planted)]
    let sent = crate::planted::sent(sent);
    let result = if fault == Fault::PoolTimeout { ResultKind::PoolFull } else { ResultKind::Failure };
    Judged { judgement: judge_fault(repeat, fault, sent), outcome: Outcome::Fault(fault), sent, result }
}
