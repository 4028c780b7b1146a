//! Faults that a test switches on, one at a time, to show that those who look for such faults find them.
//!
//! Compiled only under `--cfg steadfast_planted`; without it not a byte of this is there, nor of the places that ask for it.
//! The switch belongs to a thread, so that several can be looked for at once. Each is a line or two where a real one could
//! be made, and none is anywhere but in the glue: the policies have no switches.

use std::cell::Cell;
use std::time::Duration;

use steadfast_http::Sent;
use steadfast_policy::Time;
use steadfast_policy::breaker::{Breaker, Permit};
use steadfast_policy::deadline::Deadline;
use steadfast_policy::line::Slot;
use steadfast_policy::retry::RetryRules;

use crate::policies::Policies;
use crate::upstream::Setup;

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planted {
    /// A retry comes in the middle of the wait that the upstream asked for (2.6).
    EarlyRetry,
    /// A response is forgotten once another attempt was made (7.1).
    LostResponse,
    /// A call that is dropped during an attempt keeps its slot (1.6).
    LeakedSlot,
    /// While a probe is out, another call becomes one, too (4.6).
    SecondProbe,
    /// What was written counts as if nothing had been, so that a POST is sent again (2.3).
    RepeatedPost,
    /// One attempt more than is allowed (2.1).
    OneTooMany,
    /// A retry that has ended is given back to the budget as one that was never sent (2.9).
    FreeRetry,
    /// Whether the deadline has time for a retry is not asked (2.7, 1.1).
    EndlessBackoff,
    /// The place in the rate limit is given back with the slot (6.1).
    PlaceGivenBack,
    /// A verdict counts whatever has happened since its attempt was admitted (4.7).
    OldVerdict,
    /// Who waits in the line is not told that its turn has come (6.2).
    SleepingWaiter,
    /// A probe that is dropped keeps its place (4.6).
    KeptProbe,
    /// There is one slot more than was set (5.1).
    OneSlotMore,
    /// Retries that do not help are paid for all the same (3.2).
    OpenGate,
    /// The breaker is open for half as long as it is to (4.5).
    ShortCoolDown,
    /// A call that is dropped counts as running for ever (7.7).
    EndlessCall,
}

impl Planted {
    /// Every one.
    pub const ALL: [Self; 16] = [
        Self::EarlyRetry,
        Self::LostResponse,
        Self::LeakedSlot,
        Self::SecondProbe,
        Self::RepeatedPost,
        Self::OneTooMany,
        Self::FreeRetry,
        Self::EndlessBackoff,
        Self::PlaceGivenBack,
        Self::OldVerdict,
        Self::SleepingWaiter,
        Self::KeptProbe,
        Self::OneSlotMore,
        Self::OpenGate,
        Self::ShortCoolDown,
        Self::EndlessCall,
    ];
}

thread_local! {
    static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// From here on this is wrong on this thread, and nothing else.
pub fn plant(fault: Option<Planted>) {
    PLANTED.set(fault);
}

/// Whether this is wrong.
pub(crate) fn is(fault: Planted) -> bool {
    PLANTED.get() == Some(fault)
}

/// [`Planted::EarlyRetry`]
pub(crate) fn early(now: Time, at: Time, was_asked: bool) -> Time {
    if was_asked && is(Planted::EarlyRetry) { now + now.until(at) / 2 } else { at }
}

/// [`Planted::EndlessBackoff`]
pub(crate) fn deadline(deadline: Deadline) -> Deadline {
    if is(Planted::EndlessBackoff) { Deadline::earliest(Time::MAX, Duration::MAX, None, None) } else { deadline }
}

/// [`Planted::OneTooMany`]
pub(crate) fn rules(rules: &RetryRules) -> RetryRules {
    RetryRules { attempts: rules.attempts + u32::from(is(Planted::OneTooMany)), ..*rules }
}

/// [`Planted::RepeatedPost`]
pub(crate) fn sent(sent: Sent) -> Sent {
    if is(Planted::RepeatedPost) { Sent::No } else { sent }
}

/// [`Planted::LeakedSlot`] and [`Planted::KeptProbe`]: gives one of the two back, and there is no more to give.
pub(crate) fn let_go(policies: &mut Policies, now: Time, granted: Option<(Slot, Permit)>) -> Option<(Slot, Permit)> {
    let (slot, permit) = granted?;
    match PLANTED.get() {
        Some(Planted::LeakedSlot) => policies.breaker.cancel(now, permit),
        Some(Planted::KeptProbe) => drop(policies.line.release(now, slot)),
        _ => return Some((slot, permit)),
    }
    None
}

/// [`Planted::SecondProbe`] and what else lies in how the policies are set up.
pub(crate) fn setup(mut setup: Setup) -> Setup {
    match PLANTED.get() {
        Some(Planted::SecondProbe) => setup.breaker.probe_lease = Duration::ZERO,
        Some(Planted::OneSlotMore) => setup.line.slots += 1,
        Some(Planted::OpenGate) => setup.budget.gate = false,
        Some(Planted::ShortCoolDown) => setup.breaker.cool_down /= 2,
        _ => {}
    }
    setup
}

/// [`Planted::OldVerdict`]
pub(crate) fn renewed(breaker: &mut Breaker, now: Time, permit: Permit) -> Permit {
    if is(Planted::OldVerdict) { breaker.try_acquire(now).unwrap_or(permit) } else { permit }
}
