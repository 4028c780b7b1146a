//! A server that follows a script, byte by byte, with plain blocking sockets: it shares nothing with the client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What the server does with one request. The last step of a script repeats.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Answers with this status, these header lines, and the body `ok`.
    Answer { status: u16, headers: Vec<u8>, after: Duration },
    /// Says nothing until the client goes away.
    Hang,
    /// A head that promises a body, which then comes one byte at a time.
    Drip { every: Duration },
}

/// An immediate answer.
pub(crate) fn answer(status: u16) -> Step {
    answer_with(status, "")
}

/// An immediate answer with these header lines, each ended by `\r\n`.
pub(crate) fn answer_with(status: u16, headers: impl Into<Vec<u8>>) -> Step {
    Step::Answer { status, headers: headers.into(), after: Duration::ZERO }
}

/// An answer that takes its time.
pub(crate) fn answer_after(status: u16, millis: u64) -> Step {
    Step::Answer { status, headers: Vec::new(), after: Duration::from_millis(millis) }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) came: Instant,
    /// When its answer was written; `None` if there was none.
    pub(crate) answered: Option<Instant>,
}

impl Request {
    /// The value of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A running server. Its threads end with the test process.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Follows `script` over all its connections, in order of arrival.
    pub(crate) fn new(script: impl Into<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (script, requests) = (Arc::new(script.into()), Arc::new(Mutex::new(Vec::new())));
        let seen = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, requests) = (script.clone(), seen.clone());
                thread::spawn(move || serve(stream, &script, &requests));
            }
        });
        Self { address, requests }
    }

    /// Its base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What came so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic").clone()
    }

    /// How many requests came so far.
    pub(crate) fn count(&self) -> usize {
        self.requests().len()
    }
}

/// A base URL where nobody listens. The port was free a moment ago, at an address that no server here uses.
pub(crate) fn refusing_url() -> String {
    let listener = TcpListener::bind("127.0.0.77:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

fn serve(mut stream: TcpStream, script: &[Step], requests: &Mutex<Vec<Request>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    loop {
        let (head, body) = read_request(&mut stream)?;
        let index = {
            let mut requests = requests.lock().expect("no panic");
            requests.push(Request { head, body, came: Instant::now(), answered: None });
            requests.len() - 1
        };
        match script.get(index).or(script.last())? {
            Step::Answer { status, headers, after } => {
                thread::sleep(*after);
                let mut bytes = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: 2\r\n").into_bytes();
                bytes.extend_from_slice(headers);
                bytes.extend_from_slice(b"\r\nok");
                // Stamped before it is written: the client may be faster than this thread.
                requests.lock().expect("no panic")[index].answered = Some(Instant::now());
                stream.write_all(&bytes).ok()?;
            }
            Step::Hang => {
                let mut nothing = [0; 64];
                while stream.read(&mut nothing).ok()? > 0 {}
            }
            Step::Drip { every } => {
                stream.write_all(b"HTTP/1.1 200 Scripted\r\nContent-Length: 1000\r\n\r\n").ok()?;
                loop {
                    thread::sleep(*every);
                    stream.write_all(b".").ok()?;
                }
            }
        }
    }
}

/// One request; `None` when the client has gone.
fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") { value.trim().parse().ok() } else { None }
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}
