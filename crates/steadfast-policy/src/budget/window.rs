//! Calls and retries of the last ten whole-second buckets.

/// Buckets, of one second each: what is counted ages out after nine to ten seconds.
pub(super) const BUCKETS: usize = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    calls: u64,
    retries: u64,
}

/// A ring of buckets with its sums. The bucket of second `s` is `s % BUCKETS`.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    second: u64,
    sum: Bucket,
    ring: [Bucket; BUCKETS],
}

impl Window {
    /// Moves to `second` and empties what has aged out. An earlier second than before changes nothing.
    #[inline]
    pub(super) fn advance(&mut self, second: u64) {
        if second > self.second {
            self.move_to(second);
        }
    }

    #[cold]
    fn move_to(&mut self, second: u64) {
        let steps = (second - self.second).min(BUCKETS as u64);
        for back in 0..steps {
            let aged = std::mem::take(self.bucket(second - back));
            self.sum.calls -= aged.calls;
            self.sum.retries -= aged.retries;
        }
        self.second = second;
    }

    /// The second that is being counted.
    pub(super) fn second(&self) -> u64 {
        self.second
    }

    #[inline]
    pub(super) fn calls(&self) -> u64 {
        self.sum.calls
    }

    pub(super) fn retries(&self) -> u64 {
        self.sum.retries
    }

    #[inline]
    pub(super) fn add_call(&mut self) {
        self.bucket(self.second).calls += 1;
        self.sum.calls += 1;
    }

    pub(super) fn add_retry(&mut self) {
        self.bucket(self.second).retries += 1;
        self.sum.retries += 1;
    }

    /// Takes back a retry counted in `second`, unless that has aged out.
    pub(super) fn undo_retry(&mut self, second: u64) {
        let in_window = second <= self.second && self.second - second < BUCKETS as u64;
        if in_window && self.bucket(second).retries > 0 {
            self.bucket(second).retries -= 1;
            self.sum.retries -= 1;
        }
    }

    /// Calls and retries as they would count at `second`, which is not before the window's own.
    pub(super) fn sums_at(&self, second: u64) -> (u64, u64) {
        let aged = second.saturating_sub(self.second).min(BUCKETS as u64);
        let gone = (0..aged).fold((0, 0), |(calls, retries), back| {
            let bucket = self.ring[slot(second - back)];
            (calls + bucket.calls, retries + bucket.retries)
        });
        (self.sum.calls - gone.0, self.sum.retries - gone.1)
    }

    #[inline]
    fn bucket(&mut self, second: u64) -> &mut Bucket {
        &mut self.ring[slot(second)]
    }
}

#[inline]
fn slot(second: u64) -> usize {
    (second % BUCKETS as u64) as usize
}
