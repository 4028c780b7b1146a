//! The open streams of a connection, for the driver that keeps their limits.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::stream::Cell;

#[derive(Default)]
pub(super) struct Registry {
    entries: Mutex<Entries>,
    open: AtomicUsize,
    busy_since: AtomicU64,
}

#[derive(Default)]
struct Entries {
    cells: Vec<Option<Arc<Cell>>>,
    free: Vec<usize>,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a stream that begins, and tells it where it stands.
    pub(super) fn enter(&self, now: u64, make: impl FnOnce(usize) -> Cell) -> Arc<Cell> {
        let mut entries = self.lock();
        if self.open.fetch_add(1, Ordering::Relaxed) == 0 {
            self.busy_since.store(now, Ordering::Relaxed);
        }
        let key = entries.free.pop().unwrap_or(entries.cells.len());
        let cell = Arc::new(make(key));
        match entries.cells.get_mut(key) {
            Some(place) => *place = Some(Arc::clone(&cell)),
            None => entries.cells.push(Some(Arc::clone(&cell))),
        }
        cell
    }

    pub(super) fn leave(&self, key: usize) {
        let mut entries = self.lock();
        let cell = entries.cells.get_mut(key).and_then(Option::take);
        if cell.is_some() {
            entries.free.push(key);
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        drop(entries);
        drop(cell);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    /// When the first of the streams that are open was opened, or an earlier one in an unbroken row.
    pub(super) fn busy_since(&self) -> u64 {
        self.busy_since.load(Ordering::Relaxed)
    }

    /// The streams that `choose` chooses.
    pub(super) fn filter(&self, mut choose: impl FnMut(&Cell) -> bool) -> Vec<Arc<Cell>> {
        let entries = self.lock();
        entries.cells.iter().flatten().filter(|cell| choose(cell)).map(Arc::clone).collect()
    }
}
