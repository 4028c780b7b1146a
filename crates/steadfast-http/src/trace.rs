//! The W3C trace context (level 2) of a call.
//!
//! Decides whether an incoming `traceparent` and `tracestate` are valid, and writes the outgoing pair. What the W3C
//! document calls invalid is dropped whole and never repaired (contract 8.5): a broken `traceparent` takes the
//! `tracestate` with it, a broken `tracestate` only itself. The one exception is a key that occurs twice in
//! `tracestate`: the first counts, as the list has its latest entry in front.
//!
//! Invariants: neither id is all zeros, only the flags that level 2 defines are ever set, the state has at most 32
//! members, and what is written is one `traceparent` of version 00 in lower case.
//!
//! Limits: nothing is added to `tracestate`, and `baggage` is not propagated. Ids come from the caller: there is no
//! source of randomness in here.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

mod state;

#[cfg(test)]
mod tests;

/// `traceparent`: which trace, which span of it, and whether it is recorded.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// `tracestate`: what each tracing system on the way wants to find again.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The caller records this trace.
const SAMPLED: u8 = 0x01;
/// The last seven bytes of the trace id are random.
const RANDOM: u8 = 0x02;

/// Where a request stands in a distributed trace (W3C Trace Context, level 2).
///
/// ```
/// use steadfast_http::TraceContext;
///
/// let traceparent: &[u8] = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let served = TraceContext::parse([traceparent], []).unwrap();
/// let attempt = served.child([7; 8]);
/// assert_eq!(attempt.to_string(), "00-0af7651916cd43dd8448eb211c80319c-0707070707070707-01");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    parent_id: [u8; 8],
    flags: u8,
    state: Option<HeaderValue>,
}

impl TraceContext {
    /// A new trace, for a call that belongs to none.
    ///
    /// Both numbers are to be random; that of the trace is declared to be (the level 2 `random` flag). Zero, which
    /// the W3C forbids, is replaced by one.
    pub fn root(trace_id: u128, span_id: u64, sampled: bool) -> Self {
        let flags = if sampled { RANDOM | SAMPLED } else { RANDOM };
        Self { trace_id: trace_id.max(1).to_be_bytes(), parent_id: span_id.max(1).to_be_bytes(), flags, state: None }
    }

    /// The context of the request that is being served; `None` if it has none that is valid.
    pub fn extract(headers: &HeaderMap) -> Option<Self> {
        let lines = |name| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
        Self::parse(lines(TRACEPARENT), lines(TRACESTATE))
    }

    /// Reads the context from all field lines of the two headers, in the order in which they came.
    ///
    /// More than one `traceparent` is as good as none. Versions after 00 are read as the document asks: by what
    /// version 00 defines, ignoring what follows.
    pub fn parse<'a>(
        traceparent: impl IntoIterator<Item = &'a [u8]>,
        tracestate: impl IntoIterator<Item = &'a [u8]>,
    ) -> Option<Self> {
        let mut lines = traceparent.into_iter();
        let line = lines.next()?;
        if lines.next().is_some() {
            return None;
        }
        let context = Self::parse_parent(line.trim_ascii())?;
        Some(Self { state: state::parse(tracestate), ..context })
    }

    fn parse_parent(text: &[u8]) -> Option<Self> {
        let (fixed, rest) = text.split_at_checked(55)?;
        let dashes = fixed[2] == b'-' && fixed[35] == b'-' && fixed[52] == b'-';
        let [version] = from_hex(&fixed[..2])?;
        let end = match version {
            0xff => false,
            0 => rest.is_empty(),
            _ => rest.is_empty() || rest[0] == b'-',
        };
        if !dashes || !end {
            return None;
        }
        let trace_id: [u8; 16] = from_hex(&fixed[3..35])?;
        let parent_id: [u8; 8] = from_hex(&fixed[36..52])?;
        let [flags] = from_hex(&fixed[53..55])?;
        if trace_id == [0; 16] || parent_id == [0; 8] {
            return None;
        }
        Some(Self { trace_id, parent_id, flags: flags & (SAMPLED | RANDOM), state: None })
    }

    /// The same trace, seen from the span `span_id`: what an attempt sends. An id of zeros becomes one.
    #[must_use]
    pub fn child(&self, span_id: [u8; 8]) -> Self {
        let parent_id = u64::from_be_bytes(span_id).max(1).to_be_bytes();
        Self { parent_id, ..self.clone() }
    }

    /// The id that all spans of the trace share.
    pub const fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// The id of the span that sends: the caller's in an incoming context, the attempt's own in an outgoing one.
    pub const fn parent_id(&self) -> [u8; 8] {
        self.parent_id
    }

    /// Whether the caller records this trace.
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The flags: bit 0 is `sampled`, bit 1 is `random`; no other is ever set.
    pub const fn flags(&self) -> u8 {
        self.flags
    }

    /// The value of `tracestate`, if it is to be sent.
    pub const fn state(&self) -> Option<&HeaderValue> {
        self.state.as_ref()
    }

    /// The value of `traceparent`, which [`Display`](fmt::Display) writes as well.
    pub fn traceparent(&self) -> HeaderValue {
        let mut text = [0; 55];
        text[..3].copy_from_slice(b"00-");
        to_hex(&self.trace_id, &mut text[3..35]);
        text[35] = b'-';
        to_hex(&self.parent_id, &mut text[36..52]);
        text[52] = b'-';
        to_hex(&[self.flags], &mut text[53..]);
        // Cannot fail: hexadecimal digits and dashes.
        HeaderValue::from_bytes(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = u128::from_be_bytes(self.trace_id);
        let parent = u64::from_be_bytes(self.parent_id);
        write!(f, "00-{trace:032x}-{parent:016x}-{:02x}", self.flags)
    }
}

/// Reads `N` bytes from twice as many lower-case digits.
fn from_hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn to_hex(bytes: &[u8], out: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(out.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}
