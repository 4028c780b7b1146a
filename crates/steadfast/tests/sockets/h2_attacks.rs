//! HTTP/2: an upstream that does anything at any time, callers that leave at any time, and a pool that loses nothing.
//!
//! Seeded: every connection and every caller draws what it does from its number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use h2::Reason;
use steadfast_http::{Fault, Sent};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::h2_peer::*;
use crate::server::*;
use crate::tls_server::{Authority, HOST, tls_pool};

/// What the wild upstream has seen.
#[derive(Default)]
struct Ledger {
    /// How often each numbered POST was processed.
    processed: Mutex<HashMap<String, usize>>,
    /// From now on it behaves.
    is_calm: AtomicBool,
}

/// One connection: it answers, refuses, resets, allows more or fewer streams, goes away in good order or not.
async fn wild<S: AsyncRead + AsyncWrite + Unpin>(socket: S, seed: u64, ledger: &Ledger) {
    let mut random = fastrand::Rng::with_seed(seed);
    let is_calm = || ledger.is_calm.load(Ordering::SeqCst);
    if !is_calm() {
        match random.u8(0..20) {
            0 => return,
            1 => sleep(ms(5)).await,
            _ => {}
        }
    }
    let mut limit = if is_calm() { 5 } else { random.u32(0..6) };
    let Some(mut raw) = Raw::greet_or_not(socket, &[(MAX_CONCURRENT_STREAMS, limit)]).await else { return };
    let mut bodies: HashMap<u32, Vec<u8>> = HashMap::new();
    // The last stream that was processed: a later one may be whole before an earlier one.
    let mut last = 0;
    loop {
        if limit == 0 {
            sleep(Duration::from_micros(random.u64(0..2_000))).await;
            limit = random.u32(1..6);
            raw.settings(&[(MAX_CONCURRENT_STREAMS, limit)]).await;
        }
        let Ok(read) = timeout(ms(20), raw.read()).await else { continue };
        let Some(frame) = read else { return };
        match frame.kind {
            HEADERS => drop(bodies.insert(frame.stream, Vec::new())),
            DATA => bodies.entry(frame.stream).or_default().extend(&frame.payload),
            RST_STREAM => drop(bodies.remove(&frame.stream)),
            _ => continue,
        }
        if (frame.kind != HEADERS && frame.kind != DATA) || frame.flags & END_STREAM == 0 {
            continue;
        }
        let stream = frame.stream;
        let body = String::from_utf8(bodies.remove(&stream).unwrap_or_default()).unwrap();
        let fate = if is_calm() { 99 } else { random.u8(0..100) };
        match fate {
            // It cannot be left out where a later one was processed.
            3..6 if stream <= last => {}
            0..3 => {
                raw.reset(stream, Reason::REFUSED_STREAM).await;
                continue;
            }
            3..6 => {
                raw.go_away(last, Reason::NO_ERROR).await;
                return raw.close().await;
            }
            _ => {}
        }
        last = last.max(stream);
        if !body.is_empty() {
            *ledger.processed.lock().unwrap().entry(body).or_default() += 1;
        }
        match fate {
            6..8 => return,
            8..11 => raw.reset(stream, Reason::INTERNAL_ERROR).await,
            11..14 => {
                raw.ok(stream).await;
                raw.go_away(last, Reason::NO_ERROR).await;
                return raw.close().await;
            }
            14..17 => {
                raw.ok(stream).await;
                limit = 0;
                raw.settings(&[(MAX_CONCURRENT_STREAMS, 0)]).await;
            }
            17..20 => {
                limit = random.u32(1..6);
                raw.settings(&[(MAX_CONCURRENT_STREAMS, limit)]).await;
                raw.ok(stream).await;
            }
            20..22 => raw.head(stream, 200, false).await,
            22..24 => {
                raw.ok(stream).await;
                return;
            }
            24..26 => {}
            26..32 => {
                sleep(Duration::from_micros(random.u64(0..1_500))).await;
                raw.ok(stream).await;
            }
            _ => raw.ok(stream).await,
        }
    }
}

/// 1.6, 2.3, 2.11: nobody hangs, nothing is lost, no limit is broken, and no POST is processed twice.
async fn storm(seed: u64, ledger: Arc<Ledger>, pool: steadfast::transport::Pool, at_most: usize) {
    let mut tasks = JoinSet::new();
    for task in 0..24 {
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed * 1_000 + task);
            for number in 0..40 {
                assert!(pool.snapshot().open <= at_most);
                let outgoing = match random.u8(0..3) {
                    0 => get("/"),
                    _ => post("/", format!("{seed}-{task}-{number}").into_bytes()),
                };
                if random.u8(0..4) == 0 {
                    let within = Duration::from_micros(random.u64(0..3_000));
                    let _ = timeout(within, send(&pool, outgoing)).await;
                    continue;
                }
                let ended = timeout(LONG, send(&pool, outgoing)).await.expect("nobody hangs");
                if let Err(error) = ended {
                    let is_known = matches!(error.sent(), Sent::No | Sent::Unknown | Sent::Yes);
                    assert!(is_known && error.fault() != Fault::LocalProtocol, "{error:?}");
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    for (body, times) in ledger.processed.lock().unwrap().iter() {
        assert_eq!(*times, 1, "{body}");
    }
    ledger.is_calm.store(true, Ordering::SeqCst);
    // What is left of the wild ones may fail once more each.
    let (mut whole, mut failed) = (0, 0);
    while whole < 20 {
        match timeout(LONG, send(&pool, get("/"))).await.expect("nobody hangs") {
            Ok(_) => whole += 1,
            Err(_) => failed += 1,
        }
        assert!(failed < 200);
    }
    until(|| pool.snapshot().open == pool.snapshot().idle && pool.snapshot().open <= at_most).await;
    let mut at_once = JoinSet::new();
    for _ in 0..at_most * 5 {
        let pool = pool.clone();
        at_once.spawn(async move {
            for _ in 0..at_most {
                if send(&pool, get("/")).await.is_ok() {
                    return;
                }
            }
            send(&pool, get("/")).await.expect("each wild one that is left fails once");
        });
    }
    at_once.join_all().await;
    pool.close();
    until_open(&pool, 0, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c1_6_c2_3_an_upstream_that_does_anything_costs_nothing_for_good() {
    let base = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in base..base + 3 {
        let ledger = Arc::new(Ledger::default());
        let seen = Arc::clone(&ledger);
        let played = Played::start(move |number, socket| {
            let ledger = Arc::clone(&seen);
            async move { wild(socket, seed * 10_000 + number as u64, &ledger).await }
        })
        .await;
        let pool = played.pool_with(|config| {
            config.max_connections = 3;
            config.read_timeout = ms(40);
            config.pool_timeout = ms(100);
            config.max_connection_age = ms(60);
            config.idle_timeout = ms(10);
        });
        storm(seed, ledger, pool, 3).await;
    }
}

/// What is kept for a reader that does not read is bounded, however small the pieces: each costs far more than its bytes.
#[tokio::test]
async fn a_flood_of_tiny_pieces_ends_the_connection() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        let stream = raw.request().await.unwrap();
        raw.head(stream, 200, false).await;
        // All within the window of one stream.
        for _ in 0..600 {
            if !raw.write_many(1_000, stream, b"x").await {
                return;
            }
        }
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool();
    let unread = head(&pool, get("/")).await.unwrap();
    until_open(&pool, 0, 0).await;
    assert_fault(unread.into_body().collect(MAX).await, Fault::Protocol, Sent::Yes);
}

/// One connection over HTTP/1.1, of the same kind.
async fn wild_http1(mut socket: impl AsyncRead + AsyncWrite + Unpin, seed: u64, ledger: &Ledger) {
    let mut random = fastrand::Rng::with_seed(seed);
    let log = Log::default();
    log.lock().unwrap().push(Seen::default());
    for number in 0.. {
        if !perform(&mut socket, Step::Read, &log, 0).await {
            return;
        }
        let request = log.lock().unwrap()[0].requests[number].clone();
        let body = request.split_once("\r\n\r\n").unwrap().1;
        if !body.is_empty() {
            *ledger.processed.lock().unwrap().entry(body.to_owned()).or_default() += 1;
        }
        let fate = if ledger.is_calm.load(Ordering::SeqCst) { 99 } else { random.u8(0..60) };
        let step = match fate {
            0 => return,
            1 => write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
            2 => write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"),
            3 => write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny"),
            4 => write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"),
            5 => write("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
            6 => write("what?\r\n\r\n"),
            7..10 => Step::Wait(Duration::from_micros(random.u64(0..2_000))),
            _ => ok("x"),
        };
        perform(&mut socket, step, &log, 0).await;
        match fate {
            1 | 2 => return,
            7..10 => drop(perform(&mut socket, ok("x"), &log, 0).await),
            10 => {
                // An idle connection that is given up.
                sleep(Duration::from_micros(random.u64(0..15_000))).await;
                return;
            }
            _ => {}
        }
    }
}

/// The same where some connections speak HTTP/1.1, some are never opened, and the trusted certificates change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c1_6_c2_3_mixed_protocols_and_new_certificates_cost_nothing_for_good() {
    let base = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let (authority, other) = (Authority::new("wild"), Authority::new("other"));
    let roots = authority.file("wild.pem");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let ledger = Arc::new(Ledger::default());
    let seen = Arc::clone(&ledger);
    let configs = [&["h2", "http/1.1"][..], &["http/1.1"]].map(|names| {
        let mut config = authority.issue(HOST).server();
        config.alpn_protocols = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    });
    tokio::spawn(async move {
        let mut random = fastrand::Rng::with_seed(base);
        for number in 0.. {
            let Ok((socket, _)) = listener.accept().await else { return };
            socket.set_nodelay(true).unwrap();
            let seed = base * 10_000 + number;
            let acceptor = TlsAcceptor::from(Arc::clone(&configs[usize::from(random.u8(0..3) == 0)]));
            if random.u8(0..15) == 0 && !seen.is_calm.load(Ordering::SeqCst) {
                continue;
            }
            let ledger = Arc::clone(&seen);
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(socket).await else { return };
                match stream.get_ref().1.alpn_protocol() {
                    Some(b"h2") => wild(stream, seed, &ledger).await,
                    _ => wild_http1(stream, seed, &ledger).await,
                }
            });
        }
    });
    let pool = tls_pool(HOST, port, vec![roots.clone()], |config| {
        config.max_connections = 4;
        config.read_timeout = ms(40);
        config.pool_timeout = ms(100);
        config.max_connection_age = ms(150);
        config.idle_timeout = ms(20);
    });
    let (reloading, calm) = (pool.clone(), Arc::clone(&ledger));
    let reloads = tokio::spawn(async move {
        let (one, both) = (authority.certificate.pem(), authority.certificate.pem() + &other.certificate.pem());
        for content in [both, one].iter().cycle() {
            if calm.is_calm.load(Ordering::SeqCst) {
                return;
            }
            std::fs::write(&roots, content).unwrap();
            // One that is read while it is written is refused.
            let _ = reloading.reload_tls();
            sleep(ms(7)).await;
        }
    });
    storm(base, ledger, pool, 4).await;
    reloads.await.unwrap();
}
