//! The line, said as plainly as possible: lists of everything that ever happened, searched from end to end.

use std::time::Duration;

use steadfast_policy::Time;
use steadfast_policy::line::{HANDOVER, LineConfig, LineSnapshot, RateConfig, RateStyle, Refusal};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The number of the holding.
    Admitted(usize),
    /// The number of the waiter, and when it must ask again.
    Queued(usize, Time),
    Refused(Refusal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    InLine,
    Granted(usize),
    Out,
    Gone,
}

#[derive(Clone, Debug)]
struct Waiter {
    key: String,
    deadline: Time,
    place_limit: Time,
    /// Once there is a place for it.
    slot_limit: Option<Time>,
    stage: Stage,
}

#[derive(Clone, Debug)]
struct Start {
    key: String,
    at: Time,
    undone: bool,
    /// It had left the window of limits that have been replaced since.
    forgotten: bool,
}

#[derive(Clone, Debug)]
struct Holding {
    start: usize,
    ends: Time,
    over: bool,
    uncollected_by: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    config: LineConfig,
    pub(crate) now: Time,
    waiters: Vec<Waiter>,
    starts: Vec<Start>,
    holdings: Vec<Holding>,
}

/// What of the limits makes a difference: one start per window is the same in both styles.
fn meaning(config: LineConfig) -> LineConfig {
    let rate = config.rate.map(|rate| match rate.style {
        RateStyle::Window => rate,
        RateStyle::Smooth => {
            let apart = rate.period.as_nanos().div_ceil(u128::from(rate.limit));
            RateConfig { limit: 1, period: Duration::from_nanos(apart as u64), style: RateStyle::Window, ..rate }
        }
    });
    LineConfig { rate, ..config }
}

impl Model {
    pub(crate) fn new(config: LineConfig) -> Self {
        Self { config, now: Time::ZERO, waiters: Vec::new(), starts: Vec::new(), holdings: Vec::new() }
    }

    // ===== what a key may do =====

    fn counted_starts(&self, key: &str) -> Vec<Time> {
        let counts = |start: &&Start| start.key == key && !start.undone && !start.forgotten;
        self.starts.iter().filter(counts).map(|start| start.at).collect()
    }

    /// Whether one more may start at `at`, beside `starts`.
    fn may_start(&self, starts: &[Time], at: Time) -> bool {
        let Some(rate) = self.config.rate else { return true };
        match rate.style {
            RateStyle::Window => {
                let in_window = starts.iter().filter(|&&start| start <= at && start + rate.period > at);
                in_window.count() < rate.limit as usize
            }
            RateStyle::Smooth => {
                starts.iter().filter(|&&start| start <= at).all(|start| at.since(*start) * rate.limit >= rate.period)
            }
        }
    }

    /// How long after a start it stops to matter.
    fn memory(&self) -> Duration {
        self.config.rate.map_or(Duration::ZERO, |rate| match rate.style {
            RateStyle::Window => rate.period,
            RateStyle::Smooth => {
                let limit = u128::from(rate.limit);
                Duration::from_nanos(rate.period.as_nanos().div_ceil(limit) as u64)
            }
        })
    }

    /// The instants from `from` on at which the number of places can have grown.
    fn instants(&self, starts: &[Time], from: Time) -> Vec<Time> {
        let mut instants: Vec<_> = starts.iter().map(|&start| start + self.memory()).filter(|&at| at > from).collect();
        instants.push(from);
        instants.sort();
        instants
    }

    /// When the last of `count` callers may start, if from `from` on each starts as early as it may.
    fn start_of_last(&self, key: &str, from: Time, count: usize) -> Time {
        let mut starts = self.counted_starts(key);
        let mut at = from;
        for _ in 0..count {
            let instants = self.instants(&starts, at);
            at = instants.into_iter().find(|&at| self.may_start(&starts, at)).expect("the end of the last window");
            starts.push(at);
        }
        at
    }

    /// Whether a caller with `rank` others before it has a place at `at`, if all of them start then as well.
    fn has_place(&self, key: &str, rank: usize, at: Time) -> bool {
        let mut starts = self.counted_starts(key);
        for _ in 0..rank {
            if !self.may_start(&starts, at) {
                return false;
            }
            starts.push(at);
        }
        self.may_start(&starts, at)
    }

    // ===== who is where =====

    fn in_line(&self) -> Vec<usize> {
        (0..self.waiters.len()).filter(|&i| self.waiters[i].stage == Stage::InLine).collect()
    }

    fn queue(&self, key: &str) -> Vec<usize> {
        self.in_line().into_iter().filter(|&i| self.waiters[i].key == key).collect()
    }

    fn rank(&self, waiter: usize) -> usize {
        self.queue(&self.waiters[waiter].key).iter().position(|&i| i == waiter).expect("it is in line")
    }

    fn held(&self) -> impl Iterator<Item = &Holding> {
        self.holdings.iter().filter(|holding| !holding.over)
    }

    fn has_free_slot(&self) -> bool {
        self.held().count() < self.config.slots as usize
    }

    /// Who waits for nothing but a slot.
    fn needs_slot(&self) -> Vec<usize> {
        self.in_line().into_iter().filter(|&i| self.waiters[i].slot_limit.is_some()).collect()
    }

    /// The keys that are kept.
    fn keys(&self) -> Vec<String> {
        let counts = |start: &&Start| !start.forgotten && start.at + self.memory() > self.now;
        let started = self.starts.iter().filter(counts).map(|start| &start.key);
        let waiting = self.waiters.iter().filter(|waiter| waiter.stage == Stage::InLine).map(|waiter| &waiter.key);
        let mut keys: Vec<String> = started.chain(waiting).filter(|key| !key.is_empty()).cloned().collect();
        keys.sort();
        keys.dedup();
        keys
    }

    // ===== what happens in every call =====

    fn arrive(&mut self, now: Time) {
        let before = self.now;
        self.now = self.now.max(now);
        for i in self.in_line() {
            let waiter = &self.waiters[i];
            if waiter.slot_limit.is_none() {
                let key = &waiter.key;
                let instants = self.instants(&self.counted_starts(key), before);
                let passed = instants.into_iter().filter(|&at| at <= self.now);
                let rank = self.rank(i);
                let since = { passed }.find(|&at| self.has_place(key, rank, at));
                self.waiters[i].slot_limit = since.map(|since| since + self.config.slot_wait);
            }
        }
    }

    fn settle(&mut self) {
        for i in 0..self.holdings.len() {
            if !self.holdings[i].over && self.holdings[i].ends <= self.now {
                self.holdings[i].over = true;
                if let Some(waiter) = self.holdings[i].uncollected_by {
                    self.waiters[waiter].stage = Stage::Out;
                    self.starts[self.holdings[i].start].undone = true;
                }
            }
        }
        for i in self.in_line() {
            if self.waiters[i].deadline <= self.now {
                self.waiters[i].stage = Stage::Out;
            }
        }
        for i in self.in_line() {
            let waiter = &self.waiters[i];
            if waiter.slot_limit.is_none() && self.has_place(&waiter.key, self.rank(i), self.now) {
                self.waiters[i].slot_limit = Some(self.now + self.config.slot_wait);
            }
        }
        while self.has_free_slot() {
            let Some(&first) = self.needs_slot().first() else { break };
            let ends = self.grant_lapses(first);
            let holding = self.hold(self.waiters[first].key.clone(), ends);
            self.holdings[holding].uncollected_by = Some(first);
            self.waiters[first].stage = Stage::Granted(holding);
        }
    }

    fn grant_lapses(&self, waiter: usize) -> Time {
        let limit = self.waiters[waiter].slot_limit.expect("it needs a slot");
        limit.max(self.now + HANDOVER).min(self.waiters[waiter].deadline)
    }

    fn hold(&mut self, key: String, ends: Time) -> usize {
        assert!(self.may_start(&self.counted_starts(&key), self.now), "never more than the limit");
        self.starts.push(Start { key, at: self.now, undone: false, forgotten: false });
        self.holdings.push(Holding { start: self.starts.len() - 1, ends, over: false, uncollected_by: None });
        self.holdings.len() - 1
    }

    // ===== the calls =====

    pub(crate) fn enter(&mut self, now: Time, key: &str, deadline: Time) -> Answer {
        self.arrive(now);
        self.settle();
        let now = self.now;
        if deadline <= now {
            return Answer::Refused(Refusal::Deadline);
        }
        let key = if self.config.rate.is_some() { key } else { "" };
        if let Some(rate) = self.config.rate
            && !key.is_empty()
            && !self.keys().iter().any(|known| known == key)
            && self.keys().len() >= rate.max_keys
        {
            return Answer::Refused(self.limited(self.room_at()));
        }
        let ahead = self.queue(key).len();
        let has_place = self.has_place(key, ahead, now);
        if has_place && self.has_free_slot() {
            return Answer::Admitted(self.hold(key.to_owned(), deadline));
        }
        let slot_limit = has_place.then_some(now + self.config.slot_wait);
        let wait = self.config.rate.and_then(|rate| rate.wait);
        let place_limit = wait.map_or(Time::MAX, |wait| now + wait);
        let key = key.to_owned();
        self.waiters.push(Waiter { key, deadline, place_limit, slot_limit, stage: Stage::InLine });
        self.answer(self.waiters.len() - 1)
    }

    pub(crate) fn poll(&mut self, now: Time, waiter: usize) -> Answer {
        self.arrive(now);
        if let Some(holding) = self.collect(waiter) {
            self.settle();
            return Answer::Admitted(holding);
        }
        self.settle();
        if let Some(holding) = self.collect(waiter) {
            return Answer::Admitted(holding);
        }
        let answer = self.answer(waiter);
        self.settle();
        answer
    }

    pub(crate) fn leave(&mut self, now: Time, waiter: usize) {
        self.arrive(now);
        if let Stage::Granted(holding) = self.waiters[waiter].stage {
            self.holdings[holding].over = true;
            self.starts[self.holdings[holding].start].undone = true;
        }
        self.waiters[waiter].stage = Stage::Gone;
        self.settle();
    }

    pub(crate) fn release(&mut self, now: Time, holding: usize) -> bool {
        self.arrive(now);
        let was_held = !std::mem::replace(&mut self.holdings[holding].over, true);
        self.settle();
        was_held
    }

    pub(crate) fn lease_until(&mut self, now: Time, holding: usize, ends: Time) -> bool {
        self.arrive(now);
        self.settle();
        let is_held = !self.holdings[holding].over;
        if is_held {
            self.holdings[holding].ends = ends;
        }
        self.settle();
        is_held
    }

    pub(crate) fn undo_start(&mut self, now: Time, holding: usize) {
        self.arrive(now);
        if !std::mem::replace(&mut self.holdings[holding].over, true) {
            self.starts[self.holdings[holding].start].undone = true;
        }
        self.settle();
    }

    pub(crate) fn reconfigure(&mut self, now: Time, config: LineConfig) {
        if meaning(config) == meaning(self.config) {
            return;
        }
        self.arrive(now);
        self.settle();
        let memory = self.memory();
        for start in &mut self.starts {
            start.forgotten |= start.at + memory <= self.now;
        }
        self.config = config;
        for i in self.needs_slot() {
            let waiter = &self.waiters[i];
            if !self.has_place(&waiter.key, self.rank(i), self.now) {
                self.waiters[i].slot_limit = None;
            }
        }
        self.settle();
    }

    fn collect(&mut self, waiter: usize) -> Option<usize> {
        let Stage::Granted(holding) = self.waiters[waiter].stage else { return None };
        let deadline = self.waiters[waiter].deadline;
        if deadline <= self.now {
            return None;
        }
        self.waiters[waiter].stage = Stage::Gone;
        self.holdings[holding].uncollected_by = None;
        self.holdings[holding].ends = deadline;
        Some(holding)
    }

    /// What a waiter is told that was not admitted.
    fn answer(&mut self, i: usize) -> Answer {
        let waiter = &self.waiters[i];
        let refusal = match (waiter.stage, waiter.slot_limit) {
            (Stage::Gone, _) => Some(Refusal::Deadline),
            _ if waiter.deadline <= self.now => Some(Refusal::Deadline),
            (Stage::Out | Stage::Granted(_), _) => Some(Refusal::BulkheadFull),
            (Stage::InLine, Some(limit)) => (limit <= self.now).then_some(Refusal::BulkheadFull),
            (Stage::InLine, None) => {
                let estimate = self.estimate(i);
                let cannot_be_held = estimate > self.waiters[i].place_limit || estimate >= waiter.deadline;
                cannot_be_held.then(|| self.limited(estimate))
            }
        };
        match refusal {
            Some(refusal) => {
                self.waiters[i].stage = Stage::Gone;
                Answer::Refused(refusal)
            }
            None => Answer::Queued(i, self.asks_at(i)),
        }
    }

    fn estimate(&self, waiter: usize) -> Time {
        self.start_of_last(&self.waiters[waiter].key, self.now, self.rank(waiter) + 1)
    }

    fn asks_at(&self, i: usize) -> Time {
        let own = match self.waiters[i].slot_limit {
            None => self.place_asks_at(i),
            Some(limit) => {
                let before = self.needs_slot().into_iter().rfind(|&other| other < i);
                limit.min(before.map_or(Time::MAX, |before| self.grant_lapses(before)))
            }
        };
        let lease = self.held().map(|holding| holding.ends).min().unwrap_or(Time::MAX);
        own.min(self.waiters[i].deadline).min(lease)
    }

    /// At its estimate; but if that moves away as time passes, when it will first be beyond what can be held.
    fn place_asks_at(&self, i: usize) -> Time {
        let nano = Duration::from_nanos(1);
        let estimate = self.estimate(i);
        let a_moment_later = self.start_of_last(&self.waiters[i].key, self.now + nano, self.rank(i) + 1);
        if a_moment_later == estimate {
            return estimate;
        }
        let to_limit = estimate.until(self.waiters[i].place_limit) + nano;
        self.now + to_limit.min(estimate.until(self.waiters[i].deadline))
    }

    fn limited(&self, at: Time) -> Refusal {
        Refusal::RateLimited { retry_after: self.now.until(at) }
    }

    /// When the next key goes that has no waiters; the keys of a test are few enough for the machine to look at all.
    fn room_at(&self) -> Time {
        let quiet = self.keys().into_iter().filter(|key| self.queue(key).is_empty());
        let goes = quiet.filter_map(|key| {
            let last = self.starts.iter().rfind(|start| start.key == key);
            last.map(|start| start.at + self.memory())
        });
        goes.min().unwrap_or(self.now + self.memory())
    }

    // ===== what tests ask =====

    pub(crate) fn snapshot(&self, now: Time) -> LineSnapshot {
        let now = now.max(self.now);
        LineSnapshot {
            in_use: self.held().filter(|holding| holding.ends > now).count() as u32,
            slots: self.config.slots,
            queued: self.in_line().into_iter().filter(|&i| self.waiters[i].deadline > now).count() as u32,
            keys: self.keys().len(),
        }
    }

    /// The waiters that have a slot and have not come for it.
    pub(crate) fn granted(&self) -> Vec<usize> {
        let granted = |i: &usize| matches!(self.waiters[*i].stage, Stage::Granted(_));
        (0..self.waiters.len()).filter(granted).collect()
    }

    /// Between calls nobody waits for what is there.
    pub(crate) fn wastes_nothing(&self) -> bool {
        !self.has_free_slot() || self.needs_slot().is_empty()
    }

    /// When, if nobody calls before, the next waiter could be granted a slot.
    pub(crate) fn next_grant(&self) -> Option<Time> {
        let ends = self.held().map(|holding| holding.ends);
        let places = self.starts.iter().map(|start| start.at + self.memory());
        let mut instants: Vec<_> = ends.chain(places).filter(|&at| at > self.now).collect();
        instants.sort();
        let before = self.granted();
        instants.into_iter().find(|&at| {
            let mut then = self.clone();
            then.arrive(at);
            then.settle();
            then.granted().iter().any(|waiter| !before.contains(waiter))
        })
    }
}
