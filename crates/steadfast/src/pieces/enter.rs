//! Entering without waiting, and without an operation: for what is taken first and used later.

use std::sync::Arc;
use std::time::Duration;

use steadfast_policy::Time;

use crate::error::Error;
use crate::event::Event;
use crate::policies::{Entrant, Refused, Step};
use crate::report::Report;
use crate::upstream::{Held, Upstream};

/// How long the slot is lent, and whether a wait would be worth while.
#[derive(Clone, Copy, Debug)]
pub(super) enum For {
    /// A start alone. What cannot start now is refused with the time at which it could.
    AStart,
    /// As long as it is held.
    AStay,
}

/// Takes what is there now, in the order of the loop, or says why there is nothing. Nobody is overtaken: who comes while
/// others wait is refused.
pub(super) fn try_enter(upstream: &Arc<Upstream>, key: &str, purpose: For) -> Result<Held, Error> {
    try_hold(upstream, key, purpose).map_err(|refused| {
        let (kind, retry_after) = (refused.kind(), refused.retry_after());
        if refused != Refused::Closed {
            upstream.events.emit(|| Event::Rejected { upstream: upstream.name.clone(), kind, retry_after });
        }
        let mut report = Report::default();
        report.end(refused.ended(), Duration::ZERO, retry_after);
        Error::new(kind, &upstream.name, report)
    })
}

fn try_hold(upstream: &Arc<Upstream>, key: &str, purpose: For) -> Result<Held, Refused> {
    let now = upstream.clock.now();
    let deadline = match purpose {
        // The line refuses at once what the deadline cannot hold, and says when there will be a place.
        For::AStart => now + Duration::from_nanos(1),
        For::AStay => Time::MAX,
    };
    let slot = upstream.with(|policies| match policies.begin(now, Entrant { key, deadline, first: true })? {
        Step::Granted(slot, permit) => {
            // There is no operation, and so there will be no verdict.
            policies.settle(now, Some(permit), None);
            Ok(slot)
        }
        Step::Queued(ticket, ..) => {
            policies.leave(now, ticket);
            policies.end();
            Err(Refused::BulkheadFull)
        }
    })?;
    Ok(Held::new(upstream, (slot, None), None, Time::MAX))
}
