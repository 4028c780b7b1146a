//! A recorder that is installed after the clients were built. A process of its own, since the recorder is the process's.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "counted/recorder.rs"]
#[allow(dead_code, reason = "other tests ask more of it")]
mod recorder;

use std::sync::Arc;

use steadfast::ServiceClient;
use steadfast::metrics::{install, refresh};
use steadfast::testing::{Script, Step, VirtualClock};

use recorder::Kept;

#[test]
fn a_client_that_was_built_before_the_recorder_counts_from_the_next_refresh_on() {
    let clock = VirtualClock::new();
    let script = Script::new(clock.clone(), (0..3).map(|_| Step::status(200)));
    let builder = ServiceClient::builder("http://billing.test").name("early").clock(clock.clone()).transport(script);
    let client = builder.build().unwrap();
    let get = || drop(clock.run(client.get("/x").send()).unwrap().unwrap());
    get();
    // Nobody is there yet: this decides nothing.
    refresh();

    let kept = Kept::new();
    metrics::set_global_recorder(Arc::clone(&kept)).unwrap_or_else(|_| unreachable!("it is the first"));
    get();
    assert_eq!(kept.sum("steadfast.calls", "early"), 0);
    refresh();
    get();
    let refused = install(Kept::new()).unwrap_err();
    assert_eq!(refused.to_string(), "this process has a recorder for its metrics already, and can have no second one");
    assert_eq!(kept.sum("steadfast.calls", "early"), 1);
    assert_eq!(kept.gauge("steadfast.bulkhead.limit", &[("upstream", "early")]), 50.0);
}
