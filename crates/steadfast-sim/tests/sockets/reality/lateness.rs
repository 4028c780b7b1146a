//! How late the machine wakes those who sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(5);

/// Timeouts of the cases are some 250 ms and more, and differ from what they cut by at least as much.
pub(crate) fn is_too_much(late: Duration) -> bool {
    late > Duration::from_millis(40)
}

/// A thread that sleeps, and notes how late it wakes.
pub(crate) struct Lateness {
    most: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Lateness {
    pub(crate) fn watch() -> Self {
        let (most, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (noted, stop) = (Arc::clone(&most), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let began = Instant::now();
                sleep(TICK);
                let late = began.elapsed().saturating_sub(TICK);
                noted.fetch_max(late.as_micros() as u64, Ordering::Relaxed);
            }
        });
        Self { most, over, thread }
    }

    /// The most so far; the watch is over.
    pub(crate) fn most(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("it only sleeps");
        Duration::from_micros(self.most.load(Ordering::Relaxed))
    }
}
