//! The outage simulator: each piece of the model against a case worked out by hand, queues against theory, and the promise
//! that the same seed gives the same bytes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod balancing;
mod chains;
mod dead_work;
mod measures;
mod queues;
mod rate_limit;
mod restarts;
mod same_bytes;
mod spec;
mod theory;
mod triggers;
mod workloads;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast::Event;
use steadfast::config::{Settings, SettingsBuilder};
use steadfast::report::Ended;
use steadfast_sim::outage::{Policy, Run, ServiceTime, Simulation, UpstreamModel, Workload};

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);
const NOW: Duration = Duration::ZERO;

/// One try, half a second, any number at once.
fn plain() -> SettingsBuilder {
    SettingsBuilder::new("http://upstream").retries(0).attempt_timeout(MS * 500).max_concurrent(100_000)
}

fn settings(builder: SettingsBuilder) -> Settings {
    builder.build().unwrap()
}

/// One worker that takes 100 ms for each request.
fn slow() -> UpstreamModel {
    UpstreamModel::new(ServiceTime::Fixed(MS * 100))
}

/// One client that calls at these milliseconds.
fn calls(upstream: UpstreamModel, at: &[u32]) -> Simulation {
    let at: Vec<Duration> = at.iter().map(|at| MS * *at).collect();
    Simulation::new(upstream, 1, Workload::Recorded { at }, SEC * 30)
}

/// How a call ended: when it was made and how long it took in milliseconds, whether it was answered, its attempts, and why.
type Seen = (u128, u128, bool, u32, Ended);

/// The run, and each call in the order in which they were made.
fn watch(simulation: &Simulation, settings: &Settings) -> (Run, Vec<Seen>) {
    watch_hop(0, simulation, settings)
}

/// The same with the calls of whoever calls this upstream of a chain.
fn watch_hop(hop: usize, simulation: &Simulation, settings: &Settings) -> (Run, Vec<Seen>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let policy = Policy::new("watched", settings.clone()).without_breaker().built_by(move |member| {
        let (seen, clock, hook) = (Arc::clone(&noted), member.clock(), member.hook());
        let is_watched = member.hop == hop;
        let builder = member.builder().on_event(move |event| {
            hook(event);
            if is_watched && let Event::Ended { ended, answered, attempts, duration, .. } = event {
                let now = clock.now().since(steadfast::policy::Time::ZERO);
                let made = (now - *duration).as_micros();
                assert!(made % 1_000 == 0, "made at a whole millisecond");
                seen.lock().unwrap().push((made / 1_000, duration.as_millis(), *answered, *attempts, *ended));
            }
        });
        builder.build()
    });
    let run = simulation.run(&policy, 1).unwrap();
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_by_key(|call| call.0);
    (run, seen)
}

/// How long each call took in milliseconds.
fn took(simulation: &Simulation, settings: &Settings) -> Vec<u128> {
    watch(simulation, settings).1.iter().map(|call| call.1).collect()
}
