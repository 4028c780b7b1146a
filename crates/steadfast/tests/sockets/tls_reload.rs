//! Certificates that change while the pool is in use.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast::transport::{Pool, TlsFailureKind as Kind};

use crate::server::*;
use crate::tls_server::*;

async fn text(pool: &Pool) -> String {
    String::from_utf8(send(pool, get("/")).await.unwrap().1.to_vec()).unwrap()
}

#[tokio::test]
async fn a_reload_takes_the_new_roots_and_retires_what_is_idle() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let server = TlsServer::start(old.issue(HOST).server(), echo()).await;
    let roots = old.file("rotate.pem");
    let pool = tls_pool(HOST, server.port, vec![roots.clone()], |_| {});
    assert_eq!(text(&pool).await, "secret");
    // The upstream rotates. What is open stays in use, and a reload finds nothing yet.
    server.rotate(new.issue(HOST).server());
    assert!(!pool.reload_tls().unwrap());
    assert_eq!((text(&pool).await.as_str(), server.connections()), ("secret", 1));
    // The same content written anew is no change.
    fs::write(&roots, old.certificate.pem()).unwrap();
    assert!(!pool.reload_tls().unwrap());
    assert_eq!((pool.snapshot().open, pool.snapshot().idle), (1, 1));

    fs::write(&roots, new.certificate.pem()).unwrap();
    assert!(pool.reload_tls().unwrap());
    assert_eq!(pool.snapshot().idle, 0);
    until_open(&pool, 0, 0).await;
    assert_eq!((text(&pool).await.as_str(), server.connections()), ("secret", 2));
    assert!(!pool.reload_tls().unwrap());
    assert_eq!((text(&pool).await.as_str(), server.connections()), ("secret", 2));
    // The old root counts no more.
    server.rotate(old.issue(HOST).server());
    fs::write(&roots, new.certificate.pem() + "\n").unwrap();
    assert!(pool.reload_tls().unwrap());
    let error = send(&pool, get("/")).await.unwrap_err();
    assert_eq!(failure(&error).kind(), Kind::UnknownIssuer);
}

#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(authority.issue(HOST).server(), echo()).await;
    let roots = authority.file("broken-roots.pem");
    let pool = tls_pool(HOST, server.port, vec![roots.clone()], |config| config.max_connections = 2);
    assert_eq!(text(&pool).await, "secret");
    for content in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n"] {
        fs::write(&roots, content).unwrap();
        for _ in 0..2 {
            assert_eq!(pool.reload_tls().unwrap_err().path(), Some(roots.as_path()));
        }
    }
    fs::remove_file(&roots).unwrap();
    assert_eq!(pool.reload_tls().unwrap_err().path(), Some(roots.as_path()));
    // The idle connection is still there, and another can be opened with what was.
    assert_eq!((text(&pool).await.as_str(), server.connections()), ("secret", 1));
    let held = head(&pool, get("/")).await.unwrap();
    assert_eq!((text(&pool).await.as_str(), server.connections()), ("secret", 2));
    drop(held);
    // Nor does the old content become a change by the error between.
    fs::write(&roots, authority.certificate.pem()).unwrap();
    assert!(!pool.reload_tls().unwrap());
}

#[tokio::test]
async fn a_connection_in_use_ends_its_response_and_is_not_used_again() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let said = Arc::new(AtomicBool::new(false));
    let script = vec![
        Step::Read,
        write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst"),
        Step::Until(Arc::clone(&said)),
        write("-half"),
        Step::Read,
        ok("must not be asked"),
    ];
    let server = TlsServer::start(old.issue(HOST).server(), script).await;
    let roots = old.file("in-use.pem");
    let pool = tls_pool(HOST, server.port, vec![roots.clone()], |_| {});
    let response = head(&pool, get("/")).await.unwrap();
    fs::write(&roots, new.certificate.pem()).unwrap();
    assert!(pool.reload_tls().unwrap());
    assert_eq!((pool.snapshot().open, pool.snapshot().idle), (1, 0));
    said.store(true, Ordering::SeqCst);
    assert_eq!(response.into_body().collect(MAX).await.unwrap(), "first-half");
    assert_eq!(pool.snapshot().idle, 0);
    until_open(&pool, 0, 0).await;
    server.rotate(new.issue(HOST).server());
    let next = head(&pool, get("/")).await.unwrap();
    assert_eq!((next.status().as_u16(), server.connections()), (200, 2));
}

/// One that waits for a connection is not given an old one.
#[tokio::test]
async fn one_that_waits_gets_a_connection_with_the_new_certificates() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let server = TlsServer::start(old.issue(HOST).server(), echo()).await;
    let roots = old.file("waits.pem");
    let pool = tls_pool(HOST, server.port, vec![roots.clone()], |config| {
        config.max_connections = 1;
        config.pool_timeout = LONG;
    });
    let held = head(&pool, get("/")).await.unwrap();
    let waiting = tokio::spawn({
        let pool = pool.clone();
        async move { text(&pool).await }
    });
    tokio::task::yield_now().await;
    server.rotate(new.issue(HOST).server());
    fs::write(&roots, new.certificate.pem()).unwrap();
    assert!(pool.reload_tls().unwrap());
    assert_eq!(held.into_body().collect(MAX).await.unwrap(), "secret");
    assert_eq!((waiting.await.unwrap().as_str(), server.connections()), ("secret", 2));
}

/// A client certificate that is renewed, in one file and in two, in both versions.
#[tokio::test]
async fn a_renewed_identity_is_presented() {
    for (number, version) in VERSIONS.into_iter().enumerate() {
        for separate in [false, true] {
            let (authority, clients) = (Authority::new("servers"), Authority::new("clients"));
            let config = authority.issue(HOST).server_with(Some(&clients), &[version]);
            let server = TlsServer::start(config, echo()).await;
            let name = |part: &str| format!("renew-{number}-{separate}-{part}.pem");
            let (stale, good) = (clients.issue_with(&["client"], expired), clients.issue("client"));
            let identity = file(&name("identity"), &stale.pem());
            let key = file(&name("key"), &stale.key.serialize_pem());
            let pool = tls_pool(HOST, server.port, vec![authority.file(&name("roots"))], |config| {
                config.tls.identity = Some(identity.clone());
                config.tls.identity_key = separate.then(|| key.clone());
            });
            let error = send(&pool, get("/")).await.unwrap_err();
            assert_eq!(failure(&error).kind(), Kind::IdentityRefused);
            fs::write(&identity, good.pem()).unwrap();
            if separate {
                // Half of a renewal is an error that changes nothing, and says which file is behind.
                assert_eq!(pool.reload_tls().unwrap_err().path(), Some(key.as_path()));
                fs::write(&key, good.key.serialize_pem()).unwrap();
            }
            assert!(pool.reload_tls().unwrap());
            assert_eq!(text(&pool).await, "secret");
            // Any byte counts, in whichever file.
            let last = if separate { &key } else { &identity };
            fs::write(last, fs::read_to_string(last).unwrap() + "\n").unwrap();
            assert!(pool.reload_tls().unwrap());
            assert_eq!((text(&pool).await.as_str(), server.connections()), ("secret", 3));
        }
    }
}

/// The platform's roots, where there are any, are the same when they are read again.
#[test]
fn platform_roots_do_not_differ_by_being_read_again() {
    match try_pool(HOST, 443, Vec::new(), |config| config.tls.platform_roots = true) {
        Ok(pool) => assert!(!pool.reload_tls().unwrap()),
        Err(error) => assert!(error.to_string().starts_with("the operating system has no root"), "{error}"),
    }
}
