//! New limits time and again (9.5): against the model, and the same ones against a line that never hears of them.

use steadfast_policy::Time;
use steadfast_policy::line::{Entry, Line, LineConfig, Slot, Ticket};

use crate::history::{Call, Move, Pair, Step};
use crate::random::Random;
use crate::{any_config, any_step, any_time, scaled};

/// Nobody is lost, no slot is, and nothing is admitted that the limits of the moment forbid: the model sees to it.
#[test]
fn c9_5_it_does_what_the_model_does_under_changing_limits() {
    for seed in 0..scaled(1000) {
        let mut random = Random::new(5_000_000 + seed);
        let mut pair = Pair::new(any_config(&mut random));
        for _ in 0..80 {
            if random.below(5) == 0 {
                let call = Call::Reconfigure(any_config(&mut random));
                pair.step(Step { clock: Move::Stay, call });
            }
            pair.step(any_step(&mut random));
        }
        pair.all_go();
    }
}

/// A line and what it has given out.
struct Side {
    line: Line,
    waiting: Vec<Ticket>,
    slots: Vec<Slot>,
}

impl Side {
    fn new(config: LineConfig) -> Self {
        Self { line: Line::new(config), waiting: Vec::new(), slots: Vec::new() }
    }

    /// One call, and all that can be seen of what it did.
    fn call(&mut self, now: Time, kind: u64, pick: usize, deadline: Time) -> String {
        let entry = match kind {
            0..45 => Some(self.line.enter(now, ["", "a", "b"][pick % 3], deadline)),
            45..70 if !self.waiting.is_empty() => {
                let ticket = self.waiting.swap_remove(pick % self.waiting.len());
                Some(self.line.poll(now, ticket))
            }
            70..75 if !self.waiting.is_empty() => {
                let ticket = self.waiting.swap_remove(pick % self.waiting.len());
                self.line.leave(now, ticket);
                None
            }
            75..95 if !self.slots.is_empty() => {
                let slot = self.slots.swap_remove(pick % self.slots.len());
                self.line.release(now, slot);
                None
            }
            95.. if !self.slots.is_empty() => {
                let slot = self.slots.swap_remove(pick % self.slots.len());
                self.line.undo_start(now, slot);
                None
            }
            _ => None,
        };
        let woken: Vec<_> = std::iter::from_fn(|| self.line.next_wake()).collect();
        let seen = format!("{entry:?} {woken:?} {:?}", self.line.snapshot(now));
        match entry {
            Some(Entry::Admitted(slot)) => self.slots.push(slot),
            Some(Entry::Queued(ticket, _)) => self.waiting.push(ticket),
            Some(Entry::Refused(_)) | None => {}
        }
        seen
    }
}

#[test]
fn c9_5_the_same_limits_change_nothing() {
    let mut waited = 0;
    for seed in 0..scaled(300) {
        let mut random = Random::new(6_000_000 + seed);
        let config = any_config(&mut random);
        let (mut told, mut untold) = (Side::new(config), Side::new(config));
        let mut now = Time::ZERO;
        for step in 0..200 {
            now = now + any_time(&mut random, 150);
            let (kind, pick) = (random.below(100), random.below(1000) as usize);
            let deadline = now + any_time(&mut random, 3000);
            // At another time than that of the next call, so that time that it let pass would be seen.
            told.line.reconfigure(now + any_time(&mut random, 150), config);
            assert_eq!(told.line.next_wake(), None, "step {step} of {seed}");
            let seen = told.call(now, kind, pick, deadline);
            assert_eq!(seen, untold.call(now, kind, pick, deadline), "step {step} of {seed}");
            waited += told.waiting.len();
        }
    }
    assert!(waited > 10_000, "{waited}");
}
