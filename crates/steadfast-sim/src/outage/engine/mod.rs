//! The modelled upstream at work: what comes in, what is served, what is answered. An event simulation inside of the
//! world, moved by whoever asks it something and, when nobody does, by its driver.
//!
//! Decides the fate of each request by the model and the triggers, and knows nothing of policies. A request is a job in a
//! slab; a future in its client waits for the reply. When the future is dropped the job has been abandoned; what becomes
//! of it is the model's [`DeadWork`](super::DeadWork).
//!
//! Invariants: what is due at an instant happens before what arrives at it, in the order in which it was put on the
//! agenda. A job is in one place: waiting, being served, hanging, gone on to the next hop, or over. Its number is never
//! used again, so that what comes late finds nobody.

mod agenda;
mod arrive;
mod jobs;
mod limiter;
mod replica;
mod weather;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use steadfast::policy::Time;

use self::agenda::{Agenda, What};
pub(super) use self::arrive::{Fate, Reception, Request};
use self::jobs::Jobs;
pub(super) use self::jobs::{Answer, JobId, Quota, Reply};
use self::limiter::Limiter;
use self::replica::Replica;
use self::weather::Weather;
use super::ledger::ServerLedger;
use super::trigger::Trigger;
use super::upstream::UpstreamModel;

/// One upstream of a chain. Clones are the same one.
#[derive(Clone)]
pub(super) struct Engine(Arc<Mutex<Works>>);

/// A request whose own work is done and whose answer needs the next upstream's.
pub(super) struct Onward {
    pub(super) job: JobId,
    pub(super) replica: usize,
    pub(super) route: u16,
    /// When whoever sent it stops to wait, where the request says so.
    pub(super) deadline: Time,
}

struct Works {
    model: Arc<UpstreamModel>,
    now: Time,
    replicas: Vec<Replica>,
    jobs: Jobs,
    agenda: Agenda,
    weather: Weather,
    limiter: Option<Limiter>,
    random: fastrand::Rng,
    /// Requests that were put to work so far.
    taken: u64,
    /// Whose turn it is, for a balancer that goes by turns.
    turn: usize,
    ledger: ServerLedger,
    /// Whether there is another upstream behind this one, and whether a worker waits for it.
    onward: Option<bool>,
    to_send: Vec<Onward>,
    /// Until when the driver sleeps, and how to wake it.
    sleeps_until: Time,
    driver: Option<Waker>,
}

impl Engine {
    pub(super) fn new(
        model: &UpstreamModel,
        triggers: Vec<Trigger>,
        onward: Option<bool>,
        random: fastrand::Rng,
        ledger: ServerLedger,
    ) -> Self {
        let replicas = (0..model.replicas).map(|_| Replica::new()).collect();
        let mut agenda = Agenda::default();
        let weather = Weather::new(triggers, model.replicas, &mut agenda);
        Self(Arc::new(Mutex::new(Works {
            model: Arc::new(model.clone()),
            now: Time::ZERO,
            replicas,
            jobs: Jobs::default(),
            agenda,
            weather,
            limiter: model.rate_limit.map(Limiter::new),
            random,
            taken: 0,
            turn: 0,
            ledger,
            onward,
            to_send: Vec::new(),
            sleeps_until: Time::ZERO,
            driver: None,
        })))
    }

    /// A world is one thread, and its wakers only put a task into a queue: nothing that is done under this lock comes back
    /// to it.
    fn lock(&self) -> MutexGuard<'_, Works> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request arrives.
    pub(super) fn receive(&self, now: Time, request: Request) -> Reception {
        let mut works = self.lock();
        works.advance(now);
        let reception = works.receive(request);
        works.wake_driver();
        reception
    }

    /// The reply to a job, once there is one. It is over then.
    pub(super) fn poll_reply(&self, cx: &mut Context<'_>, job: JobId) -> Poll<Reply> {
        self.lock().jobs.poll_reply(cx, job)
    }

    /// Nobody waits for this job's reply any more.
    pub(super) fn abandon(&self, now: Time, job: JobId) {
        let mut works = self.lock();
        works.advance(now);
        works.abandon(job);
        works.wake_driver();
    }

    /// The balancer sees a request to this replica end, however it ended.
    pub(super) fn release(&self, replica: usize) {
        if let Some(replica) = self.lock().replicas.get_mut(replica) {
            replica.outstanding = replica.outstanding.saturating_sub(1);
        }
    }

    /// The next upstream has answered, or has not: so does this one.
    pub(super) fn return_from_onward(&self, now: Time, job: JobId, status: u16) {
        let mut works = self.lock();
        works.advance(now);
        works.return_from_onward(job, status);
        works.wake_driver();
    }

    /// Ready once this job does not need the next upstream any more: it was reset or cancelled.
    pub(super) fn poll_over(&self, cx: &mut Context<'_>, job: JobId) -> Poll<()> {
        self.lock().jobs.poll_over(cx, job)
    }

    /// Does what is due, and says when the next thing is. For the driver.
    pub(super) fn turn(&self, now: Time, to_send: &mut Vec<Onward>) -> Time {
        let mut works = self.lock();
        works.advance(now);
        to_send.append(&mut works.to_send);
        works.sleeps_until = works.agenda.next().unwrap_or(Time::MAX);
        works.sleeps_until
    }

    /// Ready when there is something to do before the instant that [`turn`](Self::turn) named.
    pub(super) fn poll_news(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut works = self.lock();
        if works.has_news() {
            return Poll::Ready(());
        }
        works.driver = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Requests that wait at all replicas together.
    pub(super) fn queue(&self) -> u64 {
        let works = self.lock();
        works.replicas.iter().map(|replica| replica.waiting as u64).sum()
    }

    /// What was counted.
    pub(super) fn ledger(&self) -> ServerLedger {
        self.lock().ledger.clone()
    }

    /// Jobs that are not over: none must be left when everything has ended.
    #[cfg(test)]
    pub(super) fn jobs(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Workers that serve, workers that wait for the next upstream, and requests that the balancer believes to be there.
    #[cfg(test)]
    pub(super) fn busy(&self) -> (usize, usize, usize) {
        let works = self.lock();
        works
            .replicas
            .iter()
            .map(Replica::busy)
            .fold((0, 0, 0), |sum, busy| (sum.0 + busy.0, sum.1 + busy.1, sum.2 + busy.2))
    }
}

impl Works {
    fn has_news(&self) -> bool {
        !self.to_send.is_empty() || self.agenda.next().is_some_and(|next| next < self.sleeps_until)
    }

    fn wake_driver(&mut self) {
        if self.has_news()
            && let Some(driver) = self.driver.take()
        {
            driver.wake();
        }
    }

    /// Lets everything happen that is due.
    fn advance(&mut self, now: Time) {
        while let Some((at, what)) = self.agenda.pop_due(now) {
            self.now = self.now.max(at);
            match what {
                What::Done { replica, turn } => self.done(replica, turn),
                What::Edge { trigger, replica, n, begins } => self.edge(trigger, replica, n, begins),
                What::Warm { replica } => self.set_speed(replica),
            }
        }
        self.now = self.now.max(now);
    }
}
