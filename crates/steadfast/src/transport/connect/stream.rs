//! The bytes of one connection, with every movement noted in its [`Meter`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::tls::{TlsIo, TlsState};
use crate::transport::pool::gate::Claim;
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

    /// Asks for the right to write; an error if there is nothing to be written to, or any more.
    fn claim(&self) -> io::Result<()> {
        match self.meter.gate().claim() {
            Claim::Write => Ok(()),
            Claim::Cancelled => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the request was cancelled")),
            Claim::Probe if has_input(&self.socket) => {
                self.meter.gate().on_dead();
                Err(io::Error::new(io::ErrorKind::NotConnected, "the connection was given up while it was idle"))
            }
            Claim::Probe => Ok(()),
        }
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

/// Whether there is anything to read: bytes, the end, or an error.
///
/// It asks the kernel. The runtime's own idea is as old as its last look at the sockets, which on a busy thread is a
/// while ago, and a request that goes out meanwhile would be lost with an unknown outcome.
fn has_input(socket: &TcpStream) -> bool {
    #[cfg(unix)]
    let copy = {
        use std::os::fd::AsFd;
        socket.as_fd().try_clone_to_owned().map(std::net::TcpStream::from)
    };
    #[cfg(windows)]
    let copy = {
        use std::os::windows::io::AsSocket;
        socket.as_socket().try_clone_to_owned().map(std::net::TcpStream::from)
    };
    let Ok(copy) = copy else { return false };
    match copy.peek(&mut [0]) {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
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
        self.claim()?;
        let result = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.on_write(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.claim()?;
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
    /// TLS on top of another stream, which is itself TLS where the proxy is reached over TLS.
    Tls(Box<TlsIo>),
}

impl Stream {
    /// What is remembered of its TLS; `None` for a plain one.
    pub(crate) fn tls_state(&self) -> Option<TlsState> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(io) => Some(io.state().clone()),
        }
    }
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
