//! The operation that every stack is put around.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// How the operation completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// At its first poll.
    Ready,
    /// At its second poll, as an operation does that waits for I/O. Its first makes the stack arm its timers.
    PendsOnce,
}

impl Kind {
    /// The word used in titles.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::PendsOnce => "pends once",
        }
    }
}

/// The operation as a future that has a name, so that a stack's type can be written down. It never fails.
#[derive(Debug)]
pub struct Operate {
    pends: bool,
}

/// Starts the operation.
pub fn operate(kind: Kind) -> Operate {
    Operate { pends: kind == Kind::PendsOnce }
}

impl Future for Operate {
    type Output = io::Result<u64>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::take(&mut self.pends) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(7))
    }
}
