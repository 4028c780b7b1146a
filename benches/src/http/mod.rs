//! One HTTP request over loopback: what a client costs beside the request itself.
//!
//! HTTP/1.1 with keep-alive, a small GET, a JSON body of 100 bytes that is read whole. The server is a process of its
//! own and answers from memory; the clients run on one thread, as many requests in flight as there are workers.

mod connection;
mod hyper_util;
mod reqwest;
mod server;
mod steadfast;

pub use connection::Connection;
pub use hyper_util::HyperUtil;
pub use reqwest::Reqwest;
pub use server::{BODY, Server, serve};
pub use steadfast::Steadfast;

use std::future::Future;
use std::net::SocketAddr;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::Failure;

/// A client under test: one worker's handle of it.
pub trait Client: Sized + Send + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// As many workers' handles as there are to be requests in flight. They share what the client would share.
    fn workers(server: SocketAddr, count: usize) -> impl Future<Output = Result<Vec<Self>, Failure>>;

    /// Sends one request and reads its body: the status and the number of bytes.
    fn get(&mut self) -> impl Future<Output = Result<(u16, usize), Failure>> + Send;
}

/// The path that is asked for.
pub const PATH: &str = "/orders/42";

/// The runtime that all clients of a benchmark share: one thread.
///
/// # Errors
///
/// The system refuses what a runtime needs.
pub fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Lets every worker send its share of `requests`, all at the same time. A worker sends its next request when the one
/// before has been read.
///
/// # Errors
///
/// The first request that fails, or an answer that is not the server's.
pub async fn requests<C: Client>(workers: &mut Vec<C>, requests: usize) -> Result<(), Failure> {
    let share = requests / workers.len().max(1);
    let mut tasks = JoinSet::new();
    for mut worker in workers.drain(..) {
        tasks.spawn(async move {
            for _ in 0..share {
                let answer = worker.get().await?;
                if answer != (200, BODY.len()) {
                    return Err(Failure::from(format!("unexpected answer {answer:?}")));
                }
            }
            Ok(worker)
        });
    }
    while let Some(ended) = tasks.join_next().await {
        workers.push(ended??);
    }
    Ok(())
}
