//! Calls and retries of the last ten whole-second buckets.

/// Buckets, of one second each: what is counted ages out after nine to ten seconds.
pub(super) const BUCKETS: usize = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    calls: u64,
    retries: u64,
}

/// A ring of buckets with its sums. The bucket of second `s` is `s % BUCKETS`; that of the second which is being counted
/// lies apart, and its place in the ring is empty.
// In this order in memory: see `Budget`.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Window {
    second: u64,
    newest: Bucket,
    /// Of the buckets in the ring.
    older: Bucket,
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
        let last = std::mem::take(&mut self.newest);
        self.older.calls += last.calls;
        self.older.retries += last.retries;
        self.ring[slot(self.second)] = last;
        let steps = (second - self.second).min(BUCKETS as u64);
        for back in 0..steps {
            let aged = std::mem::take(&mut self.ring[slot(second - back)]);
            self.older.calls -= aged.calls;
            self.older.retries -= aged.retries;
        }
        self.second = second;
    }

    /// The second that is being counted.
    pub(super) fn second(&self) -> u64 {
        self.second
    }

    #[inline]
    pub(super) fn calls(&self) -> u64 {
        self.older.calls + self.newest.calls
    }

    pub(super) fn retries(&self) -> u64 {
        self.older.retries + self.newest.retries
    }

    #[inline]
    pub(super) fn add_call(&mut self) {
        self.newest.calls += 1;
    }

    pub(super) fn add_retry(&mut self) {
        self.newest.retries += 1;
    }

    /// Takes back a retry counted in `second`, unless that has aged out.
    pub(super) fn undo_retry(&mut self, second: u64) {
        if second == self.second {
            self.newest.retries = self.newest.retries.saturating_sub(1);
            return;
        }
        let in_window = second < self.second && self.second - second < BUCKETS as u64;
        let bucket = &mut self.ring[slot(second)];
        if in_window && bucket.retries > 0 {
            bucket.retries -= 1;
            self.older.retries -= 1;
        }
    }

    /// Calls and retries as they would count at `second`, which is not before the window's own.
    pub(super) fn sums_at(&self, second: u64) -> (u64, u64) {
        let aged = second.saturating_sub(self.second);
        if aged >= BUCKETS as u64 {
            return (0, 0);
        }
        let gone = (0..aged).fold((0, 0), |(calls, retries), back| {
            let bucket = self.ring[slot(second - back)];
            (calls + bucket.calls, retries + bucket.retries)
        });
        (self.calls() - gone.0, self.retries() - gone.1)
    }
}

#[inline]
fn slot(second: u64) -> usize {
    (second % BUCKETS as u64) as usize
}
