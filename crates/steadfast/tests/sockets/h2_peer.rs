//! Upstreams that speak HTTP/2: a decent one, which does what the path says, and one that is played frame by frame.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use steadfast::transport::{HttpVersion, Pool, PoolConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::server::{LONG, pool};

/// What all connections of a server have seen.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicUsize,
    pub(crate) open_connections: AtomicUsize,
    pub(crate) requests: AtomicUsize,
    /// Requests that are being answered.
    pub(crate) running: AtomicUsize,
    /// The most of them that there were at once, on each connection.
    pub(crate) peaks: Mutex<HashMap<usize, usize>>,
    /// Streams that the client reset before they were answered.
    pub(crate) resets: AtomicUsize,
    pub(crate) heads: Mutex<Vec<Request<()>>>,
}

impl Counts {
    pub(crate) fn of(count: &AtomicUsize) -> usize {
        count.load(Ordering::SeqCst)
    }
}

/// A server that does what the path says: see [`answer`].
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) counts: Arc<Counts>,
    task: JoinHandle<()>,
}

impl Peer {
    /// `limit`: how many streams a connection may have at once.
    pub(crate) async fn start(limit: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        let seen = Arc::clone(&counts);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).unwrap();
                tokio::spawn(serve(socket, limit, Arc::clone(&seen)));
            }
        });
        Self { address, counts, task }
    }

    pub(crate) fn config(&self) -> PoolConfig {
        config(self.address)
    }

    pub(crate) fn pool(&self) -> Pool {
        pool(self.config())
    }

    pub(crate) fn pool_with(&self, change: impl FnOnce(&mut PoolConfig)) -> Pool {
        let mut config = self.config();
        change(&mut config);
        pool(config)
    }

    pub(crate) fn connections(&self) -> usize {
        Counts::of(&self.counts.connections)
    }

    pub(crate) fn open_connections(&self) -> usize {
        Counts::of(&self.counts.open_connections)
    }

    pub(crate) fn requests(&self) -> usize {
        Counts::of(&self.counts.requests)
    }

    pub(crate) fn running(&self) -> usize {
        Counts::of(&self.counts.running)
    }

    pub(crate) fn peak(&self) -> usize {
        self.counts.peaks.lock().unwrap().values().copied().max().unwrap_or(0)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn config(address: SocketAddr) -> PoolConfig {
    let mut config = PoolConfig::new(false, address.ip().to_string(), address.port());
    config.http_version = HttpVersion::Http2;
    config.connect_timeout = LONG;
    config.read_timeout = LONG;
    config.write_timeout = LONG;
    config.pool_timeout = LONG;
    config
}

/// One connection of a decent server.
pub(crate) async fn serve(socket: impl AsyncRead + AsyncWrite + Unpin, limit: u32, counts: Arc<Counts>) {
    let number = counts.connections.fetch_add(1, Ordering::SeqCst);
    counts.open_connections.fetch_add(1, Ordering::SeqCst);
    let builder = Builder::new()
        .max_concurrent_streams(limit)
        .max_pending_accept_reset_streams(100_000)
        .max_concurrent_reset_streams(100_000)
        .max_local_error_reset_streams(None)
        .handshake::<_, Bytes>(socket)
        .await;
    if let Ok(mut connection) = builder {
        let on_this = Arc::new(AtomicUsize::new(0));
        while let Some(Ok((request, respond))) = connection.accept().await {
            counts.requests.fetch_add(1, Ordering::SeqCst);
            let (counts, on_this) = (Arc::clone(&counts), Arc::clone(&on_this));
            counts.running.fetch_add(1, Ordering::SeqCst);
            let now = on_this.fetch_add(1, Ordering::SeqCst) + 1;
            let mut peaks = counts.peaks.lock().unwrap();
            let peak = peaks.entry(number).or_default();
            *peak = now.max(*peak);
            drop(peaks);
            tokio::spawn(async move {
                let (parts, body) = request.into_parts();
                let head = Request::from_parts(parts, ());
                counts.heads.lock().unwrap().push(head.clone());
                let done = answer(head, body, respond, || {
                    on_this.fetch_sub(1, Ordering::SeqCst);
                    counts.running.fetch_sub(1, Ordering::SeqCst);
                })
                .await;
                if !done {
                    counts.resets.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    }
    counts.open_connections.fetch_sub(1, Ordering::SeqCst);
}

/// The path's parts, one after the other: `wait-N` waits for N ms, `size-N` makes the body N bytes long, `echo` sends the
/// request's body back, `status-N`, `hang` waits for the client to reset, `trailers`, `refuse` resets. False if the
/// client reset it.
async fn answer(
    request: Request<()>,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
    over: impl FnOnce(),
) -> bool {
    let mut content = Bytes::from_static(b"x");
    let mut status = 200;
    let (mut slow, mut trailers) = (false, false);
    for part in request.uri().path().split('/').filter(|part| !part.is_empty()) {
        let (word, number) = part.split_once('-').unwrap_or((part, "0"));
        let number: usize = number.parse().unwrap_or(0);
        match word {
            "wait" => {
                let reset = std::future::poll_fn(|cx| respond.poll_reset(cx));
                if tokio::time::timeout(Duration::from_millis(number as u64), reset).await.is_ok() {
                    over();
                    return false;
                }
            }
            "size" => content = Bytes::from(vec![b'x'; number]),
            "status" => status = number as u16,
            "slow" => slow = true,
            "trailers" => trailers = true,
            "echo" => {
                let mut whole = Vec::new();
                while let Some(Ok(piece)) = body.data().await {
                    body.flow_control().release_capacity(piece.len()).unwrap();
                    whole.extend_from_slice(&piece);
                }
                content = Bytes::from(whole);
            }
            "refuse" => {
                respond.send_reset(Reason::REFUSED_STREAM);
                over();
                return true;
            }
            "hang" => {
                let _ = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
                over();
                return false;
            }
            _ => {}
        }
    }
    let response = Response::builder().status(status).header("x-head", "1").body(()).unwrap();
    let is_empty = content.is_empty() || request.method() == http::Method::HEAD;
    let Ok(mut stream) = respond.send_response(response, is_empty && !trailers) else {
        over();
        return false;
    };
    if is_empty && !trailers {
        over();
        return true;
    }
    while !content.is_empty() {
        stream.reserve_capacity(content.len().min(16 * 1024));
        while stream.capacity() == 0 {
            if !matches!(std::future::poll_fn(|cx| stream.poll_capacity(cx)).await, Some(Ok(_))) {
                over();
                return false;
            }
        }
        let piece = content.split_to(stream.capacity().min(content.len()));
        let is_last = content.is_empty() && !trailers;
        if is_last {
            break_over(&mut stream, piece);
            over();
            return true;
        }
        if stream.send_data(piece, false).is_err() {
            over();
            return false;
        }
        if slow {
            sleep(Duration::from_millis(5)).await;
        }
    }
    let mut last = HeaderMap::new();
    last.insert("x-trailer", "1".parse().unwrap());
    over();
    stream.send_trailers(last).is_ok()
}

fn break_over(stream: &mut h2::SendStream<Bytes>, piece: Bytes) {
    let _ = stream.send_data(piece, true);
}

// ---- frame by frame

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

/// A frame as it came.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// One connection of a server that is played frame by frame (RFC 9113 section 4.1).
pub(crate) struct Raw<S = TcpStream> {
    socket: S,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    /// Reads the client's preface, and sends our settings and the acknowledgement of its own.
    pub(crate) async fn greet(mut socket: S, settings: &[(u16, u32)]) -> Self {
        let mut preface = [0; 24];
        socket.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut raw = Self { socket };
        raw.settings(settings).await;
        raw.write(SETTINGS, ACK, 0, &[]).await;
        raw
    }

    /// The same with a client that may leave before.
    pub(crate) async fn greet_or_not(mut socket: S, settings: &[(u16, u32)]) -> Option<Self> {
        socket.read_exact(&mut [0; 24]).await.ok()?;
        let mut raw = Self { socket };
        raw.settings(settings).await;
        raw.write(SETTINGS, ACK, 0, &[]).await.then_some(raw)
    }

    pub(crate) async fn settings(&mut self, settings: &[(u16, u32)]) {
        let payload: Vec<u8> =
            settings.iter().flat_map(|(key, value)| key.to_be_bytes().into_iter().chain(value.to_be_bytes())).collect();
        self.write(SETTINGS, 0, 0, &payload).await;
    }

    /// False if the client has gone.
    pub(crate) async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let length = (payload.len() as u32).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.socket.write_all(&frame).await.is_ok()
    }

    /// So many DATA frames at once, all with this piece. False if the client has gone.
    pub(crate) async fn write_many(&mut self, count: usize, stream: u32, piece: &[u8]) -> bool {
        let length = (piece.len() as u32).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], DATA, 0];
        frame.extend(stream.to_be_bytes());
        frame.extend(piece);
        self.socket.write_all(&frame.repeat(count)).await.is_ok()
    }

    /// The next frame; `None` once the client has gone.
    pub(crate) async fn read(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.socket.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; length];
        self.socket.read_exact(&mut payload).await.ok()?;
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// The next frame of this kind.
    pub(crate) async fn next(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.read().await?;
            if frame.kind == kind && (kind != SETTINGS || frame.flags & ACK == 0) {
                return Some(frame);
            }
        }
    }

    /// The next request's stream, once the request is whole.
    pub(crate) async fn request(&mut self) -> Option<u32> {
        loop {
            let frame = self.read().await?;
            if (frame.kind == HEADERS || frame.kind == DATA) && frame.flags & END_STREAM != 0 {
                return Some(frame.stream);
            }
        }
    }

    /// A head with this status (200, 204, 500).
    pub(crate) async fn head(&mut self, stream: u32, status: u16, is_last: bool) {
        // RFC 7541 appendix A.
        let index = match status {
            200 => 0x88,
            204 => 0x89,
            _ => 0x8e,
        };
        let flags = END_HEADERS | if is_last { END_STREAM } else { 0 };
        self.write(HEADERS, flags, stream, &[index]).await;
    }

    pub(crate) async fn ok(&mut self, stream: u32) {
        self.head(stream, 200, false).await;
        self.write(DATA, END_STREAM, stream, b"x").await;
    }

    pub(crate) async fn reset(&mut self, stream: u32, reason: Reason) {
        self.write(RST_STREAM, 0, stream, &u32::from(reason).to_be_bytes()).await;
    }

    pub(crate) async fn go_away(&mut self, last: u32, reason: Reason) {
        let payload: Vec<u8> = last.to_be_bytes().into_iter().chain(u32::from(reason).to_be_bytes()).collect();
        self.write(GOAWAY, 0, 0, &payload).await;
    }

    /// Answers every request with a 200 until the client goes.
    pub(crate) async fn answer_all(&mut self) {
        while let Some(stream) = self.request().await {
            self.ok(stream).await;
        }
    }

    /// Reads until the client goes.
    pub(crate) async fn read_to_end(&mut self) {
        while self.read().await.is_some() {}
    }

    /// Closes in good order. (A close with unread input would be a reset.)
    pub(crate) async fn close(mut self) {
        let _ = self.socket.shutdown().await;
        let _ = tokio::time::timeout(LONG, self.read_to_end()).await;
    }
}

/// A server that is played; how many connections it has had.
pub(crate) struct Played {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Played {
    /// `play(n, socket)` is what happens on connection `n`, from 0.
    pub(crate) async fn start<F>(play: impl Fn(usize, TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).unwrap();
                tokio::spawn(play(count.fetch_add(1, Ordering::SeqCst), socket));
            }
        });
        Self { address, connections, task }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn config(&self) -> PoolConfig {
        config(self.address)
    }

    pub(crate) fn pool(&self) -> Pool {
        pool(self.config())
    }

    pub(crate) fn pool_with(&self, change: impl FnOnce(&mut PoolConfig)) -> Pool {
        let mut config = self.config();
        change(&mut config);
        pool(config)
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.task.abort();
    }
}
