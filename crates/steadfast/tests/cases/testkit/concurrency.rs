//! Several who sleep at once: the order of events is that of their instants, as on a clock that is moved from timer to
//! timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_executor::block_on;
use futures_util::future::{join, join_all};
use steadfast::policy::Time;
use steadfast::policy::line::RateConfig;
use steadfast::report::{AttemptRecord, Ended};
use steadfast::testing::{Reply, ScriptedOperation, SeenCall, VirtualClock, fake_clock};
use steadfast::{Clock, ErrorKind, Guard};
use tokio::sync::oneshot;

use super::{exact, five_a_second, guard};
use crate::harness::{ms, secs};

#[tokio::test]
async fn c11_6_tasks_that_sleep_at_once_overlap() {
    let time = fake_clock();
    let sleep = |millis: u64| {
        let clock = Clock::system();
        tokio::spawn(async move {
            clock.wait(ms(millis)).await;
            clock.now()
        })
    };
    let (slow, fast, middle) = (sleep(3_000), sleep(1_000), sleep(2_000));
    assert_eq!(fast.await.unwrap(), Time::from_secs(1));
    assert_eq!(middle.await.unwrap(), Time::from_secs(2));
    assert_eq!(slow.await.unwrap(), Time::from_secs(3));
    assert_eq!(time.sleeps(), [secs(1), secs(2), secs(3)]);
}

#[test]
fn c11_6_who_sleeps_long_does_not_skip_what_another_does_meanwhile() {
    for long_first in [true, false] {
        let time = fake_clock();
        let clock = Clock::system();
        let long = clock.wait(secs(10));
        let short = async {
            let mut seen = Vec::new();
            for _ in 0..4 {
                clock.wait(secs(2)).await;
                seen.push(clock.now());
            }
            seen
        };
        let seen = if long_first { block_on(join(long, short)).1 } else { block_on(join(short, long)).0 };
        assert_eq!(seen, [2, 4, 6, 8].map(Time::from_secs));
        assert_eq!(time.elapsed(), secs(10));
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Busy;

/// What happened in one call.
#[derive(Debug, PartialEq)]
struct Story {
    attempts: Vec<AttemptRecord>,
    ended: Ended,
    duration: Duration,
    seen: Vec<SeenCall>,
}

/// One of many little worlds: failures, slow and stuck work, few slots, a rate limit. No two events in it that have to do
/// with each other are of the same instant, since the order within one is nobody's promise.
#[derive(Clone, Copy)]
struct Scenario {
    number: u64,
    /// Slots and places are scarce. Who waits for them is refused as soon as it asks in vain, and how often it asks depends
    /// on who polls it: here everybody is, each time, on both clocks.
    is_scarce: bool,
}

impl Scenario {
    fn guard(self, clock: impl Into<Clock>) -> Guard {
        let rate = RateConfig { limit: 1 + self.number as u32 % 4, ..five_a_second() };
        let builder = Guard::builder("rates").attempts(3).backoff(exact()).clock(clock);
        let builder = if self.is_scarce { builder.max_concurrent(2, ms(700)).rate_limit(rate) } else { builder };
        builder.without_retry_budget().without_breaker().build().unwrap()
    }

    /// What the call of this number asks.
    fn operation(self, clock: impl Into<Clock>, number: u64) -> ScriptedOperation<u64, Busy> {
        let reply = |step: u64| {
            let random = (self.number * 1_000 + number * 10 + step).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
            let reply = match random % 8 {
                0..4 => Reply::err(Busy),
                4 => Reply::hang(),
                _ => Reply::ok(number),
            };
            reply.after(Duration::from_nanos(random % 1_300_000_000))
        };
        ScriptedOperation::new(clock, (0..3).map(reply))
    }

    async fn call(guard: Guard, number: u64, operation: ScriptedOperation<u64, Busy>) -> Story {
        let call = guard.timeout(ms(4_000 + number * 37)).transient(|_: &Busy| true);
        let report = match call.serve(|_| operation.call()).await {
            Ok(served) => served.report().clone(),
            Err(error) => error.report().clone(),
        };
        // When a waiter learns that it no longer lacks the place, but only the slot, depends on how often it asks.
        let attempts = report.attempts().copied().collect();
        Story { attempts, ended: report.ended(), duration: report.duration(), seen: operation.seen() }
    }

    fn calls(self, guard: &Guard, clock: Clock) -> Vec<impl Future<Output = Story> + Send + use<>> {
        (0..12).map(|number| Self::call(guard.clone(), number, self.operation(clock.clone(), number))).collect()
    }

    /// What happens where everything is moved from timer to timer.
    fn expected(self) -> Vec<Story> {
        let clock = VirtualClock::new();
        clock.run(join_all(self.calls(&self.guard(clock.clone()), clock.clone().into()))).unwrap()
    }
}

#[test]
fn c11_6_events_come_in_the_order_of_a_clock_that_is_moved_from_timer_to_timer() {
    let mut sleeps = 0;
    for scenario in (0..300).map(|number| Scenario { number, is_scarce: true }) {
        let time = fake_clock();
        let guard = scenario.guard(&time);
        let got = block_on(join_all(scenario.calls(&guard, Clock::system())));
        assert_eq!(got, scenario.expected(), "scenario {}", scenario.number);
        let line = guard.snapshot().line;
        assert_eq!((time.armed_timers(), line.in_use, line.queued), (0, 0, 0));
        sleeps += time.sleeps().len();
    }
    assert!(sleeps > 1_000, "{sleeps}");
}

#[tokio::test]
async fn c11_6_so_they_do_where_each_call_is_a_task_of_its_own() {
    for scenario in (0..300).map(|number| Scenario { number, is_scarce: false }) {
        let time = fake_clock();
        let guard = scenario.guard(&time);
        let tasks = scenario.calls(&guard, Clock::system()).into_iter().map(tokio::spawn);
        let mut got = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            got.push(task.await.unwrap());
        }
        assert_eq!(got, scenario.expected(), "scenario {}", scenario.number);
    }
}

#[tokio::test]
async fn c11_6_limits_of_the_same_instant_come_together() {
    let time = fake_clock();
    let guard = guard().build().unwrap();
    let stuck = ScriptedOperation::new(&time, [Reply::<(), Busy>::hang()]);
    let call = |is_scripted: bool| {
        let (guard, stuck) = (guard.clone(), stuck.clone());
        tokio::spawn(async move {
            let work = || {
                let stuck = stuck.clone();
                async move { if is_scripted { stuck.call().await } else { std::future::pending().await } }
            };
            guard.call(work).await.unwrap_err().limit()
        })
    };
    // The scripted one lets time pass for the other, too, and is gone when the other's limit has come.
    for task in [call(true), call(false), call(true)] {
        assert_eq!(task.await.unwrap(), Some(ErrorKind::Timeout));
    }
    assert_eq!((time.elapsed(), time.armed_timers()), (secs(30), 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c11_6_several_threads_share_a_clock() {
    let time = fake_clock();
    let rates = ScriptedOperation::new(&time, [Reply::err(Busy), Reply::from(Ok(1)).after(ms(5))]);
    // Which thread comes first is the system's choice, so no limit is near.
    let builder = guard().rate_limit(RateConfig { limit: 100, ..five_a_second() }).attempts(2);
    let guard = builder.max_concurrent(50, secs(300)).total_timeout(secs(300)).build().unwrap();
    let values = Arc::new(AtomicUsize::new(0));
    let tasks = (0..8).map(|_| {
        let (guard, rates, values) = (guard.clone(), rates.clone(), Arc::clone(&values));
        tokio::spawn(async move {
            for _ in 0..50 {
                let value = guard.transient(|_: &Busy| true).call(|| rates.call()).await.unwrap();
                values.fetch_add(value, Ordering::SeqCst);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(values.load(Ordering::SeqCst), 400);
    assert_eq!(rates.calls(), 401);
    assert!(time.elapsed() >= secs(3), "401 starts at 100 a second: {:?}", time.elapsed());
    assert_eq!((time.armed_timers(), rates.in_flight(), guard.snapshot().line.in_use), (0, 0, 0));
}

#[tokio::test]
async fn c11_6_nobody_sleeps_past_the_work_of_one_before_it() {
    let time = fake_clock();
    let rate = RateConfig { limit: 1, ..five_a_second() };
    let guard = guard().rate_limit(rate).max_concurrent(1, secs(20)).build().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let mut ended = Some(ended);
    let real = {
        let guard = guard.clone();
        tokio::spawn(async move {
            let work = guard.call(|| ended.take().expect("one attempt"));
            work.await.is_ok()
        })
    };
    let quick = || {
        let guard = guard.clone();
        tokio::spawn(async move { guard.serve(|_| async { Ok::<_, &str>(()) }).await.unwrap().report().clone() })
    };
    tokio::task::yield_now().await;
    let (second, third) = (quick(), quick());
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    // The second has its place and waits for the slot, which is real work; the third must not jump to its deadline.
    assert_eq!(time.elapsed(), secs(1));
    end.send(()).unwrap();
    assert!(real.await.unwrap());
    assert_eq!(second.await.unwrap().duration(), secs(1));
    assert_eq!(third.await.unwrap().duration(), secs(2));
    assert_eq!(time.elapsed(), secs(2));
}
