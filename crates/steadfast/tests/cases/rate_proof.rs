//! Issue 4, "must show" 3, through what users call: a hundred thousand arrivals over futures that are dropped at random, in
//! virtual time. The whole history is judged at the end, by nothing but the definition of the limit.

use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use steadfast::policy::Time;
use steadfast::policy::line::{LineSnapshot, RateConfig, RateStyle};
use steadfast::testing::VirtualClock;
use steadfast::{Clock, Guard, RateLimit, timeout};

use crate::harness::{ms, secs};
use crate::pieces::Failed;

const LIMIT: u32 = 5;
const PERIOD: Duration = Duration::from_secs(1);
const LANES: u64 = 400;
const BUSY: u64 = 8;
const MAX_KEYS: usize = 16;

/// A seeded generator (xorshift64*), so that a failure can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(n)) >> 64) as u64
    }

    fn millis(&mut self, longest: u64) -> Duration {
        Duration::from_micros(self.below(longest * 1_000))
    }
}

/// What has a limit.
trait Limited: Sync {
    /// Calls `started` when there is a place. Whether there was one.
    fn start(&self, key: &str, takes: Duration, started: impl Fn() + Send + Sync) -> impl Future<Output = bool> + Send;

    fn line(&self) -> LineSnapshot;
}

impl Limited for RateLimit {
    async fn start(&self, key: &str, _: Duration, started: impl Fn() + Send + Sync) -> bool {
        let place = self.acquire(key).await;
        place.is_ok_and(|()| {
            started();
            true
        })
    }

    fn line(&self) -> LineSnapshot {
        self.snapshot()
    }
}

/// A guard with a bulkhead beside its limit, and operations that take their time.
struct Guarded {
    guard: Guard,
    clock: Clock,
}

impl Limited for Guarded {
    async fn start(&self, key: &str, takes: Duration, started: impl Fn() + Send + Sync) -> bool {
        let operation = || {
            started();
            async move {
                self.clock.wait(takes).await;
                Ok::<_, Failed>(())
            }
        };
        self.guard.key(key).call(operation).await.is_ok()
    }

    fn line(&self) -> LineSnapshot {
        self.guard.snapshot().line
    }
}

#[derive(Default)]
struct History {
    arrivals: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    most_keys: AtomicU64,
    /// Of each busy key: the how-manieth arrival started when.
    starts: Vec<Mutex<Vec<(u64, Time)>>>,
}

/// One caller after another, some of whom lose patience.
async fn lane(limit: &impl Limited, clock: &VirtualClock, history: &History, mut random: Random, calls: u64) {
    let time = Clock::from(clock.clone());
    for _ in 0..calls {
        time.wait(random.millis(8_000)).await;
        let arrival = history.arrivals.fetch_add(1, Ordering::Relaxed);
        let busy = random.below(BUSY).min(random.below(BUSY));
        let key = match random.below(10) {
            0 => format!("seen once, {arrival}"),
            _ if busy == 0 => String::new(),
            _ => format!("busy {busy}"),
        };
        let started = || {
            let of_key = history.starts.get(busy as usize).filter(|_| !key.starts_with("seen"));
            if let Some(starts) = of_key {
                starts.lock().unwrap().push((arrival, clock.now()));
            }
        };
        let patience = if random.below(3) == 0 { secs(60) } else { random.millis(2_500) };
        let call = limit.start(&key, random.millis(300), started);
        match timeout(patience, call).clock(clock.clone()).await {
            Ok(true) => {}
            Ok(false) => drop(history.refused.fetch_add(1, Ordering::Relaxed)),
            Err(_) => drop(history.dropped.fetch_add(1, Ordering::Relaxed)),
        }
        history.most_keys.fetch_max(limit.line().keys as u64, Ordering::Relaxed);
    }
}

/// Moves the clock by years, now and then.
async fn jumps(clock: &VirtualClock, mut random: Random) {
    let time = Clock::from(clock.clone());
    for _ in 0..20 {
        time.wait(secs(30)).await;
        clock.advance(secs(random.below(5 * 365 * 86_400)));
    }
}

fn must_hold(limit: &impl Limited, clock: &VirtualClock, calls: u64) {
    let history = History { starts: (0..BUSY).map(|_| Mutex::default()).collect(), ..History::default() };
    let lanes = (0..LANES).map(|lane_no| lane(limit, clock, &history, Random(lane_no + 1), calls / LANES));
    clock.run(join(join_all(lanes), jumps(clock, Random(99)))).unwrap();

    let mut started = 0;
    for (key, starts) in history.starts.iter().enumerate() {
        let mut starts = starts.lock().unwrap();
        started += starts.len() as u64;
        starts.sort_by_key(|&(_, at)| at);
        for window in starts.windows(LIMIT as usize + 1) {
            let (first, beyond) = (window[0].1, window[LIMIT as usize].1);
            assert!(beyond.since(first) >= PERIOD, "key {key}: {LIMIT} + 1 starts from {first} to {beyond}");
        }
        starts.sort_by_key(|&(arrival, _)| arrival);
        for pair in starts.windows(2) {
            assert!(
                pair[0].1 <= pair[1].1,
                "key {key}: {:?} came first, and started later than {:?}",
                pair[0],
                pair[1]
            );
        }
    }
    let (refused, dropped) = (history.refused.into_inner(), history.dropped.into_inner());
    assert!(started > calls / 4 && dropped > calls / 10, "{started} started, {refused} refused, {dropped} dropped");
    assert_eq!(history.arrivals.into_inner(), calls);
    assert!(history.most_keys.into_inner() <= MAX_KEYS as u64);
    let line = limit.line();
    assert_eq!((line.in_use, line.queued, clock.armed_timers()), (0, 0, 0), "something is left behind");
}

#[test]
fn must_show_3_a_rate_limit_holds_whoever_is_dropped() {
    let clock = VirtualClock::new();
    let limit = RateLimit::builder("api").limit(LIMIT, PERIOD).max_keys(MAX_KEYS).clock(clock.clone()).build().unwrap();
    must_hold(&limit, &clock, 100_000);
}

#[test]
fn must_show_3_a_guards_rate_limit_holds_beside_its_bulkhead() {
    let clock = VirtualClock::new();
    let rate = RateConfig { limit: LIMIT, period: PERIOD, wait: None, style: RateStyle::Window, max_keys: MAX_KEYS };
    let builder = Guard::builder("api").rate_limit(rate).max_concurrent(8, ms(200)).without_breaker();
    let guard = builder.clock(clock.clone()).build().unwrap();
    must_hold(&Guarded { guard, clock: clock.clone().into() }, &clock, 100_000);
}

#[test]
fn must_show_3_a_hundred_thousand_keys_seen_once_leave_a_bounded_map() {
    let clock = VirtualClock::new();
    let limit = RateLimit::builder("api").limit(LIMIT, PERIOD).max_keys(1_000).clock(clock.clone()).build().unwrap();
    let (mut started, mut most) = (0, 0);
    for number in 0..100_000 {
        started += u32::from(limit.try_acquire(&format!("key {number}")).is_ok());
        most = most.max(limit.snapshot().keys);
        clock.advance(Duration::from_micros(700));
    }
    assert_eq!(most, 1_000);
    assert!((65_000..75_000).contains(&started), "a thousand fit into each second, and {started} were let through");
    clock.advance(PERIOD);
    limit.try_acquire("").unwrap();
    assert_eq!(limit.snapshot().keys, 0, "of keys that rest nothing is kept");
}
