//! The story of a call, and who is told of it: event hook, log and metrics, and the span around the call.
//!
//! Invariant: the end of a call that has begun is told exactly once: as it ended, or, where it is dropped before, as cancelled.
//! That is seen to by the call's own drop, as what it held has to be given back first.

use std::sync::Arc;

use steadfast_policy::Time;

use super::account::{Account, Tried};
use crate::error::ErrorKind;
use crate::event::Event;
use crate::report::Ended;
use crate::telemetry::Watched;
use crate::upstream::Upstream;

/// What has happened in a call, and whether its end is still to be told.
pub(super) struct Story<'a> {
    upstream: &'a Upstream,
    pub(super) account: Account,
    watched: Option<Arc<Watched>>,
    is_open: bool,
}

impl<'a> Story<'a> {
    /// Of a call that has not begun.
    #[inline]
    pub(super) fn new(upstream: &'a Upstream, now: Time) -> Self {
        Self { upstream, account: Account::new(now), watched: None, is_open: false }
    }

    /// The call begins: from here on its end will be told.
    #[inline]
    pub(super) fn open(&mut self, watched: Option<Arc<Watched>>) {
        (self.watched, self.is_open) = (watched, true);
    }

    /// What watches the call, until it has ended.
    #[cfg(feature = "otel")]
    #[inline]
    pub(super) fn watched(&self) -> Option<&Watched> {
        self.watched.as_deref()
    }

    /// An attempt has ended.
    #[inline]
    pub(super) fn tell_attempt(&self, tried: Tried) {
        if self.upstream.events.hears_all() {
            self.tell_of(tried);
        }
    }

    #[cold]
    fn tell_of(&self, tried: Tried) {
        let attempt = self.account.record(tried);
        self.upstream.events.emit_fine(|| Event::Attempt { upstream: self.upstream.name.clone(), attempt });
    }

    /// The call is over. `last` is its last attempt, unless none could go any more; `kind` is that of its error, if it brought
    /// no response.
    #[inline]
    pub(super) fn end(&mut self, now: Time, last: Option<Tried>, ended: Ended, kind: ErrorKind, answered: bool) {
        self.is_open = false;
        self.account.end(last, ended, kind);
        if self.upstream.events.hears_all() {
            self.tell_end(now, answered);
        }
        if let Some(watched) = self.watched.take() {
            watched.finish(answered, kind, &self.account.clone().take_report(now));
        }
    }

    #[cold]
    fn tell_end(&self, now: Time, answered: bool) {
        let (upstream, account) = (self.upstream, &self.account);
        let (ended, attempts, duration) = (account.ended(), account.attempt_count(), account.lasted(now));
        upstream.events.emit_fine(|| Event::Ended {
            upstream: upstream.name.clone(),
            ended,
            answered,
            attempts,
            duration,
        });
    }

    /// Whether the call has begun, and its end is not told yet.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.is_open || self.watched.is_some()
    }

    /// The call was dropped.
    #[cold]
    pub(super) fn cancel(&mut self) {
        let watched = self.watched.take();
        if std::mem::take(&mut self.is_open) {
            Watched::around(watched.as_ref(), || self.tell_cancelled());
        }
        if let Some(watched) = watched {
            watched.cancel();
        }
    }

    fn tell_cancelled(&self) {
        let upstream = self.upstream;
        let (attempts, duration) = (self.account.attempt_count(), self.account.lasted(upstream.clock.now()));
        upstream.events.emit_fine(|| Event::Cancelled { upstream: upstream.name.clone(), attempts, duration });
    }
}
