//! Virtual time as a stage: the shipped clients on the clock of a [`World`], with the scripted upstreams as their transport.
//!
//! What a pool does beside carrying bytes is done here in its place, so that a script means the same on every stage: the
//! `read_timeout` bounds the wait for the head and for each piece of the body.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response};
use http_body::{Body, Frame};
use steadfast::config::Config;
use steadfast::transport::{Exchange, ExchangeFuture, Outgoing, Progress, ResponseBody, TransportError};
use steadfast::{Clock, Fault, Sent};

use super::cast::{Cast, CastError};
use super::model::{Act, Respond, Scenario};
use super::run::{Outcome, play};
use super::stage::{CallEnd, Stage, StageError, Ticket, Work};
use super::upstream::{Taken, Upstream, headers_at};
use crate::{Task, World};

/// A stage in virtual time.
pub struct VirtualStage {
    world: World,
    cast: Cast,
    work: Vec<Option<Task<Vec<CallEnd>>>>,
}

impl VirtualStage {
    /// Everybody of this scenario in a world of their own.
    ///
    /// # Errors
    /// [`CastError`]
    pub fn new(scenario: &Scenario) -> Result<Self, CastError> {
        let world = World::new(scenario.seed);
        let clock = Clock::from(world.clock().clone());
        let config = scenario.settings.config();
        let (timeouts, on) = (read_timeouts(config), clock.clone());
        let cast = Cast::new(scenario, config, clock, move |builder, upstream| {
            let read_timeout = timeouts.get(upstream.name()).copied().unwrap_or(Duration::MAX);
            builder.transport(Played { upstream: upstream.clone(), clock: on.clone(), read_timeout })
        })?;
        Ok(Self { world, cast, work: Vec::new() })
    }
}

fn read_timeouts(config: &Config) -> BTreeMap<String, Duration> {
    config.upstreams().map(|(name, upstream)| (name.to_owned(), upstream.settings().read_timeout)).collect()
}

/// Plays the scenario in virtual time.
///
/// # Errors
/// [`CastError`]: a client or guard cannot be made.
pub fn play_in_time(scenario: &Scenario) -> Result<Outcome, CastError> {
    Ok(play(scenario, &mut VirtualStage::new(scenario)?))
}

impl Stage for VirtualStage {
    fn cast(&self) -> &Cast {
        &self.cast
    }

    fn begin(&mut self, work: Work) -> Ticket {
        let task = self.world.start(work);
        self.world.run_for(Duration::ZERO);
        self.work.push(Some(task));
        Ticket(self.work.len() - 1)
    }

    fn finish(&mut self, ticket: Ticket) -> Result<Vec<CallEnd>, StageError> {
        let Some(mut task) = self.work.get_mut(ticket.0).and_then(Option::take) else {
            return Err(StageError("this work has been waited for before".to_owned()));
        };
        loop {
            self.world.run_for(Duration::ZERO);
            let mut context = Context::from_waker(std::task::Waker::noop());
            if let Poll::Ready(ends) = Pin::new(&mut task).poll(&mut context) {
                return Ok(ends);
            }
            let Some(next) = self.world.clock().next_timer() else {
                return Err(StageError("the calls wait for something that never comes".to_owned()));
            };
            self.world.run_until(next);
        }
    }

    fn pass(&mut self, duration: Duration) {
        self.world.run_for(duration);
    }

    fn held(&self) -> Vec<String> {
        match self.world.clock().armed_timers() {
            0 => Vec::new(),
            timers => vec![format!("{timers} timers are armed")],
        }
    }
}

impl std::fmt::Debug for VirtualStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualStage").field("world", &self.world).finish_non_exhaustive()
    }
}

/// A scripted upstream as a transport.
struct Played {
    upstream: Upstream,
    clock: Clock,
    read_timeout: Duration,
}

impl Exchange for Played {
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        Box::pin(async move {
            let (head, body) = outgoing.request.into_parts();
            let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
            let taken = self.upstream.take(&head.method, &path);
            let after = taken.reply.after;
            match taken.reply.act {
                Act::Refuse => {
                    self.clock.wait(after).await;
                    return Err(failure(Fault::Connect, Sent::No));
                }
                Act::Reset { read: false } => {
                    progress.hand_over();
                    self.clock.wait(after).await;
                    return Err(failure(Fault::Reset, Sent::Unknown));
                }
                _ => {}
            }
            progress.hand_over();
            let is_head = head.method == Method::HEAD;
            // A scenario's requests have their bodies whole.
            let body = body.as_bytes().map(|bytes| bytes.to_vec()).unwrap_or_default();
            self.upstream.read(head.method, path, head.headers, body);
            if after > self.read_timeout || taken.reply.act == Act::Hang {
                self.clock.wait(self.read_timeout).await;
                return Err(failure(Fault::ReadTimeout, Sent::Unknown));
            }
            self.clock.wait(after).await;
            match taken.reply.act.clone() {
                Act::Respond(respond) => self.respond(&respond, self.body(&respond, is_head), taken),
                _ => Err(failure(Fault::Reset, Sent::Unknown)),
            }
        })
    }
}

impl Played {
    fn respond(
        &self,
        respond: &Respond,
        pieces: Pieces,
        taken: Taken,
    ) -> Result<Response<ResponseBody>, TransportError> {
        let body = match pieces {
            Pieces::Whole(bytes) => ResponseBody::full(bytes),
            Pieces::Some(first, rest) => ResponseBody::boxed(Playing { first, rest, wait: None, _taken: taken }),
        };
        let mut response = Response::new(body);
        *response.status_mut() = http::StatusCode::from_u16(respond.status)
            .map_err(|error| failure(Fault::Protocol, Sent::Yes).with_source(error))?;
        for (name, value) in headers_at(respond, self.clock.wall()) {
            response.headers_mut().append(name, value);
        }
        Ok(response)
    }

    fn body(&self, respond: &Respond, is_head: bool) -> Pieces {
        // RFC 9110 section 6.4.1: these end with their heads.
        if is_head || matches!(respond.status, 204 | 304) {
            return Pieces::Whole(Bytes::new());
        }
        let bytes = Bytes::from(respond.body.clone());
        match (respond.cut, respond.drip) {
            (Some(cut), _) => Pieces::Some(bytes.slice(..cut.min(bytes.len())), Rest::Cut),
            (None, Some(every)) => {
                let (clock, read_timeout) = (self.clock.clone(), self.read_timeout);
                Pieces::Some(Bytes::new(), Rest::Drip { clock, every, read_timeout })
            }
            (None, None) => Pieces::Whole(bytes),
        }
    }
}

enum Pieces {
    Whole(Bytes),
    Some(Bytes, Rest),
}

/// What comes after the first piece.
enum Rest {
    Cut,
    Drip { clock: Clock, every: Duration, read_timeout: Duration },
}

/// A body that does not come whole.
struct Playing {
    first: Bytes,
    rest: Rest,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _taken: Taken,
}

impl Body for Playing {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let this = self.get_mut();
        if !this.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.first)))));
        }
        let Rest::Drip { clock, every, read_timeout } = &this.rest else {
            return Poll::Ready(Some(Err(failure(Fault::Incomplete, Sent::Yes))));
        };
        let wait = this.wait.get_or_insert_with(|| {
            let (clock, duration) = (clock.clone(), (*every).min(*read_timeout));
            Box::pin(async move { clock.wait(duration).await })
        });
        ready!(wait.as_mut().poll(cx));
        this.wait = None;
        Poll::Ready(Some(match every > read_timeout {
            true => Err(failure(Fault::ReadTimeout, Sent::Yes)),
            false => Ok(Frame::data(Bytes::from_static(b"."))),
        }))
    }
}

fn failure(fault: Fault, sent: Sent) -> TransportError {
    TransportError::new(fault, sent).with_source(io::Error::other("scripted"))
}
