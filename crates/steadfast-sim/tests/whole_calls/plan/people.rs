//! Who calls, and what becomes of the calls; and what operators do meanwhile.

use std::time::Duration;

use fastrand::Rng;

use super::{Config, Edge, MS, between, pick};

/// What the caller does with its call's future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Await,
    /// Drops it after so long.
    CancelAfter(Duration),
    /// Drops it when it would be polled for the time after so many.
    CancelAtPoll(u32),
    /// Keeps it so long without ever polling it.
    NeverPolled(Duration),
    /// Polls it first so long after it was made.
    Late(Duration),
    /// Polls it so often, then keeps it so long without polling.
    StopPolling(u32, Duration),
}

/// How a caller reads a body as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    /// It rests so long before each piece.
    pub(crate) pace: Duration,
    /// It goes on no further than so many pieces, keeps the rest so long, and drops it.
    pub(crate) stops: Option<(usize, Duration)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// When it calls.
    pub(crate) at: Duration,
    /// POST, not GET.
    pub(crate) is_post: bool,
    /// `Some("")` is a mistake.
    pub(crate) idempotency_key: Option<&'static str>,
    /// HTTP: `retry(…)`. A guard: `Some(false)` says nothing of what its errors mean.
    pub(crate) retry: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) inherited: Option<Duration>,
    pub(crate) timeout_is_evidence: bool,
    /// Whose limit; of a guard's calls only.
    pub(crate) key: &'static str,
    pub(crate) reader: Option<Reader>,
    pub(crate) fate: Fate,
}

impl Caller {
    /// Whether the request may be sent twice, whatever became of it before. `None`: only if nothing was sent.
    pub(crate) fn may_repeat(&self, edge: Edge) -> Option<bool> {
        match (edge, self.retry) {
            (_, Some(false)) => Some(false),
            (Edge::Guard, _) | (Edge::Http, Some(true)) => Some(true),
            (Edge::Http, None) => (!self.is_post || self.idempotency_key.is_some()).then_some(true),
        }
    }

    pub(crate) fn is_mistaken(&self, edge: Edge) -> bool {
        edge == Edge::Http && self.idempotency_key == Some("")
    }
}

/// Callers that come `gap` apart on average, alone and in crowds.
pub(crate) fn draw(rng: &mut Rng, edge: Edge, config: &Config, gap: Duration, count: usize) -> Vec<Caller> {
    let crowds = rng.u8(0..3) == 0;
    let cancels = pick(rng, &[0, 10, 10, 40]);
    let mut at = Duration::ZERO;
    (0..count)
        .map(|_| {
            if !crowds || rng.u8(0..20) == 0 {
                let most = gap * if crowds { 40 } else { 2 };
                at += between(rng, Duration::ZERO, most);
            }
            caller(rng, edge, config, at, cancels)
        })
        .collect()
}

fn caller(rng: &mut Rng, edge: Edge, config: &Config, at: Duration, cancels: u8) -> Caller {
    let some = |rng: &mut Rng, most: Duration| Some(between(rng, Duration::ZERO, most));
    let streams = edge == Edge::Http && rng.u8(0..4) == 0;
    Caller {
        at,
        is_post: rng.u8(0..3) == 0,
        idempotency_key: match rng.u8(0..40) {
            0 => Some(""),
            1..6 => Some("k-1"),
            _ => None,
        },
        retry: pick(rng, &[None, None, None, None, None, None, Some(true), Some(false)]),
        timeout: if rng.u8(0..5) == 0 { some(rng, config.total * 2) } else { None },
        inherited: if rng.u8(0..5) == 0 { some(rng, config.total * 2) } else { None },
        timeout_is_evidence: edge == Edge::Guard || rng.u8(0..5) > 0,
        key: if edge == Edge::Guard { pick(rng, &["", "a", "b", "c", "d", "e"]) } else { "" },
        reader: streams.then(|| Reader {
            pace: pick(rng, &[Duration::ZERO, Duration::ZERO, MS * 10, MS * 400]),
            stops: (rng.u8(0..4) == 0)
                .then(|| (rng.usize(0..3), pick(rng, &[Duration::ZERO, MS * 50, config.total * 2]))),
        }),
        fate: if rng.u8(0..100) < cancels { draw_fate(rng, config) } else { Fate::Await },
    }
}

fn draw_fate(rng: &mut Rng, config: &Config) -> Fate {
    let kept = between(rng, Duration::ZERO, config.total + MS * 200);
    match rng.u8(0..10) {
        0..3 => Fate::CancelAfter(between(rng, Duration::ZERO, MS * 60)),
        3 => Fate::CancelAfter(kept),
        4..7 => Fate::CancelAtPoll(rng.u32(0..8)),
        7 => Fate::NeverPolled(kept),
        8 => Fate::Late(between(rng, Duration::ZERO, MS * 100)),
        _ => Fate::StopPolling(rng.u32(1..6), kept),
    }
}

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    ForceOpen,
    ForceClose,
    Reset,
    /// Puts the settings of this number in force.
    Reload(usize),
    Close,
}

pub(crate) fn operators(rng: &mut Rng, length: Duration) -> Vec<(Duration, Act)> {
    let mut acts = Vec::new();
    if rng.u8(0..4) == 0 {
        for _ in 0..rng.usize(1..5) {
            let at = between(rng, Duration::ZERO, length);
            acts.push((at, pick(rng, &[Act::ForceOpen, Act::ForceClose, Act::Reset])));
            // Nobody leaves it at that.
            acts.push((at + between(rng, Duration::ZERO, length / 4), Act::Reset));
        }
    }
    if rng.u8(0..5) == 0 {
        acts.push((between(rng, length / 2, length + MS * 100), Act::Close));
    }
    acts
}
