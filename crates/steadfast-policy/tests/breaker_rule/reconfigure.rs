//! Other settings in the middle of random histories (9.5): the same ones are no event at all, and after other ones the
//! breaker is as good as new.

use std::time::Duration;

use steadfast_policy::Time;
use steadfast_policy::breaker::{Breaker, BreakerSnapshot, Permit, State, Transition, Why};

use crate::history::{Generator, Op, Pace, Rng, Settings};

const HISTORIES: u64 = 60;
const LENGTH: usize = 2_500;

/// A breaker and the permits that are out. `None` stands for one of a breaker that is no more.
struct Side {
    breaker: Breaker,
    out: Vec<Option<Permit>>,
}

impl Side {
    fn new(settings: Settings) -> Self {
        Self { breaker: Breaker::new(settings.config()), out: Vec::new() }
    }

    fn hear_the_time(&mut self, now: Time) {
        self.breaker.record_successes(now, 0);
    }

    fn take(&mut self, index: usize) -> Option<Permit> {
        if self.out.is_empty() { None } else { self.out.swap_remove(index % self.out.len()) }
    }

    /// One operation, and whether a call was let through.
    fn play(&mut self, now: Time, op: Op) -> bool {
        match op {
            Op::Acquire => {
                let permit = self.breaker.try_acquire(now).ok();
                let is_let_through = permit.is_some();
                if is_let_through {
                    self.out.push(permit);
                }
                return is_let_through;
            }
            Op::Record(index, verdict) => match self.take(index) {
                Some(permit) => self.breaker.record(now, permit, verdict),
                None => self.hear_the_time(now),
            },
            Op::Cancel(index) => match self.take(index) {
                Some(permit) => self.breaker.cancel(now, permit),
                None => self.hear_the_time(now),
            },
            Op::Lose(index) => drop(self.take(index)),
            Op::Successes(n) => self.breaker.record_successes(now, n),
            Op::ForceOpen => self.breaker.force_open(now),
            Op::ForceClose => self.breaker.force_close(now),
            Op::Reset => self.breaker.reset(now),
        }
        false
    }

    fn events(&mut self) -> Vec<Transition> {
        std::iter::from_fn(|| self.breaker.poll_event()).collect()
    }

    fn wait(&self, now: Time) -> Option<Duration> {
        self.breaker.check(now).err().and_then(|rejection| rejection.retry_after)
    }
}

fn pace(seed: u64) -> Pace {
    [Pace::Busy, Pace::Mixed, Pace::Rare][seed as usize % 3]
}

/// Also at a time of its own, and with an operator about.
#[test]
fn c9_5_the_same_settings_change_nothing() {
    let mut opened = 0;
    for seed in 0..HISTORIES {
        let mut rng = Rng(9_000 + seed);
        let settings = Settings::random(&mut rng);
        let (mut told, mut untold) = (Side::new(settings), Side::new(settings));
        let mut generator = Generator::new(rng, settings, pace(seed), true);
        let mut latest = Time::ZERO;
        for _ in 0..LENGTH {
            let (now, op) = generator.next(untold.wait(latest));
            latest = latest.max(now);
            if generator.rng.percent(20) {
                let later = now + Duration::from_millis(generator.rng.below(50_000));
                told.breaker.reconfigure(later, settings.config());
            }
            assert_eq!(told.play(now, op), untold.play(now, op), "{op:?} of {seed}");
            assert_eq!(told.breaker.snapshot(now), untold.breaker.snapshot(now), "{op:?} of {seed}");
            let events = untold.events();
            opened += events.iter().filter(|event| event.to == State::Open).count();
            assert_eq!(told.events(), events, "{op:?} of {seed}");
        }
    }
    assert!(opened > 500, "{opened}");
}

/// All that decides, and nothing that a new breaker cannot have.
fn decides(mut snapshot: BreakerSnapshot) -> BreakerSnapshot {
    (snapshot.generation, snapshot.late_verdicts) = (0, 0);
    snapshot
}

/// Beside it goes a breaker that is replaced by a new one at each change. The permits of before are still given back to
/// the one that lives on, and must not matter.
#[test]
fn c9_5_other_settings_make_it_as_good_as_new() {
    let (mut changes, mut closed_by_it, mut late) = (0, 0, 0);
    for seed in 0..HISTORIES {
        let mut rng = Rng(7_000 + seed);
        let mut settings = Settings::random(&mut rng);
        let (mut living, mut replaced) = (Side::new(settings), Side::new(settings));
        let mut generator = Generator::new(rng, settings, pace(seed), false);
        let mut latest = Time::ZERO;
        for _ in 0..LENGTH {
            let (now, op) = generator.next(replaced.wait(latest));
            latest = latest.max(now);
            if generator.rng.percent(1) {
                let before = living.breaker.snapshot(now);
                settings = Settings { failures: settings.failures % 8 + 1, ..Settings::random(&mut generator.rng) };
                living.breaker.reconfigure(now, settings.config());
                let expected = (before.state != State::Closed).then_some(Transition {
                    from: before.state,
                    to: State::Closed,
                    why: Why::Reconfigured,
                    at: latest,
                });
                assert_eq!(living.events().pop(), expected, "{seed}");
                assert!(living.breaker.snapshot(now).generation > before.generation);
                changes += 1;
                closed_by_it += usize::from(before.state != State::Closed);
                replaced.breaker = Breaker::new(settings.config());
                replaced.hear_the_time(latest);
                replaced.out.fill_with(|| None);
            }
            assert_eq!(living.play(now, op), replaced.play(now, op), "{op:?} of {seed}");
            let (seen, expected) = (living.breaker.snapshot(now), replaced.breaker.snapshot(now));
            late = late.max(seen.late_verdicts - expected.late_verdicts);
            assert_eq!(decides(seen), decides(expected), "{op:?} of {seed}");
            assert_eq!(living.events(), replaced.events(), "{op:?} of {seed}");
        }
    }
    assert!(changes > 500 && closed_by_it > 50 && late > 10, "{changes}, {closed_by_it}, {late}");
}

/// With everything at once, an operator too: when all permits are back nothing is held, and one call can go as soon as
/// the breaker says so.
#[test]
fn c9_5_no_probe_is_lost_among_changing_settings() {
    for seed in 0..HISTORIES {
        let mut rng = Rng(8_000 + seed);
        let settings = Settings::random(&mut rng);
        let mut side = Side::new(settings);
        let mut generator = Generator::new(rng, settings, pace(seed), true);
        let mut latest = Time::ZERO;
        for _ in 0..LENGTH {
            let (now, op) = generator.next(side.wait(latest));
            latest = latest.max(now);
            if generator.rng.percent(5) {
                let forced = side.breaker.snapshot(now).forced;
                side.breaker.reconfigure(now, Settings::random(&mut generator.rng).config());
                assert_eq!(side.breaker.snapshot(now).forced, forced);
            }
            side.play(now, op);
        }
        while let Some(permit) = side.out.pop() {
            if let Some(permit) = permit {
                side.breaker.cancel(latest, permit);
            }
        }
        let snapshot = side.breaker.snapshot(latest);
        if snapshot.forced && snapshot.state == State::Open {
            continue;
        }
        let then = latest + snapshot.retry_after.unwrap_or_default();
        assert!(side.breaker.try_acquire(then).is_ok(), "{snapshot:?}");
    }
}
