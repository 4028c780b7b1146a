//! Counts calls, and still makes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::transport::{Exchange, ExchangeFuture, Outgoing, Progress};

/// Watches a closure, or a transport.
///
/// ```
/// use std::io;
/// use steadfast::Guard;
/// use steadfast::testing::{fake_clock, spy};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let _time = fake_clock();
/// let send = spy(|| std::future::ready(Err::<(), _>(io::ErrorKind::TimedOut)));
/// let is_transient = spy(|kind: &io::ErrorKind| *kind == io::ErrorKind::TimedOut);
///
/// let guard = Guard::http("mail").attempts(2).build()?;
/// let sent = guard.transient(|kind| is_transient.call_with(kind)).call(|| send.call()).await;
/// assert!(sent.is_err());
/// assert_eq!((send.call_count(), is_transient.call_count()), (2, 2));
/// # Ok(())
/// # }
/// ```
pub fn spy<F>(watched: F) -> Spy<F> {
    Spy(Arc::new(Watched { watched, calls: AtomicUsize::new(0) }))
}

/// Something that is watched. Clones watch the same.
///
/// A spy on an [`Exchange`] is one, too: `ServiceClient::builder(url).transport(spy(transport))`.
#[derive(Debug)]
pub struct Spy<F>(Arc<Watched<F>>);

#[derive(Debug)]
struct Watched<F> {
    watched: F,
    calls: AtomicUsize,
}

impl<F> Spy<F> {
    /// How often it was called.
    pub fn call_count(&self) -> usize {
        self.0.calls.load(Ordering::SeqCst)
    }

    /// What is watched.
    pub fn watched(&self) -> &F {
        &self.0.watched
    }

    fn count(&self) -> &F {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        &self.0.watched
    }

    /// Calls a closure without arguments.
    pub fn call<R>(&self) -> R
    where
        F: Fn() -> R,
    {
        self.count()()
    }

    /// Calls a closure with one.
    pub fn call_with<A, R>(&self, argument: A) -> R
    where
        F: Fn(A) -> R,
    {
        self.count()(argument)
    }
}

impl<F> Clone for Spy<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: Exchange> Exchange for Spy<F> {
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        self.count().exchange(outgoing, progress)
    }
}
