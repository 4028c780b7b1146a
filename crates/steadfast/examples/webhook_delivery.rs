//! Webhooks: events delivered to addresses of other people, who are down, slow, or gone more often than anybody else.
//!
//! Each tenant has a client of its own, so that each has its own circuit breaker, slots and rate limit: one that is down
//! costs the others nothing. Each delivery is signed afresh, and carries the event's id as its idempotency key, so that a
//! receiver can tell a repetition. A client tries twice within seconds; what is not delivered then goes to a queue, which
//! comes back later. Redirects are not followed: who registers an address cannot send us to another.
//!
//! `cargo run -p steadfast --example webhook_delivery`

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::tls13::OkmBlock;
use steadfast::client::BuildError;
use steadfast::config::Profile;
use steadfast::policy::Time;
use steadfast::testing::{Script, Seen, Step, fake_clock};
use steadfast::{Clock, ServiceClient};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock()).await
}

const SIGNATURE: &str = "webhook-signature";
const SECRET: &[u8] = b"a secret that the tenant knows";

/// HMAC-SHA256 in hex. Any crate for it will do; this one is what TLS brings along.
pub(crate) fn hmac_sha256(key: &[u8], message: &[u8]) -> Option<String> {
    let provider = TLS13_AES_128_GCM_SHA256.tls13()?.hkdf_provider;
    let tag = provider.hmac_sign(&OkmBlock::new(key), message);
    Some(tag.as_ref().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

/// `t=<seconds>,v1=<signature of the seconds, a dot, and the body>`: a receiver refuses old ones, so that nobody can send a
/// recorded delivery again.
fn signature(seconds: u64, body: &[u8]) -> Option<String> {
    let signed = [seconds.to_string().as_bytes(), b".", body].concat();
    Some(format!("t={seconds},v1={}", hmac_sha256(SECRET, &signed)?))
}

#[derive(Clone, Copy)]
struct Event {
    id: &'static str,
    tenant: &'static str,
    body: &'static str,
}

/// What became of one delivery.
enum Fate {
    Delivered {
        attempts: u32,
    },
    /// The queue comes back to it after this time.
    Queued {
        why: String,
        again_in: Duration,
    },
    /// The receiver is gone for good, and its subscription with it.
    Dropped,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered { attempts } => write!(f, "delivered at attempt {attempts}"),
            Self::Queued { why, again_in } => write!(f, "queued for {:.1} s: {why}", again_in.as_secs_f64()),
            Self::Dropped => f.write_str("gone, subscription removed"),
        }
    }
}

/// How long the queue waits where nobody says how long.
const USUAL_WAIT: Duration = Duration::from_secs(60);

/// The client of one tenant. Its transport is a script here; without `transport` it is the pool.
fn client_of(tenant: &str, receiver: &Script, clock: Clock) -> Result<ServiceClient, BuildError> {
    ServiceClient::builder(&format!("https://hooks.{tenant}.example"))
        .name(tenant)
        // A receiver has ten seconds to note the event; what it does with it comes later. One retry, for a connection that
        // was lost: the rest is the queue's. Nobody reads the answer, so it must be short.
        .profile(Profile::Webhook)
        .breaker_failures(4)
        // At most two a second. What has no place now is not waited for: the queue has all the time there is.
        .rate_limit(2)
        .rate_limit_wait(Duration::ZERO)
        .header("content-type", "application/json")
        // Called before each attempt, so that the time in a signature is always now's.
        .before_attempt(move |parts| {
            let seconds = clock.wall().duration_since(UNIX_EPOCH)?.as_secs();
            let body = parts.body.ok_or("a delivery has a whole body")?;
            let signature = signature(seconds, body).ok_or("no HMAC-SHA256")?;
            parts.headers.insert(SIGNATURE, signature.parse()?);
            Ok(())
        })
        .transport(receiver.clone())
        .build()
}

/// Delivers an event, or says when to come back to it.
async fn deliver(client: &ServiceClient, event: Event) -> Fate {
    // With a key a POST may be repeated, and this one is the same whenever the event is delivered: today or tomorrow.
    let sent = client.post("/events").idempotency_key(event.id).body(event.body).send().await;
    match sent {
        Ok(response) if response.status().is_success() => {
            Fate::Delivered { attempts: response.report().attempt_count() }
        }
        Ok(response) if response.status() == 410 => Fate::Dropped,
        Ok(response) => Fate::Queued {
            why: format!("the receiver answered {}", response.status()),
            again_in: response.report().retry_after().unwrap_or(USUAL_WAIT),
        },
        Err(error) => Fate::Queued { why: error.to_string(), again_in: error.retry_after().unwrap_or(USUAL_WAIT) },
    }
}

/// Whether the receiver would take it: the signature fits the time and the body.
fn is_signed(seen: &Seen) -> bool {
    let Some(value) = seen.headers.get(SIGNATURE).and_then(|value| value.to_str().ok()) else { return false };
    let seconds = value.strip_prefix("t=").and_then(|rest| rest.split(',').next()?.parse().ok());
    seconds.and_then(|seconds| signature(seconds, &seen.body)).as_deref() == Some(value)
}

/// Each event with the second in which it happens.
const EVENTS: [(u64, Event); 8] = [
    (0, Event { id: "evt-1", tenant: "acme", body: r#"{"order":1}"# }),
    (1, Event { id: "evt-2", tenant: "globex", body: r#"{"order":2}"# }),
    (3, Event { id: "evt-3", tenant: "globex", body: r#"{"order":3}"# }),
    (5, Event { id: "evt-4", tenant: "globex", body: r#"{"order":4}"# }),
    (6, Event { id: "evt-5", tenant: "initech", body: r#"{"order":5}"# }),
    (6, Event { id: "evt-6", tenant: "initech", body: r#"{"order":6}"# }),
    (6, Event { id: "evt-7", tenant: "initech", body: r#"{"order":7}"# }),
    (8, Event { id: "evt-8", tenant: "umbrella", body: r#"{"order":8}"# }),
];

/// The whole program.
pub(crate) async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // The waits take no time here, and the queue moves the clock. A service has the system's.
    let clock = fake_clock().seed(7);
    let refused_four_times = [Step::refuse(), Step::refuse(), Step::refuse(), Step::refuse(), Step::status(200)];
    let receivers = BTreeMap::from([
        ("acme", Script::new(&clock, [Step::status(503), Step::status(200)])),
        ("globex", Script::new(&clock, refused_four_times)),
        ("initech", Script::new(&clock, [Step::status(202)])),
        ("umbrella", Script::new(&clock, [Step::status(410)])),
    ]);
    let mut clients = BTreeMap::new();
    for (tenant, receiver) in &receivers {
        clients.insert(*tenant, client_of(tenant, receiver, Clock::from(&clock))?);
    }

    // What is due next comes first. A real queue lies on disk; the rest is the same.
    let mut queue: BTreeMap<_, Event> = BTreeMap::new();
    for (second, event) in EVENTS {
        queue.insert((clock.now() + Duration::from_secs(second), event.id), event);
    }
    while let Some(((due, _), event)) = queue.pop_first() {
        clock.advance(due.since(clock.now()));
        let second = clock.now().since(Time::ZERO).as_secs_f64();
        let Some(client) = clients.get(event.tenant) else { continue };
        let fate = deliver(client, event).await;
        writeln!(out, "{second:4.1} s  {} to {}: {fate}", event.id, event.tenant)?;
        if let Fate::Queued { again_in, .. } = fate {
            queue.insert((clock.now() + again_in, event.id), event);
        }
    }

    let seen: Vec<Seen> = receivers.values().flat_map(Script::seen).collect();
    let of_event_2: Vec<&Seen> = seen.iter().filter(|seen| seen.body == r#"{"order":2}"#).collect();
    let different = |name| of_event_2.iter().filter_map(|seen| seen.headers.get(name)).collect::<BTreeSet<_>>().len();
    let (requests, keys, signatures) = (of_event_2.len(), different("idempotency-key"), different(SIGNATURE));
    writeln!(out, "evt-2: {requests} requests, {keys} idempotency key, {signatures} signatures")?;
    writeln!(out, "{} requests, all signed: {}", seen.len(), seen.iter().all(is_signed))?;
    Ok(())
}
