//! What the line promises (5.1, 5.2, 6.1 to 6.3), over long random histories and without a model.

use std::collections::VecDeque;
use std::time::Duration;

use steadfast_policy::Time;
use steadfast_policy::line::{Entry, Line, LineConfig, RateConfig, RateStyle, Refusal, Slot, Ticket};

mod line_support;

use line_support::{FAR, admitted, at, queued, wakes};

/// A seeded generator (xorshift64*), so that a failure can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(n)) >> 64) as u64
    }
}

fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

fn config(slots: u32, limit: u32, style: RateStyle) -> LineConfig {
    let rate = RateConfig { limit, period: nanos(1000), wait: None, style, max_keys: 10 };
    LineConfig { slots, slot_wait: Duration::from_secs(1), rate: Some(rate) }
}

/// Arrivals by environment variable, to search longer by hand.
fn scaled(arrivals: u64) -> u64 {
    let factor = std::env::var("STEADFAST_TEST_SCALE").ok().and_then(|factor| factor.parse().ok());
    arrivals * factor.unwrap_or(1)
}

/// Starts of one key, checked as they come.
#[derive(Default)]
struct Starts {
    last: VecDeque<Time>,
    count: u64,
}

impl Starts {
    fn add(&mut self, now: Time, limit: usize, window: Duration) {
        self.count += 1;
        self.last.push_back(now);
        if self.last.len() > limit {
            let oldest = self.last.pop_front().unwrap_or_default();
            assert!(oldest + window <= now, "{limit} + 1 starts from {oldest} to {now}");
        }
    }
}

/// Calls that arrive at random, wait, are woken, and end at random.
struct Traffic {
    line: Line,
    starts: Starts,
    limit: usize,
    window: Duration,
    held: VecDeque<Slot>,
    order: VecDeque<Ticket>,
}

impl Traffic {
    /// Answers the number of starts. `limit` and `window` say what they must keep to.
    fn run(config: LineConfig, arrivals: u64, mean_gap: u64, limit: usize, window: Duration) -> u64 {
        let mut random = Random(arrivals ^ mean_gap);
        let (starts, held, order) = Default::default();
        let mut traffic = Self { line: Line::new(config), starts, limit, window, held, order };
        let mut now = Time::ZERO;
        for _ in 0..arrivals {
            now = now + nanos(random.below(2 * mean_gap));
            traffic.arrive(now);
            if traffic.order.len() > 20
                && let Some(tired) = traffic.order.pop_back()
            {
                traffic.line.leave(now, tired);
            }
            if random.below(2) == 0
                && let Some(slot) = traffic.held.pop_front()
            {
                assert!(traffic.line.release(now, slot));
            }
            traffic.wake(now);
        }
        traffic.starts.count
    }

    fn arrive(&mut self, now: Time) {
        let entry = self.line.enter(now, "", Time::MAX);
        self.wake(now);
        match entry {
            Entry::Admitted(slot) => {
                assert!(self.order.is_empty(), "nobody overtakes");
                self.start(now, slot);
            }
            Entry::Queued(ticket, _) => self.order.push_back(ticket),
            Entry::Refused(refusal) => unreachable!("nothing limits the wait: {refusal:?}"),
        }
    }

    fn wake(&mut self, now: Time) {
        while let Some(ticket) = self.line.next_wake() {
            match self.line.poll(now, ticket) {
                Entry::Admitted(slot) => {
                    assert_eq!(self.order.pop_front(), Some(ticket), "first in, first out");
                    self.start(now, slot);
                }
                Entry::Queued(..) => {}
                Entry::Refused(refusal) => unreachable!("nothing limits the wait: {refusal:?}"),
            }
        }
    }

    fn start(&mut self, now: Time, slot: Slot) {
        self.starts.add(now, self.limit, self.window);
        self.held.push_back(slot);
    }
}

#[test]
fn c6_1_no_window_ever_holds_more_than_the_limit() {
    let arrivals = scaled(20_000);
    for limit in [1, 2, 7, 100] {
        // Fewer arrivals than places, about as many, and three times as many.
        for mean_gap in [2000 / u64::from(limit), 1000 / u64::from(limit), 333 / u64::from(limit)] {
            let config = config(30, limit, RateStyle::Window);
            let started = Traffic::run(config, arrivals, mean_gap, limit as usize, nanos(1000));
            assert!(started > arrivals / 10, "{started} of {arrivals}");
        }
    }
}

#[test]
fn c6_1_smooth_starts_are_always_apart() {
    let arrivals = scaled(20_000);
    for (limit, apart) in [(1, 1000), (3, 334), (7, 143), (2000, 1)] {
        let started = Traffic::run(config(30, limit, RateStyle::Smooth), arrivals, apart, 1, nanos(apart));
        assert!(started > arrivals / 10, "{started} of {arrivals}");
    }
}

#[test]
fn c5_1_nobody_overtakes_in_the_line_for_a_slot() {
    let unlimited = LineConfig { rate: None, ..config(3, 1, RateStyle::Window) };
    let started = Traffic::run(unlimited, scaled(20_000), 10, usize::MAX, Duration::ZERO);
    assert!(started > 10_000);
}

/// A line with more slots than callers, in which attempts are over at once and everybody asks when told.
struct Crowd {
    line: Line,
    now: Time,
    waiting: Vec<(Ticket, Time)>,
}

impl Crowd {
    /// Some have started, some wait, some have left, some starts were taken back.
    fn gather(random: &mut Random, config: LineConfig) -> Self {
        let mut crowd = Self { line: Line::new(config), now: at(1), waiting: Vec::new() };
        for _ in 0..random.below(30) {
            crowd.pass(crowd.now + nanos(random.below(200)));
            match crowd.line.enter(crowd.now, "", FAR) {
                Entry::Admitted(slot) if random.below(4) == 0 => crowd.line.undo_start(crowd.now, slot),
                Entry::Admitted(slot) => assert!(crowd.line.release(crowd.now, slot)),
                Entry::Queued(ticket, asks_at) => crowd.waiting.push((ticket, asks_at)),
                Entry::Refused(_) => {}
            }
            if random.below(5) == 0
                && let Some((tired, _)) = crowd.waiting.pop()
            {
                crowd.line.leave(crowd.now, tired);
            }
            crowd.ask();
        }
        crowd
    }

    /// Lets those ask whose time has come, or who are woken.
    fn ask(&mut self) {
        loop {
            let woken = self.line.next_wake();
            let due = |&(ticket, asks_at): &(Ticket, Time)| Some(ticket) == woken || asks_at <= self.now;
            let Some(position) = self.waiting.iter().position(due) else {
                assert_eq!(woken, None, "only those who wait are woken");
                break;
            };
            let (ticket, _) = self.waiting.swap_remove(position);
            match self.line.poll(self.now, ticket) {
                Entry::Admitted(slot) => assert!(self.line.release(self.now, slot)),
                Entry::Queued(ticket, asks_at) => self.waiting.push((ticket, asks_at)),
                Entry::Refused(_) => {}
            }
        }
    }

    fn pass(&mut self, until: Time) {
        loop {
            self.ask();
            let next = self.waiting.iter().map(|&(_, asks_at)| asks_at).min();
            let Some(next) = next.filter(|&next| next <= until) else { break };
            self.now = next;
        }
        self.now = until;
    }
}

fn any_style(random: &mut Random) -> RateStyle {
    [RateStyle::Window, RateStyle::Smooth][random.below(2) as usize]
}

#[test]
fn c6_2_admitted_exactly_when_it_said() {
    let mut random = Random(42);
    let mut waited = 0;
    for _ in 0..scaled(3000) {
        let config = config(1000, 1 + random.below(5) as u32, any_style(&mut random));
        let mut crowd = Crowd::gather(&mut random, config);
        let Entry::Queued(ticket, said) = crowd.line.enter(crowd.now, "", FAR) else { continue };
        waited += 1;
        let just_before = Time::from_nanos(said.as_nanos() - 1);
        while crowd.now < just_before {
            crowd.pass((crowd.now + nanos(1 + random.below(500))).min(just_before));
            assert_eq!(crowd.line.poll(crowd.now, ticket), Entry::Queued(ticket, said), "not before");
        }
        let _slot = admitted(crowd.line.poll(said, ticket));
    }
    assert!(waited > 1000, "{waited}");
}

#[test]
fn c6_3_who_comes_back_after_retry_after_is_admitted() {
    let mut random = Random(43);
    let mut refused = 0;
    for _ in 0..scaled(4000) {
        let mut config = config(1000, 1 + random.below(5) as u32, any_style(&mut random));
        if let Some(rate) = &mut config.rate {
            rate.wait = Some(nanos(random.below(1500)));
        }
        let mut crowd = Crowd::gather(&mut random, config);
        let deadline = if random.below(2) == 0 { FAR } else { crowd.now + nanos(1 + random.below(1500)) };
        let retry_after = match crowd.line.enter(crowd.now, "", deadline) {
            Entry::Refused(Refusal::RateLimited { retry_after }) => retry_after,
            Entry::Refused(other) => unreachable!("{other:?}"),
            Entry::Admitted(_) | Entry::Queued(..) => continue,
        };
        refused += 1;
        assert!(retry_after > Duration::ZERO);
        // Those before start when they can, and nobody else comes.
        crowd.pass(crowd.now + retry_after);
        let _slot = admitted(crowd.line.enter(crowd.now, "", FAR));
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn c6_4_a_key_that_is_told_when_to_come_back_finds_room_then() {
    let mut random = Random(44);
    let mut refused = 0;
    for _ in 0..scaled(2000) {
        let mut config = config(1000, 3, any_style(&mut random));
        if let Some(rate) = &mut config.rate {
            rate.max_keys = 1 + random.below(4) as usize;
        }
        let mut line = Line::new(config);
        let mut now = at(1);
        for i in 0..random.below(20) {
            now = now + nanos(random.below(200));
            let key = format!("key {}", random.below(6) * (1 + i % 2));
            match line.enter(now, &key, FAR) {
                Entry::Admitted(slot) => assert!(line.release(now, slot)),
                Entry::Queued(ticket, _) => line.leave(now, ticket),
                Entry::Refused(Refusal::RateLimited { retry_after }) => {
                    refused += 1;
                    now = now + retry_after;
                    let slot = admitted(line.enter(now, &key, FAR));
                    assert!(line.release(now, slot));
                }
                Entry::Refused(other) => unreachable!("{other:?}"),
            }
            assert!(wakes(&mut line).is_empty());
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn w5_the_wait_of_the_sixth_is_longer_than_half_a_second() {
    let rate =
        RateConfig { limit: 5, period: Duration::from_secs(1), wait: None, style: RateStyle::Window, max_keys: 1 };
    let mut line = Line::new(LineConfig { rate: Some(rate), ..LineConfig::default() });
    let waits: Vec<_> = (0..6)
        .map(|_| match line.enter(at(0), "", FAR) {
            Entry::Admitted(_) => Duration::ZERO,
            other => Time::ZERO.until(queued(other).1),
        })
        .collect();
    let long = waits.iter().filter(|&&wait| wait > Duration::from_millis(500)).count();
    assert_eq!(long, 1, "{waits:?}");
}
