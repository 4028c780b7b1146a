//! Server-sent events, as the HTML standard says (section 9.2, "Server-sent events").
//!
//! A line ends with CR, LF, or CRLF; an event with an empty line, and one that the end of the stream cuts is dropped. The
//! stream is decoded as that document says: a byte order mark in front is passed over, and bytes that are not UTF-8
//! become `U+FFFD`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, mem};

use super::buffer::Buffer;
use super::{MAX_BYTES, StreamError};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSentEvent {
    /// What kind of event it is: `message`, unless it says otherwise.
    pub event: String,
    /// Its data; several lines are joined by LF.
    pub data: String,
    /// The last id that was given, by this event, an earlier one, or a stream before this one
    /// ([`EventDecoder::with_last_event_id`]); empty: none. A request that goes on where
    /// this one ended sends it as `Last-Event-ID`.
    pub last_event_id: Arc<str>,
    /// How long to wait before connecting again, where this event says so.
    pub retry: Option<Duration>,
}

/// Cuts bytes into events, without I/O.
///
/// ```
/// use steadfast::client::stream_read::EventDecoder;
///
/// let mut decoder = EventDecoder::new();
/// decoder.push(b"event: price\ndata: 7\nid: 1\n\nda");
/// let event = decoder.next_event()?.ok_or("an event")?;
/// assert_eq!((&*event.event, &*event.data, &*event.last_event_id), ("price", "7", "1"));
/// assert_eq!(decoder.next_event()?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EventDecoder {
    buffer: Buffer,
    max: usize,
    /// The number of the line that is being read.
    line: u64,
    /// Whether the last line ended with CR, so that an LF right after it belongs to it.
    after_cr: bool,
    event: String,
    data: String,
    /// The id that the next event has.
    id: Arc<str>,
    /// The one that the last event had: an event that the stream's end cuts is to come again.
    last_event_id: Arc<str>,
    /// What the event that is being read says.
    retry_of_event: Option<Duration>,
    retry: Option<Duration>,
    finished: bool,
    failed: Option<StreamError>,
}

impl EventDecoder {
    /// A decoder of events of at most 1 MiB.
    pub fn new() -> Self {
        Self {
            buffer: Buffer::default(),
            max: MAX_BYTES,
            line: 1,
            after_cr: false,
            event: String::new(),
            data: String::new(),
            id: Arc::from(""),
            last_event_id: Arc::from(""),
            retry_of_event: None,
            retry: None,
            finished: false,
            failed: None,
        }
    }

    /// Another bound on an event in bytes: on its data and its kind together, and on each of its lines.
    #[must_use]
    pub fn max_bytes(mut self, max: usize) -> Self {
        self.max = max;
        self
    }

    /// Begins with the id that the stream before this one ended with, so that it counts until this one gives another, as in
    /// a browser. To be set before anything is read.
    #[must_use]
    pub fn with_last_event_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = id.into();
        self.last_event_id = Arc::clone(&self.id);
        self
    }

    /// The id that a request sends as `Last-Event-ID` when it goes on where this stream ended; empty: none.
    pub fn last_event_id(&self) -> &Arc<str> {
        &self.last_event_id
    }

    /// How long to wait before connecting again, as the stream said last.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Adds what has come. All of it is held until it is asked for, so ask until there is nothing before adding more. Of
    /// no effect after [`finish`](Self::finish) or an error.
    pub fn push(&mut self, piece: &[u8]) {
        if !self.finished && self.failed.is_none() {
            self.buffer.push(piece);
        }
    }

    /// Nothing more will come. What is not complete is dropped, as the standard wants.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The next event. `None`: more bytes are needed, or, after [`finish`](Self::finish), there are no more.
    ///
    /// # Errors
    /// [`StreamError::EventTooLarge`]. The same is returned from then on.
    pub fn next_event(&mut self) -> Result<Option<ServerSentEvent>, StreamError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        loop {
            if self.after_cr && !self.buffer.rest().is_empty() {
                self.after_cr = false;
                if self.buffer.rest().starts_with(b"\n") {
                    self.buffer.take(0, 1);
                }
            }
            let found = self.buffer.find(|byte| matches!(byte, b'\n' | b'\r'));
            let length = found.unwrap_or(self.buffer.rest().len());
            if length > self.max {
                return Err(self.fail());
            }
            if found.is_none() {
                return Ok(None);
            }
            self.after_cr = self.buffer.rest().get(length) == Some(&b'\r');
            if length == 0 {
                self.buffer.take(0, 1);
                self.line = self.line.saturating_add(1);
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
                continue;
            }
            // The line is out of the buffer while it is read.
            let mut buffer = mem::take(&mut self.buffer);
            let fits = self.read_line(buffer.take(length, 1));
            self.buffer = buffer;
            if !fits {
                return Err(self.fail());
            }
            self.line = self.line.saturating_add(1);
        }
    }

    /// One line of an event. False: the event is too large.
    fn read_line(&mut self, line: &[u8]) -> bool {
        let line = if self.line == 1 { line.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(line) } else { line };
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            // A comment.
            Some(0) => return true,
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.push_str(&text(value));
                self.data.push('\n');
            }
            b"event" => {
                self.event.clear();
                self.event.push_str(&text(value));
            }
            b"id" if !value.contains(&0) => self.id = Arc::from(&*text(value)),
            b"retry" => {
                if let Some(wait) = milliseconds(value) {
                    self.retry_of_event = Some(wait);
                    self.retry = Some(wait);
                }
            }
            _ => {}
        }
        self.data.len() + self.event.len() <= self.max
    }

    /// The event that an empty line ends, if it has data.
    fn dispatch(&mut self) -> Option<ServerSentEvent> {
        // By itself, without data, an id counts too.
        self.last_event_id = Arc::clone(&self.id);
        let event = mem::take(&mut self.event);
        let retry = self.retry_of_event.take();
        let mut data = mem::take(&mut self.data);
        data.pop()?;
        Some(ServerSentEvent {
            event: if event.is_empty() { String::from("message") } else { event },
            data,
            last_event_id: Arc::clone(&self.last_event_id),
            retry,
        })
    }

    fn fail(&mut self) -> StreamError {
        let error = StreamError::EventTooLarge { line: self.line, max: self.max };
        self.buffer.clear();
        (self.event, self.data) = (String::new(), String::new());
        self.failed = Some(error);
        error
    }
}

impl Default for EventDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EventDecoder {
    /// Without what has come.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventDecoder")
            .field("line", &self.line)
            .field("finished", &self.finished)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// A line is whole characters, so it can be decoded alone.
fn text(value: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(value)
}

/// Digits and nothing else. More of them than a number can hold mean the longest wait there is.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    let digits = str::from_utf8(value).ok()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_millis(digits.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests;
