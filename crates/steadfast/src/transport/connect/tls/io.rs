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

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::server::WebPkiClientVerifier;
    use tokio_rustls::rustls::version::TLS13;
    use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

    use super::*;
    use crate::transport::connect::stream::Metered;
    use crate::transport::connect::tls::{Tls, TlsFailureKind, TlsOptions};
    use crate::transport::pool::meter::{Limits, Meter, NEVER};
    use crate::transport::version::Offer;

    /// Its authority in PEM, and a server that requires a certificate.
    fn server() -> (String, ServerConfig) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["upstream.test".to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        (authority.pem(), config)
    }

    /// The writes fail, and nobody reads: the reason is found all the same.
    #[tokio::test]
    async fn a_refusal_is_heard_though_the_write_fails_first() {
        let (roots, config) = server();
        let path = std::env::temp_dir().join(format!("steadfast-{}-io.pem", std::process::id()));
        std::fs::write(&path, roots).unwrap();
        let options = TlsOptions { extra_roots: vec![path.clone()], ..TlsOptions::default() };
        let tls = Tls::new("upstream.test", &options).unwrap();
        std::fs::remove_file(&path).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let refusing = tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            assert!(TlsAcceptor::from(Arc::new(config)).accept(socket).await.is_err());
        });
        let limits = Limits { read: NEVER, write: NEVER, idle: NEVER, age: NEVER };
        let socket = Metered::new(TcpStream::connect(address).await.unwrap(), Arc::new(Meter::new(limits)));
        let (mut stream, _) = tls.handshake(Stream::Plain(socket), Offer::Http1).await.unwrap();
        refusing.await.unwrap();
        assert!(stream.state().failure().is_none());
        while stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.is_ok() {
            tokio::task::yield_now().await;
        }
        let failure = stream.state().failure().expect("heard");
        assert_eq!(failure.kind(), TlsFailureKind::IdentityRequired);
    }
}
