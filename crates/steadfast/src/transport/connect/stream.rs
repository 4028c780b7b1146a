//! The bytes of one connection, with every movement noted in its [`Meter`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::transport::pool::meter::Meter;

/// A socket that notes its movements. It lies below TLS, so that what counts is what the kernel took.
#[derive(Debug)]
pub(crate) struct Metered {
    socket: TcpStream,
    meter: Arc<Meter>,
}

impl Metered {
    pub(crate) fn new(socket: TcpStream, meter: Arc<Meter>) -> Self {
        Self { socket, meter }
    }

    fn on_write(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &result {
            Poll::Ready(Ok(written)) if *written > 0 => self.meter.on_written(),
            Poll::Ready(_) => self.meter.on_not_written(false),
            Poll::Pending => self.meter.on_not_written(true),
        }
        result
    }
}

/// The request was given up before its first byte: nothing of it may go out any more.
fn cancelled() -> Poll<io::Result<usize>> {
    Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the request was cancelled")))
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.socket).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.meter.on_read();
        }
        result
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if !self.meter.may_write() {
            return cancelled();
        }
        let result = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.on_write(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.meter.may_write() {
            return cancelled();
        }
        let result = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.on_write(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// Plain or TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Metered),
    Tls(Box<TlsStream<Metered>>),
}

/// Calls one method of whichever stream it is.
macro_rules! each {
    ($self:ident, $io:ident => $call:expr) => {
        match $self.get_mut() {
            Self::Plain($io) => {
                let $io = Pin::new($io);
                $call
            }
            Self::Tls($io) => {
                let $io = Pin::new($io.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, io => io.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, io => io.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, io => io.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, io => io.poll_shutdown(cx))
    }
}
