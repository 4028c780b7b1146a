//! What the errors of other clients mean: which phase failed, and whether anything was sent.
//!
//! A service of somebody else's says "it failed" with an error of its own type. The truth lies somewhere in the chain of
//! its sources, and is looked for there, from the outside in; the first that is known decides. What nobody knows proves
//! nothing: [`Sent::Unknown`], so that only a request that may be repeated is. The table is in
//! [`service`](super::service), where users see it.
//!
//! Invariants: [`Sent::No`] is said only where the library's own code shows that the request was not begun. A chain is
//! followed for 32 errors and no further, so that one that runs in a circle is not followed for ever.

use std::error::Error as StdError;
use std::io;
use std::iter;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper_util::client::legacy;
use steadfast_http::{Fault, Sent};
use tokio::time::Sleep;
use tokio_rustls::rustls;

use super::TransportError;
use crate::error::{BoxError, Error, ErrorKind};
use crate::report::Outcome;

/// What a user says that errors mean.
pub(crate) type Meaning = dyn Fn(&(dyn StdError + 'static)) -> Option<(Fault, Sent)> + Send + Sync;

/// So many errors of one chain are looked at.
const DEEPEST: usize = 32;

/// An error of a call that may have begun.
pub(crate) fn of_call(error: BoxError, known: Option<&Meaning>) -> TransportError {
    let (fault, sent) = asked(&*error, known).unwrap_or((Fault::Reset, Sent::Unknown));
    TransportError::new(fault, sent).with_source(error)
}

/// An error from before the call: whatever it is, nothing was sent.
#[cfg(feature = "tower")]
pub(crate) fn before_call(error: BoxError, known: Option<&Meaning>) -> TransportError {
    let fault = asked(&*error, known).map_or(Fault::Connect, |(fault, _)| fault);
    TransportError::new(fault, Sent::No).with_source(error)
}

/// An error of a response's body, after its head.
fn of_body(error: BoxError, known: Option<&Meaning>) -> TransportError {
    let fault = match asked(&*error, known) {
        // Before a head a closed connection is a reset; after it, it is a body that was cut.
        Some((Fault::Reset | Fault::Connect, _)) | None => Fault::Incomplete,
        Some((fault, _)) => fault,
    };
    TransportError::new(fault, Sent::Yes).with_source(error)
}

fn asked(error: &(dyn StdError + 'static), known: Option<&Meaning>) -> Option<(Fault, Sent)> {
    known.and_then(|known| known(error)).or_else(|| chain(error).find_map(|error| of_one(error, chain(error))))
}

/// What one error of a chain means by itself; `rest` begins with it.
fn of_one<'a>(
    error: &'a (dyn StdError + 'static),
    rest: impl Iterator<Item = &'a (dyn StdError + 'static)>,
) -> Option<(Fault, Sent)> {
    if let Some(own) = error.downcast_ref::<TransportError>() {
        return Some((own.fault(), own.sent()));
    }
    if let Some(own) = error.downcast_ref::<Error>() {
        return Some(of_steadfast(own));
    }
    if let Some(client) = error.downcast_ref::<legacy::Error>() {
        return client.is_connect().then(|| (of_connecting(rest), Sent::No));
    }
    if let Some(hyper) = error.downcast_ref::<hyper::Error>() {
        return of_hyper(hyper);
    }
    if let Some(h2) = error.downcast_ref::<h2::Error>() {
        return of_h2(h2);
    }
    if let Some(rustls) = error.downcast_ref::<rustls::Error>() {
        return Some((of_rustls(rustls), Sent::Unknown));
    }
    let io = error.downcast_ref::<io::Error>()?;
    match io.kind() {
        io::ErrorKind::ConnectionRefused => Some((Fault::Connect, Sent::Unknown)),
        io::ErrorKind::TimedOut => Some((Fault::ReadTimeout, Sent::Unknown)),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Some((Fault::Reset, Sent::Unknown)),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            if io.get_ref().is_none_or(|inner| !is_known(inner)) =>
        {
            // How hyper says that a chunk cannot be read.
            Some((Fault::Protocol, Sent::Unknown))
        }
        _ => None,
    }
}

/// What an error of hyper's means, unless that lies deeper.
fn of_hyper(error: &hyper::Error) -> Option<(Fault, Sent)> {
    if error.is_parse() {
        return Some((Fault::Protocol, Sent::Unknown));
    }
    if error.is_canceled() {
        // hyper gives a request back that it had not begun with (client/dispatch.rs, client/conn, proto/h1/dispatch.rs).
        return Some((Fault::Reset, Sent::No));
    }
    if error.is_timeout() {
        return Some((Fault::ReadTimeout, Sent::Unknown));
    }
    if error.is_user() && error.source().is_none() {
        return Some((Fault::LocalProtocol, Sent::Unknown));
    }
    if error.is_incomplete_message() || error.is_closed() {
        return Some((Fault::Reset, Sent::Unknown));
    }
    None
}

/// RFC 9113 section 8.7: what an upstream says that it has not processed.
fn of_h2(error: &h2::Error) -> Option<(Fault, Sent)> {
    if error.is_go_away() && error.is_remote() {
        // h2 gives it only to streams above the last one that the upstream says it may have processed.
        return Some((Fault::GoAway, Sent::No));
    }
    if error.is_reset() && error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM) {
        return Some((Fault::RefusedStream, Sent::No));
    }
    if error.is_io() {
        return None;
    }
    let fault = if error.is_remote() { Fault::Reset } else { Fault::Protocol };
    Some((fault, Sent::Unknown))
}

/// How connecting failed.
pub(crate) fn of_connecting<'a>(rest: impl Iterator<Item = &'a (dyn StdError + 'static)>) -> Fault {
    let mut fault = Fault::Connect;
    for error in rest {
        if let Some(rustls) = error.downcast_ref::<rustls::Error>() {
            return of_rustls(rustls);
        }
        if error.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::TimedOut) {
            fault = Fault::ConnectTimeout;
        }
    }
    fault
}

fn of_rustls(error: &rustls::Error) -> Fault {
    match error {
        rustls::Error::InvalidCertificate(_) => Fault::Certificate,
        _ => Fault::Tls,
    }
}

/// A client or a layer of ours further in has ended its call.
fn of_steadfast(error: &Error) -> (Fault, Sent) {
    let mut attempts = error.report().attempts();
    let sent = if attempts.all(|attempt| attempt.sent == Sent::No) { Sent::No } else { Sent::Unknown };
    let last = error.report().attempts().last().map(|last| last.outcome);
    match (error.kind(), last) {
        // Nothing that another attempt could mend (2.12), and no word about the upstream.
        (kind, _) if kind.is_refusal() => (Fault::LocalProtocol, sent),
        (ErrorKind::Unreachable, Some(Outcome::Fault(fault))) => (fault, sent),
        _ => (Fault::AttemptTimeout, sent),
    }
}

fn is_known(error: &(dyn StdError + Send + Sync + 'static)) -> bool {
    error.is::<rustls::Error>() || error.is::<TransportError>() || error.is::<h2::Error>()
}

/// An error and what lies behind it.
pub(crate) fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |error| behind(*error)).take(DEEPEST)
}

/// An [`io::Error`] passes over what it wraps when asked for its source; here it does not.
fn behind<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

pin_project_lite::pin_project! {
    /// The body of another client's response, with errors that say what they are.
    pub(crate) struct ForeignBody<B> {
        #[pin]
        body: B,
        known: Option<Arc<Meaning>>,
        read_timeout: Option<Duration>,
        // Since the reader began to wait for the piece that has not come.
        wait: Option<Pin<Box<Sleep>>>,
    }
}

impl<B> ForeignBody<B> {
    pub(crate) fn new(body: B, known: Option<Arc<Meaning>>, read_timeout: Option<Duration>) -> Self {
        Self { body, known, read_timeout, wait: None }
    }
}

impl<B> Body for ForeignBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            *this.wait = None;
            let known = this.known.as_deref();
            return Poll::Ready(frame.map(|frame| frame.map_err(|error| of_body(error.into(), known))));
        }
        let Some(limit) = *this.read_timeout else { return Poll::Pending };
        let wait = this.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(wait.as_mut().poll(cx));
        *this.wait = None;
        Poll::Ready(Some(Err(TransportError::new(Fault::ReadTimeout, Sent::Yes))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
