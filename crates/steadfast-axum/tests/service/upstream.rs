//! An upstream that notes every request and answers as it is told.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use tokio::net::TcpListener;

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
}

impl Seen {
    /// All lines of a header.
    pub(crate) fn lines(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().map(|line| line.to_str().unwrap()).collect()
    }
}

type Answer = dyn Fn(&Seen) -> Response<Body> + Send + Sync;

#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    answer: Arc<Answer>,
}

pub(crate) fn status(status: u16) -> Response<Body> {
    Response::builder().status(status).body(Body::empty()).unwrap()
}

/// Serves on a free port until the test ends; its address.
pub(crate) async fn serve(service: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    address
}

impl Upstream {
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static) -> Self {
        let mut upstream = Self { url: String::new(), seen: Arc::default(), answer: Arc::new(answer) };
        let router = Router::new().fallback(note).with_state(upstream.clone());
        upstream.url = format!("http://{}", serve(router).await);
        upstream
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn note(State(upstream): State<Upstream>, request: Request) -> Response<Body> {
    let (head, _) = request.into_parts();
    let seen = Seen { path: head.uri.path().to_owned(), headers: head.headers };
    upstream.seen.lock().unwrap().push(seen.clone());
    (upstream.answer)(&seen)
}
