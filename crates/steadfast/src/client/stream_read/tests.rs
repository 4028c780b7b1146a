//! The adapters: bodies that wait, end, and fail.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_executor::block_on;
use futures_util::StreamExt;
use http::HeaderMap;
use http_body::{Body, Frame};

use super::*;

/// What a body does next; `None` is pending.
type Step = Option<Result<Frame<Bytes>, &'static str>>;

struct Scripted(VecDeque<Step>);

impl Scripted {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self(steps.into_iter().collect())
    }
}

fn piece(bytes: &'static [u8]) -> Step {
    Some(Ok(Frame::data(Bytes::from_static(bytes))))
}

impl Body for Scripted {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        match self.0.pop_front() {
            Some(Some(step)) => Poll::Ready(Some(step)),
            Some(None) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }
}

#[test]
fn lines_come_as_the_body_does() {
    let trailers = Some(Ok(Frame::trailers(HeaderMap::new())));
    let body = Scripted::new([piece(b"one\r"), None, piece(b""), piece(b"\ntwo\n\nthr"), piece(b"ee"), trailers]);
    let mut lines = Lines::new(body);
    let mut all = Vec::new();
    block_on(async {
        while let Some(line) = lines.next().await {
            all.push(line.unwrap());
        }
        assert_eq!(lines.next().await, None);
    });
    assert_eq!(all, ["one", "two", "", "three"]);
}

#[test]
fn events_are_a_stream_too() {
    let body = Scripted::new([piece(b"retry: 5\nid: 1\ndata: a\n\ndata: "), None, piece(b"b\n\nid: 2\ndata: cut")]);
    let mut events = Events::new(body);
    let all = block_on(StreamExt::collect::<Vec<_>>(StreamExt::by_ref(&mut events)));
    let all: Vec<_> = all.into_iter().map(|event| event.unwrap().data).collect();
    assert_eq!(all, ["a", "b"]);
    assert_eq!(&**events.last_event_id(), "1");
    assert_eq!(events.retry(), Some(std::time::Duration::from_millis(5)));
}

/// What was whole comes first, then the error, then nothing: the rest of a line is not taken for one.
#[test]
fn a_body_that_fails_ends_the_lines() {
    let mut lines = Lines::new(Scripted::new([piece(b"one\ntw"), Some(Err("cut")), piece(b"o\n")]));
    block_on(async {
        assert_eq!(lines.next().await, Some(Ok(String::from("one"))));
        assert_eq!(lines.next().await, Some(Err(ReadError::Body("cut"))));
        assert_eq!(lines.next().await, None);
    });
}

#[test]
fn a_line_that_is_too_long_ends_the_lines() {
    let body = Scripted::new([piece(b"one\n"), piece(b"123456"), piece(b"\nthree\n")]);
    let mut lines = Lines::with_decoder(body, LineDecoder::new().max_bytes(5));
    block_on(async {
        assert_eq!(lines.next().await, Some(Ok(String::from("one"))));
        let error = lines.next().await.unwrap().unwrap_err();
        assert_eq!(error, ReadError::Content(StreamError::LineTooLong { line: 2, max: 5 }));
        assert_eq!(error.to_string(), "line 2 of the body has more than 5 bytes");
        assert_eq!(lines.next().await, None);
    });
}

/// Dropping the future of `next` loses nothing.
#[test]
fn next_is_cancel_safe() {
    let mut lines = Lines::new(Scripted::new([piece(b"on"), None, piece(b"e\ntw"), None, None, piece(b"o\n")]));
    let mut cx = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    for _ in 0..20 {
        if let Poll::Ready(Some(line)) = std::pin::pin!(lines.next()).poll(&mut cx) {
            all.push(line.unwrap());
        }
    }
    assert_eq!(all, ["one", "two"]);
}

/// A large piece is decoded little by little, and one of nothing but comments lets others have a turn.
#[test]
fn a_large_piece_does_not_keep_the_thread() {
    let comments: &[u8] = Box::leak(b": nothing\n".repeat(400_000).into_boxed_slice());
    let mut events = Events::new(Scripted::new([piece(comments), piece(b"data: a\n\n")]));
    let mut cx = Context::from_waker(Waker::noop());
    let mut turns = 0;
    let event = loop {
        match std::pin::pin!(events.next()).poll(&mut cx) {
            Poll::Ready(event) => break event,
            Poll::Pending => turns += 1,
        }
    };
    assert_eq!(event.unwrap().unwrap().data, "a");
    assert!((5..50).contains(&turns), "{turns}");
}

#[test]
fn nothing_of_the_body_is_shown() {
    let mut lines = Lines::new(Scripted::new([piece(b"one\nsecret")]));
    block_on(lines.next());
    assert_eq!(format!("{lines:?}"), "Lines { over: false, .. }");
}
