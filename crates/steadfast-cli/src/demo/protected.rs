//! Steadfast's client of one embedded upstream, as a service would set it up.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use steadfast::policy::breaker::Opened;
use steadfast::transport::Proxy;
use steadfast::{Event, ServiceClient};

use super::scenario::{Call, Form, Kind, Timeline};
use super::tally::Ended;
use super::transitions::{Change, OpenedWith, Transitions};

/// The deadline of a call: long enough for two waits of `Retry-After`.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The client, and what its breaker did.
#[derive(Clone)]
pub(crate) struct Protected {
    client: ServiceClient,
    transitions: Arc<Transitions>,
}

impl Protected {
    /// For the upstream at this address. Everything is at its default, except the time for one try, the deadline, and
    /// the cool-down, which fit a demo.
    pub(crate) fn new(kind: Kind, address: SocketAddr, timeline: &Timeline) -> io::Result<Self> {
        let transitions = Arc::new(Transitions::default());
        let client = ServiceClient::builder(&format!("http://{address}"))
            .name(kind.name())
            // The upstreams are on loopback, which no proxy of the environment could reach.
            .proxy(Proxy::Off)
            .read_timeout(kind.try_timeout())
            .total_timeout(TOTAL_TIMEOUT)
            .breaker_cool_down(timeline.cool_down())
            .on_event({
                let (transitions, timeline) = (transitions.clone(), timeline.clone());
                move |event| {
                    if let Event::Transition { transition, .. } = event {
                        transitions.push(Change {
                            at: timeline.now(),
                            from: transition.from.name(),
                            to: transition.to.name(),
                            why: transition.why.name(),
                            opened_with: None,
                        });
                    }
                }
            })
            .build()
            .map_err(io::Error::other)?;
        Ok(Self { client, transitions })
    }

    /// One call.
    pub(crate) async fn call(self, call: Call) -> Ended {
        let request = match call.form {
            Form::Get => self.client.get("/demo"),
            Form::PostWithKey | Form::PostWithoutKey => {
                self.client.post("/demo").json(&serde_json::json!({ "call": call.id }))
            }
        };
        let request = match call.key() {
            Some(key) => request.idempotency_key(&key),
            None => request,
        };
        let (result, ended) = match request.header("x-call-id", call.id).send().await {
            Ok(response) => (Ok(response.status().as_u16()), response.report().ended()),
            Err(error) => (Err(error.kind().name()), error.report().ended()),
        };
        Ended { result, not_repeated: ended.name() == "not_repeatable" }
    }

    /// The breaker's state.
    pub(crate) fn breaker(&self) -> &'static str {
        self.client.snapshot().breaker.state.name()
    }

    /// What the breaker did so far, with the count that opened it.
    pub(crate) fn transitions(&self) -> Vec<Change> {
        // What it had counted is in the snapshot, until it closes again.
        if let Some(opened) = self.client.snapshot().breaker.opened_with {
            let Opened { streak, calls, failures, .. } = opened;
            self.transitions.count_opening(OpenedWith { streak, calls, failures });
        }
        self.transitions.all()
    }
}

impl fmt::Debug for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protected").field("client", &self.client).finish_non_exhaustive()
    }
}
