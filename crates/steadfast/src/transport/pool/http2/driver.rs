//! The task of one connection: it moves the bytes, and keeps the limits of all its streams even if nobody polls them.
//!
//! One timer for the life of the connection; see [`Link`] for how it is set. It ends when the connection closes: when
//! the upstream does, when the last stream of one that opens no more is over, or when a ping is not answered.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::Connection;
use tokio::time::{Sleep, sleep_until};

use super::link::{Link, UNSETTLED};
use super::pings::{Due, Pings};
use crate::transport::connect::Stream;
use crate::transport::pool::meter::NEVER;
use crate::transport::pool::stock::Room;

/// A connection that is closing says its last words in one go: the resets of its last streams, and GOAWAY.
const LAST_WORDS: usize = 4;

pin_project_lite::pin_project! {
    pub(super) struct Driver {
        // The socket is closed first, then the link is known to be gone, then the room is given back.
        wire: Connection<Stream, Bytes>,
        end: End,
        pings: Option<Pings>,
        #[pin]
        timer: Option<Sleep>,
        armed: u64,
    }
}

/// What must happen however the task ends, and in this order.
struct End {
    link: Arc<Link>,
    room: Room,
}

impl End {
    /// Moves the bytes; ready when the connection has ended.
    fn poll(&self, wire: &mut Connection<Stream, Bytes>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(wire).poll(cx).map(|ended| {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection failed");
                if error.is_remote() {
                    self.room.on_refused_by(&self.link, error.reason());
                }
            }
        })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.link.on_end();
        self.room.on_end_of(&self.link);
    }
}

impl Driver {
    pub(super) fn new(wire: Connection<Stream, Bytes>, link: Arc<Link>, pings: Option<Pings>, room: Room) -> Self {
        Self { wire, end: End { link, room }, pings, timer: None, armed: NEVER }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let link = &this.end.link;
        let meter = link.meter();
        meter.register_driver(cx.waker());
        if link.is_cut() {
            return Poll::Ready(());
        }
        // A byte that is there beats a limit that has passed in the same moment.
        if this.end.poll(this.wire, cx).is_ready() {
            return Poll::Ready(());
        }
        if link.is_closing() {
            let _ = (0..LAST_WORDS).find(|_| this.end.poll(this.wire, cx).is_ready());
            return Poll::Ready(());
        }
        if meter.note_movement().is_some() {
            look_at(this.wire, link, &this.end.room);
        }
        if let Some(pings) = this.pings.as_mut() {
            pings.listen(link, cx);
        }
        loop {
            let next = link.next().min(this.pings.as_ref().map_or(NEVER, |pings| pings.limit(link)));
            if next < *this.armed {
                let Some(instant) = meter.instant(next) else { return Poll::Pending };
                match this.timer.as_mut().as_pin_mut() {
                    Some(timer) => timer.reset(instant),
                    None => this.timer.set(Some(sleep_until(instant))),
                }
                *this.armed = next;
            }
            let Some(timer) = this.timer.as_mut().as_pin_mut() else { return Poll::Pending };
            if *this.armed == NEVER || timer.poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = meter.now().max(*this.armed);
            *this.armed = NEVER;
            expire(link, &this.end.room, now);
            match this.pings.as_mut().map_or(Due::Nothing, |pings| pings.look(link, now)) {
                Due::Nothing => {}
                Due::Asked => {
                    if this.end.poll(this.wire, cx).is_ready() {
                        return Poll::Ready(());
                    }
                }
                Due::Dead => {
                    tracing::debug!("a connection did not answer a ping");
                    return Poll::Ready(());
                }
            }
        }
    }
}

/// Something came: perhaps how many streams the upstream allows, or that it goes away.
fn look_at(wire: &Connection<Stream, Bytes>, link: &Arc<Link>, room: &Room) {
    let limit = wire.max_concurrent_send_streams();
    if let Some(before) = link.set_limit(limit) {
        room.on_limit(Some(limit).filter(|_| before == UNSETTLED));
    }
    if let Err(error) = link.sender() {
        room.on_refused_by(link, error.reason());
    }
}

/// Ends what has passed its limit, and finds the next.
fn expire(link: &Arc<Link>, room: &Room, now: u64) {
    link.reset_next();
    let limits = link.meter().limits();
    let mut next = NEVER;
    let late = link.registry.filter(|cell| {
        let at = cell.limit(limits).at;
        if at > now {
            next = next.min(at);
        }
        at <= now
    });
    for cell in late {
        cell.look(now);
    }
    let is_old = now >= limits.age;
    if is_old || (link.registry.is_empty() && now >= link.idle_limit()) {
        room.on_age_of(link, is_old);
    }
    if !is_old {
        next = next.min(limits.age);
    }
    if link.registry.is_empty() {
        let idle = link.idle_limit();
        next = next.min(if idle > now { idle } else { NEVER });
    }
    link.ask_for(next);
}
