//! The line as its callers use it: everybody asks when it said it would, or when it is woken, and not before. Some never
//! come for the slot that they were granted.

use std::time::Duration;

use steadfast_policy::Time;

use crate::history::{Call, Move, Pair, Step, Waiting};
use crate::random::Random;
use crate::{any_config, any_lease, any_time, scaled};

/// One history; of ten waiters so many do not come for their grant.
struct Glue {
    pair: Pair,
    lost_of_ten: usize,
}

impl Glue {
    fn comes(&self, waiter: usize) -> bool {
        (waiter * 7) % 10 >= self.lost_of_ten
    }

    fn polled(&self) -> impl Iterator<Item = (usize, &Waiting)> {
        let granted = self.pair.model.granted();
        let is_polled = move |waiter| self.comes(waiter) || !granted.contains(&waiter);
        self.pair.waiting.iter().enumerate().filter(move |(_, waiting)| is_polled(waiting.waiter))
    }

    fn next_ask(&self) -> Time {
        self.polled().map(|(_, waiting)| waiting.asks_at).min().unwrap_or(Time::MAX)
    }

    /// Lets those ask whose time has come.
    fn ask_due(&mut self) {
        loop {
            let due = self.polled().find(|(_, waiting)| waiting.asks_at <= self.pair.now);
            let Some((position, _)) = due else { break };
            self.pair.step(Step { clock: Move::Stay, call: Call::Poll(position) });
        }
    }

    /// Lets time pass, with everybody asking in time.
    fn pass(&mut self, by: Duration) {
        let until = self.pair.now + by;
        self.ask_due();
        while self.next_ask() <= until {
            self.nobody_is_late();
            self.pair.now = self.next_ask();
            self.ask_due();
        }
        self.nobody_is_late();
        self.pair.now = until;
    }

    /// Whenever a slot can be granted by time alone, somebody asks then.
    fn nobody_is_late(&self) {
        if let Some(at) = self.pair.model.next_grant() {
            assert!(self.next_ask() <= at, "a grant at {at}, and nobody asks before {}", self.next_ask());
        }
    }
}

fn run(seed: u64, lost_of_ten: usize, reconfigured_of_hundred: u64) {
    let mut random = Random::new(seed);
    let mut glue = Glue { pair: Pair::new(any_config(&mut random)), lost_of_ten };
    for _ in 0..60 {
        let by = any_time(&mut random, 150);
        glue.pass(by);
        let pick = random.below(1000) as usize;
        let call = match random.below(100) {
            _ if random.below(100) < reconfigured_of_hundred => Call::Reconfigure(any_config(&mut random)),
            0..60 => Call::Enter { key: pick, time_left: any_time(&mut random, 3000) },
            60..70 => Call::Leave(pick),
            70..88 => Call::Release(pick),
            88..93 => Call::Lease(pick, any_lease(&mut random)),
            _ => Call::UndoStart(pick),
        };
        glue.pair.step(Step { clock: Move::Stay, call });
    }
    glue.pair.all_go();
}

#[test]
fn c6_2_nobody_is_granted_later_than_possible_if_all_ask_when_told() {
    for seed in 0..scaled(250) {
        run(2_000_000 + seed, 0, 1);
    }
}

#[test]
fn c5_2_a_grant_that_nobody_comes_for_goes_on_in_time() {
    for seed in 0..scaled(250) {
        run(3_000_000 + seed, 3, 1);
    }
}

/// New limits wake whoever can be granted earlier under them, and leave nobody waiting for what will not come.
#[test]
fn c9_5_nobody_is_granted_later_than_new_limits_allow() {
    for seed in 0..scaled(250) {
        run(4_000_000 + seed, seed as usize % 4, 15);
    }
}
