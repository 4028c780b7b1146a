//! What a pool holds: its idle connections, the room for further ones, and the queue for both.
//!
//! Room is what `max_connections` counts: one for each socket that is open or being opened. It is given back when the
//! socket is closed, not when somebody decides to close it, so the upstream never sees more connections than allowed.
//!
//! Invariants: somebody waits only while all room is taken and nothing is idle; what is handed over goes to the first
//! in the queue; a connection, a grant, and a waiter are never dropped under the lock.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_http::{Fault, Sent};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::connection::Connection;
use crate::transport::TransportError;

/// How many connections there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// Sockets that are open or being opened, the idle ones included.
    pub open: usize,
    /// Connections that wait for their next request.
    pub idle: usize,
}

#[derive(Debug)]
pub(crate) struct Stock {
    max: usize,
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    /// The last one put back is taken first, so that the surplus of a busy hour ages out.
    idle: Vec<Connection>,
    open: usize,
    waiters: VecDeque<Waiter>,
    closed: bool,
}

#[derive(Debug)]
struct Waiter {
    /// Only room will do: the request has met a dead connection already.
    fresh: bool,
    grant: oneshot::Sender<Grant>,
}

/// What a request gets: a connection, or room for one.
#[derive(Debug)]
pub(crate) enum Grant {
    Connection(Connection),
    Room(Room),
}

impl Stock {
    pub(crate) fn new(max: usize) -> Self {
        Self { max: max.max(1), shelf: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        // Nothing under the lock can leave it half-changed.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection used last, or room for a new one, or a position in the queue.
    pub(crate) fn check_out(self: &Arc<Self>, now: Instant) -> Result<Grant, Waiting<'_>> {
        let mut unusable = Vec::new();
        let mut shelf = self.lock();
        while let Some(connection) = shelf.idle.pop() {
            if connection.is_usable(now) {
                return Ok(Grant::Connection(connection));
            }
            unusable.push(connection);
        }
        self.room_or_queue(&mut shelf, false).map(Grant::Room)
    }

    /// Room for a new connection, whatever is idle; an idle one makes way if it must.
    pub(crate) fn check_out_room(self: &Arc<Self>) -> Result<Room, Waiting<'_>> {
        let mut shelf = self.lock();
        let room = self.room_or_queue(&mut shelf, true);
        let evicted = if room.is_err() { shelf.idle.pop() } else { None };
        drop(shelf);
        drop(evicted);
        room
    }

    fn room_or_queue(self: &Arc<Self>, shelf: &mut Shelf, fresh: bool) -> Result<Room, Waiting<'_>> {
        if shelf.open < self.max {
            shelf.open += 1;
            return Ok(Room { stock: Some(Arc::clone(self)) });
        }
        // Those that gave up leave from the front, as they expire in the order in which they came.
        while shelf.waiters.front().is_some_and(|waiter| waiter.grant.is_closed()) {
            shelf.waiters.pop_front();
        }
        let (grant, granted) = oneshot::channel();
        let waiter = Waiter { fresh, grant };
        if fresh {
            shelf.waiters.push_front(waiter);
        } else {
            shelf.waiters.push_back(waiter);
        }
        Err(Waiting { stock: self, granted })
    }

    /// Takes a connection back, or hands it to the first that waits.
    pub(crate) fn check_in(&self, mut connection: Connection) {
        loop {
            let mut shelf = self.lock();
            // One that waits for room gets it when this connection has closed.
            let makes_way =
                shelf.closed || connection.is_outdated() || shelf.waiters.front().is_some_and(|waiter| waiter.fresh);
            if makes_way {
                break;
            }
            let Some(waiter) = shelf.waiters.pop_front() else {
                shelf.idle.push(connection);
                return;
            };
            drop(shelf);
            match waiter.grant.send(Grant::Connection(connection)) {
                Ok(()) => return,
                Err(Grant::Connection(refused)) => connection = refused,
                Err(Grant::Room(_)) => return,
            }
        }
        drop(connection);
    }

    /// Closes what is idle and keeps nothing from now on.
    pub(crate) fn close(&self) {
        let mut shelf = self.lock();
        shelf.closed = true;
        let idle = mem::take(&mut shelf.idle);
        drop(shelf);
        drop(idle);
    }

    /// Closes what is idle and was opened with other certificates than count now.
    pub(crate) fn retire_outdated(&self) {
        let mut shelf = self.lock();
        let outdated: Vec<_> = shelf.idle.extract_if(.., |connection| connection.is_outdated()).collect();
        drop(shelf);
        drop(outdated);
    }

    pub(crate) fn snapshot(&self) -> PoolSnapshot {
        let shelf = self.lock();
        PoolSnapshot { open: shelf.open, idle: shelf.idle.iter().filter(|connection| !connection.is_closed()).count() }
    }

    /// A socket was closed: its room goes to the first that waits.
    fn on_closed(self: &Arc<Self>) {
        let mut shelf = self.lock();
        let dead: Vec<_> = shelf.idle.extract_if(.., |connection| connection.is_closed()).collect();
        loop {
            let Some(waiter) = shelf.waiters.pop_front() else {
                shelf.open -= 1;
                break;
            };
            drop(shelf);
            let room = Room { stock: Some(Arc::clone(self)) };
            match waiter.grant.send(Grant::Room(room)) {
                Ok(()) => {
                    drop(dead);
                    return;
                }
                Err(Grant::Room(mut room)) => room.stock = None,
                Err(Grant::Connection(_)) => {}
            }
            shelf = self.lock();
        }
        drop(shelf);
        drop(dead);
    }
}

/// The right to have one connection open. Dropping it lets the next one open.
#[derive(Debug)]
pub(crate) struct Room {
    stock: Option<Arc<Stock>>,
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(stock) = self.stock.take() {
            stock.on_closed();
        }
    }
}

/// A position in the queue. Dropping it gives the position up, and what has been granted meanwhile goes on.
pub(crate) struct Waiting<'a> {
    stock: &'a Arc<Stock>,
    granted: oneshot::Receiver<Grant>,
}

impl Waiting<'_> {
    /// What is granted within `limit`.
    pub(crate) async fn grant(mut self, limit: Duration) -> Result<Grant, TransportError> {
        match timeout(limit, &mut self.granted).await {
            Ok(Ok(grant)) => Ok(grant),
            Ok(Err(_)) | Err(_) => Err(TransportError::new(Fault::PoolTimeout, Sent::No)),
        }
    }

    /// The same for one that waits for room, and is never granted anything else.
    pub(crate) async fn room(self, limit: Duration) -> Result<Room, TransportError> {
        match self.grant(limit).await? {
            Grant::Room(room) => Ok(room),
            Grant::Connection(_) => Err(TransportError::new(Fault::PoolTimeout, Sent::No)),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.granted.close();
        if let Ok(Grant::Connection(connection)) = self.granted.try_recv() {
            self.stock.check_in(connection);
        }
    }
}
