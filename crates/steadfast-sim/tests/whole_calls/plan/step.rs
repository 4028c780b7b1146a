//! What an upstream does with one request, and its moods.

use std::time::Duration;

use fastrand::Rng;
use steadfast::Fault;

use super::{Edge, MS, between, pick};

/// How the upstream is at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Nearly everything is answered.
    Well,
    /// One request in five fails.
    Noisy,
    /// Everything fails, in the same way.
    Down,
    /// It takes requests and does not answer.
    Frozen,
    /// It asks everybody to come later.
    Pacing,
    /// Anything may happen.
    Wild,
}

/// What `Retry-After` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    /// What is not in the grammar.
    Garbage(&'static str),
    /// Whole seconds from the answer on; zero asks for nothing.
    Seconds(u64),
    /// Two field lines: the longer wait counts.
    TwoLines(u64, u64),
    /// A date, so many whole seconds from now; what has passed asks for nothing.
    Date(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    Whole,
    Cut(Fault),
    /// Nothing more comes, not even the end.
    Stall,
}

/// The pieces of a body, each so long after the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) pieces: Vec<(Duration, usize)>,
    pub(crate) end: BodyEnd,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// So long after the request was written.
    Answer {
        after: Duration,
        status: u16,
        asked: Asked,
        body: Body,
    },
    Fail {
        after: Duration,
        fault: Fault,
    },
    Hang,
}

/// What an upstream does with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// How long it takes until a byte of the request may be written.
    pub(crate) connects_after: Duration,
    /// Whether any is.
    pub(crate) writes: bool,
    pub(crate) reply: Reply,
}

/// What may be in a `Retry-After` and is none.
const GARBAGE: [&str; 5] = ["-1", "1m0s", "0.5", "5, 10", "Sun, 31 Feb 2027 00:00:00 GMT"];

/// Bad, and worth another attempt with the usual settings.
const BAD: [u16; 4] = [502, 503, 503, 504];

impl Step {
    pub(crate) fn draw(rng: &mut Rng, mood: Mood, edge: Edge) -> Self {
        let connects_after = pick(rng, &[Duration::ZERO, Duration::ZERO, MS]);
        let step = |writes, reply| Self { connects_after, writes, reply };
        let kind = rng.u8(0..100);
        match mood {
            Mood::Well if kind < 97 => step(true, answer(rng, 200, Asked::Nothing)),
            Mood::Noisy if kind < 80 => step(true, answer(rng, 200, Asked::Nothing)),
            Mood::Down if kind < 90 => step(true, answer(rng, 503, Asked::Nothing)),
            Mood::Down => step(false, Reply::Fail { after: Duration::ZERO, fault: Fault::Connect }),
            Mood::Frozen if kind < 85 => step(kind < 60, Reply::Hang),
            Mood::Pacing if kind < 60 => {
                let status = pick(rng, &[429, 503]);
                let asked = draw_asked(rng);
                step(true, answer(rng, status, asked))
            }
            Mood::Well | Mood::Noisy | Mood::Frozen | Mood::Pacing | Mood::Wild => wild(rng, step, edge),
        }
    }
}

fn wild(rng: &mut Rng, step: impl Fn(bool, Reply) -> Step, edge: Edge) -> Step {
    let after = between(rng, Duration::ZERO, MS * 60);
    match rng.u8(0..100) {
        0..35 => step(true, answer(rng, 200, Asked::Nothing)),
        35..55 => {
            let (status, asked) = (pick(rng, &BAD), draw_asked(rng));
            step(true, answer(rng, status, asked))
        }
        55..65 => {
            let status = pick(rng, &[404, 408, 429, 500]);
            let asked = draw_asked(rng);
            step(true, answer(rng, status, asked))
        }
        65..73 => {
            let fault = pick(rng, &[Fault::Connect, Fault::Dns, Fault::ConnectTimeout, Fault::RefusedStream]);
            step(false, Reply::Fail { after, fault })
        }
        73..86 => {
            step(true, Reply::Fail { after, fault: pick(rng, &[Fault::Reset, Fault::ReadTimeout, Fault::Protocol]) })
        }
        86..88 if edge == Edge::Http => {
            step(false, Reply::Fail { after, fault: pick(rng, &[Fault::PoolTimeout, Fault::Certificate]) })
        }
        _ => step(rng.bool(), Reply::Hang),
    }
}

fn answer(rng: &mut Rng, status: u16, asked: Asked) -> Reply {
    let most = pick(rng, &[MS, MS * 10, MS * 10, MS * 100]);
    Reply::Answer { after: between(rng, Duration::ZERO, most), status, asked, body: draw_body(rng) }
}

fn draw_body(rng: &mut Rng) -> Body {
    let count = pick(rng, &[0, 1, 1, 3]);
    let pieces =
        (0..count).map(|_| (pick(rng, &[Duration::ZERO, Duration::ZERO, MS * 3, MS * 40]), rng.usize(1..40))).collect();
    let end = match rng.u8(0..100) {
        0..4 => BodyEnd::Cut(pick(rng, &[Fault::Incomplete, Fault::Reset])),
        4 => BodyEnd::Stall,
        _ => BodyEnd::Whole,
    };
    Body { pieces, end }
}

fn draw_asked(rng: &mut Rng) -> Asked {
    match rng.u8(0..10) {
        0..3 => Asked::Nothing,
        3 => Asked::Garbage(pick(rng, &GARBAGE)),
        4..7 => Asked::Seconds(pick(rng, &[0, 1, 1, 2, 3, 100, u64::MAX])),
        7 => Asked::TwoLines(rng.u64(0..3), rng.u64(0..4)),
        _ => Asked::Date(rng.i64(-3..5)),
    }
}

/// From when on which mood holds.
pub(crate) fn moods(rng: &mut Rng, length: Duration) -> Vec<(Duration, Mood)> {
    const ALL: [Mood; 8] =
        [Mood::Well, Mood::Well, Mood::Noisy, Mood::Noisy, Mood::Down, Mood::Frozen, Mood::Pacing, Mood::Wild];
    let mut moods = vec![(Duration::ZERO, pick(rng, &ALL))];
    for _ in 0..rng.usize(0..6) {
        moods.push((between(rng, Duration::ZERO, length), pick(rng, &ALL)));
    }
    moods.sort_by_key(|(from, _)| *from);
    moods
}
