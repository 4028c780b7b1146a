//! Timers that are used again by the calls of a thread: never one of another runtime, never with somebody else's waker.

use std::future::{pending, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use steadfast::{ErrorKind, Guard};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn guard(total_timeout: Duration) -> Guard {
    Guard::builder("alarms").total_timeout(total_timeout).build().unwrap()
}

/// A call that waits, so that it needs a timer, and ends long before that goes off.
async fn waits_once(guard: &Guard) {
    let called = guard
        .call(|| {
            let mut has_waited = false;
            poll_fn(move |cx| {
                if std::mem::replace(&mut has_waited, true) {
                    return Poll::Ready(Ok::<_, io::Error>(()));
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
        })
        .await;
    assert!(called.is_ok(), "{called:?}");
}

/// A call that only its deadline can end: it does so, whatever timers there are.
async fn is_cut(guard: &Guard) {
    let call = guard.call(pending::<Result<(), io::Error>>);
    let ended = tokio::time::timeout(Duration::from_secs(10), call).await;
    let error = ended.expect("the deadline ends the call").expect_err("nothing else does");
    assert_eq!(error.limit(), Some(ErrorKind::Timeout));
}

#[test]
fn c1_1_a_deadline_holds_in_whichever_runtime_of_the_thread_the_call_is() {
    let guard = guard(Duration::from_millis(30));
    let (driven, rests, gone) = (runtime(), runtime(), runtime());
    gone.block_on(waits_once(&guard));
    drop(gone);
    rests.block_on(waits_once(&guard));
    for _ in 0..2 {
        // Nobody drives the one that rests, so that a timer of it would never go off.
        driven.block_on(is_cut(&guard));
        rests.block_on(waits_once(&guard));
    }
}

#[test]
fn c1_1_a_timer_that_goes_off_for_an_earlier_call_cuts_no_later_one() {
    let (short, long) = (guard(Duration::from_millis(20)), guard(Duration::from_millis(80)));
    runtime().block_on(async {
        for _ in 0..2 {
            waits_once(&short).await;
            let begun = Instant::now();
            is_cut(&long).await;
            assert!(begun.elapsed() >= Duration::from_millis(80), "cut after {:?}", begun.elapsed());
            waits_once(&long).await;
            is_cut(&short).await;
        }
    });
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn c1_6_a_call_that_has_ended_keeps_no_task() {
    let guard = guard(Duration::from_secs(30));
    let runtime = runtime();
    let _entered = runtime.enter();
    for dropped in [false, true] {
        let task = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&task));
        {
            let mut call = pin!(waits_once(&guard));
            assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(Arc::strong_count(&task), 3, "the timer knows whom to wake");
            assert!(dropped || call.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&task), 1);
    }
}
