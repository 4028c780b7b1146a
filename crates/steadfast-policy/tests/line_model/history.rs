//! The machine and the model, led through the same history and compared at every step.

use std::time::Duration;

use steadfast_policy::Time;
use steadfast_policy::line::{Entry, Line, LineConfig, Slot, Ticket};

use crate::model::{Answer, Model};

/// How the clock moves before a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Stay,
    Forward(Duration),
    Back(Duration),
    /// To the time at which some waiter said it would ask again, and so much further.
    ToWaiter(usize, Duration),
}

/// A call. Numbers pick among what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Enter {
        key: usize,
        time_left: Duration,
    },
    Poll(usize),
    Leave(usize),
    Release(usize),
    UndoStart(usize),
    /// `None`: a lease without an end.
    Lease(usize, Option<Duration>),
    Reconfigure(LineConfig),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) clock: Move,
    pub(crate) call: Call,
}

pub(crate) struct Waiting {
    ticket: Ticket,
    pub(crate) waiter: usize,
    pub(crate) asks_at: Time,
}

pub(crate) struct Pair {
    config: LineConfig,
    pub(crate) now: Time,
    line: Line,
    pub(crate) model: Model,
    pub(crate) waiting: Vec<Waiting>,
    slots: Vec<(Slot, usize)>,
    /// Tickets that have ended, to be misused.
    ended: Vec<(Ticket, usize)>,
}

const KEYS: [&str; 5] = ["", "a", "b", "c", "d"];

impl Pair {
    pub(crate) fn new(config: LineConfig) -> Self {
        Self {
            config,
            now: Time::ZERO,
            line: Line::new(config),
            model: Model::new(config),
            waiting: Vec::new(),
            slots: Vec::new(),
            ended: Vec::new(),
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        self.now = match step.clock {
            Move::Stay => self.now,
            Move::Forward(by) => self.now + by,
            Move::Back(by) => Time::ZERO + Time::ZERO.until(self.now).saturating_sub(by),
            Move::ToWaiter(pick, further) => match self.waiting.len() {
                0 => self.now,
                len => self.waiting[pick % len].asks_at.max(self.now) + further,
            },
        };
        let granted_before = self.model.granted();
        self.call(step.call);
        self.compare(&granted_before);
    }

    fn call(&mut self, call: Call) {
        let now = self.now;
        match call {
            Call::Enter { key, time_left } => {
                let key = KEYS[key % KEYS.len()];
                let got = self.line.enter(now, key, now + time_left);
                let expected = self.model.enter(now, key, now + time_left);
                self.answered(got, expected, None);
            }
            Call::Poll(pick) => match self.waiting.len() + self.ended.len().min(1) {
                0 => {}
                len => self.poll(pick % len),
            },
            Call::Leave(pick) if !self.waiting.is_empty() => {
                let gone = self.waiting.swap_remove(pick % self.waiting.len());
                self.line.leave(now, gone.ticket);
                self.model.leave(now, gone.waiter);
                self.ended.push((gone.ticket, gone.waiter));
            }
            Call::Release(pick) if !self.slots.is_empty() => {
                let (slot, holding) = self.slots.swap_remove(pick % self.slots.len());
                assert_eq!(self.line.release(now, slot), self.model.release(now, holding));
            }
            Call::UndoStart(pick) if !self.slots.is_empty() => {
                let (slot, holding) = self.slots.swap_remove(pick % self.slots.len());
                self.line.undo_start(now, slot);
                self.model.undo_start(now, holding);
            }
            Call::Lease(pick, left) if !self.slots.is_empty() => {
                let (slot, holding) = &self.slots[pick % self.slots.len()];
                let ends = left.map_or(Time::MAX, |left| now + left);
                assert_eq!(self.line.lease_until(now, slot, ends), self.model.lease_until(now, *holding, ends));
            }
            Call::Reconfigure(config) => {
                self.config = config;
                self.line.reconfigure(now, config);
                self.model.reconfigure(now, config);
            }
            Call::Leave(_) | Call::Release(_) | Call::UndoStart(_) | Call::Lease(..) => {}
        }
    }

    /// Polls the waiter of this position, or the last ticket that ended.
    pub(crate) fn poll(&mut self, position: usize) {
        let waiting = self.waiting.get(position).map(|waiting| (waiting.ticket, waiting.waiter));
        let Some((ticket, waiter)) = waiting.or(self.ended.last().copied()) else { return };
        let got = self.line.poll(self.now, ticket);
        let expected = self.model.poll(self.now, waiter);
        self.answered(got, expected, Some(position));
    }

    fn answered(&mut self, got: Entry, expected: Answer, position: Option<usize>) {
        match (got, expected) {
            (Entry::Queued(ticket, at), Answer::Queued(waiter, expected_at)) => {
                assert_eq!(at, expected_at, "when to ask again");
                assert!(at > self.model.now, "it would ask for ever without time passing");
                match position.and_then(|position| self.waiting.get_mut(position)) {
                    Some(waiting) => waiting.asks_at = at,
                    None => self.waiting.push(Waiting { ticket, waiter, asks_at: at }),
                }
                return;
            }
            (Entry::Admitted(slot), Answer::Admitted(holding)) => self.slots.push((slot, holding)),
            (Entry::Refused(got), Answer::Refused(expected)) => assert_eq!(got, expected),
            (got, expected) => unreachable!("{got:?}, where the model says {expected:?}"),
        }
        if let Some(position) = position.filter(|&position| position < self.waiting.len()) {
            let over = self.waiting.swap_remove(position);
            self.ended.push((over.ticket, over.waiter));
        }
    }

    fn compare(&mut self, granted_before: &[usize]) {
        assert_eq!(self.line.snapshot(self.now), self.model.snapshot(self.now));
        assert!(self.model.wastes_nothing());
        let woken = self.wake();
        for waiter in self.model.granted() {
            assert!(granted_before.contains(&waiter) || woken.contains(&waiter), "a grant must wake");
        }
    }

    /// Marks those that the line wants to hear from, and names them.
    fn wake(&mut self) -> Vec<usize> {
        let mut woken = Vec::new();
        while let Some(ticket) = self.line.next_wake() {
            let waiting = self.waiting.iter_mut().find(|waiting| waiting.ticket == ticket);
            let waiting = waiting.expect("only those who wait are woken");
            waiting.asks_at = self.model.now;
            woken.push(waiting.waiter);
        }
        woken
    }

    /// Lets everybody go, and proves that no slot went with them.
    pub(crate) fn all_go(mut self) {
        while !self.waiting.is_empty() {
            self.step(Step { clock: Move::Stay, call: Call::Leave(0) });
        }
        while !self.slots.is_empty() {
            self.step(Step { clock: Move::Stay, call: Call::Release(0) });
        }
        let mut rested = self.now.max(self.model.now);
        let mut held = Vec::new();
        for i in 0..self.config.slots {
            rested = rested + Duration::from_secs(10);
            match self.line.enter(rested, "", Time::MAX) {
                Entry::Admitted(slot) => held.push(slot),
                other => unreachable!("slot {i} of {} was lost: {other:?}", self.config.slots),
            }
        }
        assert_eq!(self.line.snapshot(rested).in_use, self.config.slots);
    }
}
