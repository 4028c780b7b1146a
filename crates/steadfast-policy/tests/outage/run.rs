//! The event loop: calls arrive whatever happens, attempts are answered, refused or time out, retries are asked for.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use steadfast_policy::budget::RetryPermit;
use steadfast_policy::{Answer, Cause, Time, Verdict};

use super::client::{Client, Pass, Rules};
use super::random::Random;
use super::world::{BLIP_PERIOD, CAPACITY, MILLISECOND, Nanos, SECOND, Scenario, Server};

/// From the sending of an attempt.
const ATTEMPT_TIMEOUT: Nanos = 500 * MILLISECOND;
/// How long a failure takes that never reaches the server.
const FAST: Nanos = MILLISECOND;
/// With the first.
const ATTEMPTS: u32 = 3;
/// The longest wait before the first retry; it doubles for the next. The wait is uniform from zero.
const BACKOFF: Nanos = 100 * MILLISECOND;

/// What happened, by the second in which the call arrived or the attempt was sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Record {
    calls: Vec<u64>,
    good: Vec<u64>,
    sent: Vec<u64>,
    /// For each client, how long after the trigger its breaker was open for the first time.
    opened: Vec<Option<Nanos>>,
}

impl Record {
    /// Good answers to the calls that arrived in these seconds.
    pub(crate) fn good(&self, seconds: Range<usize>) -> f64 {
        sum(&self.good[seconds])
    }

    /// The share of the calls of these seconds that succeeded, in percent.
    pub(crate) fn success(&self, seconds: Range<usize>) -> f64 {
        100.0 * sum(&self.good[seconds.clone()]) / sum(&self.calls[seconds])
    }

    /// Attempts sent in these seconds for each call that arrived in them.
    pub(crate) fn sent_per_call(&self, seconds: Range<usize>) -> f64 {
        sum(&self.sent[seconds.clone()]) / sum(&self.calls[seconds])
    }

    /// Attempts sent in these seconds, per client.
    pub(crate) fn sent_per_client(&self, seconds: Range<usize>) -> f64 {
        sum(&self.sent[seconds]) / self.opened.len() as f64
    }

    /// Seconds from the trigger to the opening of the breaker, the mean of the clients; infinite if one never opened.
    pub(crate) fn opens_after(&self) -> f64 {
        let seconds = |opened: &Option<Nanos>| opened.map_or(f64::INFINITY, |nanos| nanos as f64 / SECOND as f64);
        self.opened.iter().map(seconds).sum::<f64>() / self.opened.len() as f64
    }
}

fn sum(counts: &[u64]) -> f64 {
    counts.iter().sum::<u64>() as f64
}

#[derive(Clone, Copy)]
struct Call {
    number: u64,
    client: usize,
    arrived: usize,
}

struct Flight {
    due: Nanos,
    sent: Nanos,
    call: Call,
    attempt: u32,
    pass: Pass,
    /// `None` for a first attempt.
    retry: Option<RetryPermit>,
    verdict: Verdict,
    random: Random,
}

/// A retry in its backoff.
struct Resend {
    due: Nanos,
    call: Call,
    attempt: u32,
    retry: RetryPermit,
}

impl Ord for Resend {
    /// The earliest is the greatest: it leaves the heap first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.call.number).cmp(&(self.due, self.call.number))
    }
}

impl PartialOrd for Resend {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Resend {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Resend {}

/// The lane of the attempts that fail fast.
const REFUSED: usize = 0;
/// The lane of the attempts that time out.
const TIMED_OUT: usize = 1;
/// The lane of the attempts that the first replica answers; the others follow.
const SERVED: usize = 2;

/// Everything that is to happen, but for the next arrival.
struct Agenda {
    /// Attempts in flight. Each lane is in order of time by construction, as its delay is fixed, or its server's queue is.
    lanes: Vec<VecDeque<Flight>>,
    backoffs: BinaryHeap<Resend>,
}

enum Next {
    Arrival,
    Resend(Resend),
    Ended(Flight),
}

impl Agenda {
    fn new(replicas: u32) -> Self {
        let lanes = SERVED + replicas as usize;
        Self { lanes: (0..lanes).map(|_| VecDeque::new()).collect(), backoffs: BinaryHeap::new() }
    }

    /// What happens next, given when the next call arrives.
    fn pop(&mut self, arrival: Nanos) -> Next {
        let mut first = self.backoffs.peek().map_or(Nanos::MAX, |resend| resend.due);
        let mut from = None;
        for (lane, flights) in self.lanes.iter().enumerate() {
            if let Some(flight) = flights.front()
                && flight.due < first
            {
                first = flight.due;
                from = Some(lane);
            }
        }
        if arrival < first {
            return Next::Arrival;
        }
        match from {
            Some(lane) => self.lanes[lane].pop_front().map_or(Next::Arrival, Next::Ended),
            None => self.backoffs.pop().map_or(Next::Arrival, Next::Resend),
        }
    }
}

struct Run<'a> {
    scenario: &'a Scenario,
    seed: u64,
    clients: Vec<Client>,
    servers: Vec<Server>,
    agenda: Agenda,
    record: Record,
}

/// Runs a scenario to its end. The same seed means the same arrivals, and the same luck for the same attempt.
pub(crate) fn run(scenario: &Scenario, rules: Rules, seed: u64) -> Record {
    let seconds = scenario.end();
    let clients = scenario.clients as usize;
    let mut run = Run {
        scenario,
        seed,
        clients: (0..clients).map(|_| Client::new(rules)).collect(),
        servers: (0..scenario.replicas).map(|_| Server::default()).collect(),
        agenda: Agenda::new(scenario.replicas),
        record: Record {
            calls: vec![0; seconds],
            good: vec![0; seconds],
            sent: vec![0; seconds],
            opened: vec![None; clients],
        },
    };
    run.play();
    run.record
}

impl Run<'_> {
    fn play(&mut self) {
        let mut arrivals = Random::new(self.seed);
        let end = self.scenario.end() as u64 * SECOND;
        let mut number = 0;
        let mut arrival = 0;
        loop {
            match self.agenda.pop(arrival) {
                Next::Arrival if arrival >= end => return,
                Next::Arrival => {
                    let client = arrivals.below(self.clients.len() as u64) as usize;
                    self.arrive(arrival, Call { number, client, arrived: (arrival / SECOND) as usize });
                    number += 1;
                    let rate = CAPACITY * self.scenario.load * self.scenario.weather(arrival, 0).arrivals;
                    arrival += arrivals.exponential(SECOND as f64 / rate) as Nanos;
                }
                Next::Resend(resend) => self.resend(resend),
                Next::Ended(flight) => self.ended(flight),
            }
        }
    }

    fn arrive(&mut self, now: Nanos, call: Call) {
        self.record.calls[call.arrived] += 1;
        let client = &mut self.clients[call.client];
        let Some(pass) = client.guard.try_acquire(now) else { return };
        if let Some(budget) = &mut client.budget {
            budget.call_started(Time::from_nanos(now));
        }
        self.send(now, call, 1, pass, None);
    }

    fn resend(&mut self, resend: Resend) {
        let client = &mut self.clients[resend.call.client];
        match (client.guard.try_acquire(resend.due), &mut client.budget) {
            (Some(pass), _) => self.send(resend.due, resend.call, resend.attempt, pass, Some(resend.retry)),
            (None, Some(budget)) => budget.retry_unsent(Time::from_nanos(resend.due), resend.retry),
            (None, None) => {}
        }
    }

    fn send(&mut self, now: Nanos, call: Call, attempt: u32, pass: Pass, retry: Option<RetryPermit>) {
        if let Some(sent) = self.record.sent.get_mut((now / SECOND) as usize) {
            *sent += 1;
        }
        let mut random = Random::of_attempt(self.seed, call.number, attempt);
        let replica = random.below(self.servers.len() as u64) as usize;
        let work = random.exponential(SECOND as f64 * self.servers.len() as f64 / CAPACITY);
        let luck = random.share();
        let weather = self.scenario.weather(now, replica);
        let timeout = (now + ATTEMPT_TIMEOUT, Verdict::Timeout, TIMED_OUT);
        let (due, verdict, lane) = if luck < weather.hung {
            timeout
        } else if luck < weather.hung + weather.refused || now % BLIP_PERIOD < weather.blip {
            (now + FAST, Verdict::Failure, REFUSED)
        } else {
            let costly = luck < weather.hung + weather.refused + weather.costly;
            let verdict = if costly { Verdict::Failure } else { Verdict::Success };
            let done = self.servers[replica].serve(self.scenario, replica, now, work);
            if done > now + ATTEMPT_TIMEOUT { timeout } else { (done, verdict, SERVED + replica) }
        };
        let flight = Flight { due, sent: now, call, attempt, pass, retry, verdict, random };
        self.agenda.lanes[lane].push_back(flight);
    }

    fn ended(&mut self, mut flight: Flight) {
        let now = flight.due;
        let at = Time::from_nanos(now);
        let client = &mut self.clients[flight.call.client];
        client.guard.record(now, flight.pass, flight.verdict);
        let trigger = self.scenario.trigger() as u64 * SECOND;
        let opened = &mut self.record.opened[flight.call.client];
        if opened.is_none() && now >= trigger && client.guard.is_open(now) {
            *opened = Some(now - trigger);
        }
        let good = flight.verdict == Verdict::Success;
        if good {
            self.record.good[flight.call.arrived] += 1;
        }
        let Some(budget) = &mut client.budget else { return };
        let answer = match good {
            false => Answer::Failed,
            true if now - flight.sent > ATTEMPT_TIMEOUT / 2 => Answer::SlowOk,
            true => Answer::Ok,
        };
        match flight.retry {
            None => budget.first_done(at, answer),
            Some(permit) => budget.retry_done(at, permit, answer),
        }
        if good || flight.attempt == ATTEMPTS {
            return;
        }
        let due = now + flight.random.below(BACKOFF << (flight.attempt - 1));
        if client.guard.would_refuse_at(now, due) {
            return;
        }
        let cause = if flight.verdict == Verdict::Timeout { Cause::Timeout } else { Cause::Fast };
        if let Ok(retry) = budget.ask(at, cause, flight.random.next()) {
            self.agenda.backoffs.push(Resend { due, call: flight.call, attempt: flight.attempt + 1, retry });
        }
    }
}
