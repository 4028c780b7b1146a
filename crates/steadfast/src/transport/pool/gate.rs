//! Whether a byte of the current request went out.
//!
//! The I/O wrapper claims the gate before each write, and the user of the connection cancels it before saying that
//! nothing was sent. Whichever comes first wins, so that "nothing was sent" is true when it is said, and stays true:
//! what hyper still holds in its buffer is refused.

use std::sync::atomic::{AtomicU8, Ordering};

use steadfast_http::Sent;

/// Nothing of the current request was written.
const UNSENT: u8 = 0;
/// A write is being made this moment.
const WRITING: u8 = 1;
/// Some of it was written.
const SENT: u8 = 2;
/// Nothing was written, and nothing will be.
const CANCELLED: u8 = 3;
/// Nothing was written, and the first write must look at the socket before.
const UNPROBED: u8 = 4;

/// What the I/O wrapper may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Write,
    /// Write if nothing has come on the idle connection: neither its end nor bytes that nobody asked for.
    Probe,
    /// The request was cancelled before its first byte.
    Cancelled,
}

/// One word, for one request at a time.
#[derive(Debug)]
pub(crate) struct Gate(AtomicU8);

impl Gate {
    /// Open: what is written before the first request (TLS) is nobody's.
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(SENT))
    }

    /// A request is about to be handed over. `probe`: the first write looks at the socket before.
    pub(crate) fn close(&self, probe: bool) {
        self.0.store(if probe { UNPROBED } else { UNSENT }, Ordering::Release);
    }

    /// Forbids a first write from now on, and says whether anything was sent.
    pub(crate) fn cancel(&self) -> Sent {
        let cancelled = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| match state {
            UNSENT | UNPROBED => Some(CANCELLED),
            _ => None,
        });
        match cancelled {
            Ok(_) | Err(CANCELLED) => Sent::No,
            Err(_) => Sent::Unknown,
        }
    }

    /// Whether anything has been sent so far.
    pub(crate) fn sent(&self) -> Sent {
        match self.0.load(Ordering::Acquire) {
            UNSENT | UNPROBED | CANCELLED => Sent::No,
            _ => Sent::Unknown,
        }
    }

    /// Before a write. What was claimed must be followed by one of the three `on_` below.
    pub(crate) fn claim(&self) -> Claim {
        let state = self.0.load(Ordering::Acquire);
        let claim = match state {
            SENT | WRITING => return Claim::Write,
            CANCELLED => return Claim::Cancelled,
            UNPROBED => Claim::Probe,
            _ => Claim::Write,
        };
        match self.0.compare_exchange(state, WRITING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => claim,
            Err(_) => Claim::Cancelled,
        }
    }

    /// Some bytes went out.
    pub(crate) fn on_written(&self) {
        if self.0.load(Ordering::Relaxed) == WRITING {
            self.0.store(SENT, Ordering::Release);
        }
    }

    /// The write moved nothing.
    pub(crate) fn on_not_written(&self) {
        if self.0.load(Ordering::Relaxed) == WRITING {
            self.0.store(UNSENT, Ordering::Release);
        }
    }

    /// The probe found that the connection is not to be used: nothing was written, and nothing will be.
    pub(crate) fn on_dead(&self) {
        self.0.store(CANCELLED, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(probe: bool) -> Gate {
        let gate = Gate::new();
        gate.close(probe);
        gate
    }

    #[test]
    fn a_cancelled_request_is_never_written() {
        for probe in [false, true] {
            let gate = closed(probe);
            assert_eq!((gate.sent(), gate.cancel()), (Sent::No, Sent::No));
            assert_eq!((gate.claim(), gate.sent(), gate.cancel()), (Claim::Cancelled, Sent::No, Sent::No));
        }
    }

    /// 2.3: a byte that was written cannot be taken back.
    #[test]
    fn c2_3_after_the_first_byte_the_outcome_is_unknown() {
        let gate = closed(false);
        assert_eq!(gate.claim(), Claim::Write);
        gate.on_written();
        assert_eq!((gate.claim(), gate.sent(), gate.cancel()), (Claim::Write, Sent::Unknown, Sent::Unknown));
        gate.on_not_written();
        assert_eq!(gate.cancel(), Sent::Unknown);
    }

    #[test]
    fn a_write_under_way_counts_until_it_has_moved_nothing() {
        let gate = closed(false);
        assert_eq!(gate.claim(), Claim::Write);
        assert_eq!(gate.cancel(), Sent::Unknown);
        gate.on_not_written();
        assert_eq!(gate.cancel(), Sent::No);
    }

    #[test]
    fn a_probe_comes_before_the_first_write_only() {
        let gate = closed(true);
        assert_eq!(gate.claim(), Claim::Probe);
        gate.on_not_written();
        assert_eq!(gate.claim(), Claim::Write);

        let gate = closed(true);
        assert_eq!(gate.claim(), Claim::Probe);
        gate.on_dead();
        assert_eq!((gate.claim(), gate.cancel()), (Claim::Cancelled, Sent::No));
    }
}
