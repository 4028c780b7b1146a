//! The cases of the second and third seed, on the thread that calls: plain tests, nothing waits.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use steadfast::policy::breaker::{BreakerConfig, State};
use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::testing::VirtualClock;
use steadfast::{ErrorKind, Event, Guard, GuardBuilder, GuardError};

use super::{Failed, guard, transient};
use crate::harness::{ms, secs};

type Reply = Result<u16, Failed>;

const OK: Reply = Ok(200);
const UNAVAILABLE: Reply = Err(Failed::Server(503));

/// A host that belongs to its thread; its last reply repeats.
struct Host {
    clock: VirtualClock,
    guard: Guard,
    replies: Rc<RefCell<VecDeque<Reply>>>,
    requests: Cell<u32>,
}

impl Host {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(replies, |guard| guard)
    }

    fn with(replies: impl IntoIterator<Item = Reply>, configure: impl FnOnce(GuardBuilder) -> GuardBuilder) -> Self {
        let clock = VirtualClock::new();
        let guard = guard(&clock, configure);
        Self { clock, guard, replies: Rc::new(RefCell::new(replies.into_iter().collect())), requests: Cell::new(0) }
    }

    fn reply(&self) -> Reply {
        self.requests.set(self.requests.get() + 1);
        let mut replies = self.replies.borrow_mut();
        if replies.len() > 1 { replies.pop_front().unwrap() } else { replies[0] }
    }

    fn play(&self, reply: Reply) {
        *self.replies.borrow_mut() = VecDeque::from([reply]);
    }

    /// With retries for what is transient.
    fn get(&self) -> Result<u16, GuardError<Failed>> {
        self.guard.transient(transient).call_blocking(|| self.reply())
    }

    /// Without retries.
    fn call(&self) -> Result<u16, GuardError<Failed>> {
        self.guard.call_blocking(|| self.reply())
    }

    fn state(&self) -> State {
        self.guard.snapshot().breaker.state
    }
}

#[test]
fn w1_transient_failures_are_repeated_with_growing_jittered_waits() {
    let waits = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&waits);
    let host = Host::with([UNAVAILABLE, Err(Failed::Connection), OK], |guard| {
        guard.on_event(move |event| {
            if let Event::Retry { wait, .. } = event {
                sink.lock().unwrap().push(*wait);
            }
        })
    });
    assert_eq!(host.get().unwrap(), 200);
    assert_eq!(host.requests.get(), 3);
    let waits = waits.lock().unwrap().clone();
    assert_eq!(waits.len(), 2);
    assert!((ms(200)..=ms(300)).contains(&waits[0]) && (ms(400)..=ms(500)).contains(&waits[1]), "{waits:?}");
    assert_eq!(host.clock.now().as_nanos(), (waits[0] + waits[1]).as_nanos() as u64, "moved by just that");
    assert_eq!(host.clock.armed_timers(), 0);
}

#[test]
fn w2_a_client_error_passes_through_at_once_and_is_no_verdict() {
    let host = Host::new([Err(Failed::Client(404))]);
    for _ in 0..5 {
        let error = host.get().unwrap_err();
        assert!(matches!(error, GuardError::Operation { error: Failed::Client(404), .. }));
        assert!(error.report().waits().is_empty());
    }
    assert_eq!(host.requests.get(), 5);
    assert_eq!(host.state(), State::Closed);
}

#[test]
fn w3_an_open_circuit_ends_the_call_with_the_operations_last_error_behind_it() {
    let host = Host::new([UNAVAILABLE]);
    let error = host.get().unwrap_err();
    assert_eq!(host.requests.get(), 3);
    let GuardError::Limit { error: limit, last } = &error else { panic!("{error:?}") };
    assert_eq!(limit.kind(), ErrorKind::CircuitOpen);
    assert_eq!(limit.retry_after(), Some(secs(30)));
    assert_eq!(*last, Some(Failed::Server(503)));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "Server(503)");
    assert_eq!(error.report().waits().len(), 2, "the third wait would have been in vain");

    assert_eq!(host.get().unwrap_err().limit(), Some(ErrorKind::CircuitOpen));
    assert_eq!(host.requests.get(), 3);
    assert_eq!(Host::new([OK]).get().unwrap(), 200, "another host is unaffected");
}

#[test]
fn w4_after_the_recovery_time_one_trial_closes_it() {
    let host = Host::new([UNAVAILABLE]);
    host.get().unwrap_err();
    host.play(OK);
    host.clock.advance(secs(31));
    assert_eq!(host.get().unwrap(), 200);
    assert_eq!(host.requests.get(), 4);
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
    assert_eq!(host.requests.get(), 6);
    assert_eq!(waited, [secs(1)]);
}

/// The operation's own timeout, inside of the deadline, is transient, and is repeated.
#[test]
fn w6_the_operations_own_timeout_is_repeated() {
    let host = Host::new([Err(Failed::TimedOut), OK]);
    assert_eq!(host.get().unwrap(), 200);
    assert_eq!(host.requests.get(), 2);
}

/// The seed's hazard: the deadline strikes inside of the operation, which then says `TimedOut`, which is listed.
#[test]
fn p14_an_error_that_is_listed_ends_the_call_once_the_deadline_has_passed() {
    let host = Host::new([Err(Failed::TimedOut)]);
    let error = host
        .guard
        .transient(transient)
        .timeout(secs(5))
        .call_blocking(|| {
            host.clock.advance(secs(5));
            host.reply()
        })
        .unwrap_err();
    assert_eq!(host.requests.get(), 1);
    assert!(matches!(error, GuardError::Operation { error: Failed::TimedOut, .. }), "{error:?}");
    assert_eq!(error.report().ended().name(), "deadline");
    assert!(error.report().waits().is_empty());
}

#[test]
fn k_a_three_calls_leave_and_two_are_refused() {
    let host = Host::new([UNAVAILABLE]);
    let mut states = Vec::new();
    for _ in 0..3 {
        let error = host.call().unwrap_err();
        assert!(matches!(error, GuardError::Operation { error: Failed::Server(503), .. }));
        states.push(host.state());
    }
    assert_eq!(states, [State::Closed, State::Closed, State::Open]);
    for _ in 0..2 {
        let error = host.call().unwrap_err();
        assert_eq!(error.to_string(), "circuit breaker 'api.example.com' is open");
    }
    assert_eq!(host.requests.get(), 3);
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
    assert_eq!(host.requests.get(), 3);
    let host = Host::with([Err(Failed::Client(400))], |guard| guard.attempts(3));
    host.get().unwrap_err();
    assert_eq!(host.requests.get(), 1);
}

#[test]
fn c11_2_without_a_word_on_errors_none_is_repeated() {
    let host = Host::with([UNAVAILABLE, OK], |guard| guard.attempts(5));
    host.call().unwrap_err();
    assert_eq!(host.requests.get(), 1);
}
