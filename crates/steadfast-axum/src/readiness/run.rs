//! Running all checks at once, within one timeout.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast::Clock;

use super::report::CheckReport;
use super::{Check, CheckFuture};

/// What each check says. A result that is ready in the same poll wins over the timeout.
pub(super) async fn all(checks: &[Check], timeout: Duration, clock: &Clock) -> Vec<(String, CheckReport)> {
    let mut running: Vec<Running<'_>> = checks.iter().map(Running::begin).collect();
    if !running.is_empty() {
        let mut limit = pin!(clock.limit(clock.now() + timeout));
        poll_fn(|cx| {
            let mut pending = false;
            for check in &mut running {
                pending |= check.poll(cx).is_pending();
            }
            if pending { limit.as_mut().poll(cx) } else { Poll::Ready(()) }
        })
        .await;
    }
    running.into_iter().map(Running::report).collect()
}

struct Running<'a> {
    check: &'a Check,
    /// Dropped as soon as it has ended.
    future: Option<CheckFuture>,
    ended: Option<Result<(), String>>,
}

impl<'a> Running<'a> {
    fn begin(check: &'a Check) -> Self {
        match catch_unwind(AssertUnwindSafe(|| (check.run)())) {
            Ok(future) => Self { check, future: Some(future), ended: None },
            Err(_) => Self { check, future: None, ended: Some(Err("it panicked".to_owned())) },
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(future) = &mut self.future else { return Poll::Ready(()) };
        let ended = match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(ended)) => ended,
            Err(_) => Err("it panicked".to_owned()),
        };
        (self.future, self.ended) = (None, Some(ended));
        Poll::Ready(())
    }

    fn report(self) -> (String, CheckReport) {
        let name = self.check.name.clone();
        let failed = match self.ended {
            Some(Ok(())) => None,
            Some(Err(error)) => {
                tracing::warn!(check = name, error, "a readiness check failed");
                Some("failed")
            }
            None => {
                tracing::warn!(check = name, "a readiness check did not end in time");
                Some("timed out")
            }
        };
        let report = CheckReport::of_check(self.check.critical, failed);
        (name, report)
    }
}
