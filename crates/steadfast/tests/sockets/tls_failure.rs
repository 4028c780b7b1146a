//! What is said of a handshake that fails, and whether it can pass.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType};
use steadfast::transport::{TlsFailureKind as Kind, TransportError};
use steadfast_http::{Fault, Sent};
use tokio_rustls::rustls::ServerConfig;

use crate::server::*;
use crate::tls_server::*;

/// The failure with this server, for a client that trusts this authority.
async fn refused(config: ServerConfig, trusted: &Authority, name: &str) -> TransportError {
    let server = TlsServer::start(config, echo()).await;
    let error = send(&tls_pool(HOST, server.port, vec![trusted.file(name)], |_| {}), get("/")).await.unwrap_err();
    assert_eq!(server.connections(), 1);
    // B17: the word for the kind, and nothing of what is behind it.
    assert_eq!((error.to_string().as_str(), error.sent()), ("tls", Sent::No));
    error
}

/// 2.4: each is permanent, and says what is wrong.
#[tokio::test]
async fn c2_4_a_certificate_that_does_not_verify_says_why() {
    let (ours, other) = (Authority::new("ours"), Authority::new("another"));
    let self_signed = |change: fn(&mut CertificateParams)| {
        let mut params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Issued { certificate: params.self_signed(&key).unwrap(), key }.server()
    };
    let unknown = "the upstream's certificate was issued by no authority that is trusted here; a private authority's \
                   certificate can be named in tls_roots, and tls_platform_roots adds those of the operating system";
    let future = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2999, 2, 28);
        params.not_after = rcgen::date_time_ymd(3000, 1, 1);
    };
    for (config, kind, expected) in [
        (
            ours.issue_with(&[HOST], expired).server(),
            Kind::Expired,
            "the upstream's certificate expired at 2021-01-01 00:00:00 UTC; it is ",
        ),
        (
            ours.issue_with(&[HOST], future).server(),
            Kind::NotYetValid,
            "the upstream's certificate is not valid before 2999-02-28 00:00:00 UTC; it is ",
        ),
        (other.issue(HOST).server(), Kind::UnknownIssuer, unknown),
        (self_signed(|_| {}), Kind::UnknownIssuer, unknown),
        (
            self_signed(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)),
            Kind::Unusable,
            "the upstream's certificate cannot be used for a server, as an authority's own certificate cannot",
        ),
        (
            Authority::new("ours").issue(HOST).server(),
            Kind::BadSignature,
            "a signature in the upstream's certificate chain does not verify: an authority may have a new key under its \
             old name, and the file in tls_roots be out of date",
        ),
        (
            ours.issue("elsewhere.test").server(),
            Kind::WrongName,
            "the upstream's certificate is not for 'upstream.test' but for 'elsewhere.test'; tls_server_name sets the \
             name expected",
        ),
        (
            ours.issue_with(&["a.test", "10.1.2.3", "*.b.test", "c.test", "d.test", "e.test"], |_| {}).server(),
            Kind::WrongName,
            "the upstream's certificate is not for 'upstream.test' but for 'a.test', '10.1.2.3', '*.b.test', 'c.test' \
             and 2 more; tls_server_name sets the name expected",
        ),
        (
            ours.issue_with(&[], |_| {}).server(),
            Kind::WrongName,
            "the upstream's certificate is not for 'upstream.test' but for no name at all; tls_server_name sets the \
             name expected",
        ),
        (
            ours.issue_with(&[HOST], |params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            })
            .server(),
            Kind::WrongPurpose,
            "the upstream's certificate was not issued for servers",
        ),
    ] {
        let error = refused(config, &ours, "permanent.pem").await;
        let failure = failure(&error);
        assert_eq!((error.fault(), failure.kind()), (Fault::Certificate, kind), "{failure}");
        assert!(failure.to_string().starts_with(expected), "{failure}");
        assert!(failure.kind().is_permanent());
    }
}

/// A certificate's names are a stranger's text.
#[tokio::test]
async fn a_hostile_name_is_told_short_and_without_control_characters() {
    let ours = Authority::new("ours");
    let issued = ours.issue_with(&[], |params| {
        let name = format!("a\r\n\u{1b}[2J{}", "x".repeat(1_000));
        params.subject_alt_names = vec![SanType::DnsName(name.try_into().unwrap())];
    });
    let said = failure(&refused(issued.server(), &ours, "hostile.pem").await).to_string();
    assert!(said.contains("but for 'a\u{fffd}\u{fffd}\u{fffd}[2Jxxx"), "{said:?}");
    assert!(said.len() < 300 && !said.chars().any(char::is_control), "{said:?}");
}

/// 2.3: what is no certificate's fault may pass, and says what it may be.
#[tokio::test]
async fn c2_3_other_failures_may_pass_and_say_what_they_are() {
    let alert = |number: u8| vec![Step::ReadSome(20), write([21, 3, 3, 0, 2, 2, number]), Step::ReadToEnd];
    let not_tls = "the upstream does not speak TLS; is it http?";
    let nothing = "the upstream and this client have no TLS version (1.2 or 1.3), cipher suite, or signature scheme in \
                   common";
    let http = vec![Step::ReadSome(20), write("HTTP/1.1 400 Bad Request\r\n\r\n")];
    let ssh = vec![write("SSH-2.0-OpenSSH_9.2\r\n"), Step::ReadToEnd];
    for (script, fault, kind, expected) in [
        (http, Fault::Tls, Kind::NotTls, not_tls),
        (ssh, Fault::Tls, Kind::NotTls, not_tls),
        (alert(40), Fault::Tls, Kind::Incompatible, nothing),
        (alert(70), Fault::Tls, Kind::Incompatible, nothing),
        (alert(71), Fault::Tls, Kind::Incompatible, nothing),
        (
            alert(112),
            Fault::Tls,
            Kind::UnknownName,
            "the upstream has no certificate for the name it was asked for; tls_server_name sets that name",
        ),
        (alert(80), Fault::Tls, Kind::Other, "the upstream ended TLS with the alert InternalError"),
        (alert(51), Fault::Tls, Kind::Other, "the upstream ended TLS with the alert DecryptError"),
        // Nobody asked for our certificate, so it is not what they are about.
        (
            alert(49),
            Fault::Tls,
            Kind::Other,
            "the upstream ended TLS with the alert AccessDenied; it may have no certificate for the name it was asked \
             for (tls_server_name)",
        ),
        (alert(42), Fault::Tls, Kind::Other, "the upstream ended TLS with the alert BadCertificate"),
        // This one can be about nothing else.
        (
            alert(116),
            Fault::Certificate,
            Kind::IdentityRequired,
            "the upstream requires a client certificate, and none is configured (tls_identity)",
        ),
    ] {
        let server = Server::start(move |_| script.clone()).await;
        let error = send(&tls_pool(HOST, server.address.port(), Vec::new(), |_| {}), get("/")).await.unwrap_err();
        let failure = failure(&error);
        assert_eq!((error.fault(), failure.kind(), error.sent()), (fault, kind, Sent::No), "{failure}");
        assert_eq!((failure.to_string().as_str(), error.to_string().as_str()), (expected, "tls"));
        assert_eq!(failure.kind().is_permanent(), fault == Fault::Certificate);
    }
}

#[tokio::test]
async fn an_upstream_that_speaks_none_of_the_offered_protocols_says_so() {
    let ours = Authority::new("ours");
    let mut config = ours.issue(HOST).server();
    config.alpn_protocols = vec![b"imap".to_vec()];
    let error = refused(config, &ours, "alpn.pem").await;
    let failure = failure(&error);
    assert_eq!((error.fault(), failure.kind()), (Fault::Tls, Kind::NoCommonProtocol));
    let expected = "the upstream speaks none of the protocols that were offered to it; http_version chooses them";
    assert_eq!(failure.to_string(), expected);
}

/// A connection that ends or is reset has no reason of TLS's.
#[tokio::test]
async fn a_handshake_that_is_cut_off_is_no_tls_failure() {
    for script in [vec![Step::ReadSome(20)], vec![Step::ReadSome(20), Step::Reset]] {
        let server = Server::start(move |_| script.clone()).await;
        let error = send(&tls_pool(HOST, server.address.port(), Vec::new(), |_| {}), get("/")).await.unwrap_err();
        assert_eq!(error.fault(), Fault::Tls);
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.is::<std::io::Error>(), "{source:?}");
    }
}

/// After the handshake a damaged record is no proof of a peer without TLS.
#[tokio::test]
async fn a_broken_record_after_the_handshake_may_pass() {
    let ours = Authority::new("ours");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(ours.issue(HOST).server()));
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(socket).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(stream.get_mut().0, b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        tokio::time::sleep(LONG).await;
    });
    let pool = tls_pool(HOST, port, vec![ours.file("broken.pem")], |_| {});
    let error = send(&pool, get("/")).await.unwrap_err();
    assert_eq!((error.fault(), failure(&error).kind()), (Fault::Tls, Kind::Other), "{error:?}");
}
