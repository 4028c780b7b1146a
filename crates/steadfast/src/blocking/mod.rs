//! The same client for plain threads.
//!
//! A blocking call is the async one, driven by the thread that makes it. What the calling thread cannot do while it
//! waits, moving the bytes of connections and firing timers, one background thread does for the whole process. It is
//! started by the first call, and never ends: connections live in the runtime that opened them, so clones, responses
//! and idle connections may outlive whoever made them.
//!
//! Because the calling thread drives the call, it is never moved to another thread: hooks run on the thread that called,
//! spans and thread-locals are the caller's, and a panic of a hook unwinds the call and gives back everything that it held.
//!
//! Limits: a call refuses to run where it would hold up a tokio task (in an async function that is not in
//! `spawn_blocking` or `block_in_place`), in an event hook, and more than four deep in other hooks. What the background
//! thread runs of the user's own, an `on_upload` hook and the stream of a body in pieces, must not block.

mod body;
mod client;
mod request;
mod response;
mod runtime;

pub use body::from_reader;
pub use client::{Clients, ServiceClient};
pub use request::RequestBuilder;
pub use response::{StreamingBody, StreamingResponse};

pub use crate::client::Response;
