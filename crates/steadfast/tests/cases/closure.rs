//! The same loop around a closure: the cases of the second and third seed (contract section 11).

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::{BreakerConfig, State};
use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::report::WaitReason;
use steadfast::testing::VirtualClock;
use steadfast::{ErrorKind, Guard, GuardBuilder, GuardError};

use crate::harness::{ms, secs};

/// What the example's transport makes of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Failed {
    Server(u16),
    Client(u16),
    Connection,
    TimedOut,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Failed {}

fn transient(failed: &Failed) -> bool {
    !matches!(failed, Failed::Client(_))
}

const OK: Result<u16, Failed> = Ok(200);
const UNAVAILABLE: Result<u16, Failed> = Err(Failed::Server(503));

/// A host of the second seed's example; its last reply repeats.
struct Host {
    clock: VirtualClock,
    guard: Guard,
    replies: Mutex<VecDeque<Result<u16, Failed>>>,
    requests: AtomicUsize,
}

impl Host {
    fn new(replies: impl IntoIterator<Item = Result<u16, Failed>>) -> Self {
        Self::with(replies, |guard| guard)
    }

    fn with(
        replies: impl IntoIterator<Item = Result<u16, Failed>>,
        configure: impl FnOnce(GuardBuilder) -> GuardBuilder,
    ) -> Self {
        let clock = VirtualClock::new();
        let backoff =
            Backoff { base: ms(200), factor: 2.0, max: secs(5), jitter: Jitter::Additive, jitter_max: ms(100) };
        let breaker = BreakerConfig { failures: 3, cool_down: secs(30), ..BreakerConfig::default() };
        let builder = Guard::builder("api.example.com").attempts(4).backoff(backoff).breaker(breaker);
        let guard = configure(builder).clock(clock.clone()).seed(7).build().unwrap();
        let replies = Mutex::new(replies.into_iter().collect());
        Self { clock, guard, replies, requests: AtomicUsize::new(0) }
    }

    fn reply(&self) -> Result<u16, Failed> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut replies = self.replies.lock().unwrap();
        if replies.len() > 1 { replies.pop_front().unwrap() } else { replies[0] }
    }

    fn play(&self, reply: Result<u16, Failed>) {
        *self.replies.lock().unwrap() = VecDeque::from([reply]);
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// With retries for what is transient.
    fn get(&self) -> Result<u16, GuardError<Failed>> {
        self.clock.run(self.guard.transient(transient).call(|| ready(self.reply()))).unwrap()
    }

    /// Without retries.
    fn call(&self) -> Result<u16, GuardError<Failed>> {
        self.clock.run(self.guard.call(|| ready(self.reply()))).unwrap()
    }

    fn state(&self) -> State {
        self.guard.snapshot().breaker.state
    }
}

#[test]
fn w1_transient_failures_are_repeated_with_growing_jittered_waits() {
    let events = std::sync::Arc::new(Mutex::new(Vec::new()));
    let sink = std::sync::Arc::clone(&events);
    let host = Host::with([UNAVAILABLE, Err(Failed::Connection), OK], |guard| {
        guard.on_event(move |event| {
            if let steadfast::Event::Retry { wait, .. } = event {
                sink.lock().unwrap().push(*wait);
            }
        })
    });
    assert_eq!(host.get().unwrap(), 200);
    assert_eq!(host.requests(), 3);
    let waits = events.lock().unwrap().clone();
    assert_eq!(waits.len(), 2);
    assert!((ms(200)..=ms(300)).contains(&waits[0]) && (ms(400)..=ms(500)).contains(&waits[1]), "{waits:?}");
}

#[test]
fn w2_a_client_error_passes_through_at_once_and_is_no_verdict() {
    let host = Host::new([Err(Failed::Client(404))]);
    for _ in 0..5 {
        let error = host.get().unwrap_err();
        assert!(matches!(error, GuardError::Operation { error: Failed::Client(404), .. }));
        assert!(error.report().waits().is_empty());
    }
    assert_eq!(host.requests(), 5);
    assert_eq!(host.state(), State::Closed);
}

#[test]
fn w3_an_open_circuit_ends_the_call_with_the_operations_last_error_behind_it() {
    let host = Host::new([UNAVAILABLE]);
    let error = host.get().unwrap_err();
    assert_eq!(host.requests(), 3);
    let GuardError::Limit { error: limit, last } = &error else { panic!("{error:?}") };
    assert_eq!(limit.kind(), ErrorKind::CircuitOpen);
    assert_eq!(limit.retry_after(), Some(secs(30)));
    assert_eq!(*last, Some(Failed::Server(503)));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "Server(503)");
    assert_eq!(error.report().waits().len(), 2, "the third wait would have been in vain");

    assert_eq!(host.get().unwrap_err().limit(), Some(ErrorKind::CircuitOpen));
    assert_eq!(host.requests(), 3);
    assert_eq!(Host::new([OK]).get().unwrap(), 200, "another host is unaffected");
}

#[test]
fn w4_after_the_recovery_time_one_trial_closes_it() {
    let host = Host::new([UNAVAILABLE]);
    host.get().unwrap_err();
    host.play(OK);
    host.clock.advance(secs(31));
    assert_eq!(host.get().unwrap(), 200);
    assert_eq!(host.requests(), 4);
    assert_eq!(host.state(), State::Closed);
}

#[test]
fn w5_the_rate_limit_waits_instead_of_failing() {
    let rate = RateConfig { limit: 5, period: secs(1), wait: None, style: RateStyle::Window, max_keys: 100 };
    let host = Host::with([OK], |guard| guard.rate_limit(rate));
    let mut waited = Vec::new();
    for _ in 0..6 {
        let before = host.clock.now();
        host.get().unwrap();
        let wait = host.clock.now().since(before);
        if !wait.is_zero() {
            waited.push(wait);
        }
    }
    assert_eq!(host.requests(), 6);
    assert_eq!(waited, [secs(1)]);
}

#[test]
fn w6_the_deadline_is_never_mistaken_for_the_operations_own_timeout() {
    let clock = VirtualClock::new();
    let guard = Guard::builder("slow").attempts(4).clock(clock.clone()).build().unwrap();
    let starts = AtomicUsize::new(0);
    let call = guard.transient(transient).call(|| {
        starts.fetch_add(1, Ordering::Relaxed);
        pending::<Result<u16, Failed>>()
    });
    let error = clock.run(call).unwrap().unwrap_err();
    assert_eq!(error.limit(), Some(ErrorKind::Timeout));
    assert_eq!(starts.load(Ordering::Relaxed), 1);
    assert_eq!(clock.now().as_nanos(), 30_000_000_000);

    // The operation's own timeout error is transient, and is repeated.
    let host = Host::new([Err(Failed::TimedOut), OK]);
    assert_eq!(host.get().unwrap(), 200);
    assert_eq!(host.requests(), 2);
}

#[test]
fn k_a_three_calls_leave_and_two_are_refused() {
    let host = Host::new([UNAVAILABLE]);
    let mut states = Vec::new();
    for _ in 0..3 {
        let error = host.call().unwrap_err();
        // The call that opens it still passes the operation's own error on.
        assert!(matches!(error, GuardError::Operation { error: Failed::Server(503), .. }));
        states.push(host.state());
    }
    assert_eq!(states, [State::Closed, State::Closed, State::Open]);
    for _ in 0..2 {
        let error = host.call().unwrap_err();
        assert_eq!(error.to_string(), "circuit breaker 'api.example.com' is open");
    }
    assert_eq!(host.requests(), 3);
    assert_eq!(host.guard.snapshot().breaker.opened_with.unwrap().streak, 3);
}

#[test]
fn k_b_a_probe_closes_it_or_opens_it_for_another_round() {
    let host = Host::new([UNAVAILABLE]);
    for _ in 0..3 {
        host.call().unwrap_err();
    }
    host.clock.advance(secs(31));
    host.call().unwrap_err();
    assert_eq!(host.state(), State::Open);
    host.clock.advance(secs(29));
    assert_eq!(host.call().unwrap_err().limit(), Some(ErrorKind::CircuitOpen));
    host.clock.advance(secs(2));
    host.play(OK);
    assert_eq!(host.call().unwrap(), 200);
    assert_eq!(host.state(), State::Closed);
}

#[test]
fn k_c_three_attempts_and_only_for_the_errors_that_were_named() {
    let host = Host::with([Err(Failed::TimedOut), Err(Failed::TimedOut), OK], |guard| {
        guard.attempts(3).breaker(BreakerConfig::default())
    });
    assert_eq!(host.get().unwrap(), 200);
    assert_eq!(host.requests(), 3);
    let host = Host::with([Err(Failed::Client(400))], |guard| guard.attempts(3));
    host.get().unwrap_err();
    assert_eq!(host.requests(), 1);
}

#[test]
fn c11_2_without_a_word_on_errors_none_is_repeated() {
    let host = Host::with([UNAVAILABLE, OK], |guard| guard.attempts(5));
    host.call().unwrap_err();
    assert_eq!(host.requests(), 1);
}

#[test]
fn c11_2_exhausted_is_the_last_error_unwrapped() {
    let host = Host::with([UNAVAILABLE, Err(Failed::Connection)], |guard| guard.attempts(2));
    let error = host.get().unwrap_err();
    assert!(matches!(error, GuardError::Operation { error: Failed::Connection, .. }));
    assert_eq!(error.report().ended().name(), "attempts_exhausted");
    assert_eq!(error.report().waits()[0].reason, WaitReason::Backoff);
}

#[test]
fn c1_3_a_guards_timeouts_cannot_be_turned_off() {
    use std::time::Duration;
    for timeout in [Duration::ZERO, secs(86_401), Duration::MAX] {
        let problems = Guard::builder("mail").total_timeout(timeout).attempt_timeout(timeout).build().unwrap_err();
        let paths: Vec<_> = problems.iter().map(|problem| problem.path()).collect();
        assert_eq!(paths, ["total_timeout", "attempt_timeout"]);
    }
    let breaker = BreakerConfig { failures: 0, failure_rate: f64::NAN, ..BreakerConfig::default() };
    let problems = Guard::builder("mail").breaker(breaker).max_concurrent(0, secs(0)).build().unwrap_err();
    assert_eq!(problems.len(), 3, "{problems}");
}
