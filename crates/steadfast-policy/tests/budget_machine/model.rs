//! The rule over whole histories: nothing is ever forgotten, every figure is counted anew.

use steadfast_policy::budget::{BudgetConfig, Denied};
use steadfast_policy::{Answer, Cause};

const SECOND: u64 = 1_000_000_000;

struct Grant {
    at: u64,
    cost: i64,
    probe: bool,
    sent: bool,
    /// Position of the grant in the list of bookings.
    booking: usize,
    random: u64,
}

/// One change of the credit, with what bounded it at the time.
enum Booking {
    Paid {
        cost: i64,
        probe: bool,
    },
    Unsent {
        cost: i64,
        most: i64,
    },
    Answered {
        change: i64,
        most: i64,
    },
    /// The gate was turned on.
    Bounded {
        most: i64,
    },
}

pub(crate) struct Model {
    ratio_micros: u128,
    floor_micros: u128,
    gate: bool,
    now: u64,
    calls: Vec<u64>,
    grants: Vec<Grant>,
    bookings: Vec<Booking>,
}

impl Model {
    /// For keys that are whole millionths.
    pub(crate) fn new(config: BudgetConfig) -> Self {
        Self {
            ratio_micros: (config.ratio * 1e6).round() as u128,
            floor_micros: (config.min_per_second * 1e7).round() as u128,
            gate: config.gate,
            now: 0,
            calls: Vec::new(),
            grants: Vec::new(),
            bookings: Vec::new(),
        }
    }

    pub(crate) fn reconfigure(&mut self, now: u64, config: BudgetConfig) {
        let Self { ratio_micros, floor_micros, gate, .. } = Self::new(config);
        if (ratio_micros, floor_micros, gate) == (self.ratio_micros, self.floor_micros, self.gate) {
            return;
        }
        self.now = self.now.max(now);
        if gate && !self.gate {
            let most = self.capacity().max(40);
            self.bookings.push(Booking::Bounded { most });
        }
        (self.ratio_micros, self.floor_micros, self.gate) = (ratio_micros, floor_micros, gate);
    }

    pub(crate) fn call_started(&mut self, now: u64) {
        self.now = self.now.max(now);
        self.calls.push(self.now);
    }

    /// The number of the grant.
    pub(crate) fn ask(&mut self, now: u64, cause: Cause, random: u64) -> Result<usize, Denied> {
        self.now = self.now.max(now);
        let allowed = self.floor_micros + self.ratio_micros * u128::from(self.requests_at(0));
        if u128::from(self.retries_at(0)) * 1_000_000 >= allowed {
            return Err(Denied::Ceiling);
        }
        let price = if cause == Cause::Timeout { 20 } else { 8 };
        let probe = self.gate && self.credit() < price;
        if probe && self.now < self.next_probe() {
            return Err(Denied::Efficacy);
        }
        let cost = if self.gate { price } else { 0 };
        if self.gate {
            self.bookings.push(Booking::Paid { cost, probe });
        }
        self.grants.push(Grant { at: self.now, cost, probe, sent: true, booking: self.bookings.len(), random });
        Ok(self.grants.len() - 1)
    }

    pub(crate) fn first_done(&mut self, now: u64, answer: Answer) {
        self.answered(now, 0, answer);
    }

    pub(crate) fn retry_done(&mut self, now: u64, grant: usize, answer: Answer) {
        self.answered(now, self.grants[grant].cost, answer);
    }

    pub(crate) fn retry_unsent(&mut self, now: u64, grant: usize) {
        self.now = self.now.max(now);
        self.grants[grant].sent = false;
        let (cost, most) = (self.grants[grant].cost, self.capacity().max(40));
        self.bookings.push(Booking::Unsent { cost, most });
    }

    fn answered(&mut self, now: u64, refund: i64, answer: Answer) {
        self.now = self.now.max(now);
        let change = match answer {
            Answer::Ok => refund + 1,
            Answer::SlowOk => refund - 5,
            Answer::ServerError | Answer::Failed => return,
        };
        let most = self.capacity();
        self.bookings.push(Booking::Answered { change, most });
    }

    /// Calls in the ten buckets that end with `now`, or with the latest time before it that was heard of.
    pub(crate) fn requests_at(&self, now: u64) -> u64 {
        let counts = |&&at: &&u64| at / SECOND + 10 > self.now.max(now) / SECOND;
        self.calls.iter().filter(counts).count() as u64
    }

    /// Retries in the same buckets.
    pub(crate) fn retries_at(&self, now: u64) -> u64 {
        let counts = |grant: &&Grant| grant.sent && grant.at / SECOND + 10 > self.now.max(now) / SECOND;
        self.grants.iter().filter(counts).count() as u64
    }

    fn capacity(&self) -> i64 {
        20 + self.requests_at(0) as i64 / 5
    }

    pub(crate) fn credit(&self) -> i64 {
        self.bookings.iter().fold(40, |credit, booking| match *booking {
            Booking::Paid { cost, probe: false } => credit - cost,
            Booking::Paid { probe: true, .. } => 0,
            Booking::Unsent { cost, most } => (credit + cost).min(most),
            Booking::Bounded { most } => credit.min(most),
            Booking::Answered { change, most } => (credit + change).clamp(0, most),
        })
    }

    /// A minute after the last grant that was paid for if something was answered since; else after 4, 8, or 16 minutes and half of that
    /// more or less, by the probes since the last answer.
    fn next_probe(&self) -> u64 {
        let Some(last) = self.grants.iter().rfind(|grant| grant.cost > 0) else {
            return 0;
        };
        let answer = self.bookings.iter().rposition(|booking| matches!(booking, Booking::Answered { .. }));
        if answer.is_some_and(|answer| answer >= last.booking) {
            return last.at + 60 * SECOND;
        }
        let unanswered = |grant: &&Grant| grant.probe && answer.is_none_or(|answer| grant.booking > answer);
        let probes = self.grants.iter().filter(unanswered).count();
        let wait = [240, 480, 960][probes.min(2)] * SECOND;
        last.at + wait / 2 + ((u128::from(wait) * u128::from(last.random)) >> 64) as u64
    }
}
