//! A call that is dropped is told of: once, with what it had come to, when everything has been given back.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Waker};
use std::time::Duration;

use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{Event, Guard, ServiceClient};

use crate::harness::{ms, secs};

/// What was told of calls, and what the client held at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Ended { attempts: u32 },
    Cancelled { attempts: u32, duration: Duration, in_use: u32, queued: u32 },
}

struct Run {
    clock: VirtualClock,
    upstream: Script,
    client: ServiceClient,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Run {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let clock = VirtualClock::new();
        let upstream = Script::new(clock.clone(), steps);
        let (told, holder) = (Arc::new(Mutex::new(Vec::new())), Arc::new(OnceLock::<ServiceClient>::new()));
        let (sink, observed) = (Arc::clone(&told), Arc::clone(&holder));
        let client = ServiceClient::builder("http://billing.test")
            .max_concurrent(1)
            .bulkhead_wait(secs(20))
            .seed(11)
            .clock(clock.clone())
            .transport(upstream.clone())
            .on_event(move |event| {
                let line = observed.get().unwrap().snapshot().line;
                sink.lock().unwrap().push(match event {
                    Event::Ended { attempts, .. } => Told::Ended { attempts: *attempts },
                    Event::Cancelled { attempts, duration, .. } => Told::Cancelled {
                        attempts: *attempts,
                        duration: *duration,
                        in_use: line.in_use,
                        queued: line.queued,
                    },
                    _ => return,
                });
            })
            .build()
            .unwrap();
        holder.set(client.clone()).unwrap();
        Self { clock, upstream, client, told }
    }

    fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }
}

fn poll(future: std::pin::Pin<&mut impl Future>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn c1_6_a_call_that_is_dropped_at_any_poll_is_told_of_once() {
    let mut dropped = [0; 3];
    for polls in 0.. {
        let run =
            Run::new([Step::status(503).after(ms(20)), Step::reset().after(ms(20)), Step::status(200).after(ms(20))]);
        let mut ended = false;
        {
            let mut call = pin!(run.client.get("/x").send());
            for _ in 0..polls {
                ended = poll(call.as_mut());
                if ended {
                    break;
                }
                run.clock.advance_to_next_timer();
            }
            assert_eq!(run.told().len(), usize::from(ended), "nothing is told before the end");
        }
        let attempts = u32::try_from(run.upstream.seen().len()).unwrap();
        let told = run.told();
        match polls {
            0 => assert_eq!(told, [], "it had not begun"),
            _ if ended => assert_eq!(told, [Told::Ended { attempts }]),
            _ => {
                let duration = run.clock.now().since(steadfast::policy::Time::ZERO);
                assert_eq!(told, [Told::Cancelled { attempts, duration, in_use: 0, queued: 0 }], "after poll {polls}");
                dropped[attempts as usize - 1] += 1;
            }
        }
        if ended {
            break;
        }
    }
    assert!(
        dropped[0] > 1 && dropped[1] > 1 && dropped[2] > 0,
        "in attempts and in the waits behind them: {dropped:?}"
    );
}

#[test]
fn c6_3_a_waiter_that_is_dropped_had_no_attempt() {
    let run = Run::new([Step::status(200).after(secs(9))]);
    let mut first = pin!(run.client.get("/first").send());
    assert!(!poll(first.as_mut()));
    {
        let mut waiter = pin!(run.client.get("/waiter").send());
        assert!(!poll(waiter.as_mut()));
        run.clock.advance(secs(2));
    }
    let cancelled = Told::Cancelled { attempts: 0, duration: secs(2), in_use: 1, queued: 0 };
    assert_eq!(run.told(), [cancelled], "the slot is the first one's");
    run.clock.advance(secs(7));
    assert!(poll(first.as_mut()));
    assert_eq!(run.told(), [cancelled, Told::Ended { attempts: 1 }]);
}

/// A call of a guard is one of the same loop; what it ended with is told before a fallback that panics is run.
#[test]
fn c1_6_an_operation_that_panics_was_a_cancelled_call_and_a_fallback_that_does_was_not() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let clock = VirtualClock::new();
    let guard = Guard::builder("tariffs")
        .clock(clock.clone())
        .on_event(move |event| match event {
            Event::Ended { ended, .. } => sink.lock().unwrap().push(ended.name()),
            Event::Cancelled { attempts, .. } => sink.lock().unwrap().push(["early", "cancelled"][*attempts as usize]),
            _ => {}
        })
        .build()
        .unwrap();
    let in_operation = std::panic::AssertUnwindSafe(|| {
        let call = guard.call(|| async { if true { panic!("the operation") } else { Ok::<_, std::io::Error>(1) } });
        let _ = clock.run(call);
    });
    std::panic::catch_unwind(in_operation).unwrap_err();
    assert_eq!(*told.lock().unwrap(), ["cancelled"]);
    let in_fallback = std::panic::AssertUnwindSafe(|| {
        let fallback = |_: &steadfast::GuardError<std::io::Error>| -> u32 { panic!("the fallback") };
        let call = guard.fallback_with(fallback).call(|| async { Err::<u32, _>(std::io::Error::other("no")) });
        let _ = clock.run(call);
    });
    std::panic::catch_unwind(in_fallback).unwrap_err();
    assert_eq!(*told.lock().unwrap(), ["cancelled", "not_repeatable"]);
    let snapshot = guard.snapshot();
    assert_eq!((snapshot.line.in_use, snapshot.line.queued), (0, 0));
}
