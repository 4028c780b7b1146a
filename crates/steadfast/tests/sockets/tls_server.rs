//! A TLS server, the authorities behind it, and what the tests of TLS ask of a pool.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use steadfast::transport::{
    Pool, PoolConfig, PoolConfigError, Proxy, Resolve, ResolveFuture, TlsConfigError, TlsFailure,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, crypto};

use crate::server::*;

pub(crate) const HOST: &str = "upstream.test";
pub(crate) const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A certificate, and its key.
pub(crate) struct Issued {
    pub(crate) certificate: Certificate,
    pub(crate) key: KeyPair,
}

impl Issued {
    /// A server of both versions that asks for no certificate.
    pub(crate) fn server(self) -> ServerConfig {
        self.server_with(None, &VERSIONS)
    }

    /// `clients`: whose certificates it requires.
    pub(crate) fn server_with(
        self,
        clients: Option<&Authority>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ServerConfig {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.certificate.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        builder.with_single_cert(vec![self.certificate.der().clone()], key).unwrap()
    }

    /// Certificate and key, in this order.
    pub(crate) fn pem(&self) -> String {
        self.certificate.pem() + &self.key.serialize_pem()
    }
}

/// A private authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) certificate: Certificate,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// The authority's certificate in a PEM file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        file(name, &self.certificate.pem())
    }

    pub(crate) fn issue(&self, name: &str) -> Issued {
        self.issue_with(&[name], |_| {})
    }

    pub(crate) fn issue_with(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Issued { certificate: params.signed_by(&key, &self.issuer).unwrap(), key }
    }
}

pub(crate) fn expired(params: &mut CertificateParams) {
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
}

/// A file of this process's own; the name must be the test's own too.
pub(crate) fn file(name: &str, content: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    std::fs::write(&path, content).unwrap();
    path
}

/// A TLS server that follows a script on each connection.
pub(crate) struct TlsServer {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    config: Arc<Mutex<Arc<ServerConfig>>>,
}

impl TlsServer {
    pub(crate) async fn start(config: ServerConfig, script: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let config = Arc::new(Mutex::new(Arc::new(config)));
        let (count, current) = (Arc::clone(&connections), Arc::clone(&config));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let acceptor = TlsAcceptor::from(Arc::clone(&current.lock().unwrap()));
                let script = script.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(socket).await else { return };
                    let log = Log::default();
                    log.lock().unwrap().push(Seen::default());
                    for step in script {
                        if !perform(&mut stream, step, &log, 0).await {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, connections, config }
    }

    /// New connections get this from now on.
    pub(crate) fn rotate(&self, config: ServerConfig) {
        *self.config.lock().unwrap() = Arc::new(config);
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Every name is this machine.
pub(crate) struct Here;

impl Resolve for Here {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> ResolveFuture<'a> {
        Box::pin(async move { Ok(vec![([127, 0, 0, 1], port).into()]) })
    }
}

pub(crate) fn tls_pool(host: &str, port: u16, roots: Vec<PathBuf>, change: impl FnOnce(&mut PoolConfig)) -> Pool {
    try_pool(host, port, roots, change).unwrap()
}

pub(crate) fn try_pool(
    host: &str,
    port: u16,
    roots: Vec<PathBuf>,
    change: impl FnOnce(&mut PoolConfig),
) -> Result<Pool, TlsConfigError> {
    let mut config = PoolConfig::new(true, host, port);
    config.proxy = Proxy::Off;
    config.connect_timeout = LONG;
    config.tls.extra_roots = roots;
    change(&mut config);
    Pool::new(config, Arc::new(Here)).map_err(|error| match error {
        PoolConfigError::Tls(error) => error,
        other => panic!("{other}"),
    })
}

/// Answers ten requests on each connection.
pub(crate) fn echo() -> Vec<Step> {
    (0..10).flat_map(|_| [Step::Read, ok("secret")]).collect()
}

/// The reason why TLS failed, from among an error's sources.
#[track_caller]
pub(crate) fn failure(error: &(dyn StdError + 'static)) -> TlsFailure {
    let mut error = Some(error);
    while let Some(found) = error {
        if let Some(failure) = found.downcast_ref::<TlsFailure>() {
            assert!(failure.source().is_some_and(|source| source.is::<tokio_rustls::rustls::Error>()), "{failure:?}");
            return failure.clone();
        }
        error = found.source();
    }
    panic!("no TlsFailure among the sources")
}
