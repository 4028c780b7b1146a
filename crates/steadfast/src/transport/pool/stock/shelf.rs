//! What lies on the shelf, and who gets it.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::connection::Connection;
use super::super::http2::link::Link;
use super::Grant;
use super::speech::Speech;

#[derive(Debug)]
pub(super) struct Shelf {
    /// HTTP/1.1. The last one put back is taken first, so that the surplus of a busy hour ages out.
    pub(super) idle: Vec<Connection>,
    /// HTTP/2. The first with room is taken, for the same reason.
    pub(super) shared: Vec<Shared>,
    /// Sockets that are open or being opened.
    pub(super) open: usize,
    /// Those of them that are being opened and may turn out to carry more than one exchange.
    pub(super) opening: usize,
    /// So many that wait open a connection of their own, as the one that they waited for failed.
    pub(super) on_their_own: usize,
    pub(super) waiters: VecDeque<Waiter>,
    pub(super) speech: Speech,
    pub(super) closed: bool,
}

/// An HTTP/2 connection and what is taken of it.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) link: Arc<Link>,
    pub(super) shares: usize,
    /// It takes no further stream, and closes when the last one is over.
    pub(super) retired: bool,
}

#[derive(Debug)]
pub(super) struct Waiter {
    /// A connection of its own is wanted: the request has met a dead one already.
    pub(super) fresh: bool,
    pub(super) grant: oneshot::Sender<Grant>,
}

/// What the first in the queue gets.
pub(super) enum Next {
    Connection(Connection),
    /// A share of this link; true if it was idle.
    Share(Arc<Link>, bool),
    Room,
    /// This idle connection makes way for it.
    Evict(Evicted),
}

/// An idle connection that is to be closed, outside the lock.
pub(super) enum Evicted {
    Connection(Connection),
    Link(Arc<Link>),
}

impl Evicted {
    pub(super) fn close(self) {
        match self {
            Self::Connection(connection) => drop(connection),
            Self::Link(link) => link.close(),
        }
    }
}

impl Shelf {
    pub(super) fn new(speech: Speech) -> Self {
        Self {
            idle: Vec::new(),
            shared: Vec::new(),
            open: 0,
            opening: 0,
            on_their_own: 0,
            waiters: VecDeque::new(),
            speech,
            closed: false,
        }
    }

    /// A share of the first connection that has one; true if it was idle. What is too old is retired, and taken
    /// out to be closed if nobody uses it.
    pub(super) fn take_share(&mut self, now: Instant, old: &mut Vec<Arc<Link>>) -> Option<(Arc<Link>, bool)> {
        let mut index = 0;
        while let Some(shared) = self.shared.get_mut(index) {
            if !shared.retired
                && (shared.link.is_old(now)
                    || shared.link.is_outdated()
                    || (shared.shares == 0 && shared.link.is_unused(now)))
            {
                shared.retired = true;
            }
            if shared.retired && shared.shares == 0 {
                old.push(self.shared.remove(index).link);
                continue;
            }
            if !shared.retired && shared.shares < shared.link.capacity() {
                shared.shares += 1;
                return Some((Arc::clone(&shared.link), shared.shares == 1));
            }
            index += 1;
        }
        None
    }

    pub(super) fn find(&mut self, link: &Arc<Link>) -> Option<&mut Shared> {
        self.shared.iter_mut().find(|shared| Arc::ptr_eq(&shared.link, link))
    }

    /// Takes it out, to be closed, if it is retired and nobody uses it.
    pub(super) fn take_finished(&mut self, link: &Arc<Link>) -> Option<Arc<Link>> {
        let is_finished = |shared: &Shared| Arc::ptr_eq(&shared.link, link) && shared.retired && shared.shares == 0;
        let index = self.shared.iter().position(is_finished)?;
        Some(self.shared.remove(index).link)
    }

    /// An idle connection, to be closed.
    fn take_idle(&mut self) -> Option<Evicted> {
        if let Some(connection) = self.idle.pop() {
            return Some(Evicted::Connection(connection));
        }
        let index = self.shared.iter().position(|shared| shared.shares == 0)?;
        Some(Evicted::Link(self.shared.remove(index).link))
    }

    /// Those that wait and have not given up.
    pub(super) fn waiting(&self) -> usize {
        self.waiters.iter().filter(|waiter| !waiter.grant.is_closed()).count()
    }

    /// Whether those that wait, or one that does not wait yet, need a further connection: those that are coming will not
    /// carry them all.
    pub(super) fn needs_another(&self) -> bool {
        if self.closed || self.on_their_own > 0 {
            return true;
        }
        let Some(streams) = self.speech.streams_per_connection() else { return true };
        // Whoever opens a connection takes the first of its streams.
        let mut coming = self.opening.saturating_mul(streams.saturating_sub(1));
        for shared in &self.shared {
            if !shared.retired && shared.link.settled().is_none() {
                coming = coming.saturating_add(streams.saturating_sub(shared.shares));
            }
        }
        // Those that gave up are counted only if it matters.
        self.waiters.len().max(1) > coming && self.waiting().max(1) > coming
    }

    /// What there is for the first in the queue, and who that is. Those that gave up are passed over.
    pub(super) fn next(&mut self, max: usize, old: &mut Vec<Arc<Link>>) -> Option<(Option<Waiter>, Next)> {
        while self.waiters.front().is_some_and(|waiter| waiter.grant.is_closed()) {
            self.waiters.pop_front();
        }
        let Some(first) = self.waiters.front() else {
            self.on_their_own = 0;
            return None;
        };
        let fresh = first.fresh;
        let mut next = None;
        if !fresh {
            while let Some(connection) = self.idle.pop() {
                if !connection.is_closed() {
                    next = Some(Next::Connection(connection));
                    break;
                }
            }
            if next.is_none() && !self.shared.is_empty() {
                next = self.take_share(Instant::now(), old).map(|(link, woken)| Next::Share(link, woken));
            }
        }
        if next.is_none() && self.open < max && (fresh || self.needs_another()) {
            self.open += 1;
            self.on_their_own = self.on_their_own.saturating_sub(1);
            next = Some(Next::Room);
        }
        if next.is_none() && fresh {
            if let Some(evicted) = self.take_idle() {
                return Some((None, Next::Evict(evicted)));
            }
            // Better one in use than none: it has streams, so it was alive a moment ago.
            next = self.take_share(Instant::now(), old).map(|(link, woken)| Next::Share(link, woken));
        }
        next.map(|next| (self.waiters.pop_front(), next))
    }
}
