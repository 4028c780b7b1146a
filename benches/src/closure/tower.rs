//! What tower offers for the same task: timeout + retry + retry budget + concurrency limit.
//!
//! In the order that Steadfast has: one timeout over everything, the limit inside the retries. It does less: no circuit
//! breaker, no rate limit, no backoff here, no report, and the timeout is the whole of its deadline.

use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tower::limit::ConcurrencyLimit;
use tower::retry::budget::{Budget, TpsBudget};
use tower::retry::{Policy, Retry};
use tower::timeout::Timeout;
use tower::util::ServiceFn;
use tower::{Service, ServiceExt};

use super::{Kind, Operate, Stack, operate};
use crate::Failure;

type Operation = ServiceFn<fn(Kind) -> Operate>;

/// Tower's stack around the operation.
#[derive(Clone)]
pub struct Tower(Timeout<Retry<Attempts, ConcurrencyLimit<Operation>>>);

/// Two retries, paid from a shared budget.
#[derive(Clone)]
struct Attempts {
    left: u32,
    budget: Arc<TpsBudget>,
}

impl Policy<Kind, u64, io::Error> for Attempts {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Kind, result: &mut io::Result<u64>) -> Option<Ready<()>> {
        if result.is_ok() {
            self.budget.deposit();
            return None;
        }
        if self.left == 0 || !self.budget.withdraw() {
            return None;
        }
        self.left -= 1;
        Some(ready(()))
    }

    fn clone_request(&mut self, kind: &Kind) -> Option<Kind> {
        Some(*kind)
    }
}

impl Tower {
    /// The stack with the figures that Steadfast has by default.
    pub fn new() -> Self {
        let operation: Operation = tower::service_fn(operate as fn(Kind) -> Operate);
        let limited = ConcurrencyLimit::new(operation, 50);
        let budget = Arc::new(TpsBudget::new(Duration::from_secs(10), 1, 0.2));
        Self(Timeout::new(Retry::new(Attempts { left: 2, budget }, limited), Duration::from_secs(30)))
    }
}

impl Default for Tower {
    fn default() -> Self {
        Self::new()
    }
}

impl Stack for Tower {
    const NAME: &'static str = "tower";

    async fn call(&mut self, kind: Kind) -> Result<u64, Failure> {
        self.0.ready().await?.call(kind).await
    }
}
