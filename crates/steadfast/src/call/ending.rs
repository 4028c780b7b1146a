//! Why the loop stops, what it has to show for it by then, and who is told.

use std::time::Duration;

use steadfast_http::Fault;

use crate::error::ErrorKind;
use crate::event::Event;
use crate::operation::{Judged, ResultKind};
use crate::policies::Refused;
use crate::report::{Ended, Outcome};
use crate::upstream::Upstream;

/// Why the loop stopped.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// The last attempt's result is what comes back; and when it makes sense to call again, where that is known.
    Result(Ended, Option<Duration>),
    /// Our own limits refused the next attempt.
    Refused(Refused),
    /// The deadline cut the last attempt.
    Cut,
    /// Our own pool had no connection for the last attempt.
    PoolFull,
}

impl End {
    /// What ends the call whatever the retry rules say.
    pub(super) fn early(judged: &Judged) -> Option<Self> {
        match (judged.result, judged.outcome) {
            (ResultKind::PoolFull, _) => Some(Self::PoolFull),
            (ResultKind::StaleResponse, _) => Some(Self::Result(Ended::Stale408, None)),
            (_, Outcome::Fault(Fault::Deadline)) => Some(Self::Cut),
            _ => None,
        }
    }

    /// The reason, the kind of error if no attempt got a response (7.2), and when to come back.
    pub(super) fn explain(self) -> (Ended, ErrorKind, Option<Duration>) {
        match self {
            Self::Result(ended, retry_after) => (ended, ErrorKind::Unreachable, retry_after),
            Self::Cut => (Ended::Deadline, ErrorKind::Timeout, None),
            Self::PoolFull => (Ended::BulkheadFull, ErrorKind::BulkheadFull, None),
            Self::Refused(refused) => (refused.ended(), refused.kind(), refused.retry_after()),
        }
    }

    /// Tells if it was a limit of ours that ended the call.
    pub(super) fn tell(self, upstream: &Upstream) {
        let (_, kind, retry_after) = self.explain();
        match self {
            Self::Refused(Refused::Deadline | Refused::Closed) | Self::Cut => {}
            Self::Refused(_) | Self::PoolFull => {
                upstream.events.emit(|| Event::Rejected { upstream: upstream.name.clone(), kind, retry_after });
            }
            Self::Result(reason @ (Ended::BudgetCeiling | Ended::BudgetEfficacy), _) => {
                upstream.events.emit(|| Event::BudgetDenied { upstream: upstream.name.clone(), reason });
            }
            Self::Result(..) => {}
        }
    }
}

/// What the attempts before the last one have brought. Nothing, in nearly every call.
pub(super) struct Earlier<Out>(Option<Box<Brought<Out>>>);

struct Brought<Out> {
    response: Option<Out>,
    failure: Option<Box<Out>>,
}

impl<Out> Earlier<Out> {
    /// Of a call that has made no attempt.
    #[inline]
    pub(super) fn nothing() -> Self {
        Self(None)
    }

    pub(super) fn keep(&mut self, out: Option<Out>, kind: ResultKind) {
        // An attempt that was cut brings none; the one before it is still the latest.
        let Some(out) = out else { return };
        #[cfg(steadfast_planted)]
        if crate::planted::is(crate::planted::Planted::LostResponse) {
            return;
        }
        let brought = self.0.get_or_insert_with(|| Box::new(Brought { response: None, failure: None }));
        if kind.is_response() {
            brought.response = Some(out);
        } else {
            brought.failure = Some(Box::new(out));
        }
    }

    /// The latest response and the latest failure.
    #[inline]
    pub(super) fn take(&mut self) -> (Option<Out>, Option<Box<Out>>) {
        match self.0.take() {
            None => (None, None),
            Some(brought) => (brought.response, brought.failure),
        }
    }

    /// The same after an attempt that brought `out`.
    #[inline]
    pub(super) fn and(&mut self, out: Option<Out>, kind: ResultKind) -> (Option<Out>, Option<Box<Out>>) {
        let (response, failure) = self.take();
        if kind.is_response() { (out, failure) } else { (response, out.map(Box::new).or(failure)) }
    }
}
