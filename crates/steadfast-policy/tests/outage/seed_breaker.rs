//! The plain rule that the breaker is compared with: so many failures in a row, or a share of the window; nothing else.

use super::world::{Nanos, SECOND};

const FAILURES: u32 = 5;
const MINIMUM_CALLS: u32 = 20;
const WINDOW: u64 = 30;
const COOL_DOWN: Nanos = 15 * SECOND;

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Closed,
    Open { until: Nanos },
    HalfOpen,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    calls: u32,
    failures: u32,
}

pub(crate) struct SeedBreaker {
    phase: Phase,
    generation: u32,
    streak: u32,
    second: u64,
    ring: [Bucket; WINDOW as usize],
    sum: Bucket,
}

impl SeedBreaker {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Closed,
            generation: 0,
            streak: 0,
            second: 0,
            ring: [Bucket::default(); WINDOW as usize],
            sum: Bucket::default(),
        }
    }

    /// The generation of the attempt that may go.
    pub(crate) fn try_acquire(&mut self, now: Nanos) -> Option<u32> {
        match self.phase {
            Phase::Closed => {}
            Phase::Open { until } if until <= now => self.enter(now, Phase::HalfOpen),
            Phase::Open { .. } | Phase::HalfOpen => return None,
        }
        Some(self.generation)
    }

    pub(crate) fn record(&mut self, now: Nanos, generation: u32, failed: bool) {
        if generation != self.generation {
            return;
        }
        if self.phase == Phase::HalfOpen {
            let open = Phase::Open { until: now + COOL_DOWN };
            self.enter(now, if failed { open } else { Phase::Closed });
            return;
        }
        self.advance(now);
        self.streak = if failed { self.streak + 1 } else { 0 };
        let bucket = &mut self.ring[(self.second % WINDOW) as usize];
        for counted in [bucket, &mut self.sum] {
            counted.calls += 1;
            counted.failures += u32::from(failed);
        }
        let in_a_row = self.streak >= FAILURES;
        let share = self.sum.calls >= MINIMUM_CALLS && 2 * self.sum.failures >= self.sum.calls;
        if in_a_row || share {
            self.enter(now, Phase::Open { until: now + COOL_DOWN });
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open { .. })
    }

    pub(crate) fn would_refuse_at(&self, at: Nanos) -> bool {
        matches!(self.phase, Phase::Open { until } if at < until)
    }

    fn advance(&mut self, now: Nanos) {
        let second = now / SECOND;
        for aged in 0..(second - self.second).min(WINDOW) {
            let bucket = std::mem::take(&mut self.ring[((second - aged) % WINDOW) as usize]);
            self.sum.calls -= bucket.calls;
            self.sum.failures -= bucket.failures;
        }
        self.second = second;
    }

    fn enter(&mut self, now: Nanos, phase: Phase) {
        let generation = self.generation + 1;
        *self = Self { phase, generation, second: now / SECOND, ..Self::new() };
    }
}
