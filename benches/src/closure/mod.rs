//! One call of a closure, with nothing on the network: what the policies themselves cost.

mod bare;
mod operation;
mod peers;
mod steadfast;
mod tower;

pub use bare::Bare;
pub use operation::{Kind, Operate, operate};
pub use peers::{Backon, Failsafe, Governor, TowerResilience};
pub use steadfast::{RateLimited, Steadfast};
pub use tower::Tower;

use std::future::Future;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use crate::Failure;

/// Something that puts policies around an operation. Clones share the policies' state.
pub trait Stack: Clone + Send + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// Calls the operation once.
    fn call(&mut self, kind: Kind) -> impl Future<Output = Result<u64, Failure>> + Send;
}

/// A runtime for one thread, as a service's worker has it: timers on, no I/O.
///
/// # Errors
///
/// The system refuses what a runtime needs.
pub fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_time().build()?)
}

/// Calls back to back on this thread.
///
/// # Errors
///
/// A call that fails: the operation never does, so a policy refused it.
pub fn calls(runtime: &Runtime, stack: &mut impl Stack, kind: Kind, count: usize) -> Result<(), Failure> {
    runtime.block_on(async {
        for _ in 0..count {
            black_box(stack.call(kind).await?);
        }
        Ok(())
    })
}

/// Calls back to back from two threads with a runtime each, that share the stack: the most contention that two threads
/// can make. The time from the common start to the end of the slower one.
///
/// # Errors
///
/// Those of [`calls`] and [`runtime`], or a core that we may not have.
pub fn from_two_threads(
    stack: &impl Stack,
    kind: Kind,
    count: usize,
    cores: Option<(usize, usize)>,
) -> Result<Duration, Failure> {
    let start = &Barrier::new(2);
    let worker = |mut stack, core: Option<usize>| {
        move || -> Result<Duration, Failure> {
            let prepared = core.map_or(Ok(()), crate::machine::pin).and_then(|()| runtime());
            // Both arrive here whatever happened, so that neither waits for ever.
            start.wait();
            let runtime = prepared?;
            let begun = Instant::now();
            calls(&runtime, &mut stack, kind, count)?;
            Ok(begun.elapsed())
        }
    };
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(worker(stack.clone(), cores.map(|cores| cores.0)));
        let second = scope.spawn(worker(stack.clone(), cores.map(|cores| cores.1)));
        (first.join(), second.join())
    });
    let ended = |result: std::thread::Result<_>| result.unwrap_or_else(|_| Err("a thread panicked".into()));
    Ok(ended(first)?.max(ended(second)?))
}
