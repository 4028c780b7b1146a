//! What a request holds of the stock: a position in the queue, or the right to have a connection open.

use std::sync::Arc;
use std::time::Duration;

use h2::Reason;
use steadfast_http::{Fault, Sent};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::http2::Share;
use super::super::http2::link::Link;
use super::{Grant, Stock};
use crate::transport::TransportError;

/// The right to have one connection open. Dropping it lets the next one open.
#[derive(Debug)]
pub(crate) struct Room {
    // `None` only once it was given back.
    stock: Option<Arc<Stock>>,
    /// Others may wait for what comes of it.
    opening: bool,
}

impl Room {
    pub(super) fn new(stock: Arc<Stock>, opening: bool) -> Self {
        Self { stock: Some(stock), opening }
    }

    /// Forgets it: the stock counts it as given back. True if others may have waited for what came of it.
    pub(super) fn disarm(mut self) -> bool {
        self.stock = None;
        self.opening
    }

    /// The connection could not be opened: each that waited for it tries on its own, as nobody's failure is another's.
    pub(crate) fn failed(self) {
        if let Some(stock) = self.stock.as_ref().filter(|_| self.opening) {
            let mut shelf = stock.lock();
            shelf.on_their_own = shelf.waiting();
        }
    }

    /// The connection speaks HTTP/1.1: it carries nobody else.
    pub(crate) fn speaks_http1(&mut self) {
        let Some(stock) = self.stock.as_ref().filter(|_| self.opening) else { return };
        self.opening = false;
        let mut shelf = stock.lock();
        shelf.opening -= 1;
        shelf.speech.on_http1();
        stock.leave(shelf, Vec::new(), true);
    }

    /// The connection speaks HTTP/2: others may have a share of it. This is the first.
    pub(crate) fn adopt(&mut self, link: &Arc<Link>) -> Option<Share> {
        let opening = std::mem::take(&mut self.opening);
        self.stock.as_ref().map(|stock| stock.adopt(link, opening))
    }

    // ---- what the driver of an HTTP/2 connection has to tell

    /// It may have more streams, or fewer. `first`: what the upstream allowed to begin with.
    pub(crate) fn on_limit(&self, first: Option<usize>) {
        if let Some(stock) = &self.stock {
            stock.on_limit(first);
        }
    }

    /// It takes no further stream.
    pub(crate) fn on_refused_by(&self, link: &Arc<Link>, reason: Option<Reason>) {
        if let Some(stock) = &self.stock {
            stock.retire(link);
            if reason == Some(Reason::HTTP_1_1_REQUIRED) {
                stock.on_http1_required();
            }
        }
    }

    /// It is too old, or has been kept long enough without a stream.
    pub(crate) fn on_age_of(&self, link: &Arc<Link>, is_old: bool) {
        match &self.stock {
            Some(stock) if is_old => stock.retire(link),
            Some(stock) => stock.retire_if_unused(link),
            None => {}
        }
    }

    pub(crate) fn on_end_of(&self, link: &Arc<Link>) {
        if let Some(stock) = &self.stock {
            stock.remove(link);
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(stock) = self.stock.take() {
            stock.on_closed(self.opening);
        }
    }
}

/// A position in the queue. Dropping it gives the position up, and what has been granted meanwhile goes on.
pub(crate) struct Waiting<'a> {
    stock: &'a Arc<Stock>,
    granted: oneshot::Receiver<Grant>,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(stock: &'a Arc<Stock>, granted: oneshot::Receiver<Grant>) -> Self {
        Self { stock, granted }
    }

    /// What is granted within `limit`. After that it is room, if there is any: only a pool that is full is waited for
    /// in vain.
    pub(crate) async fn grant(mut self, limit: Duration) -> Result<Grant, TransportError> {
        if let Ok(Ok(grant)) = timeout(limit, &mut self.granted).await {
            return Ok(grant);
        }
        self.granted.close();
        if let Ok(grant) = self.granted.try_recv() {
            return Ok(grant);
        }
        let mut shelf = self.stock.lock();
        if shelf.open < self.stock.max {
            shelf.open += 1;
            return Ok(Grant::Room(self.stock.room(&mut shelf)));
        }
        drop(shelf);
        Err(TransportError::new(Fault::PoolTimeout, Sent::No))
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
