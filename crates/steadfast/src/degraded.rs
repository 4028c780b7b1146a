//! Which answers stood in for others while a request was served (11.5; rule 25 of the third seed's project: a service
//! that is only partly there must say so).
//!
//! A fallback keeps a page up; who looks at the page must be able to tell. So each fallback that a [`Guard`] serves is noted
//! in the [`Collector`] of the request being served, if there is one, and the serving edge asks it what to tell the user.
//!
//! ```
//! use std::io;
//! use steadfast::{Guard, degraded};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tariffs = Guard::http("tariffs").build()?;
//! let (tariff, degraded) = degraded::collect(async {
//!     let down = || async { Err(io::Error::other("no answer")) };
//!     tariffs.fallback(10).call(down).await
//! })
//! .await;
//! assert_eq!(tariff?, 10);
//! assert_eq!(degraded[0].dependency(), "tariffs");
//! # Ok(())
//! # }
//! ```
//!
//! A collector belongs to a task, not to the tasks that it spawns: [`Collector::current`] is taken along to those, and
//! [`Collector::scope`] put around them. It holds each dependency once, the first reason that it was noted with, and at
//! most [`MOST`] of them.
//!
//! [`Guard`]: crate::Guard

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::{Response, StatusError};
use crate::error::Error;
use crate::report::{Ended, Report};

/// How many dependencies a collector holds at most.
pub const MOST: usize = 100;

/// A dependency whose answer is missing or stands in for a better one, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degraded {
    dependency: Arc<str>,
    reason: Ended,
    retry_after: Option<Duration>,
}

impl Degraded {
    /// Of a call that ended like this.
    pub(crate) fn of(dependency: &Arc<str>, report: &Report) -> Self {
        Self { dependency: Arc::clone(dependency), reason: report.ended(), retry_after: report.retry_after() }
    }

    /// The dependency's name.
    pub fn dependency(&self) -> &str {
        &self.dependency
    }

    /// Why its call ended without a value.
    pub fn reason(&self) -> Ended {
        self.reason
    }

    /// When it makes sense to ask it again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl From<&Error> for Degraded {
    /// For code that deals with a failed HTTP call itself, and has something to show instead: see [`note`].
    fn from(error: &Error) -> Self {
        Self {
            dependency: Arc::from(error.upstream()),
            reason: error.report().ended(),
            retry_after: error.retry_after(),
        }
    }
}

impl From<&StatusError> for Degraded {
    /// The same for a call whose answer was no use: the last 503, where retries brought no other.
    fn from(error: &StatusError) -> Self {
        let response = error.response();
        Self::of(&Arc::from(response.upstream()), response.report())
    }
}

impl From<&Response> for Degraded {
    /// The same for a call whose answer was good, and cannot be used: a body that is not what was agreed on.
    fn from(response: &Response) -> Self {
        Self::of(&Arc::from(response.upstream()), response.report())
    }
}

impl fmt::Display for Degraded {
    /// `tariffs (circuit_open)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.dependency, self.reason)
    }
}

tokio::task_local! {
    static CURRENT: Collector;
}

/// What was degraded while a request was served. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Collector(Arc<Mutex<Vec<Degraded>>>);

impl Collector {
    /// One that has nothing noted.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one of the task that this is called in, if it has one.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Runs the future with this collector: what is degraded in it is noted here.
    ///
    /// Cancel safe if `future` is.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        CURRENT.scope(self.clone(), future).await
    }

    /// Runs the closure with this collector.
    pub fn scope_blocking<R>(&self, work: impl FnOnce() -> R) -> R {
        CURRENT.sync_scope(self.clone(), work)
    }

    /// Notes one more. A dependency that is noted already keeps its first reason.
    pub fn note(&self, degraded: Degraded) {
        let mut noted = self.lock();
        if noted.len() < MOST && noted.iter().all(|known| known.dependency != degraded.dependency) {
            noted.push(degraded);
        }
    }

    /// What was noted so far, in order.
    pub fn noted(&self) -> Vec<Degraded> {
        self.lock().clone()
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Degraded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the future, and says what was degraded in it.
///
/// Cancel safe if `future` is.
pub async fn collect<F: Future>(future: F) -> (F::Output, Vec<Degraded>) {
    let collector = Collector::new();
    let out = collector.scope(future).await;
    (out, collector.noted())
}

/// The same for a closure on this thread.
pub fn collect_blocking<R>(work: impl FnOnce() -> R) -> (R, Vec<Degraded>) {
    let collector = Collector::new();
    let out = collector.scope_blocking(work);
    (out, collector.noted())
}

/// Notes a dependency in the collector of the request being served; nothing happens where there is none. Guards do so
/// themselves.
pub fn note(degraded: Degraded) {
    // The lock is not held over anything: the task's collector is only cloned from here.
    let _ = CURRENT.try_with(|collector| collector.note(degraded));
}
