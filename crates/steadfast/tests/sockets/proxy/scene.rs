//! The cast: an upstream with TLS, a proxy that makes tunnels, and a resolver that notes what it was asked.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use steadfast::transport::{Pool, PoolConfig, Proxy, ProxyUrl, Resolve, ResolveFuture, TransportError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::server::*;

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A private authority, and the file with its certificate.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) file: PathBuf,
}

impl Authority {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let name = format!("{}-proxy-{}.pem", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, certificate.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), file }
    }

    pub(crate) fn issue(&self, host: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

async fn accept(socket: TcpStream, tls: Option<&TlsAcceptor>) -> Option<Box<dyn Duplex>> {
    match tls {
        Some(tls) => tls.accept(socket).await.ok().map(|stream| Box::new(stream) as Box<dyn Duplex>),
        None => Some(Box::new(socket)),
    }
}

/// An upstream over TLS that follows a script.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    log: Log,
}

impl Upstream {
    pub(crate) async fn start(tls: TlsAcceptor, script: impl Fn(usize) -> Vec<Step> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, log) = (listener.local_addr().unwrap(), Log::default());
        let seen = Arc::clone(&log);
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((socket, _)) = listener.accept().await else { return };
                seen.lock().unwrap().push(Seen::default());
                let (tls, script, seen) = (tls.clone(), script(number), Arc::clone(&seen));
                tokio::spawn(async move {
                    let Some(mut stream) = accept(socket, Some(&tls)).await else { return };
                    for step in script {
                        if !perform(&mut stream, step, &seen, number).await {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, log }
    }

    /// The requests on all connections.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.log.lock().unwrap().iter().flat_map(|seen| seen.requests.clone()).collect()
    }
}

/// What a proxy does once it has read a CONNECT.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Says this and is a tunnel from then on.
    Tunnel(&'static str),
    /// Says this, and closes when the other side does.
    Say(Vec<u8>),
    /// Says this again and again, with a pause between.
    Drip(&'static str),
}

/// A proxy that makes tunnels, all of them to one upstream.
pub(crate) struct Tunnels {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Tunnels {
    /// `answer(n)` is for connection `n`, from 0.
    pub(crate) async fn start(
        tls: Option<TlsAcceptor>,
        to: SocketAddr,
        answer: impl Fn(usize) -> Answer + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((socket, _)) = listener.accept().await else { return };
                tokio::spawn(serve(socket, tls.clone(), to, answer(number), Arc::clone(&seen)));
            }
        });
        Self { address, heads }
    }

    /// The heads of all CONNECTs.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn serve(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    to: SocketAddr,
    answer: Answer,
    heads: Arc<Mutex<Vec<String>>>,
) {
    let Some(mut stream) = accept(socket, tls.as_ref()).await else { return };
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    heads.lock().unwrap().push(String::from_utf8(head).unwrap());
    match answer {
        Answer::Tunnel(head) => {
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut upstream = TcpStream::connect(to).await.unwrap();
            let _ = copy_bidirectional(&mut stream, &mut upstream).await;
        }
        Answer::Say(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.flush().await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
        Answer::Drip(bytes) => {
            while stream.write_all(bytes.as_bytes()).await.is_ok() && stream.flush().await.is_ok() {
                tokio::time::sleep(ms(5)).await;
            }
        }
    }
}

/// Every name but `nowhere.test` is this machine.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<Vec<String>>>);

impl Names {
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ResolveFuture<'a> {
        self.0.lock().unwrap().push(host.to_owned());
        let found = if host == "nowhere.test" { Vec::new() } else { vec![([127, 0, 0, 1], port).into()] };
        Box::pin(std::future::ready(Ok(found)))
    }
}

/// `scheme://credentials@proxy.test:port`.
pub(crate) fn proxy(scheme: &str, credentials: &str, address: SocketAddr) -> Proxy {
    Proxy::Url(ProxyUrl::parse(&format!("{scheme}://{credentials}proxy.test:{}", address.port())).unwrap())
}

/// A pool for `upstream.test` on its default port.
pub(crate) fn through(https: bool, proxy: Proxy, names: &Names, change: impl FnOnce(&mut PoolConfig)) -> Pool {
    let mut config = PoolConfig::new(https, "upstream.test", if https { 443 } else { 80 });
    config.connect_timeout = LONG;
    config.read_timeout = LONG;
    config.proxy = proxy;
    change(&mut config);
    Pool::new(config, Arc::new(names.clone())).unwrap()
}

/// The text of everything behind an error, which names no secret.
pub(crate) fn chain(error: &TransportError) -> String {
    let mut text = String::new();
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        text = format!("{text}{error}; ");
        next = error.source();
    }
    assert!(!format!("{text}{error:?}").contains("s3"), "{text}{error:?}");
    text
}
