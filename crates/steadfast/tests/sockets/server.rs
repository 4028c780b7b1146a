//! A TCP server that follows a script for each connection, and what the tests ask of a pool.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use steadfast::transport::{
    Outgoing, Pool, PoolConfig, PoolSnapshot, Progress, Proxy, RequestBody, ResponseBody, SystemResolver,
    TransportError,
};
use steadfast_http::{Fault, Sent};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// More than any body here.
pub(crate) const MAX: u64 = 64 * 1024 * 1024;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What the server does next on a connection. After the last step it closes.
#[derive(Clone)]
pub(crate) enum Step {
    /// Reads one request: its head, and the body that its `Content-Length` names, or its chunks to the last.
    Read,
    /// Reads this many bytes and throws them away.
    ReadSome(usize),
    /// Writes these bytes in one go.
    Write(Vec<u8>),
    /// Waits so long.
    Wait(Duration),
    /// Waits until the test says so.
    Until(Arc<AtomicBool>),
    /// Reads until the other side closes.
    ReadToEnd,
    /// Keeps the connection open and does nothing.
    Hang,
    /// Closes with a reset.
    Reset,
}

pub(crate) fn write(bytes: impl AsRef<[u8]>) -> Step {
    Step::Write(bytes.as_ref().to_vec())
}

/// A response with a body of known length.
pub(crate) fn ok(body: &str) -> Step {
    write(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

/// What a failed exchange must say.
#[track_caller]
pub(crate) fn assert_fault<T>(result: Result<T, TransportError>, fault: Fault, sent: Sent) {
    let Err(error) = result else { panic!("expected {fault}, got a response") };
    assert_eq!((error.fault(), error.sent()), (fault, sent), "{error:?}");
    // The word for the kind, and nothing of the address or the path.
    assert_eq!(error.to_string(), fault.name());
}

/// What one connection has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The requests, whole.
    pub(crate) requests: Vec<String>,
    /// Whether the other side has closed.
    pub(crate) closed: bool,
    /// How many steps were taken; `usize::MAX` once the connection is closed.
    pub(crate) steps: usize,
}

pub(crate) type Log = Arc<Mutex<Vec<Seen>>>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    log: Log,
    task: JoinHandle<()>,
}

impl Server {
    /// `script(n)` is what happens on connection `n`, from 0.
    pub(crate) async fn start(script: impl Fn(usize) -> Vec<Step> + Send + 'static) -> Self {
        Self::start_at("127.0.0.1:0", script).await.unwrap()
    }

    pub(crate) async fn start_at(
        address: &str,
        script: impl Fn(usize) -> Vec<Step> + Send + 'static,
    ) -> io::Result<Self> {
        Self::serve(TcpListener::bind(address).await?, script)
    }

    /// A server for whom the system keeps little, so that a long request waits in the client.
    pub(crate) async fn narrow(script: impl Fn(usize) -> Vec<Step> + Send + 'static) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(64 * 1024).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self::serve(socket.listen(16).unwrap(), script).unwrap()
    }

    fn serve(listener: TcpListener, script: impl Fn(usize) -> Vec<Step> + Send + 'static) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let log = Log::default();
        let seen = Arc::clone(&log);
        let task = tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                seen.lock().unwrap().push(Seen::default());
                tokio::spawn(play(stream, script(number), Arc::clone(&seen), number));
            }
        });
        Ok(Self { address, log, task })
    }

    /// A server with a thread of its own: it goes on while the test's thread is held up.
    pub(crate) fn on_thread(script: impl Fn(usize) -> Vec<Step> + Send + 'static) -> Self {
        let (send, started) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let server = Self::start(script).await;
                let (log, address) = (Arc::clone(&server.log), server.address);
                send.send(Self { address, log, task: tokio::spawn(sleep(LONG)) }).unwrap();
                sleep(LONG).await;
                drop(server);
            });
        });
        started.recv().unwrap()
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    /// The requests of one connection.
    pub(crate) fn requests(&self, connection: usize) -> Vec<String> {
        self.log.lock().unwrap().get(connection).map(|seen| seen.requests.clone()).unwrap_or_default()
    }

    /// The requests of all connections.
    pub(crate) fn request_count(&self) -> usize {
        self.log.lock().unwrap().iter().map(|seen| seen.requests.len()).sum()
    }

    /// Connections that the other side has not closed.
    pub(crate) fn still_open(&self) -> usize {
        self.log.lock().unwrap().iter().filter(|seen| !seen.closed).count()
    }

    /// Holds the test's thread up, so that nothing of the client's runs, until the server (with a thread of its own)
    /// has taken so many steps on this connection; `usize::MAX`: until it has closed it.
    pub(crate) fn block_until(&self, connection: usize, steps: usize) {
        let start = std::time::Instant::now();
        while self.log.lock().unwrap().get(connection).is_none_or(|seen| seen.steps < steps) {
            assert!(start.elapsed() < LONG, "it never came to be");
            std::thread::sleep(ms(1));
        }
        // What it did last is on its way; over loopback that takes no time worth naming.
        std::thread::sleep(ms(20));
    }

    /// Waits until the other side has closed this connection (its script must be reading).
    pub(crate) async fn closed(&self, connection: usize) {
        until(|| self.log.lock().unwrap().get(connection).is_some_and(|seen| seen.closed)).await;
    }

    pub(crate) fn config(&self) -> PoolConfig {
        let mut config = PoolConfig::new(false, self.address.ip().to_string(), self.address.port());
        config.connect_timeout = LONG;
        config.read_timeout = LONG;
        config.write_timeout = LONG;
        config.pool_timeout = LONG;
        // What the machine's environment names is none of a test's business.
        config.proxy = Proxy::Off;
        config
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

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn pool(config: PoolConfig) -> Pool {
    Pool::new(config, Arc::new(SystemResolver)).unwrap()
}

/// Waits until it is so.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..4_000 {
        if holds() {
            return;
        }
        sleep(ms(5)).await;
    }
    panic!("it never came to be");
}

/// Waits until the pool has these numbers.
pub(crate) async fn until_open(pool: &Pool, open: usize, idle: usize) {
    let is_so = |now: PoolSnapshot| now.open == open && now.idle == idle;
    until(|| is_so(pool.snapshot())).await;
}

async fn play(mut stream: TcpStream, script: Vec<Step>, log: Log, number: usize) {
    for step in script {
        if let Step::Reset = step {
            stream.set_zero_linger().unwrap();
            break;
        }
        if !perform(&mut stream, step, &log, number).await {
            break;
        }
        log.lock().unwrap()[number].steps += 1;
    }
    drop(stream);
    log.lock().unwrap()[number].steps = usize::MAX;
}

/// One step; false once the other side has gone.
pub(crate) async fn perform(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    step: Step,
    log: &Log,
    number: usize,
) -> bool {
    match step {
        Step::Read => match read_request(stream).await {
            Some(request) => {
                log.lock().unwrap()[number].requests.push(request);
                return true;
            }
            None => log.lock().unwrap()[number].closed = true,
        },
        Step::ReadSome(length) => return stream.read_exact(&mut vec![0; length]).await.is_ok(),
        Step::Write(bytes) => return stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok(),
        Step::Wait(duration) => {
            sleep(duration).await;
            return true;
        }
        Step::Until(said) => {
            while !said.load(Ordering::SeqCst) {
                sleep(ms(1)).await;
            }
            return true;
        }
        Step::ReadToEnd => {
            let mut buffer = [0; 1024];
            while matches!(stream.read(&mut buffer).await, Ok(length) if length > 0) {}
            log.lock().unwrap()[number].closed = true;
        }
        Step::Hang => sleep(Duration::from_secs(3_600)).await,
        Step::Reset => {}
    }
    false
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut request = Vec::new();
    let (mut length, mut chunked) = (None, false);
    loop {
        if length.is_none()
            && let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n")
        {
            let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
            let body = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            chunked = head.lines().any(|line| line == "transfer-encoding: chunked");
            length = Some(end + 4 + body.unwrap_or(0));
        }
        let is_over = !chunked || request.ends_with(b"\r\n0\r\n\r\n");
        if is_over && length.is_some_and(|length| request.len() >= length) {
            return Some(String::from_utf8_lossy(&request).into_owned());
        }
        let mut byte = [0; 4096];
        match stream.read(&mut byte).await {
            Ok(read) if read > 0 => request.extend_from_slice(&byte[..read]),
            _ => return None,
        }
    }
}

pub(crate) fn request(method: Method, path: &str, body: impl Into<RequestBody>) -> Outgoing {
    let mut outgoing = Outgoing::new(
        Request::builder().method(method).uri(format!("http://upstream.test{path}")).body(body.into()).unwrap(),
    );
    outgoing.time_left = LONG;
    outgoing
}

pub(crate) fn get(path: &str) -> Outgoing {
    let mut outgoing = request(Method::GET, path, "");
    outgoing.repeatable = true;
    outgoing
}

pub(crate) fn post(path: &str, body: impl Into<RequestBody>) -> Outgoing {
    request(Method::POST, path, body)
}

/// The head, with the body to come. Fails the test if it takes far too long.
pub(crate) async fn head(pool: &Pool, outgoing: Outgoing) -> Result<Response<ResponseBody>, TransportError> {
    let mut progress = Progress::default();
    timeout(LONG, pool.exchange(outgoing, &mut progress)).await.expect("bounded")
}

/// The status and the whole body.
pub(crate) async fn send(pool: &Pool, outgoing: Outgoing) -> Result<(StatusCode, Bytes), TransportError> {
    let response = head(pool, outgoing).await?;
    let status = response.status();
    let body = timeout(LONG, response.into_body().collect(MAX)).await.expect("bounded")?;
    Ok((status, body))
}
