//! The bulkhead alone.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::time::Duration;

use steadfast_http::{Fault, Sent};
use steadfast_policy::line::LineSnapshot;
use steadfast_policy::{Advice, Answer, Cause, Judgement};

use super::enter::{For, try_enter};
use super::{nothing_but, without_deadline};
use crate::call::{Call, Finished, Options};
use crate::clock::Clock;
use crate::config::Problems;
use crate::error::Error;
use crate::event::Event;
use crate::guard::{Guard, GuardBuilder, GuardError};
use crate::operation::{Attempt, Judged, Operation, ResultKind};
use crate::report::Outcome;
use crate::upstream::Held;

/// So many at once; those that come later wait in line for a little, and are refused (5.1). Built once; clones share the
/// slots.
///
/// ```
/// use std::time::Duration;
/// use steadfast::Bulkhead;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let reports = Bulkhead::builder("reports").max_concurrent(1).wait(Duration::ZERO).build()?;
/// let slot = reports.acquire().await?;
/// assert!(reports.acquire().await.unwrap_err().is_bulkhead_full());
/// drop(slot);
/// assert!(reports.try_acquire().is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Bulkhead(Guard);

impl Bulkhead {
    /// At most `slots` at once, with the defaults of the [`builder`](Self::builder).
    ///
    /// # Errors
    /// A number outside its bounds.
    pub fn new(slots: u32) -> Result<Self, Problems> {
        Self::builder("bulkhead").max_concurrent(slots).build()
    }

    /// Sets a bulkhead up. `name` is what errors and events call it.
    pub fn builder(name: &str) -> BulkheadBuilder {
        BulkheadBuilder { guard: nothing_but(name), slots: 50, wait: Duration::from_millis(500) }
    }

    /// Waits in line for a slot, first in, first out. Dropping the permit gives the slot back.
    ///
    /// Cancel safe: a waiter that is dropped gives its position up.
    ///
    /// # Errors
    /// [`BulkheadFull`](crate::ErrorKind::BulkheadFull): no slot came free within the [`wait`](BulkheadBuilder::wait).
    ///
    /// # Panics
    /// With the system clock outside a tokio runtime, or in one without time (`enable_time`), once it has to wait.
    pub async fn acquire(&self) -> Result<BulkheadPermit, Error> {
        let (upstream, rules) = self.0.parts();
        let mut call = Call::begin(upstream, rules, &Stay::OPTIONS);
        let finished = call.run(&mut Stay).await;
        Self::permit(call, finished)
    }

    pub(super) fn permit(mut call: Call<'_>, finished: Finished<()>) -> Result<BulkheadPermit, Error> {
        let held = finished.held.map(BulkheadPermit);
        held.ok_or_else(|| Error::new(call.kind(), &call.upstream.name, call.report()))
    }

    /// Takes a slot if one is free now and nobody waits for it.
    ///
    /// # Errors
    /// [`BulkheadFull`](crate::ErrorKind::BulkheadFull).
    pub fn try_acquire(&self) -> Result<BulkheadPermit, Error> {
        try_enter(self.0.parts().0, "", For::AStay).map(|held| BulkheadPermit(Box::new(held)))
    }

    /// Waits for a slot, and runs the operation in it, once.
    ///
    /// Cancel safe: dropping the future drops the operation and gives the slot back. Panics: as
    /// [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// The operation's own error, or the bulkhead's as for [`acquire`](Self::acquire).
    pub async fn call<T, E, F, Fut>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        self.0.call(operation).await
    }

    /// How many slots are taken, and how many wait. Taking it changes nothing.
    pub fn snapshot(&self) -> LineSnapshot {
        self.0.snapshot().line
    }

    /// The guard that it is: for a call with a timeout or a fallback of its own, and for
    /// `layer::GuardLayer`.
    pub fn as_guard(&self) -> &Guard {
        &self.0
    }
}

impl fmt::Debug for Bulkhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulkhead").field("name", &self.0.name()).finish_non_exhaustive()
    }
}

/// A slot of a [`Bulkhead`], which it does not borrow: it can be sent along with the work that it is for. Dropping it gives
/// the slot to the first in line.
#[must_use = "a permit that is dropped at once holds nothing"]
pub struct BulkheadPermit(Box<Held>);

impl BulkheadPermit {
    /// Gives the slot back, as dropping does.
    pub fn release(self) {
        drop(self.0);
    }
}

impl fmt::Debug for BulkheadPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkheadPermit").finish_non_exhaustive()
    }
}

/// An operation that is done at once, and whose slot stays taken until its owner is done, as that of a response whose body
/// is still being read.
pub(super) struct Stay;

impl Stay {
    pub(super) const OPTIONS: Options<'static> = Options {
        key: "",
        timeout: None,
        deadline: None,
        inherited: None,
        // A stay is no call: it may go on when its request is over.
        of_task: false,
        timeout_is_evidence: true,
        bell: None,
    };

    fn judged(outcome: Outcome, result: ResultKind) -> Judged {
        let judgement = Judgement {
            verdict: None,
            answer: Answer::Ok,
            cause: Cause::Fast,
            advice: Advice::Done,
            retry_after: None,
        };
        Judged { judgement, outcome, sent: Sent::No, result }
    }
}

impl Operation for Stay {
    type Out = ();

    fn attempt(&mut self, _: Attempt) -> impl Future<Output = ()> + Send {
        let done: Ready<()> = ready(());
        done
    }

    fn judge(&self, _: Duration, (): &()) -> Judged {
        Self::judged(Outcome::Ok, ResultKind::Open)
    }

    fn judge_cut(&self, fault: Fault) -> Judged {
        Self::judged(Outcome::Fault(fault), ResultKind::Failure)
    }
}

/// Sets a [`Bulkhead`] up. What is not said keeps its default.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct BulkheadBuilder {
    guard: GuardBuilder,
    slots: u32,
    wait: Duration,
}

impl BulkheadBuilder {
    /// So many at once. 50; 1 to 1 000 000.
    pub fn max_concurrent(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// The longest wait for a slot; zero refuses at once. 0.5 s; at most a day.
    pub fn wait(mut self, longest: Duration) -> Self {
        self.wait = longest;
        self
    }

    /// Another clock than the system's.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.guard = self.guard.clock(clock);
        self
    }

    /// Tells of every start and refusal; as [`ClientBuilder::on_event`](crate::ClientBuilder::on_event).
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.guard = self.guard.on_event(hook);
        self
    }

    /// The bulkhead.
    ///
    /// # Errors
    /// Every value outside its bounds, all at once.
    pub fn build(self) -> Result<Bulkhead, Problems> {
        without_deadline(self.guard.max_concurrent(self.slots, self.wait), |_| {}).map(Bulkhead)
    }
}
