//! The end of a lease, moved: for work that nobody can stop at its deadline.
//!
//! A lease that ends at the deadline is right for a future, which is dropped then. A thread that waits in a driver of a
//! database cannot be dropped: it goes on, and its slot must stay taken, or more would be in flight than the bulkhead
//! allows (11.7). So such an attempt makes its lease endless when it begins, and puts the end back when the work is over.

use super::{Line, Slot};
use crate::Time;

impl Line {
    /// Moves the end of the lease that `slot` is held under to `ends`, earlier or later; [`Time::MAX`] is no end. An end
    /// that has come already takes the slot back at once.
    ///
    /// `false` if the lease had ended before and the slot was reclaimed; then nothing happens.
    pub fn lease_until(&mut self, now: Time, slot: &Slot, ends: Time) -> bool {
        self.arrive(now);
        // A lease that is over is over, whether or not anybody has noticed: it is not made longer.
        self.settle();
        let is_held = self.slots.lease_until(slot, ends);
        self.settle();
        is_held
    }
}
