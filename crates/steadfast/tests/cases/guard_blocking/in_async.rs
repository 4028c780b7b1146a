//! On helper threads, called from async code: inside of a runtime and outside, polled by hand where every poll matters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use steadfast::policy::breaker::State;
use steadfast::testing::VirtualClock;
use steadfast::{ErrorKind, Guard, GuardError, degraded};
use tokio::runtime::{Builder, Runtime};

use super::{Failed, guard, line, transient, until};
use crate::harness::{ms, secs};

type Call<'a, T> = Pin<Box<dyn Future<Output = Result<T, GuardError<Failed>>> + Send + 'a>>;

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn one_at_a_time(clock: &VirtualClock) -> Guard {
    guard(clock, |guard| guard.max_concurrent(1, ms(0)))
}

/// Whether it was woken since it was last asked.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn poll<T>(call: &mut Call<'_, T>) -> Poll<Result<T, GuardError<Failed>>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn c11_7_a_runtime_lends_its_threads_for_blocking_work() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let here = thread::current().id();
    let call = guard.transient(transient).serve_on_thread(move |context| {
        let handle = tokio::runtime::Handle::try_current().is_ok();
        if context.attempt == 1 { Err(Failed::Connection) } else { Ok((thread::current().id(), handle)) }
    });
    // Only the backoff moves the clock: the task waits for it in another.
    let runtime = runtime();
    let served = runtime.block_on(async {
        let mover = clock.clone();
        let mut call = std::pin::pin!(call);
        std::future::poll_fn(move |context| {
            let polled = call.as_mut().poll(context);
            if polled.is_pending() && mover.next_timer().is_some_and(|at| at < steadfast::policy::Time::from_secs(1)) {
                mover.advance_to_next_timer();
            }
            polled
        })
        .await
    });
    let served = served.unwrap();
    assert_eq!(served.report().attempt_count(), 2);
    let (thread, in_runtime) = served.into_value();
    assert!(thread != here && in_runtime);
    assert_eq!(line(&guard), (0, 0));
}

#[test]
fn c11_7_the_task_is_let_go_at_the_deadline_though_the_work_goes_on() {
    let clock = VirtualClock::new();
    let guard = one_at_a_time(&clock);
    let (end, ending) = channel::<()>();
    let mover = clock.clone();
    let runtime = runtime();
    let call = guard.transient(transient).call_on_thread(move |_| {
        mover.advance(secs(30));
        let _ = ending.recv();
        Err::<(), _>(Failed::TimedOut)
    });
    let error = runtime.block_on(call).unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::Timeout));
    let refused = runtime.block_on(guard.call(|| std::future::ready(Ok::<_, Failed>(())))).unwrap_err();
    assert_eq!(refused.limit(), Some(ErrorKind::BulkheadFull));
    drop(end);
    until("the slot", || line(&guard) == (0, 0));
}

#[test]
fn c11_7_a_panic_goes_on_in_the_task() {
    let clock = VirtualClock::new();
    let guard = one_at_a_time(&clock);
    let task = guard.clone();
    let runtime = runtime();
    let join = runtime.block_on(async move {
        tokio::spawn(async move { task.call_on_thread(|_| -> Result<(), Failed> { panic!("on purpose") }).await }).await
    });
    assert!(join.unwrap_err().is_panic());
    assert_eq!((line(&guard), guard.snapshot().breaker.state), ((0, 0), State::Closed));
}

/// Dropped after each number of polls, and at each stage of the work: the slot comes back, once, and not before its end.
#[test]
fn c1_6_dropping_the_future_gives_everything_back_but_the_slot_of_work_that_runs() {
    for polls in 0..4 {
        for ends_before in [false, true] {
            let clock = VirtualClock::new();
            let guard = one_at_a_time(&clock);
            let (end, ending) = channel::<()>();
            let (begin, begun) = channel();
            let mut call: Call<'_, ()> = Box::pin(guard.call_on_thread(move |_| {
                begin.send(()).unwrap();
                let _ = ending.recv();
                Ok(())
            }));
            for _ in 0..polls {
                assert!(poll(&mut call).is_pending());
            }
            if polls > 0 {
                begun.recv().unwrap();
                assert_eq!(line(&guard), (1, 0));
                if ends_before {
                    end.send(()).unwrap();
                }
            }
            drop(call);
            assert_eq!(clock.armed_timers(), 0);
            if polls > 0 && !ends_before {
                assert_eq!(line(&guard), (1, 0), "the work still runs");
                end.send(()).unwrap();
            }
            until("the slot", || line(&guard) == (0, 0));
            assert_eq!(guard.snapshot().breaker.state, State::Closed);
            let mut next: Call<'_, ()> = Box::pin(guard.call_on_thread(|_| Ok(())));
            until("the next call", || poll(&mut next).is_ready());
        }
    }
}

/// Its result waits for a caller that never comes: the slot is not held for it beyond the deadline (5.2).
#[test]
fn c5_2_a_future_that_is_kept_and_not_polled_holds_no_slot_for_ever() {
    let clock = VirtualClock::new();
    let guard = one_at_a_time(&clock);
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(Arc::clone(&flag));
    let (end, ending) = channel::<()>();
    let mut call: Call<'_, u32> = Box::pin(guard.call_on_thread(move |_| {
        let _ = ending.recv();
        Ok(7)
    }));
    assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(end);
    until("the end of the work", || flag.0.load(Ordering::SeqCst));
    clock.advance(secs(29));
    assert_eq!(line(&guard), (1, 0));
    clock.advance(secs(1));
    assert_eq!(line(&guard), (0, 0));
    // The value is there all the same, and beats the timer (0.1).
    let Poll::Ready(Ok(7)) = poll(&mut call) else { panic!("the value is lost") };
    assert_eq!(line(&guard), (0, 0));
}

/// Work that no thread has taken on yet never begins once its caller has gone.
#[test]
fn c11_7_work_that_waits_for_a_thread_is_called_off() {
    let clock = VirtualClock::new();
    let guard = one_at_a_time(&clock);
    let runtime = Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let (end, ending) = channel::<()>();
    runtime.spawn_blocking(move || ending.recv());
    let runs = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&runs);
    let entered = runtime.enter();
    let work = move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let mut call: Call<'_, ()> = Box::pin(guard.call_on_thread(work.clone()));
    assert!(poll(&mut call).is_pending());
    assert_eq!(line(&guard), (1, 0));
    clock.advance(secs(30));
    let Poll::Ready(Err(error)) = poll(&mut call) else { panic!("the deadline has passed") };
    assert_eq!(error.limit(), Some(ErrorKind::Timeout));
    assert_eq!(error.report().attempts().next().unwrap().sent, steadfast::Sent::No);
    assert_eq!(line(&guard), (0, 0), "nothing runs, and nothing will");

    // The same for a future that is dropped.
    let mut dropped: Call<'_, ()> = Box::pin(guard.call_on_thread(work));
    assert!(poll(&mut dropped).is_pending());
    drop(dropped);
    assert_eq!(line(&guard), (0, 0));
    drop(entered);
    drop(end);
    runtime.block_on(runtime.spawn_blocking(|| ())).unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(guard.snapshot().breaker.state, State::Closed, "our own wait is no evidence");
}

#[test]
fn c11_7_where_no_thread_can_be_had_the_call_is_refused() {
    let clock = VirtualClock::new();
    let guard = one_at_a_time(&clock);
    let runtime = runtime();
    let handle = runtime.handle().clone();
    drop(runtime);
    let _entered = handle.enter();
    let mut call: Call<'_, ()> = Box::pin(guard.transient(transient).call_on_thread(|_| unreachable!("no thread")));
    let Poll::Ready(Err(error)) = poll(&mut call) else { panic!("it is known at once") };
    assert_eq!(error.limit(), Some(ErrorKind::BulkheadFull));
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("runtime"), "{error:?}");
    assert_eq!((line(&guard), guard.snapshot().breaker.state), ((0, 0), State::Closed));
    let fallback: Call<'_, u32> = Box::pin(guard.fallback(7).call_on_thread(|_| unreachable!("no thread")));
    assert_eq!(clock.run(fallback).unwrap().unwrap(), 7);
}

#[test]
fn c11_5_the_work_sees_its_tasks_collector() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let inner = guard.clone();
    let runtime = runtime();
    let (value, noted) = runtime.block_on(degraded::collect(guard.call_on_thread(move |_| {
        Ok::<_, Failed>(inner.fallback(10).call_blocking(|| Err::<u32, _>(Failed::Connection)).unwrap_or(0))
    })));
    assert_eq!((value.unwrap(), noted.len()), (10, 1));
}

/// The future of a call can be sent, and be run by any executor.
#[test]
fn c11_7_without_a_runtime_a_new_thread_does() {
    let clock = VirtualClock::new();
    let guard = guard(&clock, |guard| guard);
    let call: Call<'_, Option<String>> =
        Box::pin(guard.call_on_thread(|_| Ok(thread::current().name().map(str::to_owned))));
    let name = thread::scope(|scope| scope.spawn(|| futures_executor::block_on(call)).join().unwrap());
    assert_eq!(name.unwrap().as_deref(), Some("steadfast-guard"));
    let panics: Call<'_, ()> = Box::pin(guard.call_on_thread(|_| panic!("on purpose")));
    assert!(catch_unwind(AssertUnwindSafe(|| futures_executor::block_on(panics))).is_err());
    assert_eq!(line(&guard), (0, 0));
}
