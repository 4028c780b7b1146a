//! The task of one connection: it moves the bytes, and keeps the connection's limits even if nobody polls its user.
//!
//! One timer for the life of the connection. It is set earlier when a limit comes nearer, and otherwise left to fire
//! and be set again, so that a busy connection pays for it about once per `read_timeout` and not once per request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{Sleep, sleep_until};

use super::meter::{Meter, NEVER};
use super::stock::Room;
use crate::transport::RequestBody;
use crate::transport::connect::Stream;

/// hyper's side of a connection.
pub(crate) type Wire = http1::Connection<TokioIo<Stream>, RequestBody>;

pin_project_lite::pin_project! {
    /// Ends when the connection closes, when its last sender is dropped, or when a limit has passed.
    pub(crate) struct Driver {
        // First, so that the socket is closed before the room is given back.
        wire: Wire,
        meter: Arc<Meter>,
        #[pin]
        timer: Option<Sleep>,
        armed: u64,
        room: Room,
    }
}

impl Driver {
    pub(crate) fn new(wire: Wire, meter: Arc<Meter>, room: Room) -> Self {
        Self { wire, meter, timer: None, armed: NEVER, room }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        this.meter.register_driver(cx.waker());
        // A byte that is there beats a limit that has passed in the same moment.
        match Pin::new(this.wire).poll(cx) {
            Poll::Ready(Ok(())) => return Poll::Ready(()),
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "an idle connection failed");
                return Poll::Ready(());
            }
            Poll::Pending => {}
        }
        let mut now = this.meter.note_movement();
        if this.meter.is_stuck() {
            return Poll::Ready(());
        }
        loop {
            let limit = this.meter.limit();
            if now.is_some_and(|now| now >= limit.at) {
                this.meter.close_by(limit.fault);
                return Poll::Ready(());
            }
            if limit.at < *this.armed {
                let Some(instant) = this.meter.instant(limit.at) else { return Poll::Pending };
                match this.timer.as_mut().as_pin_mut() {
                    Some(timer) => timer.reset(instant),
                    None => this.timer.set(Some(sleep_until(instant))),
                }
                *this.armed = limit.at;
                this.meter.set_armed(limit.at);
            } else if now.is_some_and(|now| now < *this.armed) {
                return Poll::Pending;
            }
            let Some(timer) = this.timer.as_mut().as_pin_mut() else { return Poll::Pending };
            if *this.armed == NEVER || timer.poll(cx).is_pending() {
                return Poll::Pending;
            }
            now = Some(this.meter.now().max(*this.armed));
            *this.armed = NEVER;
            this.meter.set_armed(NEVER);
        }
    }
}
