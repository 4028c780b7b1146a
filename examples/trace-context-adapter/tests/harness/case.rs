//! A case: what comes in, and what must go out.

use crate::exchange::Callback;

pub(crate) const TRACE: &str = "12345678901234567890123456789012";
pub(crate) const PARENT: &str = "1234567890123456";

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) probes: Vec<Probe>,
}

impl Case {
    pub(crate) fn new(name: &'static str, probes: impl IntoIterator<Item = Probe>) -> Self {
        Self { name, probes: probes.into_iter().collect() }
    }
}

/// One request of a case: its header lines byte for byte, and how many callbacks it asks for.
#[derive(Clone)]
pub(crate) struct Probe {
    pub(crate) headers: Vec<String>,
    pub(crate) callbacks: usize,
    trace: Trace,
    state: State,
}

#[derive(Clone)]
enum Trace {
    /// The one that came in.
    Kept,
    /// Another one.
    New,
    /// Another one, and none of these either.
    NoneOf(Vec<String>),
}

#[derive(Clone)]
enum State {
    Whatever,
    /// Just these members, in this order.
    Is(Vec<String>),
    /// One of these lists.
    OneOf(Vec<Vec<String>>),
    /// No member of this key.
    Lacks(&'static str),
}

/// A request with the usual valid `traceparent`.
pub(crate) fn valid() -> Probe {
    inbound(&format!("00-{TRACE}-{PARENT}-01"))
}

/// A request with this one.
pub(crate) fn inbound(traceparent: &str) -> Probe {
    lines([format!("traceparent: {traceparent}")])
}

/// A request with these header lines.
pub(crate) fn lines<L: Into<String>>(lines: impl IntoIterator<Item = L>) -> Probe {
    let headers = lines.into_iter().map(Into::into).collect();
    Probe { headers, callbacks: 1, trace: Trace::Kept, state: State::Whatever }
}

impl Probe {
    pub(crate) fn line(mut self, line: impl Into<String>) -> Self {
        self.headers.push(line.into());
        self
    }

    pub(crate) fn begins_anew(mut self) -> Self {
        self.trace = Trace::New;
        self
    }

    pub(crate) fn begins_as_none_of<'a>(mut self, ids: impl IntoIterator<Item = &'a str>) -> Self {
        self.trace = Trace::NoneOf(ids.into_iter().map(str::to_owned).collect());
        self
    }

    pub(crate) fn times(mut self, callbacks: usize) -> Self {
        self.callbacks = callbacks;
        self
    }

    pub(crate) fn state<M: Into<String>>(mut self, members: impl IntoIterator<Item = M>) -> Self {
        self.state = State::Is(members.into_iter().map(Into::into).collect());
        self
    }

    pub(crate) fn no_state(self) -> Self {
        self.state::<String>([])
    }

    pub(crate) fn one_of(mut self, lists: &[&[&str]]) -> Self {
        let owned = |list: &&[&str]| list.iter().map(|member| (*member).to_owned()).collect();
        self.state = State::OneOf(lists.iter().map(owned).collect());
        self
    }

    pub(crate) fn lacks(mut self, key: &'static str) -> Self {
        self.state = State::Lacks(key);
        self
    }

    /// What is wrong with the callbacks.
    pub(crate) fn judge(&self, callbacks: &[Callback]) -> Result<(), String> {
        let mut parents = Vec::new();
        let mut traces = Vec::new();
        for callback in callbacks {
            let (trace, parent) = self.judge_parent(callback)?;
            if parents.contains(&parent) {
                return Err(format!("the parent {parent} twice"));
            }
            self.judge_state(callback)?;
            parents.push(parent);
            traces.push(trace);
        }
        traces.dedup();
        if traces.len() == 1 { Ok(()) } else { Err(format!("several traces: {traces:?}")) }
    }

    fn judge_parent(&self, callback: &Callback) -> Result<(String, String), String> {
        let [line] = callback.traceparent.as_slice() else {
            return Err(format!("not one traceparent: {:?}", callback.traceparent));
        };
        let wrong = |what: &str| Err(format!("{what}: {line}"));
        let parts: Vec<&str> = line.split('-').collect();
        let [version, trace, parent, flags] = parts.as_slice() else { return wrong("not four parts") };
        let lower_hex = |text: &str, length| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let well_formed = *version == "00" && lower_hex(trace, 32) && lower_hex(parent, 16) && lower_hex(flags, 2);
        if !well_formed || trace.bytes().all(|byte| byte == b'0') || parent.bytes().all(|byte| byte == b'0') {
            return wrong("malformed");
        }
        if *parent == PARENT {
            return wrong("the parent of whoever called");
        }
        let inbound = self.headers.iter().find(|line| line.to_lowercase().starts_with("traceparent:"));
        let random = inbound.is_some_and(|line| line.trim_end().ends_with("-02"));
        if random && u8::from_str_radix(flags, 16).unwrap_or(0) & 2 == 0 {
            return wrong("the flag `random` is lost");
        }
        match &self.trace {
            Trace::Kept if *trace != TRACE => wrong("the trace is lost"),
            Trace::New if *trace == TRACE => wrong("the trace is kept"),
            Trace::NoneOf(ids) if ids.iter().any(|id| id == trace) => wrong("the trace is a piece of the broken one"),
            _ => Ok(((*trace).to_owned(), (*parent).to_owned())),
        }
    }

    fn judge_state(&self, callback: &Callback) -> Result<(), String> {
        let all = callback.tracestate.join(",");
        let sent: Vec<&str> = all.split(',').map(|member| member.trim_matches([' ', '\t'])).collect();
        let sent: Vec<&str> = sent.into_iter().filter(|member| !member.is_empty()).collect();
        let keys: Vec<&str> = sent.iter().filter_map(|member| member.split_once('=')).map(|(key, _)| key).collect();
        let mut unique = keys.clone();
        unique.sort_unstable();
        unique.dedup();
        if keys.len() != sent.len() || unique.len() != keys.len() || sent.len() > 32 {
            return Err(format!("a malformed tracestate: {all}"));
        }
        let fits = match &self.state {
            State::Whatever => true,
            State::Is(expected) => &sent == expected,
            State::OneOf(lists) => lists.iter().any(|list| &sent == list),
            State::Lacks(key) => !keys.contains(key),
        };
        if fits { Ok(()) } else { Err(format!("the tracestate: {all}")) }
    }
}
