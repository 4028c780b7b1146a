//! What the line's tests share.

use steadfast_policy::Time;
use steadfast_policy::line::{Entry, Line, Slot, Ticket};

/// A deadline that does not matter.
pub(crate) const FAR: Time = Time::from_secs(1000);

/// The instant `millis` milliseconds after the origin.
pub(crate) fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Insists on an admission.
#[expect(clippy::panic, reason = "a test's insistence")]
pub(crate) fn admitted(entry: Entry) -> Slot {
    match entry {
        Entry::Admitted(slot) => slot,
        other => panic!("not admitted: {other:?}"),
    }
}

/// Insists on a wait.
#[expect(clippy::panic, reason = "a test's insistence")]
pub(crate) fn queued(entry: Entry) -> (Ticket, Time) {
    match entry {
        Entry::Queued(ticket, asks_at) => (ticket, asks_at),
        other => panic!("not queued: {other:?}"),
    }
}

/// Drains the waiters that should ask now.
pub(crate) fn wakes(line: &mut Line) -> Vec<Ticket> {
    std::iter::from_fn(|| line.next_wake()).collect()
}
