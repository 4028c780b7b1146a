//! Both ways: the real client against the real server, and the simulation of what was recorded there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast::policy::breaker::State;
use steadfast::{ClientBuilder, Error, ErrorKind, Event, Response};
use steadfast_sim::World;
use steadfast_sim::outage::{Policy, ServiceTime, Simulation, Workload};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep_until};

use crate::cases::Case;
use crate::server::Server;

const SEED: u64 = 1;

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) requests: u64,
    /// Calls by how they ended.
    pub(crate) ends: [(&'static str, u64); 8],
    /// When the breaker changed, and to what.
    pub(crate) transitions: Vec<(Duration, State)>,
}

/// A real run, and what happened in it by chance.
pub(crate) struct Real {
    pub(crate) seen: Seen,
    arrivals: Vec<Duration>,
    work: Vec<Duration>,
}

pub(crate) const ENDS: [&str; 8] =
    ["ok", "bad_answer", "unreachable", "timeout", "circuit_open", "bulkhead_full", "rate_limited", "other"];

pub(crate) async fn real(case: &Case) -> Real {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let start = Instant::now() + Duration::from_millis(50);
    let server = Arc::new(Server::new(&case.simulation, start));
    let serving = tokio::spawn(Arc::clone(&server).serve(listener));
    let transitions = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&transitions);
    let client = ClientBuilder::from_settings((case.settings)(&url).build().unwrap())
        // What the client of the simulation has.
        .seed(World::new(SEED).seed_of("client 0 0"))
        .on_event(move |event| {
            if let Event::Transition { transition, .. } = event {
                noted.lock().unwrap().push((start.elapsed(), transition.to));
            }
        })
        .build()
        .unwrap();
    let Workload::Recorded { at } = &case.simulation.workload else { panic!("arrivals are recorded") };
    let (mut calls, mut arrivals) = (Vec::new(), Vec::new());
    for at in at {
        sleep_until(start + *at).await;
        arrivals.push(start.elapsed());
        let client = client.clone();
        calls.push(tokio::spawn(async move { place(&client.get("/0").send().await) }));
    }
    let mut counts = [0; 8];
    for call in calls {
        counts[call.await.unwrap()] += 1;
    }
    // Work whose caller has gone may be under way.
    let (requests, work) = server.seen();
    serving.abort();
    let ends = std::array::from_fn(|place| (ENDS[place], counts[place]));
    let transitions = transitions.lock().unwrap().clone();
    Real { seen: Seen { requests, ends, transitions }, arrivals, work }
}

/// Where in [`ENDS`] it belongs.
fn place(result: &Result<Response, Error>) -> usize {
    match result {
        Ok(response) if response.status().as_u16() < 400 => 0,
        Ok(_) => 1,
        Err(error) => match error.kind() {
            ErrorKind::Unreachable => 2,
            ErrorKind::Timeout => 3,
            ErrorKind::CircuitOpen => 4,
            ErrorKind::BulkheadFull => 5,
            ErrorKind::RateLimited => 6,
            _ => 7,
        },
    }
}

pub(crate) fn simulated(case: &Case, real: &Real) -> Seen {
    let mut simulation: Simulation = case.simulation.clone();
    simulation.lasts = real.arrivals.last().copied().unwrap_or_default() + Duration::from_millis(1);
    simulation.workload = Workload::Recorded { at: real.arrivals.clone() };
    simulation.upstreams[0].service = ServiceTime::Replayed(real.work.clone());
    let settings = (case.settings)("http://upstream").build().unwrap();
    let run = simulation.run(&Policy::new("configured", settings), SEED).unwrap();
    let total = run.total();
    let counts = [
        total.ok,
        total.bad_answer,
        total.unreachable,
        total.timeout,
        total.circuit_open,
        total.bulkhead_full,
        total.rate_limited,
        total.other,
    ];
    Seen {
        requests: run.upstream_total(0).requests,
        ends: std::array::from_fn(|place| (ENDS[place], counts[place])),
        transitions: run.breakers.iter().map(|change| (change.at, change.to)).collect(),
    }
}
