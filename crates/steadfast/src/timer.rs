//! One timer per call, armed when the call first has to wait, and again for whatever limit comes next.

use std::pin::Pin;
use std::task::{Context, Poll};

use steadfast_policy::Time;

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::park::Bell;
#[cfg(feature = "testing")]
use crate::testing::VirtualTimer;

/// A timer that costs nothing until it is first polled.
pub(crate) struct Timer<'a> {
    alarm: Option<Box<Alarm>>,
    #[cfg(feature = "testing")]
    virtual_timer: VirtualTimer,
    /// Of the thread that drives the call, if one does.
    bell: Option<&'a Bell>,
}

impl<'a> Timer<'a> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self::with(None)
    }

    /// One that notes its instants with the bell of the thread that drives it, if it has one, and needs no runtime then.
    #[inline]
    pub(crate) fn with(bell: Option<&'a Bell>) -> Self {
        Self {
            alarm: None,
            #[cfg(feature = "testing")]
            virtual_timer: VirtualTimer::default(),
            bell,
        }
    }

    /// Ready once `at` has come; until then the task is woken at that instant. `Time::MAX` never comes.
    pub(crate) fn poll_until(self: Pin<&mut Self>, cx: &mut Context<'_>, clock: &Clock, at: Time) -> Poll<()> {
        if at == Time::MAX {
            return Poll::Pending;
        }
        let this = self.get_mut();
        if let Some(bell) = this.bell {
            let rung = bell.poll(at);
            // Armed so that whoever moves the clock wakes the thread.
            #[cfg(feature = "testing")]
            if let Some(clock) = clock.as_virtual().filter(|_| rung.is_pending()) {
                let _ = this.virtual_timer.poll_until(cx, clock, at);
            }
            return rung;
        }
        #[cfg(feature = "testing")]
        if let Some(clock) = clock.as_virtual() {
            return this.virtual_timer.poll_until(cx, clock, at);
        }
        let Some(instant) = clock.instant(at) else { return Poll::Pending };
        this.alarm.get_or_insert_with(|| Alarm::before(instant)).poll(cx, instant)
    }

    /// The same for a wait that the call itself asked for, a backoff or the time to a place, and not a limit on what
    /// somebody else does: nothing but time can end it. A test's clock need not let it pass.
    pub(crate) fn poll_sleep(self: Pin<&mut Self>, cx: &mut Context<'_>, clock: &Clock, at: Time) -> Poll<()> {
        #[cfg(feature = "testing")]
        {
            match clock.as_fast().filter(|_| at != Time::MAX) {
                Some(clock) => self.get_mut().virtual_timer.poll_skipping(cx, clock, at),
                // A thread that parks moves the clock itself.
                None if self.bell.is_some() => self.poll_until(cx, clock, at),
                None => self.poll_work(cx, clock, at),
            }
        }
        #[cfg(not(feature = "testing"))]
        self.poll_until(cx, clock, at)
    }

    /// The same for the time that scripted work takes: a fake clock moves on to its end, or to the limit that cuts it.
    #[cfg(feature = "testing")]
    pub(crate) fn poll_work(self: Pin<&mut Self>, cx: &mut Context<'_>, clock: &Clock, at: Time) -> Poll<()> {
        match clock.as_virtual().filter(|_| at != Time::MAX) {
            Some(clock) => self.get_mut().virtual_timer.poll_moving(cx, clock, at),
            None => self.poll_until(cx, clock, at),
        }
    }
}

impl Drop for Timer<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            alarm.rest();
        }
    }
}

/// Waits for `future` until `limit`; `None` when the limit came first. A future that is ready in the same poll wins
/// (contract 0.1), and the timer is not armed at all by one that is ready at once.
#[inline]
pub(crate) fn until<F: Future>(
    mut future: Pin<&mut F>,
    mut timer: Pin<&mut Timer<'_>>,
    clock: &Clock,
    limit: Time,
) -> impl Future<Output = Option<F::Output>> {
    std::future::poll_fn(move |cx| match future.as_mut().poll(cx) {
        Poll::Ready(out) => Poll::Ready(Some(out)),
        Poll::Pending => timer.as_mut().poll_until(cx, clock, limit).map(|()| None),
    })
}
