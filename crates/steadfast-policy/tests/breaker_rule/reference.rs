//! The breaker, slow and obvious: it keeps every verdict and every transition in lists, and computes each answer from
//! those lists anew. No ring, no sums, no generations.

use std::ops::AddAssign;
use std::time::Duration;

use steadfast_policy::breaker::{BreakerSnapshot, Opened, Rejection, State, Transition, Why};
use steadfast_policy::{Time, Verdict};

use crate::history::Settings;

/// One counted verdict.
#[derive(Clone, Copy)]
struct Ended {
    bucket: u64,
    verdict: Verdict,
}

/// A permit of the reference: which attempt it is, and after how many transitions it was given.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    attempt: u64,
    era: usize,
}

/// How often each part of the rule decided, so that a test can tell that its histories reach it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) streak: u64,
    pub(crate) rate: u64,
    pub(crate) noise_held: u64,
    pub(crate) blip_held: u64,
    pub(crate) timeouts_opened: u64,
    pub(crate) probe_succeeded: u64,
    pub(crate) probe_failed: u64,
    pub(crate) probe_overdue: u64,
    pub(crate) late: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.streak += other.streak;
        self.rate += other.rate;
        self.noise_held += other.noise_held;
        self.blip_held += other.blip_held;
        self.timeouts_opened += other.timeouts_opened;
        self.probe_succeeded += other.probe_succeeded;
        self.probe_failed += other.probe_failed;
        self.probe_overdue += other.probe_overdue;
        self.late += other.late;
    }
}

pub(crate) struct Reference {
    settings: Settings,
    latest: Time,
    /// Every counted verdict since the last transition.
    ended: Vec<Ended>,
    /// Every transition, even those that only clear the counts.
    log: Vec<Transition>,
    /// Since which entry of the log its openings count for their length: an operator's action forgets those before.
    log_counts_from: usize,
    forced: bool,
    open_until: Time,
    /// The probe in flight, and when it was let through.
    probe: Option<(u64, Time)>,
    attempts: u64,
    takeovers: u64,
    opened_with: Option<Opened>,
    pub(crate) tally: Tally,
}

/// What the window and the streak hold after the last verdict.
#[derive(Default)]
struct Counts {
    calls: u64,
    failures: u64,
    streak: u64,
    timeouts: u64,
    longest_recovered: u64,
    pressure: u64,
}

impl Reference {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            latest: Time::ZERO,
            ended: Vec::new(),
            log: Vec::new(),
            log_counts_from: 0,
            forced: false,
            open_until: Time::ZERO,
            probe: None,
            attempts: 0,
            takeovers: 0,
            opened_with: None,
            tally: Tally::default(),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.log.last().map_or(State::Closed, |last| last.to)
    }

    /// The last change that an event tells of.
    pub(crate) fn transitions(&self) -> usize {
        self.log.len()
    }

    pub(crate) fn transition(&self, index: usize) -> Transition {
        self.log[index]
    }

    pub(crate) fn check(&self, now: Time) -> Result<(), Rejection> {
        let now = now.max(self.latest);
        let wait = match (self.state(), self.forced, self.probe) {
            (State::Closed, ..) | (State::HalfOpen, _, None) => None,
            (State::Open, true, _) => return Err(Rejection { retry_after: None }),
            (State::Open, false, _) if now >= self.open_until => None,
            (State::Open, false, _) => Some(now.until(self.open_until)),
            (State::HalfOpen, _, Some((_, since))) => {
                let lease = Duration::from_millis(self.settings.lease_millis);
                let left = lease.saturating_sub(now.since(since));
                let bounded = left.min(self.opening_length()).max(Duration::from_millis(100));
                (!left.is_zero()).then_some(bounded)
            }
        };
        wait.map_or(Ok(()), |wait| Err(Rejection { retry_after: Some(wait) }))
    }

    pub(crate) fn would_refuse_at(&self, now: Time, at: Time) -> bool {
        self.state() == State::Open
            && (self.forced || [now, at, self.latest].iter().all(|&time| time < self.open_until))
    }

    pub(crate) fn try_acquire(&mut self, now: Time) -> Result<Ticket, Rejection> {
        self.latest = self.latest.max(now);
        self.check(now)?;
        self.attempts += 1;
        if self.state() == State::Open {
            self.enter(State::HalfOpen, false, Why::CoolDownOver);
        }
        if self.state() == State::HalfOpen {
            self.takeovers += u64::from(self.probe.is_some());
            self.probe = Some((self.attempts, self.latest));
        }
        Ok(Ticket { attempt: self.attempts, era: self.log.len() })
    }

    pub(crate) fn record(&mut self, now: Time, ticket: Ticket, verdict: Verdict) {
        self.latest = self.latest.max(now);
        if ticket.era != self.log.len() {
            self.tally.late += 1;
        } else if self.state() == State::HalfOpen {
            match self.probe {
                Some((attempt, since)) if attempt == ticket.attempt => self.probe_ended(since, verdict),
                _ => self.tally.late += 1,
            }
        } else if self.state() == State::Closed && !self.forced && verdict != Verdict::Paced {
            self.count(verdict);
        }
    }

    pub(crate) fn cancel(&mut self, now: Time, ticket: Ticket) {
        self.latest = self.latest.max(now);
        if self.probe.is_some_and(|(attempt, _)| attempt == ticket.attempt) {
            self.probe = None;
        }
    }

    pub(crate) fn record_successes(&mut self, now: Time, n: u32) {
        self.latest = self.latest.max(now);
        for _ in 0..n {
            if self.state() == State::Closed && !self.forced {
                self.count(Verdict::Success);
            }
        }
    }

    /// `Some(state)` forces it, `None` resets.
    pub(crate) fn operate(&mut self, now: Time, force: Option<State>) {
        self.latest = self.latest.max(now);
        if force.is_some() && self.forced && force == Some(self.state()) {
            return;
        }
        if force == Some(State::Open) {
            self.remember(Why::Forced);
        }
        let why = if force.is_some() { Why::Forced } else { Why::Reset };
        self.enter(force.unwrap_or(State::Closed), force.is_some(), why);
        self.log_counts_from = self.log.len();
    }

    pub(crate) fn snapshot(&self, now: Time) -> BreakerSnapshot {
        let counts = self.counts(now);
        let check = self.check(now);
        BreakerSnapshot {
            state: self.state(),
            forced: self.forced,
            streak: counts.streak as u32,
            calls: counts.calls,
            failures: counts.failures,
            opened_with: self.opened_with,
            retry_after: check.err().and_then(|rejection| rejection.retry_after),
            ready_to_probe: self.state() != State::Closed && check.is_ok(),
            generation: self.log.len() as u64 + self.takeovers,
            late_verdicts: self.tally.late,
        }
    }

    fn bucket(&self, now: Time) -> u64 {
        now.max(self.latest).as_nanos() / self.settings.bucket_nanos()
    }

    fn counts(&self, now: Time) -> Counts {
        let newest = self.bucket(now);
        let mut counts = Counts::default();
        for ended in &self.ended {
            let in_window = ended.bucket + 30 > newest;
            counts.calls += u64::from(in_window);
            if ended.verdict == Verdict::Success {
                if in_window {
                    counts.longest_recovered = counts.longest_recovered.max(counts.streak);
                }
                counts.streak = 0;
                counts.timeouts = 0;
                counts.pressure = counts.pressure.saturating_sub(3);
            } else {
                counts.failures += u64::from(in_window);
                counts.streak += 1;
                counts.timeouts += u64::from(ended.verdict == Verdict::Timeout);
                counts.pressure += 1;
            }
        }
        counts
    }

    fn count(&mut self, verdict: Verdict) {
        self.ended.push(Ended { bucket: self.bucket(self.latest), verdict });
        let counts = self.counts(self.latest);
        let failures = u64::from(self.settings.failures);
        let successes = counts.calls - counts.failures;

        let long_enough = counts.streak >= failures;
        let noise = counts.streak < (3 * counts.longest_recovered).min(3 * failures);
        let hanging = counts.timeouts >= 2 * failures;
        let more_than_a_blip = counts.pressure * 4 * self.settings.window_millis >= successes * 1000;
        let streak = verdict != Verdict::Success && long_enough && !noise && (hanging || more_than_a_blip);
        let rate = counts.calls >= u64::from(self.settings.minimum_calls)
            && counts.failures * 1_000_000 >= u64::from(self.settings.rate_millionths) * counts.calls;

        self.tally.noise_held += u64::from(long_enough && noise);
        self.tally.blip_held += u64::from(long_enough && !noise && !hanging && !more_than_a_blip);
        self.tally.timeouts_opened += u64::from(streak && !more_than_a_blip);
        if streak {
            self.tally.streak += 1;
            self.open(Why::Streak);
        } else if rate {
            self.tally.rate += 1;
            self.open(Why::Rate);
        }
    }

    fn probe_ended(&mut self, since: Time, verdict: Verdict) {
        match verdict {
            Verdict::Failure | Verdict::Timeout => {
                self.tally.probe_failed += 1;
                self.open(Why::ProbeFailed);
            }
            _ if self.latest.since(since) > Duration::from_millis(self.settings.lease_millis) => {
                self.tally.late += 1;
                self.tally.probe_overdue += 1;
                self.probe = None;
            }
            _ => {
                self.tally.probe_succeeded += 1;
                self.enter(State::Closed, false, Why::ProbeSucceeded);
            }
        }
    }

    fn open(&mut self, why: Why) {
        self.remember(why);
        self.enter(State::Open, false, why);
        self.open_until = self.latest + self.opening_length();
    }

    fn remember(&mut self, why: Why) {
        if self.opened_with.is_none() {
            let counts = self.counts(self.latest);
            let (calls, failures) = (counts.calls, counts.failures);
            self.opened_with = Some(Opened { streak: counts.streak as u32, calls, failures, why });
        }
    }

    fn enter(&mut self, to: State, forced: bool, why: Why) {
        self.log.push(Transition { from: self.state(), to, why, at: self.latest });
        self.forced = forced;
        self.ended.clear();
        self.probe = None;
        if to == State::Closed {
            self.opened_with = None;
        }
    }

    /// How long the last opening lasts, from the list of all that happened before it.
    fn opening_length(&self) -> Duration {
        let full = Duration::from_millis(self.settings.cool_down_millis);
        let first = self.settings.start_millis.map_or(full, |start| full.min(Duration::from_millis(start)));
        let mut length = first;
        let mut closed_at = None;
        for transition in &self.log[self.log_counts_from..] {
            match transition.why {
                Why::ProbeSucceeded => closed_at = Some(transition.at),
                Why::ProbeFailed => length = full.min(length * 2),
                Why::Streak | Why::Rate if closed_at.is_some_and(|at| transition.at.since(at) >= full) => {
                    length = first;
                }
                _ => {}
            }
        }
        length
    }
}
