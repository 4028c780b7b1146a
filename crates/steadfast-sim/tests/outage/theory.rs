//! Queues whose mean is known, through the shipped client.

use std::time::Duration;

use steadfast_sim::outage::{Discipline, Policy, ServiceTime, Simulation, UpstreamModel, Workload};

use crate::{MS, SEC, plain, settings};

/// The mean time of a call in milliseconds: an open load on this upstream, of 20 000 calls.
fn mean(upstream: UpstreamModel, per_second: f64) -> f64 {
    let lasts = Duration::from_secs_f64(20_000.0 / per_second);
    let simulation = Simulation::new(upstream, 10, Workload::Open { per_second }, lasts);
    let settings = settings(plain().attempt_timeout(SEC * 20));
    let run = simulation.run(&Policy::none(&settings), 5).unwrap();
    let phase = run.phase("all").unwrap();
    assert_eq!(phase.calls.ok, phase.calls.offered);
    phase.latency.mean().as_secs_f64() * 1e3
}

fn near(seen: f64, expected: f64) {
    assert!((seen / expected - 1.0).abs() < 0.05, "{seen} ms, where {expected} ms was expected");
}

#[test]
fn one_exponential_server_m_m_1() {
    let upstream = UpstreamModel::new(ServiceTime::Exponential { mean: MS });
    // 1 / (service rate - arrival rate).
    near(mean(upstream.clone(), 500.0), 2.0);
    near(mean(upstream.clone(), 700.0), 1e3 / 300.0);
    // The mean does not depend on who is served next.
    near(mean(UpstreamModel { discipline: Discipline::Lifo, ..upstream }, 500.0), 2.0);
}

#[test]
fn one_fixed_server_m_d_1() {
    // Service, and load / (2 (1 - load)) of it in the queue (Pollaczek and Khinchine).
    near(mean(UpstreamModel::new(ServiceTime::Fixed(MS)), 500.0), 1.5);
}

#[test]
fn two_exponential_servers_m_m_2() {
    // At half load a third of the calls wait (Erlang C), and these for 1 ms.
    let upstream = UpstreamModel { workers: 2, ..UpstreamModel::new(ServiceTime::Exponential { mean: MS }) };
    near(mean(upstream, 1_000.0), 4.0 / 3.0);
}

#[test]
fn replicas_with_a_queue_each_and_a_random_pick_are_servers_of_their_own() {
    // Three queues of 1 000/s at 500/s each: as one of them alone.
    let upstream = UpstreamModel { replicas: 3, ..UpstreamModel::new(ServiceTime::Exponential { mean: MS }) };
    near(mean(upstream, 1_500.0), 2.0);
}
