//! Random histories: settings, times, and what the callers do.

use std::time::Duration;

use steadfast_policy::breaker::BreakerConfig;
use steadfast_policy::{Time, Verdict};

/// SplitMix64: small, seeded, and good enough to draw test cases from.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A breaker's settings as the whole numbers that the reference computes with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) failures: u32,
    pub(crate) rate_millionths: u32,
    pub(crate) minimum_calls: u32,
    pub(crate) window_millis: u64,
    pub(crate) cool_down_millis: u64,
    pub(crate) start_millis: Option<u64>,
    pub(crate) lease_millis: u64,
}

impl Settings {
    pub(crate) const DEFAULT: Self = Self {
        failures: 5,
        rate_millionths: 500_000,
        minimum_calls: 20,
        window_millis: 30_000,
        cool_down_millis: 15_000,
        start_millis: None,
        lease_millis: 30_000,
    };

    /// `failures` 1 to 8, a window of 0.05 to 40 s.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let cool_down_millis = rng.pick(&[30, 400, 1_000, 4_000, 15_000]);
        Self {
            failures: 1 + rng.below(8) as u32,
            rate_millionths: rng.pick(&[100_000, 333_333, 500_000, 500_000, 900_000, 1_000_000]),
            minimum_calls: rng.pick(&[1, 3, 10, 20, 20, 50, 1_000_000]),
            window_millis: match rng.below(4) {
                0 => 50 + rng.below(950),
                1 => 1_000 + rng.below(9_000),
                2 => 10_000 + rng.below(30_001),
                _ => rng.pick(&[50, 1_000, 1_500, 30_000, 40_000]),
            },
            cool_down_millis,
            start_millis: rng.percent(40).then(|| 1 + rng.below(cool_down_millis + 10)),
            lease_millis: rng.pick(&[50, 500, 30_000]),
        }
    }

    pub(crate) fn config(&self) -> BreakerConfig {
        BreakerConfig {
            failures: self.failures,
            failure_rate: f64::from(self.rate_millionths) / 1e6,
            minimum_calls: self.minimum_calls,
            window: Duration::from_millis(self.window_millis),
            cool_down: Duration::from_millis(self.cool_down_millis),
            cool_down_start: self.start_millis.map(Duration::from_millis),
            probe_lease: Duration::from_millis(self.lease_millis),
        }
    }

    pub(crate) fn bucket_nanos(&self) -> u64 {
        self.window_millis * 1_000_000 / 30
    }
}

/// What a caller does next. An index is that of a permit in flight, modulo how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Acquire,
    Record(usize, Verdict),
    Cancel(usize),
    /// The permit is dropped, and nobody tells the breaker.
    Lose(usize),
    Successes(u32),
    ForceOpen,
    ForceClose,
    Reset,
}

/// How fast the clock goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// Some thousand attempts in a window.
    Busy,
    /// From a burst to hours of silence.
    Mixed,
    /// An attempt every few buckets.
    Rare,
}

/// Draws the operations of one history. The upstream's health changes every now and then.
pub(crate) struct Generator {
    pub(crate) rng: Rng,
    settings: Settings,
    pace: Pace,
    operator: bool,
    now: u64,
    failing_percent: u64,
    timeout_percent: u64,
}

impl Generator {
    /// `operator`: whether someone forces and resets now and then.
    pub(crate) fn new(mut rng: Rng, settings: Settings, pace: Pace, operator: bool) -> Self {
        let now = rng.below(100_000_000_000);
        Self { rng, settings, pace, operator, now, failing_percent: 0, timeout_percent: 0 }
    }

    /// `refused_for`: how long a call would have to wait now. The clock goes there now and then, exactly.
    pub(crate) fn next(&mut self, refused_for: Option<Duration>) -> (Time, Op) {
        // Once it has opened, the upstream heals soon: most of the rule is at work while closed.
        if self.rng.percent(if refused_for.is_some() { 20 } else { 2 }) {
            let failing: &[u64] =
                if refused_for.is_some() { &[0, 0, 20, 100] } else { &[0, 0, 1, 5, 20, 35, 50, 67, 90, 100] };
            self.failing_percent = self.rng.pick(failing);
            self.timeout_percent = self.rng.pick(&[0, 0, 50, 100, 100]);
        }
        self.now = match refused_for {
            Some(wait) if self.rng.percent(30) => self.now + wait.as_nanos() as u64 - self.rng.below(2),
            _ => self.moved(),
        };
        (Time::from_nanos(self.now), self.op())
    }

    fn moved(&mut self) -> u64 {
        let bucket = self.settings.bucket_nanos();
        let window = bucket * 30;
        let forth = match (self.pace, self.rng.below(1000)) {
            (_, 0..10) => return self.now.saturating_sub(self.rng.below(window)),
            (_, 10..12) => return self.now.saturating_sub(self.rng.below(3_600_000_000_000)),
            // To a bucket's edge, and one step before it.
            (_, 12..20) => bucket - self.now % bucket,
            (_, 20..28) => bucket - self.now % bucket - 1,
            (Pace::Busy, 28..996) => self.rng.below(window / 2_000 + 1),
            (Pace::Busy, _) => self.rng.below(400_000_000_000),
            (Pace::Mixed, 28..500) => 0,
            (Pace::Mixed, 500..900) => self.rng.below(bucket),
            (Pace::Mixed, 900..985) => self.rng.below(window * 2),
            (Pace::Mixed, _) => self.rng.below(400_000_000_000),
            (Pace::Rare, 28..950) => self.rng.below(bucket * 4),
            (Pace::Rare, _) => self.rng.below(400_000_000_000),
        };
        self.now + forth
    }

    fn op(&mut self) -> Op {
        let index = self.rng.below(1 << 20) as usize;
        match self.rng.below(1000) {
            0..480 => Op::Acquire,
            480..950 => Op::Record(index, self.verdict()),
            950..965 => Op::Cancel(index),
            965..975 => Op::Lose(index),
            975..995 => Op::Successes(self.rng.pick(&[0, 1, 2, 10, 40])),
            995 if self.operator => Op::ForceOpen,
            996 if self.operator => Op::ForceClose,
            997..999 if self.operator => Op::Reset,
            _ => Op::Acquire,
        }
    }

    fn verdict(&mut self) -> Verdict {
        if self.rng.percent(self.failing_percent) {
            if self.rng.percent(self.timeout_percent) { Verdict::Timeout } else { Verdict::Failure }
        } else if self.rng.percent(2) {
            Verdict::Paced
        } else {
            Verdict::Success
        }
    }
}
