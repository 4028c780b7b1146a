//! An upstream that limits how fast it is called.

use std::sync::{Arc, Mutex};

use steadfast::client::Assessment;
use steadfast::report::Ended;
use steadfast_sim::outage::{Policy, RateLimiter, ServiceTime, Simulation, Tells, UpstreamModel, Workload};

use crate::{MS, SEC, calls, plain, settings, watch};

fn limited(limit: u32, per_client: bool, tells: Tells) -> UpstreamModel {
    let mut upstream = UpstreamModel::new(ServiceTime::Fixed(MS));
    upstream.rate_limit = Some(RateLimiter { limit, period: SEC * 2, per_client, tells });
    upstream
}

#[test]
fn one_too_many_in_a_window_is_answered_429_and_the_next_window_is_new() {
    let upstream = limited(2, false, Tells::Nothing);
    let (run, seen) = watch(&calls(upstream, &[0, 10, 20, 1_990, 2_000]), &settings(plain()));
    let answered: Vec<_> = seen.iter().map(|call| call.4 == Ended::Response).collect();
    assert_eq!(answered, [true, true, false, false, true]);
    assert_eq!((run.upstream_total(0).limited, run.upstream_total(0).served), (2, 3));
}

#[test]
fn it_says_when_to_come_back_and_the_client_does() {
    let upstream = limited(2, false, Tells::RetryAfter);
    let (_, seen) = watch(&calls(upstream, &[0, 10, 700]), &settings(plain().retries(1)));
    // The window ends 1.3 s later, which is 2 in whole seconds.
    assert_eq!(seen[2], (700, 2_002, true, 2, Ended::Response));
}

#[test]
fn each_client_can_have_a_limit_of_its_own() {
    for (per_client, expected) in [(false, 8), (true, 4)] {
        let mut simulation = calls(limited(2, per_client, Tells::Nothing), &[]);
        (simulation.clients, simulation.lasts) = (3, SEC * 2);
        simulation.workload = Workload::Even { per_second: 5.01 };
        let run = simulation.run(&Policy::none(&settings(plain())), 1).unwrap();
        assert_eq!(run.total().offered, 10);
        assert_eq!(run.total().bad_answer, expected, "3 clients, 10 calls, 2 each or 2 for all");
    }
}

#[test]
fn every_answer_can_carry_what_is_left() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let policy = Policy::none(&settings(plain())).built_by(move |member| {
        let seen = Arc::clone(&noted);
        let builder = member.builder().classify(move |head, _| {
            let text = |name| head.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
            seen.lock().unwrap().push((head.status.as_u16(), text("ratelimit"), text("ratelimit-policy")));
            Assessment::ByStatus
        });
        builder.build()
    });
    let simulation: Simulation = calls(limited(1, false, Tells::RateLimit), &[500, 900]);
    simulation.run(&policy, 1).unwrap();
    let policy = "\"default\";q=1;w=2".to_owned();
    let expected =
        [(200, "\"default\";r=0;t=2".to_owned(), policy.clone()), (429, "\"default\";r=0;t=2".to_owned(), policy)];
    assert_eq!(*seen.lock().unwrap(), expected);
}
