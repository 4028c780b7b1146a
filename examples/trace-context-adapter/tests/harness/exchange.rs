//! Both ends: a request byte for byte to the adapter, and the server that it calls back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// As the harness has it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a callback brought along, line by line.
#[derive(Clone, Debug)]
pub(crate) struct Callback {
    pub(crate) traceparent: Vec<String>,
    pub(crate) tracestate: Vec<String>,
}

#[derive(Clone, Default)]
struct Log {
    seen: Arc<Mutex<HashMap<String, Vec<Callback>>>>,
    refuse_first: bool,
}

pub(crate) struct Exchange {
    adapter: String,
    harness: String,
    log: Log,
    number: AtomicUsize,
}

async fn serve(service: Router, listener: TcpListener) {
    axum::serve(listener, service).await.unwrap();
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

impl Exchange {
    pub(crate) async fn start(refuse_first: bool) -> Self {
        let log = Log { refuse_first, ..Log::default() };
        let (listener, harness) = listen().await;
        tokio::spawn(serve(Router::new().fallback(called_back).with_state(log.clone()), listener));
        let (listener, adapter) = listen().await;
        let service = trace_context_adapter::service(&format!("http://{harness}/"), refuse_first).unwrap();
        tokio::spawn(serve(service, listener));
        Self { adapter, harness, log, number: AtomicUsize::new(0) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.harness)
    }

    /// Sends a request that asks for so many callbacks; what they brought, attempts that were refused included.
    pub(crate) async fn ask(&self, headers: &[String], callbacks: usize) -> Vec<Callback> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let paths: Vec<String> = (0..callbacks).map(|index| format!("{number:032x}.{index}")).collect();
        let urls: Vec<String> = paths.iter().map(|path| self.url(path)).collect();
        assert_eq!(self.status(headers, &urls).await, 200);
        let mut seen = self.log.seen.lock().unwrap();
        paths.iter().flat_map(|path| seen.remove(path).unwrap_or_default()).collect()
    }

    /// Sends a request that asks for calls to these URLs; the status of the answer.
    pub(crate) async fn status(&self, headers: &[String], urls: &[String]) -> u16 {
        let calls = urls.iter().map(|url| serde_json::json!({ "url": url, "arguments": [] }));
        let body = serde_json::Value::from_iter(calls).to_string();
        let mut request = format!(
            "POST /test HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n",
            self.adapter,
            body.len()
        );
        for line in headers {
            request += &format!("{line}\r\n");
        }
        request += &format!("\r\n{body}");
        let exchange = async {
            let mut stream = TcpStream::connect(&self.adapter).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = tokio::time::timeout(TIMEOUT, exchange).await.expect("an answer in time");
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// The harness's side: notes what came, and refuses it the first time where it is to.
async fn called_back(State(log): State<Log>, request: Request) -> (StatusCode, &'static str) {
    let lines = |headers: &HeaderMap, name: &str| -> Vec<String> {
        headers.get_all(name).iter().map(|line| line.to_str().unwrap().to_owned()).collect()
    };
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_start_matches('/').to_owned();
    let arguments = axum::body::to_bytes(body, 1024).await.unwrap();
    assert_eq!((&*arguments, &head.headers["content-type"]), (&b"[]"[..], &"application/json".parse().unwrap()));
    let callback =
        Callback { traceparent: lines(&head.headers, "traceparent"), tracestate: lines(&head.headers, "tracestate") };
    let mut seen = log.seen.lock().unwrap();
    let seen = seen.entry(path).or_default();
    seen.push(callback);
    if log.refuse_first && seen.len() == 1 { (StatusCode::SERVICE_UNAVAILABLE, "") } else { (StatusCode::OK, "null") }
}
