//! Requests that were taken and are not over: a slab, by index, with a number that is never used twice.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast::policy::Time;

/// A job's place in the slab, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::outage) struct JobId {
    index: u32,
    number: u64,
}

/// What a job's client gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::outage) enum Reply {
    Answer(Answer),
    Reset,
}

/// An answer of HTTP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::outage) struct Answer {
    pub(in crate::outage) status: u16,
    pub(in crate::outage) retry_after: Option<Duration>,
    pub(in crate::outage) quota: Option<Quota>,
}

/// What is left of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::outage) struct Quota {
    pub(in crate::outage) limit: u32,
    pub(in crate::outage) left: u32,
    pub(in crate::outage) period: Duration,
    pub(in crate::outage) resets_in: Duration,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Waiting,
    Served,
    Hanging,
    Onward,
    Over,
}

pub(super) struct Job {
    pub(super) number: u64,
    pub(super) replica: usize,
    pub(super) route: u16,
    pub(super) deadline: Time,
    /// In nanoseconds at full speed.
    pub(super) work: f64,
    pub(super) place: Place,
    /// The status that it will be answered with.
    pub(super) answer: Answer,
    pub(super) abandoned: bool,
    reply: Option<Reply>,
    /// Of who waits for the reply.
    client: Option<Waker>,
    /// Of who waits for the next upstream on its behalf.
    onward: Option<Waker>,
}

#[derive(Default)]
pub(super) struct Jobs {
    slots: Vec<Option<Job>>,
    free: Vec<u32>,
    number: u64,
}

impl Jobs {
    pub(super) fn add(&mut self, replica: usize, route: u16, deadline: Time, work: f64, answer: Answer) -> JobId {
        self.number += 1;
        let (number, place) = (self.number, Place::Hanging);
        let (abandoned, reply, client, onward) = (false, None, None, None);
        let job = Some(Job { number, replica, route, deadline, work, place, answer, abandoned, reply, client, onward });
        let index = match self.free.pop() {
            Some(index) => {
                if let Some(slot) = self.slots.get_mut(index as usize) {
                    *slot = job;
                }
                index
            }
            None => {
                self.slots.push(job);
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        JobId { index, number }
    }

    pub(super) fn of(&mut self, id: JobId) -> Option<&mut Job> {
        self.slots.get_mut(id.index as usize)?.as_mut().filter(|job| job.number == id.number)
    }

    fn forget(&mut self, id: JobId) {
        if self.of(id).is_some()
            && let Some(slot) = self.slots.get_mut(id.index as usize)
        {
            *slot = None;
            self.free.push(id.index);
        }
    }

    /// The upstream has nothing more to do with it. Returns whether somebody still waited.
    pub(super) fn end(&mut self, id: JobId, reply: Reply) -> bool {
        let Some(job) = self.of(id) else { return false };
        job.place = Place::Over;
        if let Some(onward) = job.onward.take() {
            onward.wake();
        }
        if job.abandoned {
            self.forget(id);
            return false;
        }
        job.reply = Some(reply);
        if let Some(client) = job.client.take() {
            client.wake();
        }
        true
    }

    /// Nobody waits any more. A job that is over is forgotten; for another one it says where it is.
    pub(super) fn abandon(&mut self, id: JobId) -> Option<(usize, Place)> {
        let job = self.of(id)?;
        if job.place == Place::Over {
            self.forget(id);
            return None;
        }
        job.abandoned = true;
        job.client = None;
        Some((job.replica, job.place))
    }

    pub(super) fn poll_reply(&mut self, cx: &mut Context<'_>, id: JobId) -> Poll<Reply> {
        let Some(job) = self.of(id) else { return Poll::Ready(Reply::Reset) };
        match job.reply {
            Some(reply) => Poll::Ready(reply),
            None => {
                job.client = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>, id: JobId) -> Poll<()> {
        match self.of(id) {
            Some(job) if job.place == Place::Onward => {
                job.onward = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Every job of this replica that is not over.
    pub(super) fn of_replica(&self, replica: usize) -> Vec<JobId> {
        let live = self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let job = slot.as_ref().filter(|job| job.replica == replica && job.place != Place::Over)?;
            Some(JobId { index: u32::try_from(index).ok()?, number: job.number })
        });
        live.collect()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_some()).count()
    }
}
