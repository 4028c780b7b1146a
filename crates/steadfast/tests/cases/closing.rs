//! The end of a client (contract 7.7), and who may be in the way.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use steadfast::ErrorKind;
use steadfast::testing::Step;

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
