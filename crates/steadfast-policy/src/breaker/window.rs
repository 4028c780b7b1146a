//! What the window remembers: how many attempts ended, how many failed, and the longest streak that a success ended.
//!
//! A ring of 30 buckets, each a thirtieth of the window, laid on the clock's own grid. Moving on costs at most 30 steps
//! however far the clock jumped; a clock that steps back moves nothing, and what is counted then goes to the newest
//! bucket. The newest bucket lies apart from the ring, beside what every attempt reads: counting one touches no other
//! memory. Invariants: the sums are those of the ring, in which the newest bucket's place is empty.

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

// In this order in memory: see `Breaker`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Window {
    newest: Bucket,
    /// Where the newest bucket ends. Kept so that the common case divides nothing.
    head_ends: u64,
    /// The number of the newest bucket, counted from the clock's origin; its place in the ring is this modulo the ring's
    /// length.
    head: u64,
    /// Of the buckets in the ring.
    older: Sums,
    bucket_nanos: u64,
    buckets: [Bucket; LEN],
}

impl Window {
    /// `bucket_nanos` must be positive.
    pub(super) fn new(bucket_nanos: u64) -> Self {
        Self {
            newest: Bucket::default(),
            head_ends: bucket_nanos,
            head: 0,
            older: Sums::default(),
            bucket_nanos,
            buckets: [Bucket::default(); LEN],
        }
    }

    /// Moves on to `now`: buckets that left the window are emptied.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        if now.as_nanos() >= self.head_ends {
            self.move_to(now);
        }
    }

    #[cold]
    fn move_to(&mut self, now: Time) {
        let newest = now.as_nanos() / self.bucket_nanos;
        if newest == self.head {
            return; // the end of time
        }
        let last = std::mem::take(&mut self.newest);
        self.older.calls += u64::from(last.calls);
        self.older.failures += u64::from(last.failures);
        self.buckets[place(self.head)] = last;
        for step in 1..=self.steps_to(newest) {
            let bucket = std::mem::take(&mut self.buckets[place(self.head + step)]);
            self.older.calls -= u64::from(bucket.calls);
            self.older.failures -= u64::from(bucket.failures);
        }
        self.head = newest;
        self.head_ends = newest.saturating_add(1).saturating_mul(self.bucket_nanos);
    }

    /// Counts `n` successes, the first of which ended a streak of `streak` failures.
    #[inline]
    pub(super) fn add_successes(&mut self, n: u64, streak: u32) {
        self.newest.longest = self.newest.longest.max(streak);
        add(&mut self.newest.calls, n);
    }

    /// Counts one failure.
    pub(super) fn add_failure(&mut self) {
        add(&mut self.newest.calls, 1);
        add(&mut self.newest.failures, 1);
    }

    /// The sums as of the last move.
    #[inline]
    pub(super) fn sums(&self) -> Sums {
        let Bucket { calls, failures, .. } = self.newest;
        Sums { calls: self.older.calls + u64::from(calls), failures: self.older.failures + u64::from(failures) }
    }

    /// What the sums would be after a move to `now`.
    pub(super) fn sums_at(&self, now: Time) -> Sums {
        let steps = self.steps_to(now.as_nanos() / self.bucket_nanos);
        if steps == u64::from(BUCKETS) {
            return Sums::default();
        }
        let mut sums = self.sums();
        for step in 1..=steps {
            let bucket = &self.buckets[place(self.head + step)];
            sums.calls -= u64::from(bucket.calls);
            sums.failures -= u64::from(bucket.failures);
        }
        sums
    }

    /// The longest streak in the window that a success ended.
    pub(super) fn longest_recovered(&self) -> u32 {
        self.buckets.iter().map(|bucket| bucket.longest).fold(self.newest.longest, u32::max)
    }

    /// Forgets everything but the time.
    pub(super) fn clear(&mut self) {
        self.newest = Bucket::default();
        self.buckets = [Bucket::default(); LEN];
        self.older = Sums::default();
    }

    /// How many buckets a move to the bucket `newest` would empty.
    fn steps_to(&self, newest: u64) -> u64 {
        newest.saturating_sub(self.head).min(u64::from(BUCKETS))
    }
}

/// Where a bucket lies in the ring.
#[inline]
fn place(bucket: u64) -> usize {
    (bucket % u64::from(BUCKETS)) as usize
}

/// Adds to a count that saturates.
#[inline]
fn add(count: &mut u32, n: u64) {
    *count = count.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summed(window: &Window) -> Sums {
        window.buckets.iter().chain([&window.newest]).fold(Sums::default(), |sums, bucket| Sums {
            calls: sums.calls + u64::from(bucket.calls),
            failures: sums.failures + u64::from(bucket.failures),
        })
    }

    /// Property 7: the sums are those of the buckets, also where a count saturates and at the end of time.
    #[test]
    fn the_sums_are_those_of_the_ring() {
        for bucket_nanos in [1, 7, 1_000_000_000, u64::MAX / 30] {
            let mut window = Window::new(bucket_nanos);
            let mut now = 0_u64;
            let mut random = 1_u64;
            for step in 0..5_000_u64 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
                let draw = random >> 33;
                now = match draw % 50 {
                    0 => now / 2,
                    1 => now.saturating_add(random),
                    2 => u64::MAX,
                    _ => now.saturating_add((draw >> 8) % bucket_nanos.saturating_mul(3)),
                };
                if step % 500 == 499 {
                    window = Window::new(bucket_nanos);
                    now = draw;
                }
                let before = window.sums_at(Time::from_nanos(now));
                window.advance(Time::from_nanos(now));
                assert_eq!(window.sums(), before, "a look ahead shows what a move makes");
                match draw % 7 {
                    0 => window.add_successes(u64::from(u32::MAX), 0),
                    1 => window.add_successes(u64::MAX, 3),
                    2 => window.clear(),
                    3 => window.add_failure(),
                    _ => window.add_successes(1, 1),
                }
                assert_eq!(window.sums(), summed(&window));
            }
        }
    }

    #[test]
    fn a_bucket_counts_up_to_four_billion_and_stays_there() {
        let mut window = Window::new(1_000);
        window.add_failure();
        window.add_successes(u64::MAX, 0);
        window.add_failure();
        let most = u64::from(u32::MAX);
        assert_eq!(window.sums(), Sums { calls: most, failures: 2 });
        window.advance(Time::from_nanos(29_999));
        assert_eq!(window.sums(), Sums { calls: most, failures: 2 });
        window.advance(Time::from_nanos(30_000));
        assert_eq!(window.sums(), Sums::default());
    }

    /// Each failure's bucket leaves when the window has moved on by its length, one bucket at a time.
    #[test]
    fn buckets_leave_one_at_a_time() {
        let mut window = Window::new(10);
        for now in (0..300).step_by(10) {
            window.advance(Time::from_nanos(now));
            window.add_failure();
        }
        for left in (0..30).rev() {
            window.advance(Time::from_nanos(300 + 10 * (29 - left)));
            assert_eq!(window.sums().failures, left);
        }
    }
}
