//! Our own certificate: presented where it is asked for, and what follows where it is not accepted.

use std::path::PathBuf;

use rcgen::KeyPair;
use steadfast::transport::{Pool, TlsFailureKind as Kind};
use steadfast::{Error, ErrorKind, ServiceClient};
use steadfast_http::{Fault, Sent};
use tokio::time::timeout;
use tokio_rustls::rustls::SupportedProtocolVersion;

use crate::server::*;
use crate::tls_server::*;

/// An upstream that requires certificates of an authority, and the pool's roots for it.
struct Upstream {
    server: TlsServer,
    roots: Vec<PathBuf>,
    clients: Authority,
}

impl Upstream {
    async fn start(name: &str, version: &'static SupportedProtocolVersion) -> Self {
        let (authority, clients) = (Authority::new("servers"), Authority::new("clients"));
        let config = authority.issue(HOST).server_with(Some(&clients), &[version]);
        let server = TlsServer::start(config, echo()).await;
        Self { server, roots: vec![authority.file(name)], clients }
    }

    fn pool(&self, identity: Option<PathBuf>, key: Option<PathBuf>) -> Pool {
        tls_pool(HOST, self.server.port, self.roots.clone(), |config| {
            config.tls.identity = identity;
            config.tls.identity_key = key;
        })
    }
}

/// The key as SEC1, which is what PKCS#8 wraps, in PEM.
fn sec1(key: &KeyPair) -> String {
    let pkcs8 = key.serialize_der();
    // An ECPrivateKey: a sequence, version 1, and 32 bytes of key (RFC 5915).
    let start = pkcs8.windows(5).position(|window| window[2..] == [2, 1, 1] && window[0] == 0x30).unwrap();
    let lines = base64(&pkcs8[start..start + 2 + usize::from(pkcs8[start + 1])]);
    format!("-----BEGIN EC PRIVATE KEY-----\n{lines}\n-----END EC PRIVATE KEY-----\n")
}

fn base64(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0, |word, byte| word << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = char::from(alphabet[word >> (18 - 6 * place) & 63]);
            text.push(if place <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

#[tokio::test]
async fn an_identity_from_one_file_or_two_is_presented() {
    for (number, version) in VERSIONS.into_iter().enumerate() {
        let upstream = Upstream::start(&format!("mtls-{number}.pem"), version).await;
        let client = upstream.clients.issue("client");
        let (certificate, key) = (client.certificate.pem(), client.key.serialize_pem());
        let name = |part: &str| format!("mtls-{number}-{part}.pem");
        let whole = file(&name("whole"), &client.pem());
        // The order of the sections does not matter, nor does what else is in the file.
        let turned = file(&name("turned"), &format!("{key}\n# mine\n{certificate}"));
        let sec1 = file(&name("sec1"), &(certificate.clone() + &sec1(&client.key)));
        let key = file(&name("key"), &key);
        let certificate = file(&name("certificate"), &certificate);
        for (identity, key) in [
            (&whole, None),
            (&turned, None),
            (&sec1, None),
            (&certificate, Some(&key)),
            // A key in the identity's file is not looked at where another is named.
            (&whole, Some(&key)),
        ] {
            let pool = upstream.pool(Some(identity.clone()), key.cloned());
            assert_eq!(send(&pool, get("/")).await.unwrap().1, "secret", "{identity:?}");
        }
    }
}

/// PKCS#1, RSA, in both versions.
#[tokio::test]
async fn an_rsa_identity_is_presented() {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sockets/tls_data");
    for (number, version) in VERSIONS.into_iter().enumerate() {
        let upstream = Upstream::start(&format!("rsa-{number}.pem"), version).await;
        // This upstream does not know its issuer: it got so far as to judge it.
        let pool = upstream.pool(Some(data.join("rsa.pem")), Some(data.join("rsa.key")));
        let error = send(&pool, get("/")).await.unwrap_err();
        let failure = failure(&error);
        assert_eq!(failure.kind(), Kind::IdentityRefused);
        let expected = "the upstream refuses our client certificate (tls_identity): it does not know the authority that \
                        issued it";
        assert_eq!(failure.to_string(), expected);
    }
}

/// An upstream that would like a certificate and does without is not refused.
#[tokio::test]
async fn nothing_is_presented_to_an_upstream_that_does_not_ask() {
    let authority = Authority::new("servers");
    let server = TlsServer::start(authority.issue(HOST).server(), echo()).await;
    let identity = file("unasked-identity.pem", &Authority::new("clients").issue("client").pem());
    let pool = tls_pool(HOST, server.port, vec![authority.file("unasked.pem")], |config| {
        config.tls.identity = Some(identity);
    });
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "secret");
}

async fn call(upstream: &Upstream, pool: Pool, post: bool) -> (Error, ServiceClient) {
    let client = ServiceClient::builder(&format!("https://{HOST}:{}", upstream.server.port))
        .name("upstream")
        .transport(pool)
        .build()
        .unwrap();
    let call = if post { client.post("/").retry(true).body("x") } else { client.get("/") };
    (timeout(LONG, call.send()).await.unwrap().unwrap_err(), client)
}

/// 2.4, 4.2: an upstream that refuses our certificate, or wants one that we have not, is never asked again, and the
/// breaker counts it. In TLS 1.2 it says so in the handshake, in TLS 1.3 after it.
#[tokio::test]
async fn c2_4_c4_2_a_refused_identity_is_permanent_and_counts() {
    let required = "the upstream requires a client certificate, and none is configured (tls_identity)";
    let refused = |reason: &str| format!("the upstream refuses our client certificate (tls_identity): {reason}");
    for (number, version) in VERSIONS.into_iter().enumerate() {
        let upstream = Upstream::start(&format!("refused-{number}.pem"), version).await;
        let name = |part: &str| format!("refused-{number}-{part}.pem");
        let stranger = file(&name("stranger"), &Authority::new("another").issue("client").pem());
        let impostor = file(&name("impostor"), &Authority::new("clients").issue("client").pem());
        let outdated = file(&name("outdated"), &upstream.clients.issue_with(&["client"], expired).pem());
        for (identity, kind, expected) in [
            (None, Kind::IdentityRequired, required.to_owned()),
            (Some(stranger), Kind::IdentityRefused, refused("it does not know the authority that issued it")),
            (Some(impostor), Kind::IdentityRefused, refused("a signature in its chain does not verify")),
            (Some(outdated), Kind::IdentityRefused, refused("it is expired or not valid yet")),
        ] {
            for post in [false, true] {
                let before = upstream.server.connections();
                let (error, client) = call(&upstream, upstream.pool(identity.clone(), None), post).await;
                let failure = failure(&error);
                assert_eq!((failure.kind(), failure.to_string()), (kind, expected.clone()));
                assert_eq!((error.kind(), error.attempts()), (ErrorKind::Unreachable, 1), "{error:?}");
                assert_eq!(upstream.server.connections() - before, 1);
                assert_eq!(client.snapshot().breaker.failures, 1);
                assert_eq!(client.snapshot().budget.retries, 0);
                assert!(!error.to_string().contains("certificate"), "{error}");
            }
        }
    }
}

/// 2.4: nor is it a reset, whatever of the request was written before the refusal was read.
#[tokio::test]
async fn c2_4_a_refusal_after_the_handshake_is_read_even_while_a_long_request_is_written() {
    let upstream = Upstream::start("long.pem", VERSIONS[1]).await;
    for _ in 0..20 {
        let pool = upstream.pool(None, None);
        let error = send(&pool, post("/", vec![b'x'; 4 * 1024 * 1024])).await.unwrap_err();
        assert_eq!((error.fault(), failure(&error).kind()), (Fault::Certificate, Kind::IdentityRequired), "{error:?}");
        assert_ne!(error.sent(), Sent::Yes);
        until_open(&pool, 0, 0).await;
    }
}
