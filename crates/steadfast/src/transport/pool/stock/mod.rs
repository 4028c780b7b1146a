//! What a pool holds: its connections, the room for further ones, and the queue for both.
//!
//! Room is what `max_connections` counts: one for each socket that is open or being opened. It is given back when the
//! socket is closed, not when somebody decides to close it, so the upstream never sees more connections than allowed.
//!
//! A request takes an idle HTTP/1.1 connection, else a share of an HTTP/2 one, else room for a new one, else a position
//! in the queue. It also waits, although there is room, while a connection is being opened that will probably carry it:
//! see [`Shelf::needs_another`]. If that fails, or takes longer than `pool_timeout`, it opens one of its own.
//!
//! Invariants: nobody waits for what is there; what is handed over goes to the first in the queue; a connection, a
//! grant, and a waiter are never dropped under the lock.

mod shelf;
mod speech;
mod waiting;

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::Instant;

use self::shelf::{Next, Shared, Shelf, Waiter};
pub(super) use self::speech::Speech;
pub(super) use self::waiting::{Room, Waiting};
use super::connection::Connection;
use super::http2::Share;
use super::http2::link::Link;
use crate::transport::version::Offer;

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

/// What a request gets: a connection, a share of one, or room for one.
#[derive(Debug)]
pub(crate) enum Grant {
    Connection(Connection),
    Share(Share),
    Room(Room),
}

impl Stock {
    pub(crate) fn new(max: usize, speech: Speech) -> Self {
        Self { max: max.max(1), shelf: Mutex::new(Shelf::new(speech)) }
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        // Nothing under the lock can leave it half-changed.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the next connection is offered.
    pub(crate) fn offer(&self) -> Offer {
        self.lock().speech.offer()
    }

    /// The connection used last, or a share of one, or room for a new one, or a position in the queue.
    pub(crate) fn check_out(self: &Arc<Self>, now: Instant) -> Result<Grant, Waiting<'_>> {
        let (mut unusable, mut old) = (Vec::new(), Vec::new());
        let mut shelf = self.lock();
        while let Some(connection) = shelf.idle.pop() {
            if connection.is_usable(now) {
                return Ok(Grant::Connection(connection));
            }
            unusable.push(connection);
        }
        let share = if shelf.shared.is_empty() { None } else { shelf.take_share(now, &mut old) };
        let result = match share {
            Some((link, woken)) => Ok(Grant::Share(Share::new(link, Arc::clone(self), woken))),
            None => self.room_or_queue(&mut shelf, false).map(Grant::Room),
        };
        self.leave(shelf, old, result.is_err());
        drop(unusable);
        result
    }

    /// Room for a new connection, whatever is idle; an idle one makes way if it must.
    pub(crate) fn check_out_room(self: &Arc<Self>) -> Result<Room, Waiting<'_>> {
        let mut shelf = self.lock();
        let room = self.room_or_queue(&mut shelf, true);
        self.leave(shelf, Vec::new(), room.is_err());
        room
    }

    fn room_or_queue(self: &Arc<Self>, shelf: &mut Shelf, fresh: bool) -> Result<Room, Waiting<'_>> {
        if shelf.open < self.max && (fresh || (shelf.waiters.is_empty() && shelf.needs_another())) {
            shelf.open += 1;
            return Ok(self.room(shelf));
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
        Err(Waiting::new(self, granted))
    }

    /// Room that is counted already.
    fn room(self: &Arc<Self>, shelf: &mut Shelf) -> Room {
        let may_multiplex = shelf.speech.may_multiplex();
        shelf.opening += usize::from(may_multiplex);
        Room::new(Arc::clone(self), may_multiplex)
    }

    /// Takes a connection back, or hands it to the first that waits.
    pub(crate) fn check_in(self: &Arc<Self>, connection: Connection) {
        let mut shelf = self.lock();
        if shelf.closed || connection.is_outdated() {
            drop(shelf);
            drop(connection);
            return;
        }
        shelf.idle.push(connection);
        if !shelf.waiters.is_empty() {
            self.serve(shelf);
        }
    }

    /// Lets go of the lock, after it has handed out what there is if something has changed; closes what was taken out.
    fn leave(self: &Arc<Self>, shelf: MutexGuard<'_, Shelf>, old: Vec<Arc<Link>>, has_changed: bool) {
        if has_changed && !shelf.waiters.is_empty() {
            self.serve(shelf);
        } else {
            drop(shelf);
        }
        close_all(old);
    }

    /// Hands out what there is to those that wait.
    fn serve<'a>(self: &'a Arc<Self>, mut shelf: MutexGuard<'a, Shelf>) {
        loop {
            let mut old = Vec::new();
            let next = shelf.next(self.max, &mut old);
            let granted = match next {
                Some((Some(waiter), Next::Connection(connection))) => Ok((waiter, Grant::Connection(connection))),
                Some((Some(waiter), Next::Share(link, woken))) => {
                    Ok((waiter, Grant::Share(Share::new(link, Arc::clone(self), woken))))
                }
                Some((Some(waiter), Next::Room)) => Ok((waiter, Grant::Room(self.room(&mut shelf)))),
                Some((_, Next::Evict(evicted))) => Err(Some(evicted)),
                _ => Err(None),
            };
            drop(shelf);
            close_all(old);
            let (waiter, grant) = match granted {
                Ok(granted) => granted,
                Err(evicted) => {
                    if let Some(evicted) = evicted {
                        evicted.close();
                    }
                    return;
                }
            };
            shelf = match waiter.grant.send(grant) {
                Ok(()) => self.lock(),
                Err(refused) => self.put_back(refused),
            };
        }
    }

    /// What was refused goes back as it was; whoever calls hands it on.
    fn put_back(&self, grant: Grant) -> MutexGuard<'_, Shelf> {
        let mut shelf = self.lock();
        match grant {
            Grant::Connection(connection) if shelf.closed => {
                drop(shelf);
                drop(connection);
                shelf = self.lock();
            }
            Grant::Connection(connection) => shelf.idle.push(connection),
            Grant::Share(share) => {
                if let Some(shared) = shelf.find(share.link()) {
                    shared.shares -= 1;
                }
                let finished = shelf.take_finished(share.link());
                drop(shelf);
                share.disarm();
                close_all(finished);
                shelf = self.lock();
            }
            Grant::Room(room) => {
                shelf.open -= 1;
                shelf.opening -= usize::from(room.disarm());
            }
        }
        shelf
    }

    /// Closes what is idle and keeps nothing from now on.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut shelf = self.lock();
        shelf.closed = true;
        let idle = mem::take(&mut shelf.idle);
        let old = retire_all(&mut shelf);
        self.leave(shelf, old, true);
        drop(idle);
    }

    /// Closes what is idle and was opened with other certificates than count now; what is in use closes after it.
    pub(crate) fn retire_outdated(self: &Arc<Self>) {
        let mut shelf = self.lock();
        let outdated: Vec<_> = shelf.idle.extract_if(.., |connection| connection.is_outdated()).collect();
        for shared in &mut shelf.shared {
            shared.retired |= shared.link.is_outdated();
        }
        let unused = |shared: &mut Shared| shared.retired && shared.shares == 0;
        let old = shelf.shared.extract_if(.., unused).map(|shared| shared.link).collect();
        self.leave(shelf, old, true);
        drop(outdated);
    }

    pub(crate) fn snapshot(&self) -> PoolSnapshot {
        let shelf = self.lock();
        let idle = shelf.idle.iter().filter(|connection| !connection.is_closed()).count();
        let unused = shelf.shared.iter().filter(|shared| shared.shares == 0).count();
        PoolSnapshot { open: shelf.open, idle: idle + unused }
    }

    /// A socket was closed: its room goes to the first that waits.
    fn on_closed(self: &Arc<Self>, opening: bool) {
        let mut shelf = self.lock();
        shelf.open -= 1;
        shelf.opening -= usize::from(opening);
        let dead: Vec<_> = shelf.idle.extract_if(.., |connection| connection.is_closed()).collect();
        self.leave(shelf, Vec::new(), true);
        drop(dead);
    }

    // ---- HTTP/2

    /// A new connection speaks HTTP/2; whoever opened it has the first share.
    fn adopt(self: &Arc<Self>, link: &Arc<Link>, opening: bool) -> Share {
        let mut shelf = self.lock();
        shelf.opening -= usize::from(opening);
        shelf.speech.on_http2();
        let retired = shelf.closed || link.is_outdated();
        shelf.shared.push(Shared { link: Arc::clone(link), shares: 1, retired });
        self.leave(shelf, Vec::new(), true);
        Share::new(Arc::clone(link), Arc::clone(self), false)
    }

    /// A share is free: it goes to the first that waits, or the connection is idle, or closes.
    pub(super) fn give_back(self: &Arc<Self>, link: &Arc<Link>) {
        let mut shelf = self.lock();
        let Some(shared) = shelf.find(link) else { return };
        shared.shares -= 1;
        let is_unused = shared.shares == 0;
        if is_unused {
            link.on_last();
        }
        let finished = shelf.take_finished(link);
        let may_rest = is_unused && finished.is_none();
        self.leave(shelf, finished.into_iter().collect(), true);
        if may_rest {
            // Whoever stood in the queue may have left it. If somebody has got the share, it does no harm.
            link.rest();
        }
    }

    /// No further stream on this connection.
    pub(super) fn retire(self: &Arc<Self>, link: &Arc<Link>) {
        let mut shelf = self.lock();
        let Some(shared) = shelf.find(link) else { return };
        shared.retired = true;
        let finished = shelf.take_finished(link);
        self.leave(shelf, finished.into_iter().collect(), true);
    }

    /// The same if nobody uses it.
    fn retire_if_unused(self: &Arc<Self>, link: &Arc<Link>) {
        let mut shelf = self.lock();
        let Some(shared) = shelf.find(link).filter(|shared| shared.shares == 0) else { return };
        shared.retired = true;
        let finished = shelf.take_finished(link);
        self.leave(shelf, finished.into_iter().collect(), true);
    }

    /// The upstream has said how many streams it allows. `first`: on a new connection; the next will probably be allowed
    /// as many.
    fn on_limit(self: &Arc<Self>, first: Option<usize>) {
        let mut shelf = self.lock();
        if let Some(streams) = first {
            shelf.speech.on_limit(streams);
        }
        self.leave(shelf, Vec::new(), true);
    }

    /// The upstream wants HTTP/1.1 from now on.
    pub(super) fn on_http1_required(self: &Arc<Self>) {
        let mut shelf = self.lock();
        shelf.speech.on_http1_required();
        let old = retire_all(&mut shelf);
        self.leave(shelf, old, true);
    }

    /// The connection has ended.
    fn remove(self: &Arc<Self>, link: &Arc<Link>) {
        let mut shelf = self.lock();
        let Some(index) = shelf.shared.iter().position(|shared| Arc::ptr_eq(&shared.link, link)) else { return };
        let removed = shelf.shared.remove(index);
        if link.settled().is_none() && !removed.retired {
            shelf.on_their_own = shelf.waiting();
        }
        // Its room follows, and those that wait are served then.
        drop(shelf);
        drop(removed);
    }
}

fn close_all(links: impl IntoIterator<Item = Arc<Link>>) {
    for link in links {
        link.close();
    }
}

/// Retires all shared connections, and returns those that nobody uses.
fn retire_all(shelf: &mut Shelf) -> Vec<Arc<Link>> {
    shelf.shared.iter_mut().for_each(|shared| shared.retired = true);
    shelf.shared.extract_if(.., |shared| shared.shares == 0).map(|shared| shared.link).collect()
}
