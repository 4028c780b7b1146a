//! Runs the calls: so many, so many at once, so many per second, all through one client.
//!
//! Calls are started in order of their number and handed over in order of completion. A rate is a promise to the
//! upstream: starts are never closer than its interval, so time lost to a full `--concurrency` is not caught up.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::plan::Load;

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Finish {
    /// Every call came to its end.
    Complete,
    /// Stopped by an interrupt; the calls in flight were dropped.
    Interrupted,
    /// The results could not be written.
    Unwritable(io::Error),
}

/// Makes the calls. `start` makes the future of call number n, `done` takes each result.
pub(crate) async fn run<T, F>(
    load: Load,
    interrupt: impl Future<Output = ()>,
    mut start: impl FnMut(u64) -> F,
    mut done: impl FnMut(T) -> io::Result<()>,
) -> Finish
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut interrupt = std::pin::pin!(interrupt);
    let interval = load.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate));
    let mut tasks = JoinSet::new();
    let mut started = 0;
    let mut due = Instant::now();
    loop {
        let may_start = started < load.repeat && tasks.len() < load.concurrency;
        let now = Instant::now();
        if may_start && due <= now {
            started += 1;
            tasks.spawn(start(started));
            due = next_start(due, now, interval);
            continue;
        }
        if started == load.repeat && tasks.is_empty() {
            return Finish::Complete;
        }
        tokio::select! {
            biased;
            () = &mut interrupt => return Finish::Interrupted,
            Some(joined) = tasks.join_next() => match joined {
                Ok(result) => if let Err(error) = done(result) {
                    return Finish::Unwritable(error);
                },
                Err(error) => return Finish::Unwritable(io::Error::other(error)),
            },
            () = tokio::time::sleep_until(due), if may_start => {}
        }
    }
}

/// The earliest instant for the next start: on the grid while it can be held, one interval from now when it cannot.
fn next_start(due: Instant, now: Instant, interval: Duration) -> Instant {
    let next = due + interval;
    if next > now { next } else { now + interval }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn load(repeat: u64, concurrency: usize, rate: Option<f64>) -> Load {
        Load { repeat, concurrency, rate }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn never_more_at_once_than_asked_and_each_number_once() {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut seen = Vec::new();
        let finish = block_on(run(
            load(50, 7, None),
            std::future::pending(),
            |n| {
                let (running, most) = (running.clone(), most.clone());
                async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    n
                }
            },
            |n| {
                seen.push(n);
                Ok(())
            },
        ));
        assert!(matches!(finish, Finish::Complete));
        assert_eq!(most.load(Ordering::SeqCst), 7);
        seen.sort_unstable();
        assert_eq!(seen, (1..=50).collect::<Vec<_>>());
    }

    #[test]
    fn an_interrupt_drops_what_runs_and_an_unwritable_result_stops() {
        let finish =
            block_on(run(load(1, 1, None), std::future::ready(()), |_| std::future::pending::<()>(), |()| Ok(())));
        assert!(matches!(finish, Finish::Interrupted));
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let finish = block_on(run(load(9, 1, None), std::future::pending(), std::future::ready, |_| Err(broken())));
        assert!(matches!(finish, Finish::Unwritable(_)));
    }

    #[test]
    fn starts_keep_their_interval_and_never_catch_up() {
        let (t0, ms) = (Instant::now(), Duration::from_millis);
        assert_eq!(next_start(t0, t0, ms(50)), t0 + ms(50));
        assert_eq!(next_start(t0, t0 + ms(3), ms(50)), t0 + ms(50));
        assert_eq!(next_start(t0, t0 + ms(400), ms(50)), t0 + ms(450));
    }
}
