//! What the user of a connection, its driver task, and its socket tell each other.
//!
//! Three parties touch one connection at once: the exchange or body that uses it, the task that drives it, and the
//! I/O wrapper inside that task. They share this block of atomics and nothing else, so that the common request takes
//! no lock here and arms no timer.
//!
//! - The [`Gate`] proves whether a byte of the current request went out.
//! - Whether the source of a request's body has nothing, for which the upstream is not to blame: the limits of waiting
//!   for it do not run meanwhile. Only a body in pieces tells, from within the driver's task.
//! - The [`Phase`] says what the connection is used for, and with the instants of the current wait, of the last byte,
//!   and of the first refused write it gives the one limit that the driver's timer must keep.
//!
//! Instants are nanoseconds since the connection was opened; [`NEVER`] is no limit.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use steadfast_http::Fault;
use tokio::time::Instant;

use super::gate::Gate;

/// No limit: later than any instant of a connection's life.
pub(crate) const NEVER: u64 = u64::MAX;

/// The limits of every connection of one pool, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) read: u64,
    pub(crate) write: u64,
    pub(crate) idle: u64,
    pub(crate) age: u64,
}

/// What a connection is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// In the pool.
    Idle,
    /// Its user waits for the next piece of the response.
    Awaited,
    /// Its user does something else between two pieces of the body.
    Paused,
    /// The response is over; its user waits until the connection can be used again.
    Settling,
}

impl Phase {
    const fn of(value: u8) -> Self {
        match value {
            0 => Self::Idle,
            1 => Self::Awaited,
            2 => Self::Paused,
            _ => Self::Settling,
        }
    }
}

/// After 10 ms without a byte an upstream may have given a connection up; hardly any server's idle timeout is shorter.
pub(crate) const RESTED: u64 = 10_000_000;

/// The shared block; see the module.
#[derive(Debug)]
pub(crate) struct Meter {
    opened: Instant,
    limits: Limits,
    gate: Gate,
    phase: AtomicU8,
    /// When the current wait of the user began.
    since: AtomicU64,
    /// How often the socket was read from, and written to, with success.
    reads: AtomicU64,
    writes: AtomicU64,
    /// Whether a byte moved since the driver last looked.
    moved: AtomicBool,
    /// When a byte last moved, either way.
    last_moved: AtomicU64,
    /// When the socket first refused a write that is still to be made.
    blocked: AtomicU64,
    /// Whether the source of the request's body has nothing.
    is_starved: AtomicBool,
    /// When the call that uses the connection must be over.
    deadline: AtomicU64,
    /// What the driver's timer is set to.
    armed: AtomicU64,
    /// Which limit closed the connection: 0 none, else an index into [`FAULTS`] plus one.
    closed_by: AtomicU8,
    driver: OnceLock<Waker>,
}

/// The limits that can close a connection in use.
const FAULTS: [Fault; 3] = [Fault::Deadline, Fault::ReadTimeout, Fault::WriteTimeout];

/// The next instant at which the driver must act, and what it then means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) at: u64,
    /// `None`: an idle connection that has been kept long enough.
    pub(crate) fault: Option<Fault>,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            opened: Instant::now(),
            limits,
            gate: Gate::new(),
            phase: AtomicU8::new(Phase::Idle as u8),
            since: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            moved: AtomicBool::new(false),
            last_moved: AtomicU64::new(0),
            blocked: AtomicU64::new(NEVER),
            is_starved: AtomicBool::new(false),
            deadline: AtomicU64::new(NEVER),
            armed: AtomicU64::new(NEVER),
            closed_by: AtomicU8::new(0),
            driver: OnceLock::new(),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    pub(crate) fn at(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.opened))
    }

    /// The instant of `at`; `None` for one beyond the clock's range.
    pub(crate) fn instant(&self, at: u64) -> Option<Instant> {
        self.opened.checked_add(Duration::from_nanos(at))
    }

    fn phase(&self) -> Phase {
        Phase::of(self.phase.load(Ordering::SeqCst))
    }

    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::SeqCst);
    }

    // ---- the user's side

    /// A request is about to be handed over; the wait for its response begins.
    ///
    /// `probe`: the first write looks at the socket before, as the connection lay idle.
    pub(crate) fn begin(&self, now: Instant, deadline: Option<Instant>, probe: bool) {
        self.gate.close(probe);
        self.closed_by.store(0, Ordering::Relaxed);
        self.blocked.store(NEVER, Ordering::Relaxed);
        self.is_starved.store(false, Ordering::Relaxed);
        self.since.store(self.at(now), Ordering::Relaxed);
        self.deadline.store(deadline.map_or(NEVER, |deadline| self.at(deadline)), Ordering::Relaxed);
        self.enter(Phase::Awaited);
    }

    /// The user has got a piece and is not waiting for the next.
    pub(crate) fn pause(&self) {
        self.enter(Phase::Paused);
    }

    /// The user waits for the next piece, or for the connection to become usable again.
    pub(crate) fn wait(&self, phase: Phase) {
        if self.phase() == phase {
            return;
        }
        let now = self.now();
        self.since.store(now, Ordering::Relaxed);
        self.enter(phase);
        // The driver publishes `armed` before it reads the phase: one of the two sees the other.
        if self.armed.load(Ordering::SeqCst) > now.saturating_add(self.limits.read) {
            self.wake_driver();
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.phase() == Phase::Idle
    }

    pub(crate) fn rest(&self) {
        self.enter(Phase::Idle);
    }

    /// Whether an idle connection has been kept long enough.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.at(now) >= self.idle_limit()
    }

    /// Whether nothing has moved for a while.
    pub(crate) fn has_rested(&self, now: Instant) -> bool {
        self.at(now).saturating_sub(self.last_moved.load(Ordering::Relaxed)) >= RESTED
    }

    /// Whether the upstream is not taking what is still to be written.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::SeqCst) != NEVER
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Which limit closed the connection.
    pub(crate) fn closed_by(&self) -> Option<Fault> {
        let index = self.closed_by.load(Ordering::Acquire);
        FAULTS.get(usize::from(index).wrapping_sub(1)).copied()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How often something has come. Two equal counts: nothing has come in between.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Acquire)
    }

    /// How often something was written.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    // ---- the socket's side

    pub(crate) fn on_written(&self) {
        self.gate.on_written();
        if self.blocked.load(Ordering::Relaxed) != NEVER {
            self.blocked.store(NEVER, Ordering::SeqCst);
        }
        bump(&self.writes);
        self.moved.store(true, Ordering::Relaxed);
    }

    /// A write that moved nothing; `pending` if the socket was full.
    pub(crate) fn on_not_written(&self, pending: bool) {
        self.gate.on_not_written();
        if pending && self.blocked.load(Ordering::Relaxed) == NEVER {
            self.blocked.store(self.now(), Ordering::SeqCst);
        }
    }

    pub(crate) fn on_read(&self) {
        bump(&self.reads);
        self.moved.store(true, Ordering::Relaxed);
    }

    // ---- the body's side

    /// The source of the request's body has nothing (`waits`), or goes on: then every wait begins anew.
    pub(crate) fn on_source(&self, waits: bool) {
        if !waits {
            let now = self.now();
            self.since.store(now, Ordering::Relaxed);
            if self.is_blocked() {
                self.blocked.store(now, Ordering::SeqCst);
            }
        }
        self.is_starved.store(waits, Ordering::Relaxed);
    }

    // ---- the driver's side

    pub(crate) fn register_driver(&self, waker: &Waker) {
        if self.driver.get().is_none() {
            // A task's waker stays the same for its life; a second registration would be the same one.
            let _ = self.driver.set(waker.clone());
        }
    }

    pub(crate) fn wake_driver(&self) {
        if let Some(waker) = self.driver.get() {
            waker.wake_by_ref();
        }
    }

    /// Notes the instant if a byte has moved since last asked, and returns it.
    pub(crate) fn note_movement(&self) -> Option<u64> {
        if !self.moved.load(Ordering::Relaxed) {
            return None;
        }
        self.moved.store(false, Ordering::Relaxed);
        let now = self.now();
        self.last_moved.store(now, Ordering::Relaxed);
        Some(now)
    }

    pub(crate) fn set_armed(&self, at: u64) {
        self.armed.store(at, Ordering::SeqCst);
    }

    /// Whether the response is over while the upstream does not take the rest of the request.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_blocked() && self.phase() == Phase::Settling
    }

    /// The next limit. Of equal ones the call's deadline is named.
    pub(crate) fn limit(&self) -> Limit {
        let phase = self.phase();
        if phase == Phase::Idle {
            return Limit { at: self.idle_limit(), fault: None };
        }
        let deadline = self.deadline.load(Ordering::Relaxed);
        let blocked = self.blocked.load(Ordering::Relaxed);
        // After the end of the response nobody is to wait for the source.
        let (at, fault) = if self.is_starved.load(Ordering::Relaxed) && phase != Phase::Settling {
            (NEVER, Fault::Deadline)
        } else if blocked != NEVER {
            (blocked.saturating_add(self.limits.write), Fault::WriteTimeout)
        } else if phase == Phase::Paused {
            (NEVER, Fault::Deadline)
        } else {
            let since = self.since.load(Ordering::Relaxed).max(self.last_moved.load(Ordering::Relaxed));
            (since.saturating_add(self.limits.read), Fault::ReadTimeout)
        };
        if at < deadline {
            Limit { at, fault: Some(fault) }
        } else {
            Limit { at: deadline, fault: Some(Fault::Deadline) }
        }
    }

    pub(crate) fn close_by(&self, fault: Option<Fault>) {
        if let Some(index) = fault.and_then(|fault| FAULTS.iter().position(|known| *known == fault)) {
            self.closed_by.store(index as u8 + 1, Ordering::Release);
        }
    }

    fn idle_limit(&self) -> u64 {
        self.last_moved.load(Ordering::Relaxed).saturating_add(self.limits.idle).min(self.limits.age)
    }
}

/// Counts up; only the socket's task does.
fn bump(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
}

/// Nanoseconds of a duration, saturating.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests;
