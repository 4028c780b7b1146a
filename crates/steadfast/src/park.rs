//! Waiting on a thread, with nothing behind it: no runtime, no thread of ours, no timer of anybody's.
//!
//! A call waits for few things: for a moment of its own (a backoff, a place), for its turn in the line, for work on another
//! thread. [`drive`] polls it on the thread that makes it, and parks that thread in between, until it is woken or its
//! [`Bell`] is due. The bell is the thread's own: the call's timer only notes its next instant there.
//!
//! Invariants:
//!
//! - A wait ends when its time has passed on the system's monotonic clock, even where the call's clock stands still (a
//!   paused clock of tokio's): a bell that has rung counts as the time having come.
//! - A virtual clock is moved by whoever waits on it, to the instant that is waited for and no further, so that nothing
//!   waits in a test; but not while the call waits for other threads, which take no time on that clock.
//! - A call that never waits makes no waker, and allocates nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use steadfast_policy::Time;

use crate::clock::Clock;

/// When the thread that drives a call must poll it again at the latest.
#[derive(Debug)]
pub(crate) struct Bell {
    // Written and read by the one thread that drives; atomic only because a call's future may be sent.
    due: AtomicU64,
    rung: AtomicU64,
}

impl Bell {
    pub(crate) fn new() -> Self {
        Self { due: AtomicU64::new(Time::MAX.as_nanos()), rung: AtomicU64::new(0) }
    }

    /// Ready once it has rung for `at`; until then it is due then at the latest.
    pub(crate) fn poll(&self, at: Time) -> Poll<()> {
        if at.as_nanos() <= self.rung.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        self.due.fetch_min(at.as_nanos(), Ordering::Relaxed);
        Poll::Pending
    }

    fn due(&self) -> Time {
        Time::from_nanos(self.due.load(Ordering::Relaxed))
    }

    /// To be set anew by the next poll.
    fn clear(&self) {
        self.due.store(Time::MAX.as_nanos(), Ordering::Relaxed);
    }

    fn ring(&self, at: Time) {
        self.rung.fetch_max(at.as_nanos(), Ordering::Relaxed);
    }
}

/// What follows a poll that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Something was done for the future: it is polled again at once.
    Poll,
    /// The thread waits.
    Wait,
    /// The thread waits, and what it waits for is done by another thread: a virtual clock is not its own to move.
    WaitForOthers,
}

/// Drives the future to its end on this thread. `between` is asked after each poll that brought nothing, outside of it.
pub(crate) fn drive<F: Future>(
    clock: &Clock,
    bell: &Bell,
    mut future: Pin<&mut F>,
    mut between: impl FnMut() -> Then,
) -> F::Output {
    // Made when there is something to wait for: the poll after that hands it out.
    let mut waiting: Option<(Arc<Parked>, Waker)> = None;
    loop {
        bell.clear();
        let waker = waiting.as_ref().map_or(Waker::noop(), |(_, waker)| waker);
        if let Poll::Ready(out) = future.as_mut().poll(&mut Context::from_waker(waker)) {
            return out;
        }
        let then = between();
        match &waiting {
            _ if then == Then::Poll => {}
            Some((parked, _)) => wait(clock, bell, parked, then),
            None => waiting = Some(Parked::here()),
        }
    }
}

/// Parks the thread until it is woken or the bell is due, and then lets that ring.
fn wait(clock: &Clock, bell: &Bell, parked: &Parked, then: Then) {
    let due = bell.due();
    #[cfg(feature = "testing")]
    if let Some(clock) = clock.as_virtual() {
        while !parked.take_wake() {
            match clock.now() {
                now if now >= due => return bell.ring(due),
                _ if then == Then::WaitForOthers || due == Time::MAX => thread::park(),
                _ => clock.advance_to(due),
            }
        }
        return;
    }
    let _ = then;
    let ends = match due {
        Time::MAX => None,
        due => Instant::now().checked_add(clock.now().until(due)),
    };
    while !parked.take_wake() {
        let Some(ends) = ends else {
            thread::park();
            continue;
        };
        match ends.saturating_duration_since(Instant::now()) {
            left if left.is_zero() => return bell.ring(due),
            left => thread::park_timeout(left),
        }
    }
}

/// A thread that waits to be woken.
///
/// One for each wait, and not one for each thread: what waits inside of another wait must not take its wake-ups.
pub(crate) struct Parked {
    thread: Thread,
    woken: AtomicBool,
}

impl Parked {
    /// This thread, and what wakes it.
    pub(crate) fn here() -> (Arc<Self>, Waker) {
        let parked = Arc::new(Self { thread: thread::current(), woken: AtomicBool::new(false) });
        (Arc::clone(&parked), Waker::from(parked))
    }

    /// Whether it was woken since this was last asked.
    pub(crate) fn take_wake(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::pin::pin;
    use std::time::Duration;

    use super::*;

    fn at(clock: &Clock, millis: u64) -> Time {
        clock.now() + Duration::from_millis(millis)
    }

    #[test]
    fn a_bell_rings_for_every_instant_up_to_its_own() {
        let bell = Bell::new();
        let [soon, later] = [Time::from_millis(1), Time::from_millis(2)];
        assert!(bell.poll(later).is_pending() && bell.poll(soon).is_pending());
        assert_eq!(bell.due(), soon);
        bell.ring(soon);
        assert!(bell.poll(soon).is_ready() && bell.poll(later).is_pending());
        bell.clear();
        assert_eq!(bell.due(), Time::MAX);
    }

    #[test]
    fn a_wait_without_a_runtime_ends_at_its_time() {
        let (clock, bell) = (Clock::system(), Bell::new());
        let due = at(&clock, 2);
        drive(&clock, &bell, pin!(poll_fn(|_| bell.poll(due))), || Then::Wait);
        assert!(clock.now() >= due);
    }

    #[test]
    fn another_thread_wakes_one_that_has_no_bell() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let teller = thread::spawn(move || tell.send(7));
        let (clock, bell) = (Clock::system(), Bell::new());
        assert_eq!(drive(&clock, &bell, pin!(told), || Then::Wait).unwrap(), 7);
        teller.join().unwrap().unwrap();
    }

    #[test]
    fn what_is_done_in_between_is_polled_for_without_waiting() {
        let (clock, bell) = (Clock::system(), Bell::new());
        let mut polls = 0;
        let third = poll_fn(|context| {
            polls += 1;
            assert!(context.waker().will_wake(Waker::noop()), "nothing was waited for");
            if polls == 3 { Poll::Ready(polls) } else { Poll::Pending }
        });
        assert_eq!(drive(&clock, &bell, pin!(third), || Then::Poll), 3);
    }

    #[cfg(feature = "testing")]
    #[test]
    fn a_virtual_clock_goes_to_what_is_waited_for_and_no_further() {
        use crate::testing::VirtualClock;
        let virtual_clock = VirtualClock::new();
        let (clock, bell) = (Clock::from(virtual_clock.clone()), Bell::new());
        let due = at(&clock, 300);
        drive(&clock, &bell, pin!(poll_fn(|_| bell.poll(due))), || Then::Wait);
        assert_eq!(virtual_clock.now(), due);

        // Others move it, if the call waits for others.
        let later = at(&clock, 300);
        let mover = virtual_clock.clone();
        let mut timer = pin!(crate::timer::Timer::with(Some(&bell)));
        let mut threads = Vec::new();
        let ring = poll_fn(|context| timer.as_mut().poll_until(context, &clock, later));
        drive(&clock, &bell, pin!(ring), || {
            if threads.is_empty() {
                let mover = mover.clone();
                threads.push(thread::spawn(move || mover.advance(Duration::from_millis(400))));
            }
            Then::WaitForOthers
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(virtual_clock.now(), Time::from_millis(700), "by the other thread alone");
    }

    #[test]
    fn what_is_done_in_between_may_panic() {
        let (clock, bell) = (Clock::system(), Bell::new());
        let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drive(&clock, &bell, pin!(pending::<()>()), || panic!("on purpose"));
        }));
        assert!(left.is_err());
    }
}
