//! Random histories of a budget, and how they are played.

use proptest::prelude::*;
use steadfast_policy::budget::{Budget, BudgetConfig, BudgetSnapshot, Denied, RetryPermit};
use steadfast_policy::{Answer, Cause, Time};

/// Where the clock stands at first: random steps back do not take it to its origin.
const START: Time = Time::from_secs(1000);

/// What happens next. Retries are picked among those that are out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Call,
    First(Answer),
    Ask(Cause, u64),
    Retry(usize, Answer),
    Unsent(usize),
    Reconfigure(BudgetConfig),
}

/// An operation and how far the clock moves before it, in nanoseconds; it may step back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) step: i64,
    pub(crate) op: Op,
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A history of `length` events: spells in which the upstream mostly works or mostly fails, idle gaps of up to 400 s,
/// and a clock that steps back.
pub(crate) fn random_history(seed: u64, length: usize) -> Vec<Event> {
    let mut random = Random(seed);
    let mut good = 50;
    (0..length)
        .map(|_| {
            if random.chance(2) {
                good = [0, 5, 50, 95, 100][random.below(5) as usize];
            }
            Event { step: random_step(&mut random), op: random_op(&mut random, good) }
        })
        .collect()
}

/// The same with other settings every now and then.
pub(crate) fn reconfigured_history(seed: u64, length: usize) -> Vec<Event> {
    let mut random = Random(seed ^ 0x5eed);
    let mut history = random_history(seed, length);
    for event in &mut history {
        if random.chance(4) {
            event.op = Op::Reconfigure(random_config(&mut random));
        }
    }
    history
}

/// Whole millionths, as the model has them.
pub(crate) fn random_config(random: &mut Random) -> BudgetConfig {
    let ratio = [0.0, 0.1, 0.2, 0.5, 10.0][random.below(5) as usize];
    let min_per_second = [0.0, 0.5, 1.0, 3.25, 100.0][random.below(5) as usize];
    BudgetConfig { ratio, min_per_second, gate: random.chance(60) }
}

fn random_step(random: &mut Random) -> i64 {
    let nanos = match random.below(100) {
        0..40 => 0,
        40..85 => random.below(50_000_000),
        85..95 => random.below(3_000_000_000),
        95..97 => random.below(400_000_000_000),
        97..99 => 1_000_000_000 * random.below(12),
        _ => return -(random.below(20_000_000_000) as i64),
    };
    nanos as i64
}

fn random_op(random: &mut Random, good: u64) -> Op {
    let answer = |random: &mut Random| match (random.chance(good), random.below(10)) {
        (true, 0) => Answer::SlowOk,
        (true, _) => Answer::Ok,
        (false, 0) => Answer::ServerError,
        (false, _) => Answer::Failed,
    };
    let cause = if random.chance(30) { Cause::Timeout } else { Cause::Fast };
    match random.below(100) {
        0..35 => Op::Call,
        35..60 => Op::First(answer(random)),
        60..80 => Op::Ask(cause, random.next()),
        80..95 => Op::Retry(random.next() as usize, answer(random)),
        _ => Op::Unsent(random.next() as usize),
    }
}

/// The same for proptest, which shrinks it: towards calls and failures in one instant.
pub(crate) fn any_history(length: usize) -> impl Strategy<Value = Vec<Event>> {
    let event = (0..5_u32, 0..4_u32, any::<u64>(), 0..8, 0..400_000_000_000_i64);
    let event = event.prop_map(|(op, answer, random, pace, gap)| Event {
        step: match pace {
            0..3 => 0,
            3..6 => gap / 200,
            6 => gap,
            _ => -gap / 80,
        },
        op: any_op(op, answer, random),
    });
    proptest::collection::vec(event, 0..length)
}

fn any_op(op: u32, answer: u32, random: u64) -> Op {
    let cause = if answer < 2 { Cause::Fast } else { Cause::Timeout };
    let answer = match answer {
        0 => Answer::Failed,
        1 => Answer::ServerError,
        2 => Answer::SlowOk,
        _ => Answer::Ok,
    };
    match op {
        0 => Op::Call,
        1 => Op::First(answer),
        2 => Op::Ask(cause, random),
        3 => Op::Retry(random as usize, answer),
        _ => Op::Unsent(random as usize),
    }
}

/// What one event did to the budget.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) now: Time,
    pub(crate) op: Op,
    /// For [`Op::Ask`]: the refusal, if any.
    pub(crate) denied: Option<Denied>,
    /// The price that a grant should have, or that the picked retry has paid.
    pub(crate) cost: i64,
    pub(crate) before: BudgetSnapshot,
    pub(crate) after: BudgetSnapshot,
}

/// A budget, its clock, and the retries that are out.
pub(crate) struct Player {
    budget: Budget,
    gate: bool,
    now: u64,
    out: Vec<(RetryPermit, i64)>,
}

impl Player {
    pub(crate) fn new(config: BudgetConfig) -> Self {
        Self { budget: Budget::new(config), gate: config.gate, now: START.as_nanos(), out: Vec::new() }
    }

    /// The budget as it is, to be led on by hand.
    pub(crate) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    pub(crate) fn pending_cost(&self) -> i64 {
        self.out.iter().map(|(_, cost)| cost).sum()
    }

    /// Plays one event; `None` if it picks a retry and none is out.
    pub(crate) fn play(&mut self, event: Event) -> Option<Step> {
        self.now = self.now.saturating_add_signed(event.step);
        let now = Time::from_nanos(self.now);
        let before = self.budget.snapshot(now);
        let mut denied = None;
        let mut cost = 0;
        match event.op {
            Op::Call => self.budget.call_started(now),
            Op::First(answer) => self.budget.first_done(now, answer),
            Op::Ask(cause, random) => {
                cost = match cause {
                    _ if !self.gate => 0,
                    Cause::Fast => 8,
                    Cause::Timeout => 20,
                };
                match self.budget.ask(now, cause, random) {
                    Ok(permit) => self.out.push((permit, cost)),
                    Err(why) => denied = Some(why),
                }
            }
            Op::Retry(pick, answer) => {
                let permit;
                (permit, cost) = self.pick(pick)?;
                self.budget.retry_done(now, permit, answer);
            }
            Op::Unsent(pick) => {
                let permit;
                (permit, cost) = self.pick(pick)?;
                self.budget.retry_unsent(now, permit);
            }
            Op::Reconfigure(config) => {
                self.gate = config.gate;
                self.budget.reconfigure(now, config);
            }
        }
        Some(Step { now, op: event.op, denied, cost, before, after: self.budget.snapshot(now) })
    }

    /// Takes one of the retries that are out. The model picks the same way.
    fn pick(&mut self, pick: usize) -> Option<(RetryPermit, i64)> {
        (!self.out.is_empty()).then(|| self.out.swap_remove(pick % self.out.len()))
    }
}
