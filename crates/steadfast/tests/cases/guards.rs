//! One guard for each key (11.8): found again, bounded in number, and forgotten only where nothing is lost.

use std::collections::HashSet;
use std::future::{pending, poll_fn, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join;
use steadfast::guard::{LONGEST_KEY, LOOKS};
use steadfast::policy::breaker::{BreakerConfig, State};
use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::testing::VirtualClock;
use steadfast::{Clock, ErrorKind, Event, Guard, GuardBuilder, GuardError, Guards, NoGuard};

use crate::harness::secs;
use crate::pieces::{DOWN, Failed, Reply};

fn template(clock: &VirtualClock) -> GuardBuilder {
    let breaker = BreakerConfig { failures: 3, cool_down: secs(30), ..BreakerConfig::default() };
    Guard::http("hosts").breaker(breaker).clock(clock.clone()).seed(7)
}

fn guards(clock: &VirtualClock, max_keys: usize) -> Guards {
    Guards::new(template(clock)).unwrap().max_keys(max_keys)
}

fn full(max_keys: usize) -> Option<NoGuard> {
    Some(NoGuard::Full { max_keys })
}

fn call(clock: &VirtualClock, guard: &Guard, reply: Reply) -> Result<u32, GuardError<Failed>> {
    clock.run(guard.call(|| ready(reply))).unwrap()
}

fn names(guards: &Guards) -> Vec<String> {
    guards.iter().map(|guard| guard.name().to_owned()).collect()
}

#[test]
fn c11_8_a_host_that_is_down_stops_no_other() {
    let clock = VirtualClock::new();
    let hosts = guards(&clock, 10);
    for _ in 0..3 {
        call(&clock, &hosts.get("down.example").unwrap(), DOWN).unwrap_err();
    }
    let refused = call(&clock, &hosts.get("down.example").unwrap(), Ok(1)).unwrap_err();
    assert_eq!(refused.to_string(), "circuit breaker 'hosts/down.example' is open");
    assert_eq!(call(&clock, &hosts.get("up.example").unwrap(), Ok(1)).unwrap(), 1);
    assert_eq!(hosts.len(), 2);
    let snapshots = hosts.snapshots();
    let states: Vec<_> = snapshots.iter().map(|one| (&*one.upstream, one.breaker.state)).collect();
    assert_eq!(states, [("hosts/up.example", State::Closed), ("hosts/down.example", State::Open)]);
}

#[test]
fn c11_8_the_one_not_asked_for_the_longest_is_forgotten_first() {
    let clock = VirtualClock::new();
    let hosts = guards(&clock, 3);
    for key in ["a", "b", "c", "a", "d", "b", "e"] {
        hosts.get(key).unwrap();
    }
    assert_eq!(names(&hosts), ["hosts/e", "hosts/b", "hosts/d"]);
    assert!(hosts.remove("b") && !hosts.remove("b"));
    assert_eq!(names(&hosts), ["hosts/e", "hosts/d"]);
    assert!(hosts.remove("e") && hosts.remove("d") && hosts.is_empty());
    hosts.get("f").unwrap();
    assert_eq!(names(&hosts), ["hosts/f"]);
}

#[test]
fn c11_8_only_an_idle_and_closed_one_is_forgotten() {
    let clock = VirtualClock::new();
    let hosts = guards(&clock, 1);
    // A clone is out.
    let kept = hosts.get("a").unwrap();
    assert_eq!(hosts.get("b").err(), full(1));
    drop(kept);
    hosts.get("b").unwrap();

    // A call runs.
    let one = hosts.get("b").unwrap();
    let mut running = pin!(async move { one.call(pending::<Reply>).await });
    assert!(clock.run(poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx).is_pending()))).unwrap());
    assert_eq!(hosts.get("c").err(), full(1));
    clock.run(running).unwrap().unwrap_err();

    // Its breaker is open, or forced, whichever way.
    for _ in 0..2 {
        call(&clock, &hosts.get("b").unwrap(), DOWN).unwrap_err();
    }
    assert_eq!(hosts.get("b").unwrap().snapshot().breaker.state, State::Open, "the running one failed as well");
    assert_eq!(hosts.get("c").err(), full(1));
    clock.advance(secs(1_000_000));
    assert_eq!(hosts.get("c").err(), full(1), "nobody knows whether it is back");
    call(&clock, &hosts.get("b").unwrap(), Ok(1)).unwrap();
    hosts.get("c").unwrap();
    hosts.get("c").unwrap().force_close();
    assert_eq!(hosts.get("d").err(), full(1));
    hosts.get("c").unwrap().force_open();
    assert_eq!(hosts.get("d").err(), full(1));
    hosts.get("c").unwrap().reset_breaker();
    hosts.get("d").unwrap();
    assert_eq!(names(&hosts), ["hosts/d"]);
    assert_eq!(hosts.get("e").map(|_| hosts.len()).unwrap(), 1);
}

#[test]
fn c6_1_no_rate_limit_is_got_round_by_making_it_be_forgotten() {
    let clock = VirtualClock::new();
    for key in ["", "tenant"] {
        let rate =
            RateConfig { limit: 2, period: secs(10), wait: Some(secs(0)), style: RateStyle::Window, max_keys: 100 };
        let hosts = Guards::new(template(&clock).rate_limit(rate)).unwrap().max_keys(1);
        let start = |host: &str| {
            let guard = hosts.get(host)?;
            Ok::<_, NoGuard>(clock.run(guard.key(key).call(|| ready(Ok::<_, Failed>(())))).unwrap().is_ok())
        };
        assert_eq!((start("a"), start("a"), start("a")), (Ok(true), Ok(true), Ok(false)));
        assert_eq!(start("b"), Err(NoGuard::Full { max_keys: 1 }));
        clock.advance(Duration::from_nanos(9_999_999_999));
        assert_eq!(start("b"), Err(NoGuard::Full { max_keys: 1 }));
        clock.advance(Duration::from_nanos(1));
        assert_eq!(start("b"), Ok(true));
    }
}

#[test]
fn c11_8_an_open_one_may_be_forgotten_if_its_owner_says_after_how_long() {
    let clock = VirtualClock::new();
    let hosts = guards(&clock, 1).forget_open_after(secs(600));
    for _ in 0..3 {
        call(&clock, &hosts.get("a").unwrap(), DOWN).unwrap_err();
    }
    clock.advance(secs(599));
    assert_eq!(hosts.get("b").err(), full(1));
    clock.advance(secs(1));
    hosts.get("b").unwrap();
    // Not before its cool-down is over, and never what an operator forced.
    let hosts = guards(&clock, 1).forget_open_after(Duration::ZERO);
    for _ in 0..3 {
        call(&clock, &hosts.get("a").unwrap(), DOWN).unwrap_err();
    }
    clock.advance(secs(29));
    assert_eq!(hosts.get("b").err(), full(1));
    clock.advance(secs(1));
    hosts.get("b").unwrap().force_open();
    clock.advance(secs(600));
    assert_eq!(hosts.get("c").err(), full(1));
}

#[test]
fn c11_8_a_hundred_thousand_keys_seen_once_leave_so_many_as_are_kept() {
    let clock = VirtualClock::new();
    let hosts = guards(&clock, 100);
    for number in 0..100_000 {
        let guard = hosts.get(&format!("host-{number}")).unwrap();
        if number % 100 == 0 {
            call(&clock, &guard, Ok(1)).unwrap();
        }
        assert!(hosts.len() <= 100);
    }
    assert_eq!(hosts.snapshots().len(), 100);
    assert_eq!(names(&hosts)[0], "hosts/host-99999");
}

#[test]
fn c11_8_the_way_to_one_that_can_be_forgotten_is_bounded_and_goes_on() {
    let clock = VirtualClock::new();
    let hosts = guards(&clock, 3 * LOOKS);
    let held: Vec<_> = (0..3 * LOOKS - 1).map(|number| hosts.get(&number.to_string()).unwrap()).collect();
    hosts.get("idle").unwrap();
    // All but the last are in use: two looks find none, the third does.
    assert_eq!(hosts.get("new").err(), full(3 * LOOKS));
    assert_eq!(hosts.get("new").err(), full(3 * LOOKS));
    hosts.get("new").unwrap();
    let kept: HashSet<_> = names(&hosts).into_iter().collect();
    assert!(kept.contains("hosts/new") && !kept.contains("hosts/idle"));
    assert!(held.iter().all(|guard| kept.contains(guard.name())));
}

#[test]
fn c11_8_threads_that_ask_at_once_share_one_guard() {
    let (clock, made) = (VirtualClock::new(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&made);
    let base = template(&clock);
    let hosts = Guards::with(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        base.clone()
    });
    for round in 0..50 {
        let (key, barrier) = (format!("host-{round}"), Barrier::new(8));
        let found: Vec<Guard> = std::thread::scope(|scope| {
            let ask = || {
                barrier.wait();
                hosts.get(&key).unwrap()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        found[0].force_open();
        assert!(found.iter().all(|guard| guard.snapshot().breaker.forced), "one of them is another");
        assert_eq!(hosts.len(), round + 1);
    }
    assert!((50..=400).contains(&made.load(Ordering::Relaxed)));
}

#[test]
fn c11_8_threads_that_ask_for_many_keys_never_keep_more_than_allowed() {
    let clock = VirtualClock::new();
    let hosts = guards(&clock, 16);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (hosts, clock) = (&hosts, &clock);
            scope.spawn(move || {
                for number in 0..2_000 {
                    let key = ((number * 7 + thread * 13) % 40).to_string();
                    match hosts.get(&key) {
                        Ok(guard) => assert_eq!(call(clock, &guard, Ok(number)).unwrap(), number),
                        Err(error) => assert_eq!(error, NoGuard::Full { max_keys: 16 }),
                    }
                    assert!(hosts.len() <= 16);
                }
            });
        }
    });
    assert_eq!(names(&hosts).into_iter().collect::<HashSet<_>>().len(), hosts.len());
}

#[test]
fn settings_clock_and_events_are_the_templates_and_chance_is_the_keys() {
    let (clock, heard) = (VirtualClock::new(), Arc::new(Mutex::new(Vec::new())));
    let sink = Arc::clone(&heard);
    let builder = template(&clock).on_event(move |event| {
        if let Event::Retry { upstream, wait, .. } = event {
            sink.lock().unwrap().push((upstream.to_string(), *wait));
        }
    });
    let run = |hosts: &Guards, key: &str| {
        let guard = hosts.get(key).unwrap();
        let calls = guard.transient(|_: &Failed| true);
        clock.run(calls.call(|| ready(DOWN))).unwrap().unwrap_err();
        std::mem::take(&mut *heard.lock().unwrap())
    };
    let (one, other) = (Guards::new(builder.clone()).unwrap(), Guards::new(builder).unwrap());
    let waits = run(&one, "a");
    assert_eq!((waits.len(), waits[0].0.as_str()), (2, "hosts/a"));
    assert_ne!(waits[0].1, run(&one, "b")[0].1);
    assert_eq!(waits, run(&other, "a"), "the same each time");
}

#[test]
fn what_cannot_be_a_guard_is_refused_with_the_reason() {
    let clock = VirtualClock::new();
    let hosts = guards(&clock, 10);
    hosts.get(&"k".repeat(LONGEST_KEY)).unwrap();
    let long = hosts.get(&"k".repeat(LONGEST_KEY + 1)).unwrap_err();
    assert_eq!(long.to_string(), "no guard for a key of 1025 bytes: expected at most 1024");
    assert_eq!(full(10).unwrap().to_string(), "no guard for another key: all 10 that are kept are in use");
    assert_eq!(Guards::new(template(&clock).total_timeout(Duration::ZERO)).unwrap_err().len(), 1);
    let by_length = Guards::with(|key| Guard::http(key).total_timeout(secs(key.len() as u64)));
    assert_eq!(by_length.get("four").unwrap().name(), "four");
    let NoGuard::Invalid(problems) = by_length.get("").unwrap_err() else { panic!("zero is no timeout") };
    assert!(problems.to_string().starts_with("total_timeout: "));
    assert_eq!(by_length.len(), 1);
    assert_eq!(guards(&clock, 0).get("a").map(|guard| guard.name().to_owned()), Ok("hosts/a".to_owned()));
}

#[test]
fn c7_7_guards_that_are_closed_refuse_and_wait_for_those_that_run() {
    let clock = VirtualClock::new();
    let hosts = guards(&clock, 10);
    let (busy, idle) = (hosts.get("busy").unwrap(), hosts.get("idle").unwrap());
    let wait = Clock::from(clock.clone());
    let work = busy.call(|| async {
        wait.wait(secs(5)).await;
        Ok::<_, Failed>(1)
    });
    let close = async {
        wait.wait(secs(1)).await;
        hosts.close().await;
        clock.now().as_nanos()
    };
    let (worked, closed_at) = clock.run(join(work, close)).unwrap();
    assert_eq!((worked.unwrap(), closed_at), (1, 5_000_000_000));
    assert_eq!(hosts.get("idle").err(), Some(NoGuard::Closed));
    assert_eq!(hosts.get("new").err(), Some(NoGuard::Closed));
    assert_eq!(call(&clock, &idle, Ok(1)).unwrap_err().limit(), Some(ErrorKind::Closed));
}

/// `make` is the user's: it may ask for other keys, and what it keeps may ask when it is dropped.
#[test]
fn nothing_of_the_users_runs_under_the_lock() {
    struct Asks(Mutex<Option<Guards>>);
    impl Drop for Asks {
        fn drop(&mut self) {
            if let Some(guards) = self.0.lock().unwrap().take() {
                assert!(guards.len() <= 1);
            }
        }
    }
    let clock = VirtualClock::new();
    let shared: Arc<Mutex<Option<Guards>>> = Arc::default();
    let (base, ask) = (template(&clock), Arc::clone(&shared));
    let hosts = Guards::with(move |_| {
        let known = ask.lock().unwrap().clone();
        if let Some(guards) = &known {
            guards.len();
        }
        let asks = Asks(Mutex::new(known));
        base.clone().on_event(move |_| drop(asks.0.lock()))
    })
    .max_keys(1);
    *shared.lock().unwrap() = Some(hosts.clone());
    for key in ["a", "b", "c"] {
        hosts.get(key).unwrap();
    }
    hosts.remove("c");
    assert!(hosts.is_empty());
    *shared.lock().unwrap() = None;
}
