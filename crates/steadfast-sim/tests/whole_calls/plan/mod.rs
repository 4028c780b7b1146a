//! What is to happen in one world, all of it drawn from one number: settings, upstream, callers, operators.
//!
//! What the upstream does with a request depends on the seed, on whose request it is and which attempt, and on the hour,
//! and on nothing else: a world with fewer callers is the same world for those who are left.

mod config;
mod people;
mod step;

use std::time::Duration;

use fastrand::Rng;
use steadfast::policy::Time;

pub(crate) use config::{Config, Limit};
pub(crate) use people::{Act, Caller, Fate, Reader};
pub(crate) use step::{Asked, Body, BodyEnd, Mood, Reply, Step};

pub(crate) const MS: Duration = Duration::from_millis(1);

/// Which of the two edges the calls go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// `ServiceClient`.
    Http,
    /// `Guard`.
    Guard,
}

/// What is to happen in one world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) edge: Edge,
    /// The settings that are in force at first, then those of each reload.
    pub(crate) configs: Vec<Config>,
    /// From when on the upstream is in which mood.
    pub(crate) moods: Vec<(Duration, Mood)>,
    /// By number; one that was taken out to make the world smaller is `None`.
    pub(crate) callers: Vec<Option<Caller>>,
    /// What operators do, and when.
    pub(crate) acts: Vec<(Duration, Act)>,
    /// When the state is looked at.
    pub(crate) samples: Vec<Duration>,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let edge = if rng.u8(0..10) < 7 { Edge::Http } else { Edge::Guard };
        let first = Config::draw(&mut rng, edge);
        let gap = pick(&mut rng, &[MS, MS * 5, MS * 20, MS * 60, MS * 200]);
        let count = rng.usize(40..400);
        let callers = people::draw(&mut rng, edge, &first, gap, count);
        let length = callers.last().map_or(Duration::ZERO, |last| last.at);
        let mut configs = vec![first];
        let mut acts = people::operators(&mut rng, length);
        if edge == Edge::Http && rng.u8(0..4) == 0 {
            for _ in 0..rng.usize(1..4) {
                let other = configs[0].vary(&mut rng);
                acts.push((between(&mut rng, Duration::ZERO, length), Act::Reload(configs.len())));
                configs.push(other);
            }
        }
        acts.sort_by_key(|(at, _)| *at);
        let moods = step::moods(&mut rng, length);
        let mut samples: Vec<_> = (0..24).map(|_| between(&mut rng, Duration::ZERO, length + MS * 500)).collect();
        samples.sort();
        let callers = callers.into_iter().map(Some).collect();
        Self { seed, edge, configs, moods, callers, acts, samples }
    }

    /// What the upstream does with attempt `number` of this call.
    pub(crate) fn step(&self, call: usize, number: u32, now: Time) -> Step {
        let since = now.since(Time::ZERO);
        let mood = self.moods.iter().rev().find(|(from, _)| *from <= since).map_or(Mood::Well, |(_, mood)| *mood);
        let who = (call as u64) << 16 | u64::from(number);
        let mut rng = Rng::with_seed(self.seed ^ who.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Step::draw(&mut rng, mood, self.edge)
    }

    /// The caller of this number, who is there if it called.
    pub(crate) fn caller(&self, call: usize) -> &Caller {
        self.callers[call].as_ref().unwrap()
    }

    /// How many there are.
    pub(crate) fn people(&self) -> usize {
        self.callers.iter().flatten().count()
    }
}

pub(crate) fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(0..from.len())]
}

/// Half of the time in whole milliseconds, so that things happen at one instant, too.
pub(crate) fn between(rng: &mut Rng, least: Duration, most: Duration) -> Duration {
    let span = most.saturating_sub(least).as_nanos() as u64;
    let drawn = least + Duration::from_nanos(rng.u64(0..=span));
    if rng.bool() { drawn } else { least.max(MS * (drawn.as_millis() as u32)) }
}
