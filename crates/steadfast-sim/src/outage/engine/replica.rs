//! One replica's workers and queue.

use std::collections::VecDeque;
use std::time::Duration;

use steadfast::policy::Time;

use super::agenda::What;
use super::jobs::{Answer, JobId, Place, Reply};
use super::{Onward, Works};
use crate::outage::upstream::{DeadWork, Discipline};

pub(super) struct Replica {
    /// Nanoseconds of work done in a nanosecond.
    speed: f64,
    /// Since when it is down.
    pub(super) down_since: Option<Time>,
    cold_until: Time,
    queue: VecDeque<JobId>,
    /// How many of the queue still count: not those that were cancelled.
    pub(super) waiting: usize,
    serving: Vec<Serving>,
    /// Workers that wait for the next upstream.
    held: usize,
    /// Requests that the balancer has sent here and not seen end.
    pub(super) outstanding: usize,
}

/// A piece of work that a worker is at.
#[derive(Clone, Copy)]
struct Serving {
    job: JobId,
    /// Its turn on the agenda, as long as nothing changes.
    turn: u64,
    /// What is left of it since then, in nanoseconds at full speed.
    left: f64,
    since: Time,
    began: Time,
}

impl Replica {
    pub(super) fn new() -> Self {
        Self {
            speed: 1.0,
            down_since: None,
            cold_until: Time::ZERO,
            queue: VecDeque::new(),
            waiting: 0,
            serving: Vec::new(),
            held: 0,
            outstanding: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn busy(&self) -> (usize, usize, usize) {
        (self.serving.len(), self.held, self.outstanding)
    }

    fn has_worker(&self, workers: usize) -> bool {
        self.serving.len() + self.held < workers
    }
}

impl Works {
    /// Puts a job to work, or into the queue; false if that is full.
    pub(super) fn take(&mut self, replica: usize, job: JobId) -> bool {
        let (workers, limit) = (self.model.workers, self.model.queue.unwrap_or(usize::MAX));
        let Some(there) = self.replicas.get_mut(replica) else { return false };
        if !there.has_worker(workers) && there.waiting >= limit {
            return false;
        }
        there.queue.push_back(job);
        there.waiting += 1;
        if let Some(job) = self.jobs.of(job) {
            job.place = Place::Waiting;
        }
        self.serve(replica);
        true
    }

    /// Gives every idle worker the next job.
    fn serve(&mut self, replica: usize) {
        loop {
            let Some(there) = self.replicas.get_mut(replica) else { return };
            if !there.has_worker(self.model.workers) {
                return;
            }
            let next = match self.model.discipline {
                Discipline::Fifo => there.queue.pop_front(),
                Discipline::Lifo => there.queue.pop_back(),
            };
            let Some(job) = next else { return };
            let dead_work = self.model.dead_work;
            // A job that was cancelled while it waited is not in the slab any more.
            let Some(found) = self.jobs.of(job) else { continue };
            there.waiting -= 1;
            if found.abandoned && dead_work != DeadWork::Served {
                self.jobs.end(job, Reply::Reset);
                self.ledger.at(self.now).skipped += 1;
                continue;
            }
            found.place = Place::Served;
            let (left, now) = (found.work, self.now);
            let turn = self.agenda.skip();
            there.serving.push(Serving { job, turn, left, since: now, began: now });
            self.schedule(replica, turn);
        }
    }

    /// Puts the end of a piece of work on the agenda, at the replica's present speed.
    fn schedule(&mut self, replica: usize, turn: u64) {
        let Some(there) = self.replicas.get_mut(replica) else { return };
        let speed = there.speed;
        let Some(piece) = there.serving.iter_mut().find(|piece| piece.turn == turn) else { return };
        let nanos = (piece.left / speed).ceil();
        // At speed 0, or so slow that no clock gets there, it has no end until the speed changes.
        piece.turn = if nanos.is_finite() && nanos < u64::MAX as f64 {
            let at = piece.since + Duration::from_nanos(nanos as u64);
            self.agenda.put(at, |turn| What::Done { replica, turn })
        } else {
            self.agenda.skip()
        };
    }

    /// A worker is done with the piece of work that had this turn, if there still is one.
    pub(super) fn done(&mut self, replica: usize, turn: u64) {
        let now = self.now;
        let Some(there) = self.replicas.get_mut(replica) else { return };
        let Some(place) = there.serving.iter().position(|piece| piece.turn == turn) else { return };
        let piece = there.serving.swap_remove(place);
        let Some(job) = self.jobs.of(piece.job) else { return };
        let busy = now.since(piece.began);
        self.ledger.at(now).busy += busy;
        match self.onward {
            Some(holds_worker) if !job.abandoned || self.model.dead_work == DeadWork::Served => {
                job.place = Place::Onward;
                there.held += usize::from(holds_worker);
                let (route, deadline) = (job.route, job.deadline);
                self.to_send.push(Onward { job: piece.job, replica, route, deadline });
            }
            _ => {
                let answer = job.answer;
                self.answer(piece.job, answer, busy);
            }
        }
        self.serve(replica);
    }

    fn answer(&mut self, job: JobId, answer: Answer, busy: Duration) {
        let waited_for = self.jobs.end(job, Reply::Answer(answer));
        let ledger = self.ledger.at(self.now);
        ledger.served += 1;
        if !waited_for {
            ledger.wasted += 1;
            ledger.wasted_work += busy;
        }
    }

    /// The next upstream has answered with this status.
    pub(super) fn return_from_onward(&mut self, id: JobId, status: u16) {
        let Some(job) = self.jobs.of(id).filter(|job| job.place == Place::Onward) else { return };
        let (replica, mut answer) = (job.replica, job.answer);
        if !(200..300).contains(&status) {
            answer.status = 503;
        }
        self.answer(id, answer, Duration::ZERO);
        self.free_held(replica);
    }

    fn free_held(&mut self, replica: usize) {
        if let Some(there) = self.replicas.get_mut(replica) {
            there.held = there.held.saturating_sub(1);
            self.serve(replica);
        }
    }

    /// Nobody waits for this job any more.
    pub(super) fn abandon(&mut self, id: JobId) {
        let Some((replica, place)) = self.jobs.abandon(id) else { return };
        match place {
            Place::Hanging => {
                self.jobs.end(id, Reply::Reset);
            }
            Place::Waiting if self.model.dead_work == DeadWork::Cancelled => {
                self.jobs.end(id, Reply::Reset);
                self.ledger.at(self.now).skipped += 1;
                if let Some(there) = self.replicas.get_mut(replica) {
                    there.waiting -= 1;
                }
            }
            Place::Served if self.model.dead_work == DeadWork::Cancelled => self.cut(replica, id),
            Place::Onward if self.model.dead_work == DeadWork::Cancelled => {
                self.jobs.end(id, Reply::Reset);
                self.free_held_if_any(replica);
            }
            _ => {}
        }
    }

    /// Ends a piece of work in the middle.
    fn cut(&mut self, replica: usize, id: JobId) {
        let Some(there) = self.replicas.get_mut(replica) else { return };
        let Some(place) = there.serving.iter().position(|piece| piece.job == id) else { return };
        let piece = there.serving.swap_remove(place);
        let busy = self.now.since(piece.began);
        self.jobs.end(id, Reply::Reset);
        let ledger = self.ledger.at(self.now);
        ledger.busy += busy;
        ledger.wasted_work += busy;
        self.serve(replica);
    }

    fn free_held_if_any(&mut self, replica: usize) {
        if self.onward == Some(true) {
            self.free_held(replica);
        }
    }

    /// Resets every request in flight at this replica.
    pub(super) fn reset(&mut self, replica: usize) {
        let Some(there) = self.replicas.get_mut(replica) else { return };
        there.queue.clear();
        there.waiting = 0;
        there.held = 0;
        let pieces = std::mem::take(&mut there.serving);
        let now = self.now;
        let busy: Duration = pieces.iter().map(|piece| now.since(piece.began)).sum();
        let mut reset = 0;
        for job in self.jobs.of_replica(replica) {
            reset += u64::from(self.jobs.end(job, Reply::Reset));
        }
        let ledger = self.ledger.at(now);
        ledger.reset += reset;
        ledger.busy += busy;
        ledger.wasted_work += busy;
    }

    /// A restart begins.
    pub(super) fn go_down(&mut self, replica: usize, graceful: bool) {
        let now = self.now;
        if let Some(there) = self.replicas.get_mut(replica) {
            there.down_since = Some(now);
        }
        if !graceful {
            self.reset(replica);
        }
    }

    /// A restart is over: the replica takes requests, and is cold for a while.
    pub(super) fn come_up(&mut self, replica: usize) {
        let Some(there) = self.replicas.get_mut(replica) else { return };
        there.down_since = None;
        if let Some(cold) = self.model.cold {
            there.cold_until = self.now + cold.lasts;
            self.agenda.put(there.cold_until, |_| What::Warm { replica });
        }
        self.set_speed(replica);
    }

    /// Looks up how fast the replica is now. What it has done so far was done at the speed it had.
    pub(super) fn set_speed(&mut self, replica: usize) {
        let now = self.now;
        let Some(there) = self.replicas.get_mut(replica) else { return };
        let cold = self.model.cold.filter(|_| now < there.cold_until).map_or(1.0, |cold| cold.speed);
        let speed = self.weather.speed(replica) * cold;
        if speed == there.speed {
            return;
        }
        for piece in &mut there.serving {
            piece.left = (piece.left - now.since(piece.since).as_nanos() as f64 * there.speed).max(0.0);
            piece.since = now;
        }
        there.speed = speed;
        let turns: Vec<u64> = there.serving.iter().map(|piece| piece.turn).collect();
        for turn in turns {
            self.schedule(replica, turn);
        }
    }
}
