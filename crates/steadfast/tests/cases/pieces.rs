//! Each policy alone (contract section 11; P1 to P18, K3 to K7).

use std::fmt;
use std::future::{Ready, pending, poll_fn, ready};
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{join, join_all};
use steadfast::pieces::retry_with;
use steadfast::policy::Time;
use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::State;
use steadfast::policy::line::RateStyle;
use steadfast::testing::VirtualClock;
use steadfast::{Bulkhead, CircuitBreaker, Clock, ErrorClass, ErrorKind, GuardError, RateLimit, retry, timeout};

use crate::harness::{ms, secs};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Failed {
    Down,
    Busy(u64),
    TimedOut,
    NotFound,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Failed {}

pub(crate) fn transient(failed: &Failed) -> bool {
    *failed != Failed::NotFound
}

pub(crate) type Reply = Result<u32, Failed>;

pub(crate) const DOWN: Reply = Err(Failed::Down);

/// What is called: it answers one after the other, the last again and again, and notes when it was asked.
pub(crate) struct Desk {
    pub(crate) clock: VirtualClock,
    replies: Vec<Reply>,
    asked: Mutex<Vec<Time>>,
}

impl Desk {
    pub(crate) fn new(replies: &[Reply]) -> Self {
        Self { clock: VirtualClock::new(), replies: replies.to_vec(), asked: Mutex::default() }
    }

    pub(crate) fn ask(&self) -> Ready<Reply> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(self.clock.now());
        ready(self.replies[asked.len().min(self.replies.len()) - 1])
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn waits(&self) -> Vec<Duration> {
        self.asked.lock().unwrap().windows(2).map(|pair| pair[1].since(pair[0])).collect()
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.clock.run(future).expect("it waits only for the clock")
    }
}

#[test]
fn k7_three_attempts_unless_told_otherwise() {
    let desk = Desk::new(&[DOWN, DOWN, Ok(12)]);
    let value = desk.run(retry(|| desk.ask()).transient(transient).clock(desk.clock.clone()).call());
    assert_eq!((value, desk.asked()), (Ok(12), 3));

    let desk = Desk::new(&[DOWN]);
    let value = desk.run(async { retry(|| desk.ask()).transient(transient).clock(desk.clock.clone()).await });
    assert_eq!((value, desk.asked()), (DOWN, 3), "the last error, as it is");
}

#[test]
fn k_c_an_error_that_was_not_named_ends_it_at_once() {
    let desk = Desk::new(&[Err(Failed::NotFound)]);
    let call = retry(|| desk.ask()).attempts(4).transient(transient).clock(desk.clock.clone());
    assert_eq!(desk.run(call.call()), Err(Failed::NotFound));
    assert_eq!((desk.asked(), desk.clock.now()), (1, Time::ZERO));
}

#[test]
fn p1_the_waits_grow_and_the_jitter_is_added_after_the_cap() {
    let backoff = Backoff { base: ms(200), factor: 2.0, max: ms(500), jitter: Jitter::Additive, jitter_max: ms(100) };
    for seed in 0..50 {
        let desk = Desk::new(&[DOWN]);
        let call = retry(|| desk.ask()).attempts(4).backoff(backoff).transient(transient).seed(seed);
        desk.run(call.clock(desk.clock.clone()).call()).unwrap_err();
        let waits = desk.waits();
        for (wait, from, to) in [(waits[0], 200, 300), (waits[1], 400, 500), (waits[2], 500, 600)] {
            assert!((ms(from)..=ms(to)).contains(&wait), "{waits:?}");
        }
    }
}

#[test]
fn p3_a_wait_that_the_error_asks_for_is_waited_for_exactly() {
    let hint = |failed: &Failed| if let Failed::Busy(wait) = failed { Some(secs(*wait)) } else { None };
    let desk = Desk::new(&[Err(Failed::Busy(7)), Err(Failed::Busy(30)), Ok(1)]);
    let call = retry(|| desk.ask()).transient(transient).retry_after(hint).clock(desk.clock.clone());
    assert_eq!(desk.run(call.call()), Ok(1));
    assert_eq!(desk.waits(), [secs(7), secs(30)]);

    // One that asks for more than is waited for ends it.
    let desk = Desk::new(&[Err(Failed::Busy(31)), Ok(1)]);
    let call = retry(|| desk.ask()).transient(transient).retry_after(hint).clock(desk.clock.clone());
    assert_eq!(desk.run(call.call()), Err(Failed::Busy(31)));
    let desk = Desk::new(&[Err(Failed::Busy(31)), Ok(1)]);
    let classify = |failed: &Failed| ErrorClass::Throttled { retry_after: hint(failed) };
    let call = retry(|| desk.ask()).classify(classify).max_retry_after(secs(60)).clock(desk.clock.clone());
    assert_eq!(desk.run(call.call()), Ok(1));
}

#[test]
fn p4_there_is_no_budget_and_no_breaker_in_it() {
    let desk = Desk::new(&[DOWN]);
    let call = retry(|| desk.ask()).attempts(500).transient(transient).clock(desk.clock.clone());
    desk.run(call.call()).unwrap_err();
    assert_eq!(desk.asked(), 500);
}

#[test]
fn c11_8_all_attempts_of_a_retry_have_one_key() {
    let desk = Desk::new(&[DOWN]);
    let keys = Mutex::new(Vec::new());
    let call = retry_with(|context| {
        keys.lock().unwrap().push((context.attempt, context.idempotency_key()));
        desk.ask()
    });
    desk.run(call.transient(transient).clock(desk.clock.clone()).call()).unwrap_err();
    let keys = keys.into_inner().unwrap();
    assert_eq!(keys.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(keys.iter().all(|(_, key)| *key == keys[0].1));
}

#[test]
fn a_retry_at_the_end_of_time_runs_its_operation_once() {
    let desk = Desk::new(&[DOWN]);
    desk.clock.advance(Duration::MAX);
    assert_eq!(desk.clock.now(), Time::MAX);
    let call = retry(|| desk.ask()).transient(transient).clock(desk.clock.clone());
    assert_eq!((desk.run(call.call()), desk.asked()), (DOWN, 1));
}

#[test]
fn c0_1_a_timeout_ends_at_its_instant_and_not_before() {
    let clock = VirtualClock::new();
    let at = |wait: Duration| {
        let (clock, waits) = (clock.clone(), Clock::from(clock.clone()));
        let before = clock.now();
        let out = clock.run(timeout(secs(30), waits.wait(wait)).clock(clock.clone())).unwrap();
        (out.is_ok(), clock.now().since(before))
    };
    assert_eq!(at(ms(29_999)), (true, ms(29_999)));
    assert_eq!(at(secs(31)), (false, secs(30)));
    let late = clock.run(timeout(secs(30), pending::<()>()).clock(clock.clone())).unwrap().unwrap_err();
    assert_eq!((late.after(), late.to_string().as_str()), (secs(30), "not done within 30s"));
    assert_eq!(clock.armed_timers(), 0);
}

#[test]
fn c0_1_a_result_of_the_same_poll_beats_the_timeout() {
    let clock = VirtualClock::new();
    assert_eq!(clock.run(timeout(Duration::ZERO, ready(7)).clock(clock.clone())).unwrap(), Ok(7));
    assert!(clock.run(timeout(Duration::ZERO, pending::<()>()).clock(clock.clone())).unwrap().is_err());
    // Ready at the very instant of the limit.
    let seen = clock.clone();
    let mut limit = None;
    let at_the_limit = poll_fn(move |_| {
        let limit = *limit.get_or_insert(seen.now() + secs(3));
        if seen.now() >= limit { Poll::Ready(1) } else { Poll::Pending }
    });
    assert_eq!(clock.run(timeout(secs(3), at_the_limit).clock(clock.clone())).unwrap(), Ok(1));
}

#[test]
fn p14_a_timeout_of_ours_is_never_one_of_the_operations() {
    // The operation's own is retried, as it was asked for.
    let desk = Desk::new(&[Err(Failed::TimedOut), Ok(3)]);
    let call = retry(|| desk.ask()).transient(transient).clock(desk.clock.clone());
    assert_eq!(desk.run(timeout(secs(30), call).clock(desk.clock.clone())), Ok(Ok(3)));
    assert_eq!(desk.asked(), 2);

    // Ours ends everything, in an attempt and in a wait.
    let desk = Desk::new(&[]);
    let starts = Mutex::new(0);
    let hangs = retry(|| {
        *starts.lock().unwrap() += 1;
        pending::<Reply>()
    });
    let call = hangs.attempts(4).transient(transient).clock(desk.clock.clone());
    let ended = desk.run(timeout(secs(30), call).clock(desk.clock.clone()));
    assert_eq!((ended.unwrap_err().after(), desk.clock.now()), (secs(30), Time::from_secs(30)));
    assert_eq!(*starts.lock().unwrap(), 1);
    let desk = Desk::new(&[Err(Failed::Busy(20))]);
    let call = retry(|| desk.ask()).attempts(9).transient(transient).retry_after(|_| Some(secs(20)));
    let ended = desk.run(timeout(secs(30), call.clock(desk.clock.clone())).clock(desk.clock.clone()));
    assert_eq!((ended.unwrap_err().after(), desk.asked()), (secs(30), 2));
    assert_eq!(desk.clock.armed_timers(), 0);
}

fn limit(clock: &VirtualClock, starts: u32, period: Duration) -> RateLimit {
    RateLimit::builder("api").limit(starts, period).clock(clock.clone()).build().unwrap()
}

#[test]
fn w5_of_six_at_five_a_second_one_waits() {
    let desk = Desk::new(&[Ok(200)]);
    let limit = limit(&desk.clock, 5, secs(1));
    for _ in 0..6 {
        assert_eq!(desk.run(limit.call("api.example.com", || desk.ask())).unwrap(), 200);
    }
    assert_eq!(desk.waits().iter().filter(|wait| **wait > ms(500)).count(), 1);
    assert_eq!((desk.asked(), desk.clock.now()), (6, Time::from_secs(1)));
    // Another key is another limit, and an error is the operation's own.
    assert!(limit.try_acquire("other.example.com").is_ok());
    let failed = desk.run(limit.call("other.example.com", || ready(DOWN))).unwrap_err();
    assert!(matches!(failed, GuardError::Operation { error: Failed::Down, .. }));
    assert_eq!(limit.snapshot().in_use, 0);
}

#[test]
fn c6_3_a_refused_start_says_when_there_is_a_place() {
    let clock = VirtualClock::new();
    let limit = limit(&clock, 2, secs(10));
    limit.try_acquire("").unwrap();
    clock.advance(secs(4));
    limit.try_acquire("").unwrap();
    let refused = limit.try_acquire("").unwrap_err();
    assert_eq!((refused.kind(), refused.retry_after()), (ErrorKind::RateLimited, Some(secs(6))));
    clock.advance(ms(5_999));
    assert_eq!(limit.try_acquire("").unwrap_err().retry_after(), Some(ms(1)));
    clock.advance(ms(1));
    limit.try_acquire("").unwrap();
    assert_eq!(limit.snapshot().in_use, 0);
}

#[test]
fn c6_2_nobody_overtakes_who_waits_for_a_place() {
    let clock = VirtualClock::new();
    let limit = limit(&clock, 1, secs(10));
    limit.try_acquire("").unwrap();
    let order = Mutex::new(Vec::new());
    let (waits, others) = (Clock::from(clock.clone()), limit.clone());
    let waiter = |name: u32| {
        let (limit, order) = (&limit, &order);
        async move {
            limit.acquire("").await.unwrap();
            order.lock().unwrap().push(name);
        }
    };
    let watcher = async {
        waits.wait(secs(5)).await;
        // Two wait: a place for a third comes after theirs.
        assert_eq!(others.try_acquire("").unwrap_err().retry_after(), Some(secs(25)));
        waits.wait_until(Time::from_secs(12)).await;
        assert!(others.try_acquire("").is_err());
    };
    clock.run(join(join_all([1, 2].map(waiter)), watcher)).unwrap();
    assert_eq!((order.into_inner().unwrap(), clock.now()), (vec![1, 2], Time::from_secs(20)));
}

#[test]
fn c6_3_a_waiter_that_is_dropped_moves_the_others_up() {
    let clock = VirtualClock::new();
    let limit = limit(&clock, 1, secs(10));
    limit.try_acquire("").unwrap();
    let tired = timeout(secs(3), limit.acquire("")).clock(clock.clone());
    let (tired, patient) = clock.run(join(tired, limit.acquire(""))).unwrap();
    assert!(tired.is_err() && patient.is_ok());
    assert_eq!((clock.now(), clock.armed_timers(), limit.snapshot().queued), (Time::from_secs(10), 0, 0));
}

#[test]
fn c6_3_what_the_wait_cannot_hold_is_refused_at_once() {
    let clock = VirtualClock::new();
    let limit = RateLimit::builder("api").limit(1, secs(10)).wait(secs(9)).clock(clock.clone()).build().unwrap();
    clock.run(limit.acquire("")).unwrap().unwrap();
    let refused = clock.run(limit.acquire("")).unwrap().unwrap_err();
    assert_eq!(refused.to_string(), "the rate limit of upstream 'api' has no place in time");
    assert_eq!((refused.retry_after(), clock.now()), (Some(secs(10)), Time::ZERO));
    clock.advance(secs(1));
    clock.run(limit.acquire("")).unwrap().unwrap();
}

#[test]
fn c6_4_keys_are_bounded_and_styles_are_kept_to() {
    let clock = VirtualClock::new();
    let builder = RateLimit::builder("api").limit(4, secs(1)).clock(clock.clone());
    let few = builder.clone().max_keys(2).build().unwrap();
    few.try_acquire("a").unwrap();
    few.try_acquire("b").unwrap();
    assert_eq!(few.try_acquire("c").unwrap_err().retry_after(), Some(secs(1)));
    clock.advance(secs(1));
    few.try_acquire("c").unwrap();
    let smooth = builder.style(RateStyle::Smooth).build().unwrap();
    smooth.try_acquire("").unwrap();
    assert_eq!(smooth.try_acquire("").unwrap_err().retry_after(), Some(ms(250)));
}

#[test]
fn c1_3_a_piece_says_what_it_was_given_and_what_it_takes() {
    assert!(RateLimit::new(0, secs(1)).unwrap_err().to_string().starts_with("rate_limit: expected"));
    assert!(RateLimit::new(1, Duration::ZERO).unwrap_err().to_string().starts_with("rate_limit_period: expected"));
    let crowded = RateLimit::new(10_001, secs(1)).unwrap_err().to_string();
    assert!(crowded.starts_with("rate_limit: expected at most 10000") && crowded.ends_with("found 10001"), "{crowded}");
    assert!(RateLimit::builder("x").limit(10_001, secs(1)).style(RateStyle::Smooth).build().is_ok());
    assert!(Bulkhead::new(0).unwrap_err().to_string().starts_with("max_concurrent: expected"));
    let broken = CircuitBreaker::builder("x").failures(0).cool_down(Duration::ZERO).build().unwrap_err();
    assert_eq!(broken.len(), 2, "{broken}");
}

fn breaker(clock: &VirtualClock) -> CircuitBreaker {
    CircuitBreaker::builder("tariffs").failures(3).cool_down(secs(30)).clock(clock.clone()).build().unwrap()
}

#[test]
fn k4_the_counter_is_seen_with_the_state() {
    let desk = Desk::new(&[DOWN]);
    let breaker = breaker(&desk.clock);
    let mut seen = Vec::new();
    for _ in 0..5 {
        let failed = desk.run(breaker.call(|| desk.ask())).unwrap_err();
        seen.push((breaker.failures(), breaker.state(), failed.limit()));
    }
    let (closed, open) = (State::Closed, State::Open);
    let refused = Some(ErrorKind::CircuitOpen);
    let expected = [(1, closed, None), (2, closed, None), (3, open, None), (3, open, refused), (3, open, refused)];
    assert_eq!((seen.as_slice(), desk.asked()), (expected.as_slice(), 3));
    assert_eq!(breaker.retry_after(), Some(secs(30)));
    let refused = desk.run(breaker.call(|| desk.ask())).unwrap_err();
    assert_eq!(refused.to_string(), "circuit breaker 'tariffs' is open");
    assert_eq!(refused.retry_after(), Some(secs(30)));
}

#[test]
fn k_b_after_the_cool_down_one_call_decides() {
    let desk = Desk::new(&[DOWN, DOWN, DOWN, DOWN, Ok(1)]);
    let breaker = breaker(&desk.clock);
    for _ in 0..3 {
        desk.run(breaker.call(|| desk.ask())).unwrap_err();
    }
    desk.clock.advance(secs(31));
    assert_eq!((breaker.state(), breaker.retry_after()), (State::Open, None), "nobody has asked yet");
    assert_eq!(desk.run(breaker.call(|| desk.ask())).unwrap_err().operation(), Some(&Failed::Down));
    assert_eq!((breaker.state(), breaker.retry_after()), (State::Open, Some(secs(30))));
    desk.clock.advance(secs(31));
    assert_eq!(desk.run(breaker.call(|| desk.ask())).unwrap(), 1);
    assert_eq!((breaker.state(), breaker.failures()), (State::Closed, 0));
}

#[test]
fn p15_only_errors_that_were_named_are_failures() {
    let desk = Desk::new(&[Err(Failed::NotFound)]);
    let breaker = breaker(&desk.clock);
    for _ in 0..5 {
        desk.run(breaker.transient(transient).call(|| desk.ask())).unwrap_err();
    }
    assert_eq!((breaker.state(), breaker.failures(), desk.asked()), (State::Closed, 0, 5));
    for count in 1..=3 {
        // The one that opens it still passes its own error on.
        let failed = desk.run(breaker.transient(transient).call(|| ready(DOWN))).unwrap_err();
        assert!(matches!(failed, GuardError::Operation { error: Failed::Down, .. }), "{failed:?}");
        assert_eq!(breaker.failures(), count);
    }
    assert_eq!(breaker.state(), State::Open);
    let throttled = |_: &Failed| ErrorClass::Throttled { retry_after: None };
    desk.clock.advance(secs(30));
    desk.run(breaker.classify(throttled).call(|| ready(DOWN))).unwrap_err();
    assert_eq!(breaker.state(), State::Closed, "a probe that is told to slow down has found it there");
}

#[test]
fn c4_6_a_probe_that_is_dropped_or_never_ends_gives_its_place_to_the_next() {
    let desk = Desk::new(&[Ok(1)]);
    let breaker = breaker(&desk.clock);
    for _ in 0..3 {
        desk.run(breaker.call(|| ready(DOWN))).unwrap_err();
    }
    desk.clock.advance(secs(30));
    let dropped = timeout(secs(1), breaker.call(pending::<Reply>)).clock(desk.clock.clone());
    desk.run(dropped).unwrap_err();
    assert_eq!(breaker.retry_after(), None);
    // One that is kept holds its place no longer than the lease, though a breaker alone has no deadline.
    let mut kept = pin!(breaker.call(pending::<Reply>));
    let probe = poll_fn(|cx| Poll::Ready(kept.as_mut().poll(cx).is_pending()));
    assert!(desk.run(probe));
    assert_eq!(breaker.retry_after(), Some(secs(30)));
    desk.clock.advance(secs(30));
    assert_eq!(desk.run(breaker.call(|| desk.ask())).unwrap(), 1);
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn c4_9_an_operator_is_obeyed() {
    let desk = Desk::new(&[DOWN]);
    let breaker = CircuitBreaker::new("tariffs").clone();
    breaker.force_open();
    assert_eq!(desk.run(breaker.call(|| desk.ask())).unwrap_err().limit(), Some(ErrorKind::CircuitOpen));
    assert_eq!((breaker.state(), breaker.retry_after(), desk.asked()), (State::Open, None, 0));
    breaker.force_close();
    for _ in 0..9 {
        desk.run(breaker.call(|| desk.ask())).unwrap_err();
    }
    assert_eq!(breaker.state(), State::Closed);
    breaker.reset();
    for _ in 0..5 {
        desk.run(breaker.call(|| desk.ask())).unwrap_err();
    }
    assert_eq!((breaker.state(), breaker.snapshot().forced), (State::Open, false), "five from a fresh start");
}

fn bulkhead(clock: &VirtualClock, slots: u32, wait: Duration) -> Bulkhead {
    Bulkhead::builder("reports").max_concurrent(slots).wait(wait).clock(clock.clone()).build().unwrap()
}

#[test]
fn c5_1_a_permit_is_a_slot_until_it_is_dropped() {
    let clock = VirtualClock::new();
    let bulkhead = bulkhead(&clock, 2, secs(5));
    let first = clock.run(bulkhead.acquire()).unwrap().unwrap();
    let second = bulkhead.try_acquire().unwrap();
    assert_eq!(bulkhead.snapshot().in_use, 2);
    let refused = bulkhead.try_acquire().unwrap_err();
    assert_eq!(refused.to_string(), "too many calls to upstream 'reports' are in flight");
    let refused = clock.run(bulkhead.acquire()).unwrap().unwrap_err();
    assert_eq!((refused.kind(), clock.now()), (ErrorKind::BulkheadFull, Time::from_secs(5)));
    // There is no deadline that would take it back.
    clock.advance(secs(1_000_000));
    assert!(bulkhead.try_acquire().is_err());
    // It borrows nothing, and can be given away.
    drop(bulkhead.clone());
    std::thread::spawn(move || first.release()).join().unwrap();
    drop(bulkhead.try_acquire().unwrap());
    drop(second);
    assert_eq!((bulkhead.snapshot().in_use, clock.armed_timers()), (0, 0));
}

#[test]
fn c5_1_slots_go_to_the_first_in_line() {
    let clock = VirtualClock::new();
    let bulkhead = bulkhead(&clock, 1, secs(60));
    let order = Mutex::new(Vec::new());
    let work = |name: u32| {
        let (bulkhead, order, clock) = (&bulkhead, &order, Clock::from(clock.clone()));
        async move {
            let slot = bulkhead.acquire().await.unwrap();
            order.lock().unwrap().push(name);
            // Nobody who comes now gets the slot before those who wait.
            assert!(bulkhead.try_acquire().is_err());
            clock.wait(secs(1)).await;
            drop(slot);
            assert!(bulkhead.try_acquire().is_err() || name == 5);
        }
    };
    let tired = timeout(ms(1500), bulkhead.acquire()).clock(clock.clone());
    let early = work(0);
    let (.., gave_up) = clock.run(join(early, join(join_all((1..6).map(work)), tired))).unwrap().1;
    assert!(gave_up.is_err(), "it stood behind five others");
    assert_eq!((order.into_inner().unwrap(), clock.now()), (vec![0, 1, 2, 3, 4, 5], Time::from_secs(6)));
    assert_eq!((bulkhead.snapshot().in_use, bulkhead.snapshot().queued), (0, 0));
}

#[test]
fn c7_7_a_bulkhead_that_is_closed_refuses_and_waits_for_those_who_stay() {
    let clock = VirtualClock::new();
    let bulkhead = bulkhead(&clock, 3, secs(5));
    let permit = bulkhead.try_acquire().unwrap();
    let wait = Clock::from(clock.clone());
    let leave = async {
        wait.wait(secs(7)).await;
        drop(permit);
    };
    clock.run(join(bulkhead.as_guard().close(), leave)).unwrap();
    assert_eq!(clock.now(), Time::from_secs(7));
    assert!(bulkhead.try_acquire().unwrap_err().is_closed());
    assert!(clock.run(bulkhead.acquire()).unwrap().unwrap_err().is_closed());
    let called = clock.run(bulkhead.call(|| ready(Ok::<_, Failed>(())))).unwrap();
    assert_eq!(called.unwrap_err().limit(), Some(ErrorKind::Closed));
}
