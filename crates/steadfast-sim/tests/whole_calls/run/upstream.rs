//! The upstream of both edges: a transport for clients, an operation for guards. It does what the plan says, and notes
//! what it sees.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderValue, Response};
use http_body::{Body, Frame, SizeHint};
use steadfast::policy::Time;
use steadfast::transport::{Exchange, ExchangeFuture, Outgoing, Progress, ResponseBody, TransportError};
use steadfast::{Clock, Fault, Sent};

use crate::log::{How, Log, What};
use crate::plan::{self, Asked, BodyEnd, Plan, Reply, Step};

/// The number of the call, on its requests; that of the exchange, on its response.
pub(crate) const CALL: &str = "x-call";
pub(crate) const EXCHANGE: &str = "x-exchange";

#[derive(Clone)]
pub(crate) struct Upstream {
    clock: Clock,
    log: Log,
    plan: Arc<Plan>,
    /// How many attempts of each call have been seen.
    attempts: Arc<[AtomicU32]>,
}

/// An operation's error: a status, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.status)
    }
}

impl std::error::Error for Failure {}

/// An exchange under way: however it is let go of, that is noted, once.
struct Flight {
    log: Log,
    exchange: usize,
    is_over: bool,
}

impl Flight {
    fn end(&mut self, how: How) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.log.note(What::End { exchange: self.exchange, how });
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.end(How::Dropped);
    }
}

impl Upstream {
    pub(crate) fn new(clock: Clock, log: Log, plan: Arc<Plan>) -> Self {
        let attempts = (0..plan.callers.len()).map(|_| AtomicU32::new(0)).collect();
        Self { clock, log, plan, attempts }
    }

    fn begin(&self, call: usize) -> (Flight, Step) {
        let number = self.attempts[call].fetch_add(1, Ordering::Relaxed) + 1;
        let step = self.plan.step(call, number, self.clock.now());
        let exchange = self.log.start(call, number);
        (Flight { log: self.log.clone(), exchange, is_over: false }, step)
    }

    async fn pass(&self, duration: Duration) {
        if !duration.is_zero() {
            self.clock.wait(duration).await;
        }
    }

    /// Up to the head: its status, or what came instead.
    async fn reply(&self, flight: &mut Flight, step: &Step, mut written: impl FnMut()) -> Result<(u16, Asked), Fault> {
        self.pass(step.connects_after).await;
        if step.writes {
            written();
            self.log.note(What::Written { exchange: flight.exchange });
        }
        match step.reply {
            Reply::Answer { after, status, asked, .. } => {
                self.pass(after).await;
                self.log.note(What::Head { exchange: flight.exchange, status, asked });
                Ok((status, asked))
            }
            Reply::Fail { after, fault } => {
                self.pass(after).await;
                flight.end(How::Failed(fault));
                Err(fault)
            }
            Reply::Hang => std::future::pending().await,
        }
    }

    /// One attempt of a guard's call.
    pub(crate) fn operate(
        &self,
        call: usize,
    ) -> impl Future<Output = Result<(usize, usize), Failure>> + Send + 'static {
        let (mut flight, step) = self.begin(call);
        let upstream = self.clone();
        async move {
            let (status, asked) = match upstream.reply(&mut flight, &step, || {}).await {
                Ok(head) => head,
                Err(_) => return Err(Failure { status: None, retry_after: None }),
            };
            let Reply::Answer { body, .. } = &step.reply else { unreachable!("it was answered") };
            for (after, _) in &body.pieces {
                upstream.pass(*after).await;
            }
            match body.end {
                BodyEnd::Whole => flight.end(How::Whole),
                BodyEnd::Cut(fault) => {
                    flight.end(How::Cut(fault));
                    return Err(Failure { status: None, retry_after: None });
                }
                BodyEnd::Stall => std::future::pending().await,
            }
            match status {
                200 => Ok((flight.exchange, body.pieces.iter().map(|(_, bytes)| bytes).sum())),
                _ => Err(Failure { status: Some(status), retry_after: asked.wait(upstream.clock.now()) }),
            }
        }
    }
}

impl Asked {
    /// How long from `now` on, where anything can be understood; zero asks for nothing.
    fn wait(self, now: Time) -> Option<Duration> {
        match self {
            Self::Nothing | Self::Garbage(_) => None,
            Self::Seconds(seconds) => Some(Duration::from_secs(seconds)),
            Self::TwoLines(one, two) => Some(Duration::from_secs(one.max(two))),
            Self::Date(from_now) => Some(now.until(date(now, from_now))),
        }
    }
}

/// A date has whole seconds.
fn date(now: Time, from_now: i64) -> Time {
    Time::from_secs(now.since(Time::ZERO).as_secs().saturating_add_signed(from_now))
}

impl Exchange for Upstream {
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        let call = outgoing.request.headers().get(CALL).and_then(|call| call.to_str().ok()?.parse().ok());
        let (mut flight, step) = self.begin(call.unwrap());
        Box::pin(async move {
            let (status, asked) = match self.reply(&mut flight, &step, || progress.hand_over()).await {
                Ok(head) => head,
                Err(fault) => {
                    let sent = if step.writes { Sent::Unknown } else { Sent::No };
                    return Err(TransportError::new(fault, sent));
                }
            };
            let Reply::Answer { body, .. } = step.reply else { unreachable!("it was answered") };
            let mut response = Response::builder().status(status).header(EXCHANGE, flight.exchange);
            for line in retry_after(asked, self.clock.wall()) {
                response = response.header("retry-after", line);
            }
            Ok(response.body(ResponseBody::boxed(Pieces::new(&self.clock, body, flight))).unwrap())
        })
    }
}

fn retry_after(asked: Asked, wall: SystemTime) -> Vec<HeaderValue> {
    let text = |text: String| HeaderValue::try_from(text).unwrap();
    match asked {
        Asked::Nothing => Vec::new(),
        Asked::Garbage(garbage) => vec![HeaderValue::from_static(garbage)],
        Asked::Seconds(seconds) => vec![text(seconds.to_string())],
        Asked::TwoLines(one, two) => vec![text(one.to_string()), text(two.to_string())],
        Asked::Date(from_now) => {
            let whole = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            let date = Duration::from_secs(whole.saturating_add_signed(from_now));
            vec![text(httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + date))]
        }
    }
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A body on its way.
struct Pieces {
    clock: Clock,
    wait: Option<Wait>,
    pieces: VecDeque<(Duration, usize)>,
    end: BodyEnd,
    flight: Flight,
}

impl Pieces {
    fn new(clock: &Clock, body: plan::Body, flight: Flight) -> Self {
        let mut pieces = Self { clock: clock.clone(), wait: None, pieces: body.pieces.into(), end: body.end, flight };
        pieces.look_for_the_end();
        pieces
    }

    fn look_for_the_end(&mut self) {
        if self.is_end_stream() {
            self.flight.end(How::Whole);
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let this = self.get_mut();
        let Some(&(after, bytes)) = this.pieces.front() else {
            return match this.end {
                BodyEnd::Whole => Poll::Ready(None),
                BodyEnd::Stall => Poll::Pending,
                BodyEnd::Cut(fault) => {
                    this.flight.end(How::Cut(fault));
                    Poll::Ready(Some(Err(TransportError::new(fault, Sent::Yes))))
                }
            };
        };
        if !after.is_zero() {
            let clock = &this.clock;
            let wait = this.wait.get_or_insert_with(|| {
                let clock = clock.clone();
                Box::pin(async move { clock.wait(after).await })
            });
            ready!(wait.as_mut().poll(cx));
            this.wait = None;
        }
        this.pieces.pop_front();
        this.look_for_the_end();
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.end == BodyEnd::Whole
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
