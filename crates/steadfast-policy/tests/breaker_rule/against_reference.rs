//! The machine and the reference do and see the same, whatever happens to them.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use steadfast_policy::breaker::{Breaker, Permit, State, Why};
use steadfast_policy::{Time, Verdict};

use crate::history::{Generator, Op, Pace, Rng, Settings};
use crate::reference::{Reference, Tally, Ticket};

/// Both, with their permits in flight.
struct Pair {
    breaker: Breaker,
    reference: Reference,
    in_flight: Vec<(Permit, Ticket)>,
    events: usize,
}

impl Pair {
    fn new(settings: Settings) -> Self {
        Self {
            breaker: Breaker::new(settings.config()),
            reference: Reference::new(settings),
            in_flight: Vec::new(),
            events: 0,
        }
    }

    fn take(&mut self, index: usize) -> Option<(Permit, Ticket)> {
        let len = self.in_flight.len();
        (len > 0).then(|| self.in_flight.swap_remove(index % len))
    }

    /// Does `op` to both and compares what they answer, the state, and the events; with `look` everything that a reader
    /// can see, at `now` and at `later`.
    fn apply(&mut self, now: Time, op: Op, look: bool, later: Time) {
        let (breaker, reference) = (&mut self.breaker, &mut self.reference);
        match op {
            Op::Acquire => match (breaker.try_acquire(now), reference.try_acquire(now)) {
                (Ok(permit), Ok(ticket)) => {
                    assert_eq!(permit.is_probe(), reference.state() == State::HalfOpen);
                    self.in_flight.push((permit, ticket));
                }
                (ours, theirs) => assert_eq!(ours.map(drop), theirs.map(drop)),
            },
            Op::Record(index, verdict) => {
                if let Some((permit, ticket)) = self.take(index) {
                    self.breaker.record(now, permit, verdict);
                    self.reference.record(now, ticket, verdict);
                }
            }
            Op::Cancel(index) => {
                if let Some((permit, ticket)) = self.take(index) {
                    self.breaker.cancel(now, permit);
                    self.reference.cancel(now, ticket);
                }
            }
            Op::Lose(index) => drop(self.take(index)),
            Op::Successes(n) => {
                breaker.record_successes(now, n);
                reference.record_successes(now, n);
            }
            Op::ForceOpen => {
                breaker.force_open(now);
                reference.operate(now, Some(State::Open));
            }
            Op::ForceClose => {
                breaker.force_close(now);
                reference.operate(now, Some(State::Closed));
            }
            Op::Reset => {
                breaker.reset(now);
                reference.operate(now, None);
            }
        }
        self.compare_events();
        assert_eq!(self.breaker.state(now), self.reference.state());
        if look {
            for at in [now, later] {
                assert_eq!(self.breaker.snapshot(at), self.reference.snapshot(at));
                assert_eq!(self.breaker.check(at), self.reference.check(at));
                assert_eq!(self.breaker.would_refuse_at(now, at), self.reference.would_refuse_at(now, at));
            }
        }
    }

    /// The machine tells of every transition but a reset that changes nothing to be seen.
    fn compare_events(&mut self) {
        for index in self.events..self.reference.transitions() {
            let expected = self.reference.transition(index);
            let was_forced = index > 0 && self.reference.transition(index - 1).why == Why::Forced;
            if expected.from == expected.to && expected.why == Why::Reset && !was_forced {
                continue;
            }
            assert_eq!(self.breaker.poll_event(), Some(expected));
        }
        self.events = self.reference.transitions();
        assert_eq!(self.breaker.poll_event(), None);
    }
}

fn histories(seed: u64, histories: u64, operations: u32, pace: Pace) -> Tally {
    let mut tally = Tally::default();
    for history in 0..histories {
        let mut rng = Rng(seed ^ (history << 32));
        let settings = Settings::random(&mut rng);
        let mut pair = Pair::new(settings);
        let mut generator = Generator::new(rng, settings, pace, true);
        for _ in 0..operations {
            let wait = pair.breaker.check(Time::ZERO).err().and_then(|rejection| rejection.retry_after);
            let (now, op) = generator.next(wait);
            let look = generator.rng.percent(10);
            let later = Time::from_nanos(now.as_nanos() + generator.rng.below(60_000_000_000));
            pair.apply(now, op, look, later);
        }
        tally += pair.reference.tally;
    }
    println!("{pace:?}: {tally:?}");
    tally
}

#[test]
fn mixed_histories_900_000_operations() {
    let tally = histories(1, 4_500, 200, Pace::Mixed);
    assert!(tally.streak > 1_000 && tally.rate > 1_000, "{tally:?}");
    assert!(tally.probe_succeeded > 1_000 && tally.probe_failed > 1_000, "{tally:?}");
    assert!(tally.probe_overdue > 1_000 && tally.late > 10_000, "{tally:?}");
}

#[test]
fn busy_histories_400_000_operations() {
    let tally = histories(2, 200, 2_000, Pace::Busy);
    assert!(tally.noise_held > 500 && tally.blip_held > 300 && tally.timeouts_opened > 20, "{tally:?}");
}

#[test]
fn rare_attempts_300_000_operations() {
    let tally = histories(3, 1_000, 300, Pace::Rare);
    assert!(tally.streak > 500 && tally.rate > 200, "{tally:?}");
}

/// By hand: `cargo test --release -p steadfast-policy --test breaker_rule -- --ignored`.
#[test]
#[ignore = "by hand: it takes a minute in release"]
fn by_hand_100_million_operations() {
    histories(11, 200_000, 300, Pace::Mixed);
    histories(12, 10_000, 2_000, Pace::Busy);
    histories(13, 66_000, 300, Pace::Rare);
}

fn any_op() -> impl Strategy<Value = Op> {
    let verdict = prop_oneof![
        3 => Just(Verdict::Success),
        6 => Just(Verdict::Failure),
        2 => Just(Verdict::Timeout),
        1 => Just(Verdict::Paced),
    ];
    prop_oneof![
        20 => Just(Op::Acquire),
        20 => (0..8_usize, verdict).prop_map(|(index, verdict)| Op::Record(index, verdict)),
        1 => (0..8_usize).prop_map(Op::Cancel),
        1 => (0..8_usize).prop_map(Op::Lose),
        1 => (0..50_u32).prop_map(Op::Successes),
        1 => prop_oneof![Just(Op::ForceOpen), Just(Op::ForceClose), Just(Op::Reset)],
    ]
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let limits = (1..9_u32, 1..1_000_001_u32, 0..40_u32, 1..40_000_u64);
    let times = (1..20_000_u64, prop::option::of(1..20_000_u64), 1..40_000_u64);
    (limits, times).prop_map(|(limits, times)| Settings {
        failures: limits.0,
        rate_millionths: limits.1,
        minimum_calls: limits.2,
        window_millis: limits.3,
        cool_down_millis: times.0,
        start_millis: times.1,
        lease_millis: times.2,
    })
}

/// The same cases in every run.
fn seeded() -> ProptestConfig {
    ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(seeded())]

    /// The same with histories that shrink. A step of the clock is signed.
    #[test]
    fn shrinking_histories(
        settings in any_settings(),
        steps in prop::collection::vec((prop_oneof![4 => -500..2_000_i64, 1 => -9_000..400_000_i64], any_op()), 1..200),
    ) {
        let mut pair = Pair::new(settings);
        let mut millis = 10_000_i64;
        for (step, op) in steps {
            millis = (millis + step).max(0);
            pair.apply(Time::from_millis(millis as u64), op, true, Time::from_millis(millis as u64 + 7_000));
        }
    }
}
