//! Guarded operations on plain threads (11.7): on the thread that calls, and on helper threads.

mod caller;
mod crowd;
mod in_async;
mod seeds;
mod threads;

use std::fmt;
use std::time::{Duration, Instant};

use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::BreakerConfig;
use steadfast::testing::VirtualClock;
use steadfast::{Guard, GuardBuilder};

use crate::harness::{ms, secs};

/// What an operation ends with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Failed {
    Server(u16),
    Client(u16),
    Connection,
    TimedOut,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Failed {}

fn transient(failed: &Failed) -> bool {
    !matches!(failed, Failed::Client(_))
}

/// The second seed's set-up, in virtual time: 4 attempts, 3 failures in a row open for 30 s.
fn guard(clock: &VirtualClock, configure: impl FnOnce(GuardBuilder) -> GuardBuilder) -> Guard {
    let backoff = Backoff { base: ms(200), factor: 2.0, max: secs(5), jitter: Jitter::Additive, jitter_max: ms(100) };
    let breaker = BreakerConfig { failures: 3, cool_down: secs(30), ..BreakerConfig::default() };
    let builder = Guard::builder("api.example.com").attempts(4).backoff(backoff).breaker(breaker);
    configure(builder).clock(clock.clone()).seed(7).build().unwrap()
}

/// Slots that are taken, and waiters in line.
fn line(guard: &Guard) -> (u32, u32) {
    let line = guard.snapshot().line;
    (line.in_use, line.queued)
}

/// Waits until other threads have come so far; nothing is measured, and a minute is for ever.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::yield_now();
    }
}
