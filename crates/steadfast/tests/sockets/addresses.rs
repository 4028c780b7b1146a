//! From a name to a connection: resolving, several addresses, and their limits.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use steadfast::transport::{Pool, PoolConfig, Proxy, Resolve, ResolveFuture};
use steadfast_http::{Fault, Sent};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::server::*;

/// A resolver that the test tells what to say.
#[derive(Default)]
struct Names {
    answer: Mutex<Vec<SocketAddr>>,
    fails: Mutex<usize>,
    takes: Duration,
    asked: AtomicUsize,
}

impl Names {
    fn of(addresses: impl Into<Vec<SocketAddr>>) -> Arc<Self> {
        Arc::new(Self { answer: Mutex::new(addresses.into()), ..Self::default() })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str, _: u16) -> ResolveFuture<'a> {
        assert_eq!(host, "upstream.test");
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            sleep(self.takes).await;
            let mut fails = self.fails.lock().unwrap();
            if *fails > 0 {
                *fails -= 1;
                return Err(io::Error::other("temporary failure in name resolution"));
            }
            Ok(self.answer.lock().unwrap().clone())
        })
    }
}

fn pool(names: &Arc<Names>, change: impl FnOnce(&mut PoolConfig)) -> Pool {
    let mut config = PoolConfig::new(false, "upstream.test", 80);
    config.connect_timeout = LONG;
    config.proxy = Proxy::Off;
    change(&mut config);
    Pool::new(config, Arc::clone(names) as Arc<dyn Resolve>).unwrap()
}

fn echo() -> Vec<Step> {
    (0..100).flat_map(|_| [Step::Read, ok("x")]).collect()
}

/// An address that answers nothing at all: its queue of connections is full, so that it ignores the next.
struct Deaf {
    address: SocketAddr,
    _listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl Deaf {
    async fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queue = Vec::new();
        while let Ok(stream) = timeout(ms(50), TcpStream::connect(address)).await {
            queue.push(stream.unwrap());
            assert!(queue.len() < 100, "this system lets everybody in");
        }
        Self { address, _listener: listener, _queue: queue }
    }
}

async fn refusing() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// 1.2, 2.3: nothing was sent.
#[tokio::test]
async fn c1_2_connect_timeout_bounds_a_deaf_address() {
    let deaf = Deaf::new().await;
    let pool = pool(&Names::of([deaf.address]), |config| config.connect_timeout = ms(100));
    let start = Instant::now();
    assert_fault(send(&pool, post("/", "x")).await, Fault::ConnectTimeout, Sent::No);
    assert!((ms(100)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(pool.snapshot().open, 0);
}

/// A65. RFC 8305 section 5
#[tokio::test]
async fn a_deaf_first_address_does_not_eat_the_time() {
    let deaf = Deaf::new().await;
    let server = Server::start(|_| echo()).await;
    for within in [600, 1_000] {
        let names = Names::of([deaf.address, deaf.address, server.address]);
        let pool = pool(&names, |config| config.connect_timeout = ms(within));
        let start = Instant::now();
        send(&pool, get("/")).await.unwrap();
        assert!(start.elapsed() < ms(within), "{:?}", start.elapsed());
    }
}

#[tokio::test]
async fn a_refused_address_is_passed_over_at_once() {
    let server = Server::start(|_| echo()).await;
    let names = Names::of([refusing().await, refusing().await, server.address]);
    let start = Instant::now();
    send(&pool(&names, |_| {}), get("/")).await.unwrap();
    assert!(start.elapsed() < ms(450), "{:?}", start.elapsed());
}

/// 2.3
#[tokio::test]
async fn c2_3_refused_everywhere_is_a_connect_error() {
    let names = Names::of([refusing().await, refusing().await]);
    assert_fault(send(&pool(&names, |_| {}), post("/", "x")).await, Fault::Connect, Sent::No);
    let names = Names::of([refusing().await]);
    assert_fault(send(&pool(&names, |_| {}), post("/", "x")).await, Fault::Connect, Sent::No);
}

/// A69. 2.3
#[tokio::test]
async fn c2_3_a_name_that_does_not_resolve_proves_that_nothing_was_sent() {
    let server = Server::start(|_| echo()).await;
    let names = Names::of([server.address]);
    *names.fails.lock().unwrap() = 1;
    let pool_ = pool(&names, |_| {});
    assert_fault(send(&pool_, post("/", "x")).await, Fault::Dns, Sent::No);
    send(&pool_, post("/", "x")).await.unwrap();
    assert_fault(send(&pool(&Names::of([]), |_| {}), get("/")).await, Fault::Dns, Sent::No);
}

#[tokio::test]
async fn c1_2_connect_timeout_covers_the_resolver() {
    let names = Arc::new(Names { takes: LONG, ..Names::default() });
    let pool = pool(&names, |config| config.connect_timeout = ms(100));
    assert_fault(send(&pool, get("/")).await, Fault::ConnectTimeout, Sent::No);
}

/// A43: a new connection asks again; one that is open stays with its address.
#[tokio::test]
async fn a_new_connection_resolves_again() {
    let (one, two) = (Server::start(|_| echo()).await, Server::start(|_| echo()).await);
    let names = Names::of([one.address]);
    let pool = pool(&names, |config| config.max_connection_age = ms(400));
    send(&pool, get("/")).await.unwrap();
    *names.answer.lock().unwrap() = vec![two.address];
    send(&pool, get("/")).await.unwrap();
    assert_eq!((one.request_count(), names.asked()), (2, 1));
    sleep(ms(450)).await;
    send(&pool, get("/")).await.unwrap();
    assert_eq!((one.request_count(), two.request_count(), names.asked()), (2, 1, 2));
}

/// Connections that are opened at the same time share one answer.
#[tokio::test]
async fn one_question_at_a_time() {
    let server = Server::start(|_| vec![Step::Read, Step::Wait(ms(100)), ok("x")]).await;
    let names = Names::of([server.address]);
    let mut names = Arc::into_inner(names).unwrap();
    names.takes = ms(50);
    let names = Arc::new(names);
    let pool = pool(&names, |_| {});
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let pool = pool.clone();
        tasks.spawn(async move { send(&pool, get("/")).await.unwrap() });
    }
    tasks.join_all().await;
    assert_eq!(server.connections(), 20);
    assert!(names.asked() <= 2, "{}", names.asked());
}
