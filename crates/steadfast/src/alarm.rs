//! Tokio timers that are used again: most calls end long before their limit, and to register a timer for each and take it
//! out again cost as much as a third of a call that waits.
//!
//! An alarm is a timer that stays armed. A call takes one from its thread's stock, leaves its waker in it, and puts it back
//! when it ends. The timer itself is not touched: one that is armed for an earlier instant than the call's limit will do,
//! since whoever it wakes too early looks at the clock and arms it again.
//!
//! Invariants:
//! - A stock holds alarms of one runtime, the one that the thread was in last. An alarm of another is never used: it may
//!   belong to a runtime that is gone, or that nobody drives.
//! - An alarm in stock knows no waker, so that it keeps no task and wakes nobody.
//! - A stock holds at most [`MOST`] alarms, and none that was made while the runtime's time was paused: there an idle
//!   runtime jumps to its next timer, and must not find one that nobody waits for.
//!
//! Limits: an alarm in stock keeps its runtime's handle (not its threads, nor its tasks) until the thread ends or makes a
//! call in another runtime. Each wakes its runtime once, at the instant that it is armed for.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep};

/// How many alarms a thread keeps: as many calls as can wait on it at once without a timer of their own being made.
const MOST: usize = 64;

/// A timer, and who is to be woken.
pub(crate) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    bell: Arc<Bell>,
    /// The bell's, as a waker.
    ring: Waker,
    /// `None`: it is not kept.
    runtime: Option<Id>,
}

/// Wakes whoever waits for the alarm, once.
#[derive(Default)]
struct Bell(Mutex<Option<Waker>>);

impl Bell {
    /// Leaves a waker. One of the same task is left as it is.
    #[inline]
    fn listen(&self, waker: &Waker) {
        let mut listener = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        let replaced = listener.replace(waker.clone());
        drop(listener);
        drop(replaced);
    }

    #[inline]
    fn take(&self) -> Option<Waker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }
}

impl Alarm {
    /// An alarm of the present runtime, armed for `at` or for any earlier instant.
    ///
    /// # Panics
    /// As a tokio timer does: outside a runtime, or in one without time.
    pub(crate) fn before(at: Instant) -> Box<Self> {
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        runtime.and_then(take).unwrap_or_else(|| Box::new(Self::new(at, runtime)))
    }

    #[cold]
    fn new(at: Instant, runtime: Option<Id>) -> Self {
        let bell = Arc::new(Bell::default());
        let ring = Waker::from(Arc::clone(&bell));
        let mut sleep = Box::pin(tokio::time::sleep_until(at));
        let _ = poll(&mut sleep, &ring);
        Self { sleep, bell, ring, runtime: runtime.filter(|_| !is_time_paused()) }
    }

    /// Ready once `at` has come; until then the task is woken, at that instant or before.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        // Left before the timer is looked at, so that one that goes off in between finds it.
        self.bell.listen(cx.waker());
        if self.sleep.deadline() > at || self.sleep.is_elapsed() {
            return self.arm(at);
        }
        Poll::Pending
    }

    #[cold]
    fn arm(&mut self, at: Instant) -> Poll<()> {
        if self.sleep.is_elapsed() && self.sleep.deadline() >= at {
            return Poll::Ready(());
        }
        self.sleep.as_mut().reset(at);
        poll(&mut self.sleep, &self.ring)
    }

    /// Puts it back in stock.
    pub(crate) fn rest(self: Box<Self>) {
        drop(self.bell.take());
        if let Some(runtime) = self.runtime {
            put(runtime, self);
        }
    }
}

/// Not counted in the task's budget: it is the bell that listens, and it must.
fn poll(sleep: &mut Pin<Box<Sleep>>, ring: &Waker) -> Poll<()> {
    Pin::new(&mut tokio::task::unconstrained(sleep.as_mut())).poll(&mut Context::from_waker(ring))
}

/// Whether tokio's time is not the system's.
fn is_time_paused() -> bool {
    let before = std::time::Instant::now();
    let now = Instant::now().into_std();
    now < before || now > std::time::Instant::now()
}

/// The alarms of one runtime that are not in use on this thread.
struct Stock {
    runtime: Option<Id>,
    #[expect(clippy::vec_box, reason = "a timer takes the box as it is")]
    alarms: Vec<Box<Alarm>>,
}

thread_local! {
    static STOCK: RefCell<Stock> = const { RefCell::new(Stock { runtime: None, alarms: Vec::new() }) };
}

fn take(runtime: Id) -> Option<Box<Alarm>> {
    // What is of another runtime is dropped after the stock was let go of: nobody knows what goes with it.
    let (alarm, _others) = STOCK
        .try_with(|stock| {
            let mut stock = stock.try_borrow_mut().ok()?;
            if stock.runtime == Some(runtime) {
                return Some((stock.alarms.pop(), Vec::new()));
            }
            stock.runtime = Some(runtime);
            Some((None, std::mem::take(&mut stock.alarms)))
        })
        .ok()??;
    alarm
}

fn put(runtime: Id, alarm: Box<Alarm>) {
    let mut alarm = Some(alarm);
    let _ = STOCK.try_with(|stock| {
        if let Ok(mut stock) = stock.try_borrow_mut()
            && stock.runtime == Some(runtime)
            && stock.alarms.len() < MOST
        {
            stock.alarms.extend(alarm.take());
        }
    });
}
