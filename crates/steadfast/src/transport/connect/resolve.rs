//! From the upstream's name to its addresses.

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use steadfast_http::{Fault, Sent};
use tokio::sync::Mutex;

use crate::transport::TransportError;

/// What a resolver returns: the addresses in the order in which they should be tried.
pub type ResolveFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Finds the addresses of a host.
///
/// Asked for every new connection, never for a request on an open one; concurrent connections share one answer.
/// An error counts as one that may pass: nothing was sent, so any request may be tried again. Dropping the future must
/// be safe; it happens when `connect_timeout` passes.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `host`, which is never an IP literal: the upstream's, or its proxy's. `port` belongs to it; an
    /// address may name another.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ResolveFuture<'a>;
}

/// The system's resolver (`getaddrinfo`), on tokio's threads for blocking work.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ResolveFuture<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// The answer to one question, shared by those that asked meanwhile.
type Answer = Result<Arc<[SocketAddr]>, Arc<dyn StdError + Send + Sync>>;

/// Asks one question at a time.
pub(crate) struct Lookup {
    resolver: Arc<dyn Resolve>,
    /// How many answers there have been.
    answers: AtomicU64,
    last: Mutex<Option<Answer>>,
}

impl Lookup {
    pub(crate) fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self { resolver, answers: AtomicU64::new(0), last: Mutex::new(None) }
    }

    /// The addresses of `host`; an IP literal is its own.
    pub(crate) async fn addresses(&self, host: &str, port: u16) -> Result<Arc<[SocketAddr]>, TransportError> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(Arc::from([SocketAddr::new(ip, port)]));
        }
        self.shared_answer(host, port)
            .await
            .map_err(|error| TransportError::new(Fault::Dns, Sent::No).with_source(error))
    }

    async fn shared_answer(&self, host: &str, port: u16) -> Answer {
        let asked_at = self.answers.load(Ordering::Acquire);
        let mut last = self.last.lock().await;
        if self.answers.load(Ordering::Acquire) != asked_at
            && let Some(answer) = &*last
        {
            // It came while this one waited, so it is no older than an answer of its own could be.
            return answer.clone();
        }
        let answer = match self.resolver.resolve(host, port).await {
            Ok(addresses) if addresses.is_empty() => {
                Err(Arc::from(Box::<dyn StdError + Send + Sync>::from("the name has no addresses")))
            }
            Ok(addresses) => Ok(Arc::from(addresses)),
            Err(error) => Err(Arc::new(error) as Arc<dyn StdError + Send + Sync>),
        };
        *last = Some(answer.clone());
        self.answers.fetch_add(1, Ordering::Release);
        answer
    }
}
