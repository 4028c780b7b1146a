//! What was seen, in order: at the caller's edge, at the transport's edge, and what the client told its listener.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use steadfast::policy::Time;
use steadfast::policy::breaker::{State, Transition};
use steadfast::testing::VirtualClock;
use steadfast::{ErrorKind, Fault, Report};

use crate::plan::{Act, Asked};

/// How an exchange ended, as the transport sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The response came, with its whole body.
    Whole,
    /// No response came.
    Failed(Fault),
    /// The body broke off.
    Cut(Fault),
    /// The client let go of it.
    Dropped,
}

/// How the reading of a body ended, as the caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Whole(usize),
    Failed(ErrorKind),
}

/// What a caller got.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Of which exchange, and how many bytes; those of a body that comes later are not counted.
    pub(crate) response: Option<(usize, Option<usize>)>,
    /// Of a limit; `None` beside no response: the operation's own error.
    pub(crate) kind: Option<ErrorKind>,
    pub(crate) report: Report,
}

/// The state as it was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) breaker: State,
    pub(crate) slots: u32,
    pub(crate) queued: u32,
    pub(crate) requests: u64,
    pub(crate) retries: u64,
    pub(crate) timers: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A call's future was made.
    Made {
        call: usize,
    },
    /// It was polled for the first time.
    Began {
        call: usize,
    },
    /// Its caller polls it no more.
    Stalled {
        call: usize,
    },
    /// Its caller is about to drop it.
    Cancelled {
        call: usize,
    },
    /// It ended; a response that is read as it comes has its body still to come.
    Done {
        call: usize,
        answer: Box<Answer>,
    },
    /// A piece of the body was handed over.
    Piece {
        call: usize,
    },
    /// The body ended.
    Read {
        call: usize,
        how: Read,
    },
    /// The transport, or the operation, was handed an attempt; exchanges are numbered through.
    Start {
        exchange: usize,
        call: usize,
        number: u32,
    },
    /// From here on the upstream may have seen some of the request.
    Written {
        exchange: usize,
    },
    /// The head of a response came.
    Head {
        exchange: usize,
        status: u16,
        asked: Asked,
    },
    End {
        exchange: usize,
        how: How,
    },
    /// The client tells of it.
    Told(Transition),
    Operator(Act),
    /// `close` has come back.
    AllEnded,
    Sampled(Sample),
    /// Everybody has gone.
    Over(Sample),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) at: Time,
    pub(crate) what: What,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.since(Time::ZERO).as_secs_f64();
        match &self.what {
            What::Done { call, answer: box_ } => {
                let Answer { response, kind, report } = &**box_;
                write!(f, "{seconds:>14.9} Done call {call}: response {response:?}, kind {kind:?}; {report}")
            }
            what => write!(f, "{seconds:>14.9} {what:?}"),
        }
    }
}

/// The log of one world. Clones are the same log.
#[derive(Clone)]
pub(crate) struct Log {
    clock: VirtualClock,
    state: Arc<Mutex<Written>>,
}

#[derive(Default)]
struct Written {
    entries: Vec<Entry>,
    exchanges: usize,
}

impl Log {
    pub(crate) fn new(clock: &VirtualClock) -> Self {
        Self { clock: clock.clone(), state: Arc::default() }
    }

    pub(crate) fn note(&self, what: What) {
        let at = self.clock.now();
        self.with(|written| written.entries.push(Entry { at, what }));
    }

    /// An attempt reaches the upstream; the number of the exchange.
    pub(crate) fn start(&self, call: usize, number: u32) -> usize {
        let at = self.clock.now();
        self.with(|written| {
            let exchange = written.exchanges;
            written.exchanges += 1;
            written.entries.push(Entry { at, what: What::Start { exchange, call, number } });
            exchange
        })
    }

    pub(crate) fn take(&self) -> Vec<Entry> {
        self.with(|written| std::mem::take(&mut written.entries))
    }

    fn with<R>(&self, change: impl FnOnce(&mut Written) -> R) -> R {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
