//! A TLS connection's bytes, and what is remembered of it: how its TLS failed, and whether its certificates are current.
//!
//! hyper's HTTP/2 keeps of an I/O error no more than its text, and a request that is handed over a moment after the
//! connection has failed gets no reason at all. So the failure is noted here, where it comes up, for whoever uses the
//! connection.
//!
//! An upstream that refuses us after the handshake says why, and closes. If we write at that moment, the write fails
//! first, with a reset that tells nothing and would be retried. So after a failed write what has come is read once more.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::Error as RustlsError;

use super::failure::{Setting, TlsFailure};
use crate::transport::connect::Stream;

/// Enough for any alert, and for a few session tickets before it.
const LAST_READS: usize = 8;

/// What the user of a TLS connection knows about it. Clones are of the same connection.
#[derive(Clone, Debug)]
pub(crate) struct TlsState {
    failed: Arc<OnceLock<TlsFailure>>,
    opened_with: u64,
    current: Arc<AtomicU64>,
}

impl TlsState {
    pub(super) fn new(opened_with: u64, current: Arc<AtomicU64>) -> Self {
        Self { failed: Arc::default(), opened_with, current }
    }

    /// How its TLS failed, where it did.
    pub(crate) fn failure(&self) -> Option<TlsFailure> {
        self.failed.get().cloned()
    }

    /// Whether other certificates count by now than when it was opened.
    pub(crate) fn is_outdated(&self) -> bool {
        self.opened_with != self.current.load(Ordering::Acquire)
    }
}

/// A TLS stream that notes how it fails.
#[derive(Debug)]
pub(crate) struct TlsIo {
    stream: TlsStream<Stream>,
    setting: Setting,
    state: TlsState,
}

impl TlsIo {
    pub(super) fn new(stream: TlsStream<Stream>, setting: Setting, state: TlsState) -> Self {
        Self { stream, setting, state }
    }

    pub(crate) fn state(&self) -> &TlsState {
        &self.state
    }

    fn note(&self, error: RustlsError) {
        // The first is the reason of all that follow.
        let _ = self.state.failed.set(TlsFailure::new(error, self.setting));
    }

    fn note_read<T>(&self, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &result
            && let Some(error) = rustls_error(error)
        {
            self.note(error.clone());
        }
        result
    }

    fn note_write<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &result
            && rustls_error(error).is_none()
            && let Some(error) = self.last_words(cx)
        {
            self.note(error);
        }
        result
    }

    /// What of the records that have come is an error.
    fn last_words(&mut self, cx: &mut Context<'_>) -> Option<RustlsError> {
        let (io, session) = self.stream.get_mut();
        let mut bytes = [0; 2048];
        for _ in 0..LAST_READS {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *io).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                _ => return None,
            }
            let mut rest = buffer.filled();
            while !rest.is_empty() {
                if !matches!(session.read_tls(&mut rest), Ok(read) if read > 0) {
                    return None;
                }
                if let Err(error) = session.process_new_packets() {
                    return Some(error);
                }
            }
        }
        None
    }
}

/// rustls's error inside of an I/O error.
pub(super) fn rustls_error(error: &io::Error) -> Option<&RustlsError> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

impl AsyncRead for TlsIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.note_read(result)
    }
}

impl AsyncWrite for TlsIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.note_write(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.note_write(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.note_write(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
