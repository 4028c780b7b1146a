//! One embedded upstream: a listener on loopback that follows the scenario, and counts what reaches it.
//!
//! The counts are taken here, at the server, because what a client says it sent is not evidence.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::http1::{Connection, Head};
use super::scenario::{Act, Kind, Timeline};

/// A running upstream; dropping it closes its listener and its connections.
#[derive(Debug)]
pub(crate) struct Upstream {
    seen: Arc<Mutex<Ledger>>,
    task: JoinHandle<()>,
}

/// An upstream that is bound but does not answer yet.
#[derive(Debug)]
pub(crate) struct Bound(TcpListener);

/// What reached an upstream so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) requests: u64,
    /// Those that came while it was down.
    pub(crate) while_down: u64,
    /// Requests beyond the first of a call that may not be sent twice.
    pub(crate) unsafe_resends: u64,
}

#[derive(Debug, Default)]
struct Ledger {
    seen: Seen,
    /// Requests of each call so far.
    calls: HashMap<u64, u32>,
    /// The second that is being counted, and the requests in it.
    second: (u64, u32),
}

impl Bound {
    /// Binds a port on loopback.
    pub(crate) async fn new() -> io::Result<Self> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map(Self)
    }

    /// Where it is.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Begins to answer.
    pub(crate) fn serve(self, kind: Kind, timeline: Timeline) -> Upstream {
        let seen = Arc::new(Mutex::new(Ledger::default()));
        let task = tokio::spawn(accept(self.0, kind, timeline, seen.clone()));
        Upstream { seen, task }
    }
}

impl Upstream {
    /// What reached it so far.
    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).seen
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, kind: Kind, timeline: Timeline, seen: Arc<Mutex<Ledger>>) {
    let mut connections = JoinSet::new();
    loop {
        // An error of `accept` (out of descriptors, a connection gone already) concerns one connection only.
        if let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let (timeline, seen) = (timeline.clone(), seen.clone());
            connections.spawn(async move {
                // A client that goes away in the middle is part of the scenario.
                let _ = serve(Connection::new(stream), kind, &timeline, &seen).await;
            });
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut connection: Connection, kind: Kind, timeline: &Timeline, seen: &Mutex<Ledger>) -> io::Result<()> {
    while let Some(head) = connection.next().await? {
        let act = seen.lock().unwrap_or_else(PoisonError::into_inner).enter(&head, kind, timeline);
        match act {
            Act::Answer { status, after } => {
                tokio::time::sleep(after).await;
                connection.answer(status).await?;
            }
            Act::Reset => return connection.reset(),
        }
    }
    Ok(())
}

impl Ledger {
    /// Counts a request and says what becomes of it.
    fn enter(&mut self, head: &Head, kind: Kind, timeline: &Timeline) -> Act {
        let at = timeline.now();
        let before = self.calls.entry(head.call).or_default();
        let nth = *before;
        *before += 1;
        self.seen.requests += 1;
        self.seen.while_down += u64::from(kind == Kind::Down && timeline.outage().contains(&at));
        self.seen.unsafe_resends += u64::from(head.unrepeatable && nth > 0);
        if self.second.0 != at.as_secs() {
            self.second = (at.as_secs(), 0);
        }
        let in_second = self.second.1;
        self.second.1 += 1;
        timeline.act(kind, at, head.call, nth, in_second)
    }
}
