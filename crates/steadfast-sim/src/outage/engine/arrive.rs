//! A request comes in: which replica, what befalls it there, and whether it is put to work.

use std::time::Duration;

use steadfast::policy::Time;

use super::Works;
use super::jobs::{Answer, JobId};
use crate::outage::trigger::Effect;
use crate::outage::upstream::{Balancer, FAST};

/// What is known of a request when it comes in.
#[derive(Clone, Copy, Debug)]
pub(in crate::outage) struct Request {
    pub(in crate::outage) client: usize,
    pub(in crate::outage) route: u16,
    /// When its sender stops to wait, where it says so. [`Time::MAX`]: it does not.
    pub(in crate::outage) deadline: Time,
}

/// How a request is received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::outage) struct Reception {
    /// By which replica.
    pub(in crate::outage) replica: usize,
    pub(in crate::outage) fate: Fate,
}

/// What its client sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::outage) enum Fate {
    /// It waits, is served, or hangs: the job will have a reply.
    Taken(JobId),
    /// It is answered after so long.
    Answered(Answer, Duration),
    /// The connection is refused after so long.
    Refused(Duration),
    /// No connection comes about.
    Unreachable,
}

const OK: Answer = Answer { status: 200, retry_after: None, quota: None };

impl Works {
    pub(super) fn receive(&mut self, request: Request) -> Reception {
        self.ledger.at(self.now).requests += 1;
        let replica = self.pick();
        if let Some(there) = self.replicas.get_mut(replica) {
            there.outstanding += 1;
        }
        Reception { replica, fate: self.fate(replica, request) }
    }

    fn fate(&mut self, replica: usize, request: Request) -> Fate {
        let now = self.now;
        if self.replicas.get(replica).is_none_or(|there| there.down_since.is_some()) {
            self.ledger.at(now).struck += 1;
            return Fate::Refused(FAST);
        }
        let mut answer = OK;
        let effect = self.weather.meets(replica, request.route, &mut self.random);
        if effect.is_some() {
            self.ledger.at(now).struck += 1;
        }
        match effect {
            Some(Effect::Answer { status, after, retry_after }) => {
                return Fate::Answered(Answer { status, retry_after, quota: None }, after);
            }
            Some(Effect::Refuse { after }) => return Fate::Refused(after),
            Some(Effect::Unreachable) => return Fate::Unreachable,
            Some(Effect::Hang) => return Fate::Taken(self.jobs.add(replica, request.route, request.deadline, 0.0, OK)),
            Some(Effect::Costly { status }) => answer.status = status,
            _ => {}
        }
        if let Some(limiter) = &mut self.limiter {
            match limiter.admit(now, request.client) {
                Ok(quota) => answer.quota = quota,
                Err(refused) => {
                    self.ledger.at(now).limited += 1;
                    return Fate::Answered(refused, FAST);
                }
            }
        }
        let work = self.model.service.next(&mut self.random, self.taken);
        let job = self.jobs.add(replica, request.route, request.deadline, work, answer);
        if !self.take(replica, job) {
            self.jobs.abandon(job);
            self.jobs.end(job, super::Reply::Reset);
            self.ledger.at(now).shed += 1;
            return Fate::Answered(Answer { status: 503, ..answer }, FAST);
        }
        self.taken += 1;
        Fate::Taken(job)
    }

    /// Which replica the balancer sends the next request to.
    fn pick(&mut self) -> usize {
        let count = self.replicas.len();
        if count <= 1 {
            return 0;
        }
        let known_down = |since: Option<Time>| {
            let left_out = self.model.health_check.zip(since);
            left_out.is_some_and(|(after, since)| self.now >= since + after)
        };
        let mut choice: Vec<usize> = Vec::new();
        if self.model.health_check.is_some() && self.replicas.iter().any(|there| known_down(there.down_since)) {
            let up = self.replicas.iter().enumerate().filter(|(_, there)| !known_down(there.down_since));
            choice.extend(up.map(|(replica, _)| replica));
        }
        let nth = |place: usize| choice.get(place).copied().unwrap_or(place);
        // With all of them down there is nothing to choose by: any will do.
        let among = if choice.is_empty() { count } else { choice.len() };
        match self.model.balancer {
            Balancer::Random => nth(self.random.usize(0..among)),
            Balancer::RoundRobin => {
                self.turn = (self.turn + 1) % among;
                nth(self.turn)
            }
            Balancer::LeastBusy => {
                self.turn = (self.turn + 1) % among;
                let turns = (0..among).map(|step| nth((self.turn + step) % among));
                let busy = |replica: &usize| self.replicas.get(*replica).map_or(usize::MAX, |there| there.outstanding);
                turns.min_by_key(busy).unwrap_or(0)
            }
        }
    }
}
