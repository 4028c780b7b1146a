//! What holds for every history, asserted along random ones: verdicts out of order, cancelled and lost permits, probes
//! that outlive their lease, a clock that steps back, silences of minutes.

use std::time::Duration;

use steadfast_policy::breaker::{Breaker, BreakerSnapshot, Permit, State, Why};
use steadfast_policy::{Time, Verdict};

use crate::history::{Generator, Op, Pace, Rng, Settings};
use crate::plain_rule::{PlainRule, Says};

/// What one operation turned out to be.
enum Step {
    /// A verdict was counted while closed; what the plain rule says to the same history, and whether the breaker
    /// opened.
    Counted { verdict: Verdict, says: Says, opened: Option<Why> },
    /// A verdict, or a cancellation, of an older generation, with what was to be seen before.
    Late { before: BreakerSnapshot },
    /// The probe's verdict, within its lease.
    Probe { verdict: Verdict },
    /// A call asked.
    Asked,
    /// Anything else.
    Other,
}

struct InFlight {
    permit: Permit,
    generation: u64,
    lease: Time,
}

/// A breaker on its way through a random history without an operator, and the plain rule beside it.
struct Walk {
    settings: Settings,
    breaker: Breaker,
    plain: PlainRule,
    generator: Generator,
    in_flight: Vec<InFlight>,
    /// The latest time seen.
    now: Time,
}

impl Walk {
    fn new(seed: u64, pace: Pace) -> Self {
        let mut rng = Rng(seed);
        let settings = Settings::random(&mut rng);
        Self {
            settings,
            breaker: Breaker::new(settings.config()),
            plain: PlainRule::new(settings),
            generator: Generator::new(rng, settings, pace, false),
            in_flight: Vec::new(),
            now: Time::ZERO,
        }
    }

    fn step(&mut self) -> Step {
        let wait = self.breaker.check(self.now).err().and_then(|rejection| rejection.retry_after);
        let (now, op) = self.generator.next(wait);
        if let Op::Lose(index) = op {
            if !self.in_flight.is_empty() {
                let _lost = self.take(index);
            }
            return Step::Other;
        }
        self.now = self.now.max(now);
        self.plain.saw(now);
        let before = self.breaker.snapshot(self.now);
        let step = match op {
            Op::Record(index, verdict) if !self.in_flight.is_empty() => self.record(now, index, verdict, before),
            Op::Cancel(index) if !self.in_flight.is_empty() => {
                let taken = self.take(index);
                self.breaker.cancel(now, taken.permit);
                if taken.generation == before.generation { Step::Other } else { Step::Late { before } }
            }
            _ => {
                if let Ok(permit) = self.breaker.try_acquire(now) {
                    let generation = self.breaker.snapshot(now).generation;
                    let lease = self.now + Duration::from_millis(self.settings.lease_millis);
                    self.in_flight.push(InFlight { permit, generation, lease });
                }
                Step::Asked
            }
        };
        while self.breaker.poll_event().is_some() {
            self.plain.clear();
        }
        step
    }

    fn take(&mut self, index: usize) -> InFlight {
        let len = self.in_flight.len();
        self.in_flight.swap_remove(index % len)
    }

    fn record(&mut self, now: Time, index: usize, verdict: Verdict, before: BreakerSnapshot) -> Step {
        let taken = self.take(index);
        self.breaker.record(now, taken.permit, verdict);
        if taken.generation != before.generation {
            return Step::Late { before };
        }
        match before.state {
            State::HalfOpen if self.now <= taken.lease => Step::Probe { verdict },
            State::Closed if verdict != Verdict::Paced => {
                let says = self.plain.record(verdict);
                let opened = self.breaker.poll_event().map(|event| event.why);
                if opened.is_some() {
                    self.plain.clear();
                }
                Step::Counted { verdict, says, opened }
            }
            _ => Step::Other,
        }
    }
}

/// Asserts `holds` after each of 950 000 steps.
fn along_random_histories(mut holds: impl FnMut(&Walk, Step)) {
    for (seed, histories, steps, pace) in
        [(1, 2_000, 250, Pace::Mixed), (2, 100, 2_000, Pace::Busy), (3, 1_000, 250, Pace::Rare)]
    {
        for history in 0..histories {
            let mut walk = Walk::new((seed << 48) + history, pace);
            for _ in 0..steps {
                let step = walk.step();
                holds(&walk, step);
            }
        }
    }
}

/// The breaker never opens where the plain rule on the same history would not.
#[test]
fn property_1_dominance() {
    let mut opened_by_streak = 0;
    along_random_histories(|_, step| {
        if let Step::Counted { verdict, says, opened: Some(why) } = step {
            match why {
                Why::Streak => assert!(says.streak_opens && verdict != Verdict::Success, "{says:?}"),
                Why::Rate => assert!(says.rate_opens, "{says:?}"),
                other => panic!("opened by {other:?}"),
            }
            opened_by_streak += u32::from(why == Why::Streak);
        }
    });
    assert!(opened_by_streak > 1_000, "the histories must try the streak rule: {opened_by_streak}");
}

/// Its condition holds if and only if the breaker opens by it, or by a streak at the same verdict.
#[test]
fn property_2_the_rate_rule_is_the_plain_one() {
    let mut opened_by_rate = 0;
    along_random_histories(|_, step| {
        if let Step::Counted { says, opened, .. } = step {
            match opened {
                Some(Why::Rate) => assert!(says.rate_opens),
                Some(_) => {}
                None => assert!(!says.rate_opens, "{says:?}"),
            }
            opened_by_rate += u32::from(opened == Some(Why::Rate));
        }
    });
    assert!(opened_by_rate > 1_000, "the histories must try the rate rule: {opened_by_rate}");
}

#[test]
fn property_3_with_no_success_in_the_window_exactly_so_many_failures_open() {
    let mut tried = 0;
    along_random_histories(|_, step| {
        if let Step::Counted { says, opened, .. } = step
            && says.successes == 0
        {
            if says.streak_opens {
                assert!(opened.is_some(), "{says:?}");
                tried += 1;
            } else {
                assert_ne!(opened, Some(Why::Streak), "{says:?}");
            }
        }
    });
    assert!(tried > 1_000, "{tried}");
}

/// However noisy it was: three times the failures open once they make up a quarter second of the good traffic, or
/// hold twice as many timeouts.
#[test]
fn property_4_the_bound_above() {
    let (mut by_pressure, mut by_timeouts) = (0, 0);
    along_random_histories(|walk, step| {
        if let Step::Counted { says, opened, .. } = step {
            let failures = u64::from(walk.settings.failures);
            let long = says.streak >= 3 * failures;
            let pressed = says.streak * 4 * walk.settings.window_millis >= says.successes * 1000;
            let hangs = says.timeouts >= 2 * failures;
            if long && (pressed || hangs) {
                assert!(opened.is_some(), "{says:?}");
                by_pressure += u32::from(pressed);
                by_timeouts += u32::from(hangs && !pressed);
            }
        }
    });
    assert!(by_pressure > 50 && by_timeouts > 30, "{by_pressure} {by_timeouts}");
}

/// Of all permits that are probes of this generation, at most one holds a lease that runs.
#[test]
fn property_6_one_probe() {
    let mut out = 0;
    along_random_histories(|walk, step| {
        let generation = walk.breaker.snapshot(walk.now).generation;
        let probes = walk
            .in_flight
            .iter()
            .filter(|held| held.permit.is_probe() && held.generation == generation && walk.now < held.lease);
        let probes = probes.count();
        assert!(probes <= 1, "{probes} probes");
        if let Step::Asked = step {
            out += probes;
        }
    });
    assert!(out > 1_000, "{out}");
}

#[test]
fn property_6_a_permit_of_another_generation_changes_nothing() {
    let mut late = 0;
    along_random_histories(|walk, step| {
        if let Step::Late { before } = step {
            let mut after = walk.breaker.snapshot(walk.now);
            late += after.late_verdicts - before.late_verdicts;
            after.late_verdicts = before.late_verdicts;
            assert_eq!(after, before);
        }
    });
    assert!(late > 1_000, "{late}");
}

#[test]
fn property_6_the_probes_verdict_decides() {
    let mut closed = 0;
    along_random_histories(|walk, step| {
        if let Step::Probe { verdict } = step {
            let after = walk.breaker.snapshot(walk.now);
            match verdict {
                Verdict::Success | Verdict::Paced => {
                    assert_eq!(after.state, State::Closed);
                    assert_eq!((after.streak, after.calls, after.opened_with), (0, 0, None));
                    closed += 1;
                }
                Verdict::Failure | Verdict::Timeout => {
                    assert_eq!(after.state, State::Open);
                    if walk.settings.start_millis.is_none() {
                        let full = Duration::from_millis(walk.settings.cool_down_millis);
                        assert_eq!(after.retry_after, Some(full));
                    }
                }
            }
        }
    });
    assert!(closed > 500, "{closed}");
}

/// What the machine counts is what the plain rule, with its list, counts; and the snapshot's numbers make sense.
#[test]
fn property_7_the_counts_are_those_of_the_window() {
    along_random_histories(|walk, step| {
        let seen = walk.breaker.snapshot(walk.now);
        assert!(seen.failures <= seen.calls);
        if let Step::Counted { says, opened: None, .. } = step {
            assert_eq!(u64::from(seen.streak), says.streak);
            assert_eq!(seen.calls - seen.failures, says.successes);
        }
    });
}

/// No clock makes it panic, loop, or stay shut: any time after any other.
#[test]
fn property_7_no_panic_for_any_clock() {
    let mut rng = Rng(77);
    let anywhere = |rng: &mut Rng| match rng.below(4) {
        0 => Time::from_nanos(rng.next()),
        1 => Time::from_nanos(rng.next() >> rng.below(64)),
        2 => Time::from_nanos(u64::MAX - rng.below(3)),
        _ => Time::from_nanos(rng.below(3)),
    };
    for window in [Duration::ZERO, Duration::from_nanos(29), Duration::from_millis(50), Duration::MAX] {
        for cool_down in [Duration::ZERO, Duration::from_secs(15), Duration::MAX] {
            for _ in 0..200 {
                let mut config = Settings::DEFAULT.config();
                (config.window, config.cool_down, config.probe_lease) = (window, cool_down, cool_down);
                config.cool_down_start = rng.percent(50).then_some(cool_down / 3);
                let mut breaker = Breaker::new(config);
                for _ in 0..30 {
                    let now = anywhere(&mut rng);
                    if let Ok(permit) = breaker.try_acquire(now) {
                        let verdict =
                            rng.pick(&[Verdict::Failure, Verdict::Timeout, Verdict::Failure, Verdict::Success]);
                        breaker.record(anywhere(&mut rng), permit, verdict);
                    }
                    breaker.record_successes(anywhere(&mut rng), rng.pick(&[0, 1, u32::MAX]));
                    let (at, other) = (anywhere(&mut rng), anywhere(&mut rng));
                    let seen = breaker.snapshot(at);
                    assert!(seen.failures <= seen.calls);
                    breaker.would_refuse_at(at, other);
                }
                // The clock has come to its end: whatever was waited for is over.
                assert_eq!(breaker.check(Time::MAX), Ok(()));
            }
        }
    }
}
