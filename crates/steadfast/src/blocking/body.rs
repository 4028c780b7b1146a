//! A request's body from a `std::io::Read`.
//!
//! The connection is served by a thread that must not block, so each piece is read on one of tokio's threads for blocking
//! work, and the next is asked for when the connection has taken it: one piece is in memory, and those that are kept for
//! another attempt.

use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::error::BoxError;
use crate::transport::RequestBody;

/// How much is asked of the reader at a time.
const PIECE: usize = 16 * 1024;

/// A body of what a reader gives, such as a file, at most 16 KiB at a time. With a `length` (in bytes) that is announced,
/// and a reader that gives more or less is an error of the attempt; without one it is sent in chunks (HTTP/1.1) or frames.
///
/// It is read once; what was read is kept so far that it can be sent again ([`RequestBody::keep`]). For the async client
/// too.
///
/// A call does not wait for a reader beyond its deadline. A read that does not return occupies one of the threads for
/// blocking work (of tokio's 512) until it does.
pub fn from_reader(reader: impl Read + Send + 'static, length: Option<u64>) -> RequestBody {
    RequestBody::stream(Pieces::Idle(Box::new(reader)), length)
}

type Reader = Box<dyn Read + Send>;

enum Pieces {
    Idle(Reader),
    Reading(JoinHandle<(Reader, io::Result<Bytes>)>),
    Over,
}

impl Stream for Pieces {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(this, Self::Over) {
                Self::Idle(mut reader) => {
                    let runtime = match Handle::try_current() {
                        Ok(runtime) => runtime,
                        Err(error) => return Poll::Ready(Some(Err(error.into()))),
                    };
                    *this = Self::Reading(runtime.spawn_blocking(move || {
                        let piece = read(&mut reader);
                        (reader, piece)
                    }));
                }
                Self::Reading(mut read) => {
                    let Poll::Ready(done) = Pin::new(&mut read).poll(cx) else {
                        *this = Self::Reading(read);
                        return Poll::Pending;
                    };
                    let (reader, piece) = match done {
                        Ok(done) => done,
                        Err(_) => return Poll::Ready(Some(Err("the reader of the request's body panicked".into()))),
                    };
                    return Poll::Ready(match piece {
                        Ok(piece) if piece.is_empty() => None,
                        Ok(piece) => {
                            *this = Self::Idle(reader);
                            Some(Ok(piece))
                        }
                        Err(error) => Some(Err(error.into())),
                    });
                }
                Self::Over => return Poll::Ready(None),
            }
        }
    }
}

/// The next piece; an empty one at the end.
fn read(reader: &mut Reader) -> io::Result<Bytes> {
    let mut piece = vec![0; PIECE];
    loop {
        match reader.read(&mut piece) {
            Ok(read) => {
                piece.truncate(read);
                return Ok(Bytes::from(piece));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
