//! What a scenario is played on: virtual time, or real sockets. The interpreter does the same on each; a stage says how time
//! passes, and brings the clients to their upstreams.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use steadfast::Report;

use super::cast::Cast;
use super::model::Ending;

/// Something that takes time: calls that are made, or a client that is closed. It brings how each call ended, in their
/// order. It may only be polled in the thread that it was made in.
pub type Work = Pin<Box<dyn Future<Output = Vec<CallEnd>>>>;

/// Work that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub usize);

/// How one call ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallEnd {
    /// How, in one word.
    pub ending: Ending,
    /// Its story; a call that its caller gave up has none.
    pub report: Option<Report>,
    /// How long it took for its caller.
    pub took: Duration,
    /// The text of its error.
    pub message: Option<String>,
    /// The response's body, or the operation's value, as text.
    pub body: Option<String>,
    /// Whether a fallback stood in.
    pub degraded: bool,
}

/// A stage cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageError(
    /// Why, in a sentence.
    pub String,
);

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StageError {}

/// How far a figure of time may be from what is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slack {
    /// Shorter by so much.
    pub below: Duration,
    /// Longer by so much.
    pub above: Duration,
}

/// What a scenario is played on.
///
/// Who implements one makes the [`Cast`] on its clock, with its upstreams behind the clients: each takes the replies that
/// [`Upstream::take`](super::Upstream::take) gives, and tells with [`Upstream::read`](super::Upstream::read) what it read.
pub trait Stage {
    /// Everybody who takes part.
    fn cast(&self) -> &Cast;

    /// Begins some work, and returns once it has done what it can do at this instant: a call whose upstream takes its time
    /// has been sent.
    fn begin(&mut self, work: Work) -> Ticket;

    /// Lets time pass until this work has ended.
    ///
    /// # Errors
    /// It never will.
    fn finish(&mut self, ticket: Ticket) -> Result<Vec<CallEnd>, StageError>;

    /// Lets so much time pass, and whatever happens in it happen.
    fn pass(&mut self, duration: Duration);

    /// How far figures of time may be off here.
    fn slack(&self) -> Slack {
        Slack::default()
    }

    /// What is still held here though everything has ended, beside what the [`Cast`] knows of: nothing must be.
    fn held(&self) -> Vec<String> {
        Vec::new()
    }
}
