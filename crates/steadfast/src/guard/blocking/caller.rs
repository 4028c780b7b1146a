//! An operation on the thread that calls.
//!
//! The loop's operations are `Send`, as async ones must be, and this one need not be. So the loop does not have it: an
//! attempt only asks for it in a [`Mailbox`], and waits for the class of what it brought. The driver runs it between two
//! polls, and keeps values and errors to itself.
//!
//! Once asked for, the operation always runs: no limit is looked at between the question and the answer.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use steadfast_http::Fault;
use steadfast_policy::Time;

use super::Outcome;
use crate::admission::Hold;
use crate::call::{Call, Options};
use crate::guard::Guarded;
use crate::guard::classify::{Classify, ErrorClass};
use crate::guard::context::Context;
use crate::guard::operation::{judged, judged_cut};
use crate::operation::{Attempt, Judged, Operation};
use crate::park::{self, Bell, Then};
use crate::telemetry::Watched;

/// What an attempt brought: a value, or an error of this class.
type Brought = Result<(), ErrorClass>;

/// Where the loop asks, and the driver answers. Both are on one thread; the lock is there for the type alone.
struct Mailbox(Mutex<Mail>);

#[derive(Clone, Copy)]
enum Mail {
    Nothing,
    Asked(Attempt),
    Running,
    Answered(Brought),
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop's side: asks, and is ready with the answer.
    fn poll(&self, attempt: Attempt) -> Poll<Brought> {
        let mut mail = self.lock();
        match *mail {
            Mail::Answered(brought) => {
                *mail = Mail::Nothing;
                return Poll::Ready(brought);
            }
            Mail::Nothing => *mail = Mail::Asked(attempt),
            Mail::Asked(_) | Mail::Running => {}
        }
        Poll::Pending
    }

    /// The driver's side: the attempt that is asked for, once.
    fn take(&self) -> Option<Attempt> {
        let mut mail = self.lock();
        let Mail::Asked(attempt) = *mail else { return None };
        *mail = Mail::Running;
        Some(attempt)
    }

    fn answer(&self, brought: Brought) {
        *self.lock() = Mail::Answered(brought);
    }
}

/// The operation as the loop sees it.
struct CallersOperation<'a> {
    mailbox: &'a Mailbox,
    slow_after: Duration,
    retries: bool,
    has_slot: bool,
}

impl Operation for CallersOperation<'_> {
    type Out = Brought;

    fn granted(&mut self, attempt: Attempt, hold: &mut Hold<'_>) {
        self.has_slot = hold.keep(attempt);
    }

    fn attempt(&mut self, attempt: Attempt) -> impl Future<Output = Brought> + Send {
        let (mailbox, has_slot) = (self.mailbox, self.has_slot);
        // Without a slot the deadline has come, and ends the attempt.
        poll_fn(move |_| if has_slot { mailbox.poll(attempt) } else { Poll::Pending })
    }

    fn judge(&self, ran: Duration, brought: &Brought) -> Judged {
        judged(ran > self.slow_after, brought.err())
    }

    fn asked_at(&self, attempt: Attempt) -> Option<Time> {
        self.has_slot.then_some(attempt.started)
    }

    fn judge_cut(&self, fault: Fault) -> Judged {
        judged_cut(fault, self.retries)
    }
}

impl Guarded {
    /// One call, on this thread.
    pub(super) fn run_here<T, E, J, F>(&self, options: Options<'_>, judge: &J, mut operation: F) -> Outcome<T, E>
    where
        J: Classify<E>,
        F: FnMut(Context) -> Result<T, E>,
    {
        let (bell, mailbox) = (Bell::new(), Mailbox(Mutex::new(Mail::Nothing)));
        let (mut value, mut last) = (None, None);
        let key = self.keys.next();
        let mut asks =
            CallersOperation { mailbox: &mailbox, slow_after: self.slow_after, retries: J::RETRIES, has_slot: false };
        let options = Options { bell: Some(&bell), ..options };
        let mut call = Call::begin(&self.upstream, &self.rules, &options);
        let run = call.run(&mut asks);
        let watched = run.watched();
        park::drive(&self.upstream.clock, &bell, pin!(run), || {
            let Some(attempt) = mailbox.take() else { return Then::Wait };
            let context = Context { attempt: attempt.number, time_left: attempt.time_left(), key };
            let brought = Watched::around(watched.as_ref(), || operation(context));
            mailbox.answer(match brought {
                Ok(brought) => {
                    value = Some(brought);
                    Ok(())
                }
                Err(error) => {
                    let class = judge.class(&error);
                    last = Some(error);
                    Err(class)
                }
            });
            Then::Poll
        });
        match value {
            Some(value) => Ok((value, call.report())),
            None => Err(self.error_of(last, call.kind(), call.report())),
        }
    }
}
