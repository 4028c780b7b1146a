//! Spans that a test can read: which there were, what they say, what was logged inside of which.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata};
use tracing_core::span::Current;

/// One span.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: &'static str,
    pub(crate) target: String,
    pub(crate) fields: BTreeMap<String, String>,
    /// The messages of what was logged while it was the innermost.
    pub(crate) events: Vec<String>,
    handles: usize,
    metadata: &'static Metadata<'static>,
}

impl Seen {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.handles == 0
    }
}

#[derive(Default)]
struct Kept {
    spans: Vec<Seen>,
    /// Of all threads: a test's threads take turns.
    entered: Vec<u64>,
    outside: Vec<String>,
}

/// Keeps every span and event up to a level.
#[derive(Clone)]
pub(crate) struct Spans(Arc<Mutex<Kept>>, LevelFilter);

impl Spans {
    pub(crate) fn up_to(level: LevelFilter) -> Self {
        Self(Arc::default(), level)
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().spans.clone()
    }

    /// The only span there was.
    pub(crate) fn only(&self) -> Seen {
        let spans = self.all();
        assert_eq!(spans.len(), 1, "{spans:#?}");
        spans.into_iter().next().unwrap()
    }

    /// What was logged in no span.
    pub(crate) fn outside(&self) -> Vec<String> {
        self.0.lock().unwrap().outside.clone()
    }
}

impl tracing::Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.1
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.1)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let metadata = attributes.metadata();
        let mut kept = self.0.lock().unwrap();
        kept.spans.push(Seen {
            name: metadata.name(),
            target: metadata.target().to_owned(),
            fields: fields.0,
            events: Vec::new(),
            handles: 1,
            metadata,
        });
        Id::from_u64(kept.spans.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.0.lock().unwrap().spans[at(id)].fields.append(&mut fields.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = fields.0.remove("message").unwrap_or_default();
        let mut kept = self.0.lock().unwrap();
        match kept.entered.last().copied() {
            Some(id) => kept.spans[id as usize - 1].events.push(line),
            None => kept.outside.push(line),
        }
    }

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        assert_eq!(self.0.lock().unwrap().entered.pop(), Some(id.into_u64()));
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.0.lock().unwrap().spans[at(id)].handles += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut kept = self.0.lock().unwrap();
        let handles = &mut kept.spans[at(&id)].handles;
        *handles -= 1;
        *handles == 0
    }

    fn current_span(&self) -> Current {
        let kept = self.0.lock().unwrap();
        match kept.entered.last().copied() {
            Some(id) => Current::new(Id::from_u64(id), kept.spans[id as usize - 1].metadata),
            None => Current::none(),
        }
    }
}

fn at(id: &Id) -> usize {
    usize::try_from(id.into_u64()).unwrap() - 1
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}
