//! Issue 4, "must show" 3: a million random arrivals against the rate limit, under a clock that jumps both ways.
//!
//! The whole history is kept, and judged at the end by nothing but its definition: of each key's starts, any two that are
//! `limit` apart lie at least a period apart, and who came first started first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use steadfast_policy::Time;
use steadfast_policy::line::{Entry, Line, LineConfig, RateConfig, RateStyle, Refusal, Slot, Ticket};

const PERIOD: Duration = Duration::from_secs(1);
const ARRIVALS: u64 = 1_000_000;
/// Keys that come again and again.
const BUSY: usize = 12;
const MAX_KEYS: usize = 20;
const SLOTS: u32 = 30;

/// A seeded generator (xorshift64*), so that a failure can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(n)) >> 64) as u64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn up_to(&mut self, longest: Duration) -> Duration {
        Duration::from_nanos(self.below(longest.as_nanos() as u64))
    }
}

#[derive(Default)]
struct Counts {
    started: u64,
    left: u64,
    refused: u64,
    undone: u64,
    forward: u64,
    back: u64,
    most_keys: usize,
}

struct Waiter {
    key: usize,
    arrival: u64,
    deadline: Time,
    asks_at: Time,
}

/// The traffic of several keys, of which some are busy and the others are seen once.
struct World {
    random: Random,
    line: Line,
    /// What the clock shows: it may step back.
    clock: Time,
    /// The latest that it ever showed, which is the time that the rule counts in.
    now: Time,
    waiting: BTreeMap<Ticket, Waiter>,
    asks: BTreeSet<(Time, Ticket)>,
    /// What is in flight, and when its deadline cuts it.
    held: VecDeque<(Slot, Time)>,
    /// Of each busy key: who started when.
    starts: Vec<Vec<(u64, Time)>>,
    counts: Counts,
}

impl World {
    fn new(seed: u64, limit: u32, style: RateStyle) -> Self {
        let rate = RateConfig { limit, period: PERIOD, wait: None, style, max_keys: MAX_KEYS };
        let slot_wait = Duration::from_millis(200);
        Self {
            random: Random(seed),
            line: Line::new(LineConfig { slots: SLOTS, slot_wait, rate: Some(rate) }),
            clock: Time::from_secs(1),
            now: Time::from_secs(1),
            waiting: BTreeMap::new(),
            asks: BTreeSet::new(),
            held: VecDeque::new(),
            starts: vec![Vec::new(); BUSY],
            counts: Counts::default(),
        }
    }

    fn run(mut self, arrivals: u64) -> Self {
        for arrival in 0..arrivals {
            self.time_passes();
            self.ask();
            self.arrive(arrival);
            self.ask();
            if self.random.one_in(12) {
                self.somebody_leaves();
            }
            while self.held.len() as u64 > self.random.below(u64::from(SLOTS) + 5) {
                let Some((slot, deadline)) = self.held.pop_front() else { break };
                assert!(self.line.release(self.clock, slot) || deadline <= self.now, "nothing else ends its lease");
                self.ask();
            }
            self.counts.most_keys = self.counts.most_keys.max(self.line.snapshot(self.clock).keys);
        }
        self
    }

    fn time_passes(&mut self) {
        // A hundred a second, in bursts: they come in nine of ten gaps, and a tenth of the time is silence.
        let gap = if self.random.one_in(10) { Duration::from_millis(100) } else { Duration::from_millis(2) };
        let until = self.clock + self.random.up_to(gap);
        // Who waits is punctual to the nanosecond.
        while let Some(&(at, _)) = self.asks.first().filter(|(at, _)| self.now < *at && *at <= until) {
            self.clock = at;
            self.now = at;
            self.ask();
        }
        self.clock = until;
        if self.random.one_in(20_000) {
            self.counts.forward += 1;
            self.clock = self.clock + self.random.up_to(Duration::from_secs(5 * 365 * 86_400));
        }
        if self.random.one_in(4_000) {
            self.counts.back += 1;
            let back = self.random.up_to(3 * PERIOD);
            self.clock = Time::from_nanos(self.clock.as_nanos().saturating_sub(back.as_nanos() as u64));
        }
        self.now = self.now.max(self.clock);
    }

    fn arrive(&mut self, arrival: u64) {
        // Some have twice as much traffic as places, others seldom wait; a tenth of all keys is seen once.
        let mut any = || self.random.below(BUSY as u64) as usize;
        let key = any().min(any());
        let key = if self.random.one_in(10) { BUSY } else { key };
        let name = match key {
            0 => String::new(),
            1..BUSY => format!("busy {key}"),
            _ => format!("seen once, {arrival}"),
        };
        let deadline = if self.random.one_in(3) { Time::MAX } else { self.now + self.random.up_to(3 * PERIOD) };
        match self.line.enter(self.clock, &name, deadline) {
            Entry::Admitted(slot) => self.start(key, arrival, deadline, slot),
            Entry::Queued(ticket, asks_at) => {
                self.asks.insert((asks_at, ticket));
                assert!(self.waiting.insert(ticket, Waiter { key, arrival, deadline, asks_at }).is_none());
                // Nobody waits for ever: where the deadline is far, patience ends.
                if self.waiting.len() > 300 {
                    self.somebody_leaves();
                }
            }
            Entry::Refused(refusal) => self.refused(refusal),
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        self.counts.refused += 1;
        if let Refusal::RateLimited { retry_after } = refusal {
            assert!(retry_after > Duration::ZERO);
        }
    }

    fn start(&mut self, key: usize, arrival: u64, deadline: Time, slot: Slot) {
        if self.random.one_in(50) {
            // What comes after the line refuses: it never was.
            self.counts.undone += 1;
            self.line.undo_start(self.clock, slot);
            return;
        }
        self.counts.started += 1;
        self.held.push_back((slot, deadline));
        let now = self.now;
        assert!(self.held.iter().filter(|(_, deadline)| *deadline > now).count() <= SLOTS as usize);
        if let Some(starts) = self.starts.get_mut(key) {
            starts.push((arrival, self.now));
        }
    }

    /// Lets everybody ask who is woken, or whose time has come.
    fn ask(&mut self) {
        loop {
            let woken = self.line.next_wake();
            let due = || self.asks.first().filter(|(at, _)| *at <= self.now).map(|(_, ticket)| *ticket);
            let Some(ticket) = woken.or_else(due) else { break };
            let Some(waiter) = self.forget(ticket) else { unreachable!("only those who wait are woken") };
            match self.line.poll(self.clock, ticket) {
                Entry::Admitted(slot) => self.start(waiter.key, waiter.arrival, waiter.deadline, slot),
                Entry::Queued(_, asks_at) => {
                    assert!(asks_at > self.now, "it would ask for ever");
                    self.asks.insert((asks_at, ticket));
                    self.waiting.insert(ticket, Waiter { asks_at, ..waiter });
                }
                Entry::Refused(refusal) => self.refused(refusal),
            }
        }
    }

    fn forget(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.waiting.remove(&ticket)?;
        self.asks.remove(&(waiter.asks_at, ticket));
        Some(waiter)
    }

    /// A call is cancelled, wherever in the line it stands.
    fn somebody_leaves(&mut self) {
        let nth = self.random.below(self.waiting.len() as u64 + 1) as usize;
        let Some(&ticket) = self.waiting.keys().nth(nth) else { return };
        self.counts.left += 1;
        self.forget(ticket);
        self.line.leave(self.clock, ticket);
        self.ask();
    }

    /// The definition, over all that happened.
    fn judge(mut self, limit: usize, period: Duration) -> Counts {
        for (key, starts) in self.starts.iter_mut().enumerate() {
            assert!(starts.len() > 1000, "key {key} was not busy: {}", starts.len());
            starts.sort_by_key(|&(_, at)| at);
            for window in starts.windows(limit + 1) {
                let ((_, first), (_, beyond)) = (window[0], window[limit]);
                assert!(beyond.since(first) >= period, "key {key}: {limit} + 1 starts from {first} to {beyond}");
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
        self.counts
    }
}

fn must_hold(seed: u64, style: RateStyle, limit: u32, starts_in: (usize, Duration)) {
    let counts = World::new(seed, limit, style).run(ARRIVALS).judge(starts_in.0, starts_in.1);
    // It can only have held if there was something to hold against.
    assert!(counts.started > ARRIVALS / 5, "{} started", counts.started);
    assert!(counts.refused > ARRIVALS / 20, "{} were refused", counts.refused);
    assert!(counts.left > ARRIVALS / 20, "{} left", counts.left);
    assert!(counts.undone > 1_000 && counts.forward > 20 && counts.back > 100, "{} undone", counts.undone);
    assert_eq!(counts.most_keys, MAX_KEYS, "a hundred thousand keys were seen once");
}

#[test]
fn must_show_3_no_window_of_the_period_holds_more_starts_than_the_limit() {
    must_hold(1, RateStyle::Window, 5, (5, PERIOD));
}

#[test]
fn must_show_3_smooth_starts_are_never_closer_than_their_share_of_the_period() {
    must_hold(2, RateStyle::Smooth, 5, (1, PERIOD / 5));
}
