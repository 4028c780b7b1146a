//! The end of a client (contract 7.7), and who may be in the way.

use std::future::{Future, ready};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::testing::{Step, VirtualClock};
use steadfast::{ErrorKind, Event, Guard, GuardError};

use crate::harness::{World, kind, ms, secs};

/// A call whose future is kept and not polled ends for nobody to see. The client closes all the same.
#[test]
fn c7_7_close_waits_no_longer_than_to_the_last_deadline() {
    let world = World::with([Step::hang()], |client| client.total_timeout(secs(7)));
    let mut kept = pin!(world.client.get("/x").send());
    assert!(kept.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    world.clock.advance(secs(2));
    world.run(world.client.close());
    assert_eq!(world.clock.now().as_nanos(), secs(9).as_nanos() as u64);
    assert_eq!(kind(&world.run(kept)), ErrorKind::Timeout);
    world.assert_at_rest();
}

/// Counts how often it was woken.
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The last call ends on one thread in the moment in which another closes the client: either sees the other.
#[test]
fn c7_7_close_is_told_of_the_last_call_whoever_comes_first() {
    const ROUNDS: usize = 4_000;
    let clients: Vec<_> = (0..ROUNDS).map(|_| World::new([Step::status(200).after(ms(1))]).client).collect();
    let (barrier, other) = (Arc::new(Barrier::new(2)), clients.clone());
    let ending = {
        let barrier = Arc::clone(&barrier);
        thread::spawn(move || {
            for client in other {
                let mut call = Box::pin(client.get("/x").send());
                assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                barrier.wait();
                drop(call);
                barrier.wait();
            }
        })
    };
    for (round, client) in clients.iter().enumerate() {
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut closing = pin!(client.close());
        barrier.wait();
        let first = closing.as_mut().poll(&mut context);
        barrier.wait();
        // The call has ended by now.
        if first.is_pending() {
            assert!(woken.0.load(Ordering::SeqCst) > 0, "nobody told close() in round {round}");
            assert_eq!(closing.as_mut().poll(&mut context), Poll::Ready(()), "round {round}");
        }
    }
    ending.join().unwrap();
}

type Log = Arc<Mutex<Vec<&'static str>>>;

/// Notes when it is woken.
struct Notes(Log);

impl Wake for Notes {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().push("closed");
    }
}

/// A guard that notes how its calls end.
fn tariffs(log: &Log) -> Guard {
    let log = Arc::clone(log);
    let hook = move |event: &Event| match event {
        Event::Ended { .. } => log.lock().unwrap().push("ended"),
        Event::Cancelled { .. } => log.lock().unwrap().push("cancelled"),
        _ => {}
    };
    Guard::builder("tariffs").clock(VirtualClock::new()).on_event(hook).build().unwrap()
}

/// Who waits for the last call goes on when that has told of its end: metrics may be sent off then.
#[test]
fn c7_7_the_last_call_tells_of_its_end_before_close_is_over() {
    for is_dropped in [true, false] {
        let log = Log::default();
        let guard = tariffs(&log);
        let may_end = Arc::new(AtomicUsize::new(0));
        let asked = Arc::clone(&may_end);
        let mut call = Box::pin(guard.call(move || {
            let asked = Arc::clone(&asked);
            std::future::poll_fn(move |_| match asked.load(Ordering::SeqCst) {
                0 => Poll::Pending,
                _ => Poll::Ready(Ok::<_, io::Error>(())),
            })
        }));
        let mut nobody = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut nobody).is_pending());
        let mut closing = pin!(guard.close());
        let waker = Waker::from(Arc::new(Notes(Arc::clone(&log))));
        assert!(closing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        if is_dropped {
            drop(call);
            assert_eq!(*log.lock().unwrap(), ["cancelled", "closed"]);
        } else {
            may_end.store(1, Ordering::SeqCst);
            assert!(call.as_mut().poll(&mut nobody).is_ready());
            assert_eq!(*log.lock().unwrap(), ["ended", "closed"], "although its future is still there");
        }
        assert!(closing.as_mut().poll(&mut nobody).is_ready());
    }
}

/// A fallback is made when its call is over: it may wait for whoever waits for the last call.
#[test]
fn c7_7_a_fallback_is_no_running_call() {
    type Closing = Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>;
    for form in ["call", "serve", "call_blocking", "call_on_thread_blocking"] {
        let guard = tariffs(&Log::default());
        let (closing, is_closed) = (Arc::new(Closing::default()), Arc::new(Mutex::new(None)));
        let begin_to_close = {
            let (guard, closing) = (guard.clone(), Arc::clone(&closing));
            move || {
                let guard = guard.clone();
                let mut close: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move { guard.close().await });
                assert!(close.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                *closing.lock().unwrap() = Some(close);
                Err::<u32, _>(io::Error::other("no tariff"))
            }
        };
        let fallback = {
            let is_closed = Arc::clone(&is_closed);
            move |_: &GuardError<io::Error>| {
                let mut close = closing.lock().unwrap().take().unwrap();
                let polled = close.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                *is_closed.lock().unwrap() = Some(polled.is_ready());
                7
            }
        };
        let call = guard.fallback_with(fallback);
        let mut context = Context::from_waker(Waker::noop());
        let value = match form {
            "call" => match pin!(call.call(|| ready(begin_to_close()))).poll(&mut context) {
                Poll::Ready(value) => value.unwrap(),
                Poll::Pending => panic!("it waits for nothing"),
            },
            "serve" => match pin!(call.serve(|_| ready(begin_to_close()))).poll(&mut context) {
                Poll::Ready(served) => served.unwrap().into_value(),
                Poll::Pending => panic!("it waits for nothing"),
            },
            "call_blocking" => call.call_blocking(begin_to_close).unwrap(),
            _ => call.call_on_thread_blocking(move |_| begin_to_close()).unwrap(),
        };
        assert_eq!((value, *is_closed.lock().unwrap()), (7, Some(true)), "{form}");
    }
}

/// The same of a call that is refused while it stands in the line: what it had was a place among the running calls alone.
#[test]
fn c7_7_a_fallback_may_close_the_guard() {
    let clock = VirtualClock::new();
    let once = RateConfig { limit: 1, period: secs(1), wait: None, style: RateStyle::Window, max_keys: 1 };
    let guard = Guard::builder("tariffs").clock(clock.clone()).rate_limit(once).build().unwrap();
    clock.run(guard.call(|| ready(Ok::<_, io::Error>(1)))).unwrap().unwrap();
    let closer = guard.clone();
    let fallback = move |_: &GuardError<io::Error>| {
        let is_over = pin!(closer.close()).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        u32::from(is_over)
    };
    let mut nobody = Context::from_waker(Waker::noop());
    let mut call = pin!(guard.fallback_with(fallback).call(|| ready(Ok::<u32, io::Error>(7))));
    assert!(call.as_mut().poll(&mut nobody).is_pending(), "it waits for a place");
    guard.force_open();
    clock.advance(secs(1));
    match call.poll(&mut nobody) {
        Poll::Ready(value) => assert_eq!(value.unwrap(), 1, "the guard was closed at once"),
        Poll::Pending => panic!("its turn has come, and the breaker is open"),
    }
}
