//! A slot that an attempt shares with work on another thread.
//!
//! The work cannot be stopped at the deadline, and its caller may go at any time; the slot stays taken until the last of
//! the two lets go (11.7). The attempt lets go when it is settled, so the slot is never given back before the verdict is
//! recorded (0.2), and the work when it is over.
//!
//! While the work runs, the slot's lease has no end. Once only the caller is to come, the end is the deadline again: a
//! future that is kept and never polled holds no slot for ever (5.2).

use std::sync::Arc;

use steadfast_policy::Time;
use steadfast_policy::line::Slot;

use crate::policies::Policies;
use crate::upstream::Upstream;

/// The share of a slot. It counts as a running call, so that [`close`](crate::Guard::close) knows of it.
pub(crate) struct Lent {
    upstream: Arc<Upstream>,
    slot: Option<Slot>,
    deadline: Time,
}

impl Lent {
    /// To be made while the call itself counts as running, of a slot whose lease has no end.
    pub(crate) fn new(upstream: &Arc<Upstream>, slot: Slot, deadline: Time) -> Self {
        upstream.with(Policies::begin_work);
        Self { upstream: Arc::clone(upstream), slot: Some(slot), deadline }
    }

    /// The time, on the clock of the slot's upstream.
    pub(crate) fn now(&self) -> Time {
        self.upstream.clock.now()
    }

    /// The work is over, and its result waits for the caller: the slot is leased to the deadline, as any other.
    pub(crate) fn work_is_over(&self) {
        if let Some(slot) = &self.slot {
            let now = self.now();
            self.upstream.with(|policies| policies.line.lease_until(now, slot, self.deadline));
        }
    }

    /// Gives a share up under the lock of the policies, and with the last one the slot.
    pub(crate) fn let_go(share: Arc<Self>, policies: &mut Policies, now: Time) {
        if let Some(slot) = Arc::into_inner(share).and_then(|mut last| last.slot.take()) {
            policies.line.release(now, slot);
            policies.end();
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // With `let_go` the lock is held already, and everything has been given back.
        let Some(slot) = self.slot.take() else { return };
        let now = self.now();
        self.upstream.with(|policies| {
            policies.line.release(now, slot);
            policies.end();
        });
    }
}
