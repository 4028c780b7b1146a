//! Whether a connection that is silent is still there (RFC 9113 section 6.7).
//!
//! Only while a stream is open: an idle connection is found dead by the next request soon enough, and a ping to an idle
//! one keeps things awake that may sleep.

use std::task::{Context, Poll};
use std::time::Duration;

use h2::{Ping, PingPong};

use super::PingPlan;
use super::link::Link;
use crate::transport::pool::meter::{NEVER, nanos};

pub(super) struct Pings {
    pong: PingPong,
    plan: PingPlan,
    /// When the ping was sent that is not answered yet.
    asked: Option<u64>,
    /// When the last byte came.
    heard: u64,
    reads: u64,
}

/// What has to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// The ping must be written.
    Asked,
    /// There was no answer.
    Dead,
}

impl Pings {
    pub(super) fn new(pong: PingPong, plan: PingPlan) -> Self {
        Self { pong, plan, asked: None, heard: 0, reads: 0 }
    }

    pub(super) fn interval(&self) -> Duration {
        self.plan.interval
    }

    /// Takes an answer in, and notes whether a byte came.
    pub(super) fn listen(&mut self, link: &Link, cx: &mut Context<'_>) {
        let reads = link.meter().reads();
        if reads != self.reads {
            self.reads = reads;
            self.heard = link.meter().now();
        }
        if self.asked.is_some() && matches!(self.pong.poll_pong(cx), Poll::Ready(Ok(_))) {
            self.asked = None;
        }
    }

    /// When it has to be looked at again.
    pub(super) fn limit(&self, link: &Link) -> u64 {
        match self.asked {
            // A byte is as good as an answer.
            Some(asked) => asked.max(self.heard).saturating_add(nanos(self.plan.timeout)),
            None if link.registry.is_empty() => NEVER,
            None => self.heard.max(link.registry.busy_since()).saturating_add(nanos(self.plan.interval)),
        }
    }

    pub(super) fn look(&mut self, link: &Link, now: u64) -> Due {
        if now < self.limit(link) {
            return Due::Nothing;
        }
        if self.asked.is_some() {
            return Due::Dead;
        }
        // h2 refuses only while an earlier one is unanswered, or when the connection is gone.
        let _ = self.pong.send_ping(Ping::opaque());
        self.asked = Some(now);
        Due::Asked
    }
}
