//! One pinned timer per call, made when the call first has to wait, and re-armed for whatever limit comes next.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use steadfast_policy::Time;
use tokio::time::Sleep;

use crate::clock::Clock;
use crate::park::Alarm;
#[cfg(feature = "testing")]
use crate::testing::VirtualTimer;

pin_project! {
    /// A timer that costs nothing until it is first polled.
    pub(crate) struct Timer<'a> {
        #[pin]
        sleep: Option<Sleep>,
        armed: Time,
        virtual_timer: VirtualSlot,
        alarm: Option<&'a Alarm>,
    }
}

#[cfg(feature = "testing")]
type VirtualSlot = VirtualTimer;
#[cfg(not(feature = "testing"))]
type VirtualSlot = ();

impl<'a> Timer<'a> {
    pub(crate) fn new() -> Self {
        Self::with(None)
    }

    /// One that notes its instants in the alarm of the thread that drives it, if it has one, and needs no runtime then.
    pub(crate) fn with(alarm: Option<&'a Alarm>) -> Self {
        Self { sleep: None, armed: Time::ZERO, virtual_timer: VirtualSlot::default(), alarm }
    }

    /// Ready once `at` has come; until then the task is woken at that instant. `Time::MAX` never comes.
    pub(crate) fn poll_until(self: Pin<&mut Self>, cx: &mut Context<'_>, clock: &Clock, at: Time) -> Poll<()> {
        if at == Time::MAX {
            return Poll::Pending;
        }
        let mut this = self.project();
        if let Some(alarm) = this.alarm {
            let rung = alarm.poll(at);
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
        if this.sleep.is_none() || *this.armed != at {
            let Some(instant) = clock.instant(at) else { return Poll::Pending };
            match this.sleep.as_mut().as_pin_mut() {
                Some(sleep) => sleep.reset(instant),
                None => this.sleep.set(Some(tokio::time::sleep_until(instant))),
            }
            *this.armed = at;
        }
        match this.sleep.as_pin_mut() {
            Some(sleep) => sleep.poll(cx),
            None => Poll::Pending,
        }
    }

    /// The same for a wait that the call itself asked for, a backoff or the time to a place, and not a limit on what
    /// somebody else does: nothing but time can end it. A test's clock need not let it pass.
    pub(crate) fn poll_sleep(self: Pin<&mut Self>, cx: &mut Context<'_>, clock: &Clock, at: Time) -> Poll<()> {
        #[cfg(feature = "testing")]
        {
            // A thread that parks moves the clock itself.
            match clock.skip_to(at) {
                true => Poll::Ready(()),
                false if self.alarm.is_some() => self.poll_until(cx, clock, at),
                false => self.poll_work(cx, clock, at),
            }
        }
        #[cfg(not(feature = "testing"))]
        self.poll_until(cx, clock, at)
    }

    /// The same for the time that scripted work takes: a fake clock moves on to its end, or to the limit that cuts it.
    #[cfg(feature = "testing")]
    pub(crate) fn poll_work(self: Pin<&mut Self>, cx: &mut Context<'_>, clock: &Clock, at: Time) -> Poll<()> {
        match clock.as_virtual() {
            Some(clock) => self.project().virtual_timer.poll_moving(cx, clock, at),
            None => self.poll_until(cx, clock, at),
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
