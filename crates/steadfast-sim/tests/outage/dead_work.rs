//! What becomes of requests that nobody waits for any more.

use steadfast::report::Ended;
use steadfast_sim::outage::{DeadWork, ServerTally, ServiceTime, UpstreamModel};

use crate::{MS, calls, plain, settings, watch};

/// Two calls give up after 100 ms, one being served and one waiting; the third comes when all is quiet.
fn lived_through(dead_work: DeadWork) -> ServerTally {
    let mut upstream = UpstreamModel::new(ServiceTime::Replayed(vec![MS * 300, MS * 300, MS * 50]));
    upstream.dead_work = dead_work;
    let (run, seen) = watch(&calls(upstream, &[0, 10, 2_000]), &settings(plain().attempt_timeout(MS * 100)));
    assert_eq!(seen.iter().map(|call| (call.1, call.2)).collect::<Vec<_>>(), [(100, false), (100, false), (50, true)]);
    run.upstream_total(0)
}

#[test]
fn dead_work_is_served_in_full_by_default() {
    let total = lived_through(DeadWork::default());
    assert_eq!((total.served, total.wasted, total.skipped), (3, 2, 0));
    assert_eq!((total.busy, total.wasted_work), (MS * 650, MS * 600));
}

#[test]
fn a_server_that_looks_skips_those_that_still_wait() {
    let total = lived_through(DeadWork::Skipped);
    assert_eq!((total.served, total.wasted, total.skipped), (2, 1, 1));
    assert_eq!((total.busy, total.wasted_work), (MS * 350, MS * 300));
}

#[test]
fn a_server_that_cancels_stops_at_once() {
    let total = lived_through(DeadWork::Cancelled);
    // The first is cut after 100 ms, and the second, which then began, after 10.
    assert_eq!((total.served, total.wasted, total.skipped), (1, 0, 0));
    assert_eq!((total.busy, total.wasted_work), (MS * 160, MS * 110));
}

#[test]
fn dead_work_holds_up_the_living() {
    // The first gives up at 100 and would be done at 150; the second comes at 110 and takes 50.
    for (dead_work, expected) in [(DeadWork::Served, 90), (DeadWork::Skipped, 90), (DeadWork::Cancelled, 50)] {
        let mut upstream = UpstreamModel::new(ServiceTime::Replayed(vec![MS * 150, MS * 50]));
        upstream.dead_work = dead_work;
        let (_, seen) = watch(&calls(upstream, &[0, 110]), &settings(plain().attempt_timeout(MS * 100)));
        assert_eq!(seen[1], (110, expected, true, 1, Ended::Response), "{dead_work:?}");
    }
}

#[test]
fn cancelled_requests_leave_the_queue_and_its_bound() {
    // Served 0-300; the second waits and is gone at 110; the third finds a place only if that one has left it.
    for (dead_work, shed) in [(DeadWork::Skipped, 1), (DeadWork::Cancelled, 0)] {
        let mut upstream = UpstreamModel::new(ServiceTime::Fixed(MS * 300));
        (upstream.dead_work, upstream.queue) = (dead_work, Some(1));
        let mut simulation = calls(upstream, &[0, 10, 150]);
        simulation.clients = 1;
        let (run, _) = watch(&simulation, &settings(plain().attempt_timeout(MS * 100)));
        assert_eq!(run.upstream_total(0).shed, shed, "{dead_work:?}");
    }
}
