//! Dropping a call at any await gives everything back (contract 1.6).
//!
//! Each script is run with no runtime, and dropped after poll 0, 1, 2, … to its end. What the policies hold then is
//! compared with machines that were told, step by step, what the contract says of a call that ends there: an attempt in
//! flight is no verdict and stays paid for, a retry that was not sent is refunded, a waiter never was.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_executor::LocalPool;
use futures_util::task::LocalSpawnExt;
use steadfast::policy::breaker::{Breaker, BreakerConfig};
use steadfast::policy::budget::{Budget, BudgetConfig};
use steadfast::policy::{Answer, Cause, Time, Verdict};
use steadfast::report::Outcome;
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{ClientBuilder, Event, ServiceClient};

use crate::harness::{ms, secs};

type Configure = fn(ClientBuilder) -> ClientBuilder;

/// What happened, and when.
#[derive(Clone, Copy, Debug)]
enum Noted {
    Ended(Time, Outcome),
    Paid(Time),
}

struct Run {
    clock: VirtualClock,
    upstream: Script,
    client: ServiceClient,
    noted: Arc<Mutex<Vec<Noted>>>,
}

impl Run {
    fn new(steps: &[Step], configure: Configure) -> Self {
        let clock = VirtualClock::new();
        let upstream = Script::new(clock.clone(), steps.to_vec());
        let noted = Arc::new(Mutex::new(Vec::new()));
        let (sink, time) = (Arc::clone(&noted), clock.clone());
        let builder = ServiceClient::builder("http://billing.test").name("billing").seed(11);
        let client = configure(builder)
            .clock(clock.clone())
            .transport(upstream.clone())
            .on_event(move |event| {
                let note = match event {
                    Event::Attempt { attempt, .. } => Noted::Ended(time.now(), attempt.outcome),
                    Event::Retry { .. } => Noted::Paid(time.now()),
                    _ => return,
                };
                sink.lock().unwrap().push(note);
            })
            .build()
            .unwrap();
        upstream.set_read_timeout(client.settings().read_timeout);
        Self { clock, upstream, client, noted }
    }

    /// Polls the call `polls` times, moving the clock in between; true if it ended before.
    fn poll(&self, polls: usize) -> bool {
        let mut call = pin!(self.client.get("/x").send());
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..polls {
            if call.as_mut().poll(&mut context).is_ready() {
                return true;
            }
            self.clock.advance_to_next_timer();
        }
        false
    }

    fn assert_nothing_is_left(&self, what: &str) {
        let line = self.client.snapshot().line;
        assert_eq!((line.in_use, line.queued), (0, 0), "{what}");
        assert_eq!(self.upstream.in_flight(), 0, "{what}");
        assert_eq!(self.clock.armed_timers(), 0, "{what}");
    }

    /// Tells fresh machines what the contract says of this one call, and compares.
    fn assert_equals_the_reference(&self, what: &str) {
        let settings = self.client.settings();
        let mut breaker = Breaker::new(BreakerConfig {
            failures: settings.breaker_failures,
            probe_lease: settings.total_timeout,
            ..BreakerConfig::default()
        });
        let mut budget = Budget::new(BudgetConfig::default());
        let mut notes = self.noted.lock().unwrap().clone().into_iter().peekable();
        let mut paid = None;
        for (index, seen) in self.upstream.seen().iter().enumerate() {
            if index == 0 {
                budget.call_started(seen.at);
            }
            let permit = breaker.try_acquire(seen.at).unwrap();
            match notes.next() {
                Some(Noted::Ended(at, outcome)) => {
                    let (verdict, answer, cause) = meaning(outcome);
                    match verdict {
                        Some(verdict) => breaker.record(at, permit, verdict),
                        None => breaker.cancel(at, permit),
                    }
                    match paid.take() {
                        Some(paid) => budget.retry_done(at, paid, answer),
                        None => budget.first_done(at, answer),
                    }
                    if let Some(Noted::Paid(at)) = notes.peek() {
                        paid = Some(budget.ask(*at, cause, 0).unwrap());
                        notes.next();
                    }
                }
                // It was in flight when it was dropped: no verdict, and a retry stays paid for.
                _ => {
                    breaker.cancel(self.clock.now(), permit);
                    if let Some(paid) = paid.take() {
                        budget.retry_done(self.clock.now(), paid, Answer::Failed);
                    }
                }
            }
        }
        // It was paid for and never sent.
        if let Some(paid) = paid.take() {
            budget.retry_unsent(self.clock.now(), paid);
        }
        let now = self.clock.now();
        let snapshot = self.client.snapshot();
        assert_eq!(snapshot.breaker, breaker.snapshot(now), "{what}");
        assert_eq!(snapshot.budget, budget.snapshot(now), "{what}");
    }
}

fn meaning(outcome: Outcome) -> (Option<Verdict>, Answer, Cause) {
    match outcome.name().as_ref() {
        "200" => (Some(Verdict::Success), Answer::Ok, Cause::Fast),
        "500" => (Some(Verdict::Success), Answer::ServerError, Cause::Fast),
        "429" => (Some(Verdict::Paced), Answer::Failed, Cause::Fast),
        "read_timeout" | "attempt_timeout" | "deadline" => (Some(Verdict::Timeout), Answer::Failed, Cause::Timeout),
        _ => (Some(Verdict::Failure), Answer::Failed, Cause::Fast),
    }
}

/// The scripts of the acceptance cases in which something is waited for.
fn scripts() -> Vec<(&'static str, Vec<Step>, Configure)> {
    let slow = |status| Step::status(status).after(ms(20));
    let same: Configure = |client| client;
    vec![
        ("C1", vec![slow(503), slow(200)], same),
        ("C3", vec![slow(503)], same),
        ("C4", vec![slow(500)], same),
        ("C8", vec![Step::refuse()], same),
        ("C9", vec![Step::refuse(), Step::hang(), slow(200)], same),
        ("C11", vec![slow(429).header("Retry-After", "2"), slow(200)], same),
        ("C17", vec![Step::hang()], |client| client.total_timeout(ms(200))),
        ("C18", vec![slow(503), Step::hang()], |client| client.total_timeout(ms(300))),
        ("C19", vec![slow(503), slow(503), Step::refuse()], same),
        ("C22", vec![slow(503)], |client| client.breaker_failures(2)),
        ("C31", vec![Step::hang()], |client| client.attempt_timeout(ms(50)).breaker_failures(2)),
        ("reset", vec![Step::reset().after(ms(5)), slow(200)], same),
    ]
}

#[test]
fn c1_6_a_call_that_is_dropped_at_any_poll_leaves_what_the_contract_says() {
    let mut dropped = 0;
    for (name, steps, configure) in scripts() {
        for polls in 0.. {
            let run = Run::new(&steps, configure);
            let ended = run.poll(polls);
            let what = format!("{name} dropped after poll {polls}");
            run.assert_nothing_is_left(&what);
            run.assert_equals_the_reference(&what);
            if ended {
                break;
            }
            dropped += 1;
        }
    }
    assert!(dropped > 30, "the scripts have that many places to be dropped at, not {dropped}");
}

/// A call in the line behind a slow one is dropped after each poll; the one behind it still gets its turn.
#[test]
fn c6_3_a_waiter_that_is_dropped_at_any_poll_never_was() {
    let limits: [(&str, Configure); 3] = [
        ("slots", |client| client.max_concurrent(1).bulkhead_wait(secs(9))),
        ("places", |client| client.rate_limit(1)),
        ("both", |client| client.rate_limit(1).max_concurrent(1).bulkhead_wait(secs(9))),
    ];
    for (name, configure) in limits {
        for polls in 0..8 {
            let run = Run::new(&[Step::status(200).after(ms(1500))], configure);
            let mut pool = LocalPool::new();
            let spawner = pool.spawner();
            let results = Arc::new(Mutex::new(Vec::new()));
            let call = |label: &'static str| {
                let (client, results, clock) = (run.client.clone(), Arc::clone(&results), run.clock.clone());
                async move {
                    let status = client.get(label).send().await.map(|response| response.status().as_u16());
                    results.lock().unwrap().push((label, status.map_err(|error| error.kind()), clock.now()));
                }
            };
            spawner.spawn_local(call("first")).unwrap();
            pool.run_until_stalled();
            {
                let mut waiter = pin!(call("dropped"));
                let mut context = Context::from_waker(Waker::noop());
                let mut ended = false;
                for poll in 0..polls {
                    ended = ended || waiter.as_mut().poll(&mut context).is_ready();
                    if poll == 0 {
                        // Behind the waiter that will go.
                        spawner.spawn_local(call("behind")).unwrap();
                        pool.run_until_stalled();
                    }
                    if ended {
                        break;
                    }
                    run.clock.advance(ms(300));
                    pool.run_until_stalled();
                }
            }
            pool.run_until_stalled();
            while run.clock.advance_to_next_timer() {
                pool.run_until_stalled();
            }
            let what = format!("{name}, dropped after poll {polls}");
            run.assert_nothing_is_left(&what);
            let results = results.lock().unwrap();
            let expected = if polls == 0 { 1 } else { 2 };
            let answered =
                results.iter().filter(|(label, status, _)| *label != "dropped" && *status == Ok(200)).count();
            assert_eq!(answered, expected, "{what}: {results:?}");
            if polls > 0 {
                let (_, _, at) = results.iter().find(|(label, ..)| *label == "behind").unwrap();
                // Had the one that left kept its position, the one behind would have been served a turn later. Asking
                // for the fifth time, at 1.2 s, it is past its place and starts: that place stays taken.
                let latest = match (name, polls as u64) {
                    ("places", polls @ ..=4) => ms(1500) + ms(1000).max(ms(300 * polls)),
                    ("places", _) => ms(2200 + 1500),
                    _ => ms(3000 + 1500),
                };
                assert!(at.since(Time::ZERO) <= latest, "{what}: served at {at}");
            }
        }
    }
}

/// A probe that is dropped at any poll frees its place at once (4.6).
#[test]
fn c4_6_a_probe_that_is_dropped_at_any_poll_frees_its_place() {
    for polls in 0..4 {
        let run = Run::new(&[Step::status(503)], |client| client.breaker_failures(1).retries(0));
        assert!(run.poll(1));
        run.clock.advance(secs(15));
        run.upstream.play([Step::status(200).after(secs(1)).body("slow")]);
        let ended = run.poll(polls);
        run.upstream.play([Step::status(200)]);
        let next = run.clock.run(run.client.get("/next").send()).unwrap();
        assert_eq!(next.unwrap().status(), 200, "after poll {polls}, ended: {ended}");
        run.assert_nothing_is_left("probe");
    }
}

#[test]
fn a39_random_cancellation_under_contention_loses_nothing() {
    let run = Run::new(&[Step::status(200).after(ms(7))], |client| {
        client.max_concurrent(3).bulkhead_wait(ms(40)).rate_limit(20).rate_limit_period(ms(100))
    });
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut calls: Vec<std::pin::Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..5_000 {
        match next() % 4 {
            0 | 1 if calls.len() < 20 => {
                let client = run.client.clone();
                calls.push(Box::pin(async move { drop(client.get("/x").send().await) }));
            }
            2 if !calls.is_empty() => drop(calls.swap_remove(next() as usize % calls.len())),
            _ => run.clock.advance(Duration::from_micros(next() % 5_000)),
        }
        calls.retain_mut(|call| call.as_mut().poll(&mut context).is_pending());
        assert!(run.upstream.in_flight() <= 3);
    }
    calls.clear();
    run.assert_nothing_is_left("after the storm");
    run.clock.advance(secs(1));
    let last = run.clock.run(run.client.get("/last").send()).unwrap();
    assert_eq!(last.unwrap().status(), 200);
}
