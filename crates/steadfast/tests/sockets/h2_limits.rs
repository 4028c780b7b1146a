//! HTTP/2: what ends a stream, what ends a connection, and what does neither.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use h2::Reason;
use http_body_util::BodyExt;
use steadfast::transport::{Outgoing, Pool, PoolConfig, Progress, RequestBody};
use steadfast_http::{Fault, Sent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::h2_peer::*;
use crate::server::*;

fn within(mut outgoing: Outgoing, time_left: Duration) -> Outgoing {
    outgoing.time_left = time_left;
    outgoing
}

/// The connection is as good as before: used again, and every stream of it free.
async fn is_whole(peer: &Peer, pool: &Pool) {
    until_open(pool, 1, 1).await;
    assert_eq!(send(pool, get("/")).await.unwrap().1, "x");
    assert_eq!(peer.connections(), 1);
    until(|| peer.running() == 0).await;
}

/// 1.2
#[tokio::test]
async fn c1_2_read_timeout_resets_the_stream_alone() {
    let peer = Peer::start(100).await;
    let pool = peer.pool_with(|config| config.read_timeout = ms(100));
    let start = Instant::now();
    let (late, good) = tokio::join!(send(&pool, get("/hang")), async {
        // A sign of life, or the connection would be suspect.
        sleep(ms(30)).await;
        send(&pool, get("/")).await
    });
    assert_fault(late, Fault::ReadTimeout, Sent::Unknown);
    assert!((ms(100)..ms(1_500)).contains(&start.elapsed()), "{:?}", start.elapsed());
    good.unwrap();
    is_whole(&peer, &pool).await;
    until(|| peer.counts.resets.load(Ordering::SeqCst) == 1).await;
}

/// 1.2: each wait for a piece of the body, and 7.6: only while the reader waits.
#[tokio::test]
async fn c1_2_c7_6_read_timeout_bounds_each_wait_of_the_reader() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        let stream = raw.request().await.unwrap();
        raw.head(stream, 200, false).await;
        for _ in 0..4 {
            sleep(ms(60)).await;
            raw.write(DATA, 0, stream, b"piece").await;
        }
        // Then nothing, until the client gives up.
        let reset = raw.next(RST_STREAM).await.unwrap();
        assert_eq!((reset.stream, reset.payload), (stream, u32::from(Reason::CANCEL).to_be_bytes().to_vec()));
        raw.answer_all().await;
    })
    .await;
    let pool = played.pool_with(|config| config.read_timeout = ms(150));
    let mut body = head(&pool, get("/")).await.unwrap().into_body();
    for number in 0..4 {
        if number == 2 {
            sleep(ms(250)).await;
        }
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "piece");
    }
    let start = Instant::now();
    assert_fault(body.frame().await.unwrap(), Fault::ReadTimeout, Sent::Yes);
    assert!((ms(140)..ms(1_500)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// 1.2: the upstream opens no window.
#[tokio::test]
async fn c1_2_write_timeout_bounds_the_wait_for_the_window() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[(INITIAL_WINDOW_SIZE, 1_000)]).await;
        let stream = raw.next(HEADERS).await.unwrap().stream;
        raw.write(WINDOW_UPDATE, 0, stream, &500_u32.to_be_bytes()).await;
        assert_eq!(raw.next(RST_STREAM).await.unwrap().stream, stream);
        // The connection lives on.
        raw.answer_all().await;
    })
    .await;
    let pool = played.pool_with(|config| config.write_timeout = ms(100));
    let start = Instant::now();
    assert_fault(send(&pool, post("/", vec![0; 100_000])).await, Fault::WriteTimeout, Sent::Unknown);
    assert!((ms(100)..ms(1_500)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(played.connections(), 1);
}

/// The same after the head has come, while nobody polls.
#[tokio::test]
async fn c1_2_write_timeout_holds_after_the_head() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[(INITIAL_WINDOW_SIZE, 1_000)]).await;
        let stream = raw.next(HEADERS).await.unwrap().stream;
        raw.head(stream, 200, false).await;
        raw.next(RST_STREAM).await.unwrap();
        raw.answer_all().await;
    })
    .await;
    let pool = played.pool_with(|config| config.write_timeout = ms(100));
    let mut body = head(&pool, post("/", vec![0; 100_000])).await.unwrap().into_body();
    sleep(ms(300)).await;
    assert_fault(body.frame().await.unwrap(), Fault::WriteTimeout, Sent::Yes);
}

/// 1.2: a window that opens slowly, and a body that comes slowly, are no timeout.
#[tokio::test]
async fn c1_2_an_upload_that_goes_on_is_not_timed_out() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[(INITIAL_WINDOW_SIZE, 0)]).await;
        let first = raw.request().await.unwrap();
        raw.ok(first).await;
        let stream = raw.next(HEADERS).await.unwrap().stream;
        for _ in 0..6 {
            sleep(ms(50)).await;
            raw.write(WINDOW_UPDATE, 0, stream, &100_u32.to_be_bytes()).await;
        }
        while raw.next(DATA).await.unwrap().flags & END_STREAM == 0 {}
        raw.ok(stream).await;
        raw.answer_all().await;
    })
    .await;
    let pool = played.pool_with(|config| {
        config.write_timeout = ms(150);
        config.read_timeout = ms(150);
    });
    // What the upstream allows is known only then.
    send(&pool, get("/")).await.unwrap();
    assert_eq!(send(&pool, post("/", vec![0; 600])).await.unwrap().1, "x");
    let peer = Peer::start(100).await;
    let pool = peer.pool_with(|config| config.read_timeout = ms(150));
    let pieces = stream::unfold(0, |number| async move {
        sleep(ms(60)).await;
        (number < 5).then_some((Ok::<_, std::io::Error>(Bytes::from_static(b"piece")), number + 1))
    });
    assert_eq!(send(&pool, post("/echo", RequestBody::stream(pieces, None))).await.unwrap().1.len(), 25);
}

/// 5.2: the deadline ends the stream although nobody polls the exchange.
#[tokio::test]
async fn c5_2_the_deadline_resets_an_exchange_that_nobody_polls() {
    let peer = Peer::start(1).await;
    let pool = peer.pool_with(|config| config.max_connections = 1);
    send(&pool, get("/")).await.unwrap();
    let mut exchange = Box::pin(head(&pool, within(get("/hang"), ms(100))));
    timeout(ms(30), &mut exchange).await.unwrap_err();
    until(|| peer.counts.resets.load(Ordering::SeqCst) == 1).await;
    // Its place is free.
    is_whole(&peer, &pool).await;
    assert_fault(exchange.await, Fault::Deadline, Sent::Unknown);
}

/// What is dropped after the deadline has ended it takes nothing from those that came after it.
#[tokio::test]
async fn c5_2_a_late_drop_touches_nobody_else() {
    let peer = Peer::start(100).await;
    let pool = peer.pool_with(|config| config.read_timeout = ms(300));
    let mut first = Box::pin(head(&pool, within(get("/hang"), ms(50))));
    timeout(ms(20), &mut first).await.unwrap_err();
    until(|| peer.counts.resets.load(Ordering::SeqCst) == 1).await;
    let mut second = Box::pin(head(&pool, get("/hang")));
    timeout(ms(20), &mut second).await.unwrap_err();
    drop(first);
    assert_fault(second.await, Fault::ReadTimeout, Sent::Unknown);
}

/// 5.2: the same for a body.
#[tokio::test]
async fn c5_2_the_deadline_resets_a_body_that_nobody_polls() {
    let peer = Peer::start(1).await;
    let pool = peer.pool_with(|config| config.max_connections = 1);
    let response = head(&pool, within(get("/size-3000000"), ms(100))).await.unwrap();
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(pool.snapshot().idle, 0);
    is_whole(&peer, &pool).await;
    assert_fault(body.frame().await.unwrap(), Fault::Deadline, Sent::Yes);
}

/// 7.6: the deadline wakes a reader that waits.
#[tokio::test]
async fn c7_6_the_deadline_ends_a_wait_for_the_body() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        let stream = raw.request().await.unwrap();
        raw.head(stream, 200, false).await;
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool();
    let body = head(&pool, within(get("/"), ms(100))).await.unwrap().into_body();
    assert_fault(timeout(LONG, body.collect(MAX)).await.unwrap(), Fault::Deadline, Sent::Yes);
}

/// 1.6
#[tokio::test]
async fn c1_6_dropping_an_exchange_or_a_body_resets_its_stream_at_once() {
    let peer = Peer::start(1).await;
    let pool = peer.pool();
    timeout(ms(50), send(&pool, get("/hang"))).await.unwrap_err();
    is_whole(&peer, &pool).await;
    drop(head(&pool, get("/size-3000000")).await.unwrap());
    is_whole(&peer, &pool).await;
    timeout(ms(50), send(&pool, post("/hang", vec![0; 1_000_000]))).await.unwrap_err();
    is_whole(&peer, &pool).await;
    until(|| peer.counts.resets.load(Ordering::SeqCst) == 3).await;
}

// ---- a connection that is dead and does not say so

/// Carries bytes to an upstream; what came until it is frozen stays where it is.
struct Relay {
    address: SocketAddr,
    /// Connections below this number are frozen.
    frozen: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Relay {
    async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (frozen, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (thaw, count) = (Arc::clone(&frozen), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (client_in, client_out) = client.into_split();
                let (server_in, server_out) = TcpStream::connect(upstream).await.unwrap().into_split();
                tokio::spawn(carry(client_in, server_out, number, Arc::clone(&thaw)));
                tokio::spawn(carry(server_in, client_out, number, Arc::clone(&thaw)));
            }
        });
        Self { address, frozen, connections }
    }

    fn freeze(&self) {
        self.frozen.store(self.connections(), Ordering::SeqCst);
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn config(&self) -> PoolConfig {
        config(self.address)
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, number: usize, frozen: Arc<AtomicUsize>) {
    let mut buffer = [0; 4096];
    while let Ok(length) = from.read(&mut buffer).await {
        if number < frozen.load(Ordering::SeqCst) {
            sleep(LONG).await;
        }
        if length == 0 || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// A38, A42: without pings, the first attempt that is given up makes the connection suspect.
#[tokio::test]
async fn a38_a42_a_black_hole_costs_one_attempt() {
    // How the attempt is given up: by read_timeout, by the deadline, by its user.
    for how in 0..3 {
        let peer = Peer::start(100).await;
        let relay = Relay::start(peer.address).await;
        let mut config = relay.config();
        if how == 0 {
            config.read_timeout = ms(100);
        }
        let pool = pool(config);
        for _ in 0..10 {
            send(&pool, get("/")).await.unwrap();
        }
        relay.freeze();
        match how {
            0 => assert_fault(send(&pool, get("/")).await, Fault::ReadTimeout, Sent::Unknown),
            1 => assert_fault(send(&pool, within(get("/"), ms(300))).await, Fault::Deadline, Sent::Unknown),
            _ => drop(timeout(ms(300), send(&pool, get("/"))).await.unwrap_err()),
        }
        assert_eq!(send(&pool, get("/")).await.unwrap().1, "x");
        assert_eq!(relay.connections(), 2, "{how}");
        // The dead one is gone, as nobody used it.
        until_open(&pool, 1, 1).await;
    }
}

/// A38, A42: the streams that wait on it end by their own limits; others do not join them.
#[tokio::test]
async fn a42_a_suspect_connection_takes_no_further_stream() {
    let peer = Peer::start(100).await;
    let relay = Relay::start(peer.address).await;
    let mut config = relay.config();
    config.read_timeout = ms(400);
    let pool = pool(config);
    send(&pool, get("/")).await.unwrap();
    relay.freeze();
    let (early, late, fresh) = tokio::join!(
        async { timeout(ms(260), send(&pool, get("/"))).await.is_err() },
        async {
            sleep(ms(100)).await;
            send(&pool, get("/")).await
        },
        async {
            sleep(ms(300)).await;
            send(&pool, get("/")).await
        }
    );
    assert!(early);
    assert_fault(late, Fault::ReadTimeout, Sent::Unknown);
    fresh.unwrap();
    assert_eq!(relay.connections(), 2);
    until_open(&pool, 1, 1).await;
}

/// One that is given up early, or while other bytes come, says nothing of the connection.
#[tokio::test]
async fn a_short_wait_is_no_evidence() {
    let peer = Peer::start(100).await;
    let pool = peer.pool();
    send(&pool, get("/")).await.unwrap();
    timeout(ms(100), send(&pool, get("/hang"))).await.unwrap_err();
    let (given_up, _) = tokio::join!(timeout(ms(300), send(&pool, get("/hang"))), async {
        sleep(ms(150)).await;
        send(&pool, get("/")).await.unwrap()
    });
    given_up.unwrap_err();
    is_whole(&peer, &pool).await;
}

/// A38, A42: with pings nobody's attempt has to time out first.
#[tokio::test]
async fn a38_a42_an_unanswered_ping_ends_the_connection() {
    let peer = Peer::start(100).await;
    let relay = Relay::start(peer.address).await;
    let mut config = relay.config();
    config.ping_interval = Some(ms(100));
    config.ping_timeout = ms(100);
    let pool = pool(config);
    send(&pool, get("/")).await.unwrap();
    // While the upstream answers pings, its time is its own.
    assert_eq!(send(&pool, get("/wait-500")).await.unwrap().1, "x");
    assert_eq!(relay.connections(), 1);
    relay.freeze();
    let start = Instant::now();
    assert_fault(send(&pool, get("/")).await, Fault::Reset, Sent::Unknown);
    assert!((ms(50)..ms(1_500)).contains(&start.elapsed()), "{:?}", start.elapsed());
    until_open(&pool, 0, 0).await;
    send(&pool, get("/")).await.unwrap();
    assert_eq!(relay.connections(), 2);
}

/// An upstream may refuse pings that nobody needs.
#[tokio::test]
async fn pings_are_sent_only_while_a_stream_is_open() {
    let pings = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&pings);
    let played = Played::start(move |_, socket| {
        let count = Arc::clone(&count);
        async move {
            let mut raw = Raw::greet(socket, &[]).await;
            while let Some(frame) = raw.read().await {
                match frame.kind {
                    HEADERS => {
                        sleep(ms(20)).await;
                        raw.ok(frame.stream).await;
                    }
                    PING if frame.flags & ACK == 0 => {
                        count.fetch_add(1, Ordering::SeqCst);
                        raw.write(PING, ACK, 0, &frame.payload).await;
                    }
                    _ => {}
                }
            }
        }
    })
    .await;
    let pool = played.pool_with(|config| config.ping_interval = Some(ms(50)));
    send(&pool, get("/")).await.unwrap();
    sleep(ms(250)).await;
    send(&pool, get("/")).await.unwrap();
    assert_eq!(pings.load(Ordering::SeqCst), 0);
    until_open(&pool, 1, 1).await;
}

// ---- how a connection ends

#[tokio::test]
async fn an_idle_connection_is_closed_without_traffic() {
    let peer = Peer::start(100).await;
    let pool = peer.pool_with(|config| config.idle_timeout = ms(300));
    for _ in 0..5 {
        send(&pool, get("/")).await.unwrap();
        sleep(ms(100)).await;
    }
    // A stream that is open keeps it.
    send(&pool, get("/wait-450")).await.unwrap();
    assert_eq!((peer.connections(), pool.snapshot().open), (1, 1));
    until_open(&pool, 0, 0).await;
    until(|| peer.open_connections() == 0).await;
    send(&pool, get("/")).await.unwrap();
    assert_eq!(peer.connections(), 2);
}

/// A41
#[tokio::test]
async fn a41_a_connection_is_retired_at_its_age() {
    let peer = Peer::start(100).await;
    let pool = peer.pool_with(|config| config.max_connection_age = ms(150));
    let (long, _) = tokio::join!(send(&pool, get("/wait-400")), async {
        sleep(ms(200)).await;
        send(&pool, get("/")).await.unwrap();
        assert_eq!((peer.connections(), pool.snapshot().open), (2, 2));
    });
    // What runs on it goes on, and it closes with the last stream.
    long.unwrap();
    until(|| peer.open_connections() <= 1).await;
    until_open(&pool, 0, 0).await;
    until(|| peer.open_connections() == 0).await;
}

/// Dropping the last clone, or closing: what is idle closes at once, what runs goes on to its end.
#[tokio::test]
async fn a_pool_closes_in_good_order() {
    for by_drop in [true, false] {
        let peer = Peer::start(100).await;
        let pool = peer.pool();
        let body = head(&pool, get("/size-2500000")).await.unwrap().into_body();
        let kept = Some(pool.clone()).filter(|_| !by_drop);
        pool.close();
        drop(pool);
        sleep(ms(30)).await;
        assert_eq!(peer.open_connections(), 1);
        assert_eq!(body.collect(MAX).await.unwrap().len(), 2_500_000);
        until(|| peer.open_connections() == 0).await;
        if let Some(pool) = kept {
            until_open(&pool, 0, 0).await;
            // One more is possible, and its connection closes after it.
            send(&pool, get("/")).await.unwrap();
            until_open(&pool, 0, 0).await;
            until(|| peer.open_connections() == 0).await;
        }
    }
}

#[tokio::test]
async fn dropping_the_last_clone_closes_what_is_idle_and_ends_its_task() {
    let peer = Peer::start(100).await;
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let pool = peer.pool();
    for _ in 0..3 {
        send(&pool, get("/")).await.unwrap();
    }
    drop(pool);
    until(|| peer.open_connections() == 0).await;
    until(|| tokio::runtime::Handle::current().metrics().num_alive_tasks() <= before).await;
}

/// The client says goodbye.
#[tokio::test]
async fn a_connection_ends_with_a_goaway() {
    let said = Arc::new(AtomicUsize::new(0));
    let heard = Arc::clone(&said);
    let played = Played::start(move |_, socket| {
        let heard = Arc::clone(&heard);
        async move {
            let mut raw = Raw::greet(socket, &[]).await;
            let stream = raw.request().await.unwrap();
            raw.ok(stream).await;
            let goodbye = raw.next(GOAWAY).await.unwrap();
            assert_eq!(goodbye.payload[4..8], [0, 0, 0, 0]);
            heard.fetch_add(1, Ordering::SeqCst);
        }
    })
    .await;
    let pool = played.pool();
    send(&pool, get("/")).await.unwrap();
    drop(pool);
    until(|| said.load(Ordering::SeqCst) == 1).await;
}

/// A connection ends with the runtime in which it was opened; the next request opens another.
#[test]
fn a_pool_outlives_its_runtimes() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (send_address, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime().block_on(async {
            let peer = Peer::start(100).await;
            send_address.send(peer.address).unwrap();
            sleep(LONG).await;
        });
    });
    let pool = pool(config(address.recv().unwrap()));
    let first = runtime();
    let mut body = first.block_on(async { head(&pool, get("/size-3000000")).await.unwrap().into_body() });
    drop(first);
    assert_eq!(pool.snapshot().open, 0);
    let second = runtime();
    assert_eq!(second.block_on(send(&pool, get("/"))).unwrap().1, "x");
    // What came before is there; then the stream is cut.
    let cut = second.block_on(async {
        loop {
            match body.frame().await.unwrap() {
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    });
    assert_eq!((cut.fault(), cut.sent()), (Fault::Incomplete, Sent::Yes));
}

/// 2.3: what waits for a stream has sent nothing; what has one may have.
#[tokio::test]
async fn c2_3_a_wait_for_a_stream_has_sent_nothing() {
    let peer = Peer::start(1).await;
    let pool = peer.pool_with(|config| config.max_connections = 1);
    let (mut held, mut waiting) = (Progress::default(), Progress::default());
    {
        let mut first = Box::pin(pool.exchange(get("/hang"), &mut held));
        timeout(ms(30), &mut first).await.unwrap_err();
        let mut second = Box::pin(pool.exchange(get("/"), &mut waiting));
        timeout(ms(30), &mut second).await.unwrap_err();
    }
    assert_eq!((held.sent(), waiting.sent()), (Sent::Unknown, Sent::No));
    is_whole(&peer, &pool).await;
}
