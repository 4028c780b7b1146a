//! What the window remembers: how many attempts ended, how many failed, and the longest streak that a success ended.
//!
//! A ring of 30 buckets, each a thirtieth of the window, laid on the clock's own grid. Moving on costs at most 30 steps
//! however far the clock jumped; a clock that steps back moves nothing, and what is counted then goes to the newest
//! bucket. Invariant: the sums are those of the buckets.

use super::config::BUCKETS;
use crate::Time;

const LEN: usize = BUCKETS as usize;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    calls: u32,
    failures: u32,
    /// The longest streak that a success in this bucket ended.
    longest: u32,
}

/// Attempts that ended in the window, and how many of them failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) calls: u64,
    pub(super) failures: u64,
}

#[derive(Debug)]
pub(super) struct Window {
    bucket_nanos: u64,
    buckets: [Bucket; LEN],
    sums: Sums,
    /// The newest bucket, counted from the clock's origin; its place in the ring is this modulo the ring's length.
    head: u64,
    /// Where the newest bucket ends. Kept so that the common case divides nothing.
    head_ends: u64,
}

impl Window {
    /// `bucket_nanos` must be positive.
    pub(super) fn new(bucket_nanos: u64) -> Self {
        Self {
            bucket_nanos,
            buckets: [Bucket::default(); LEN],
            sums: Sums::default(),
            head: 0,
            head_ends: bucket_nanos,
        }
    }

    /// Moves on to `now`: buckets that left the window are emptied.
    pub(super) fn advance(&mut self, now: Time) {
        if now.as_nanos() < self.head_ends {
            return;
        }
        let newest = now.as_nanos() / self.bucket_nanos;
        for step in 1..=self.steps_to(newest) {
            let bucket = &mut self.buckets[place(self.head + step)];
            self.sums.calls -= u64::from(bucket.calls);
            self.sums.failures -= u64::from(bucket.failures);
            *bucket = Bucket::default();
        }
        self.head = newest;
        self.head_ends = newest.saturating_add(1).saturating_mul(self.bucket_nanos);
    }

    /// Counts `n` successes, the first of which ended a streak of `streak` failures.
    pub(super) fn add_successes(&mut self, n: u64, streak: u32) {
        let bucket = &mut self.buckets[place(self.head)];
        bucket.longest = bucket.longest.max(streak);
        self.sums.calls += add(&mut bucket.calls, n);
    }

    /// Counts one failure.
    pub(super) fn add_failure(&mut self) {
        let bucket = &mut self.buckets[place(self.head)];
        self.sums.calls += add(&mut bucket.calls, 1);
        self.sums.failures += add(&mut bucket.failures, 1);
    }

    /// The sums as of the last move.
    pub(super) fn sums(&self) -> Sums {
        self.sums
    }

    /// What the sums would be after a move to `now`.
    pub(super) fn sums_at(&self, now: Time) -> Sums {
        let mut sums = self.sums;
        for step in 1..=self.steps_to(now.as_nanos() / self.bucket_nanos) {
            let bucket = &self.buckets[place(self.head + step)];
            sums.calls -= u64::from(bucket.calls);
            sums.failures -= u64::from(bucket.failures);
        }
        sums
    }

    /// The longest streak in the window that a success ended.
    pub(super) fn longest_recovered(&self) -> u32 {
        self.buckets
            .iter()
            .map(|bucket| bucket.longest)
            .max()
            .unwrap_or(0)
    }

    /// Forgets everything but the time.
    pub(super) fn clear(&mut self) {
        self.buckets = [Bucket::default(); LEN];
        self.sums = Sums::default();
    }

    /// How many buckets a move to the bucket `newest` would empty.
    fn steps_to(&self, newest: u64) -> u64 {
        newest.saturating_sub(self.head).min(u64::from(BUCKETS))
    }
}

/// Where a bucket lies in the ring.
fn place(bucket: u64) -> usize {
    (bucket % u64::from(BUCKETS)) as usize
}

/// Adds to a count that saturates, and says how much was added, so that the sums stay those of the buckets.
fn add(count: &mut u32, n: u64) -> u64 {
    let before = *count;
    *count = count.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
    u64::from(*count - before)
}
