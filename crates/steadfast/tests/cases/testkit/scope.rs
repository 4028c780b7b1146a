//! Whose clock: that of the thread, while a scope lives.

use std::cell::RefCell;
use std::future::ready;

use futures_executor::block_on;
use http::Request;
use steadfast::layer::RateLimitLayer;
use steadfast::testing::{FakeClock, Script, Step, VirtualClock, fake_clock, fast_mode};
use steadfast::transport::{Exchange, Outgoing, Progress, RequestBody};
use steadfast::{Clock, ServiceClient, blocking};
use tower::{Layer, ServiceExt, service_fn};

use super::guard;
use crate::harness::secs;

/// What `Clock::system` gives here and now.
fn ambient() -> &'static str {
    let debug = format!("{:?}", Clock::system());
    ["System", "Virtual", "Fast"].into_iter().find(|kind| debug.starts_with(&format!("Clock({kind}"))).unwrap()
}

#[test]
fn c11_6_what_is_built_in_the_scope_has_its_clock() {
    let time = fake_clock();
    let script = Script::new(&time, [Step::status(503), Step::status(200)]);
    let client = || ServiceClient::builder("http://rates.test").backoff_base(secs(1)).transport(script.clone());

    let guard = guard().build().unwrap();
    let mut results = vec![Err("busy"), Ok(1)].into_iter();
    block_on(guard.transient(|_| true).call(|| ready(results.next().unwrap()))).unwrap();
    assert_eq!(time.sleeps(), [secs(1)]);
    time.clear();

    block_on(client().build().unwrap().get("/x").send()).unwrap();
    assert_eq!(time.sleeps().len(), 1);

    script.play([Step::status(503), Step::status(200)]);
    assert_eq!(client().build_blocking().unwrap().get("/x").send().unwrap().status(), 200);
    assert_eq!(time.sleeps().len(), 2);

    script.play([Step::status(503), Step::status(200)]);
    let shared = blocking::ServiceClient::from(client().build().unwrap());
    assert_eq!(shared.get("/x").send().unwrap().status(), 200);
    assert_eq!(time.sleeps().len(), 3);
}

#[test]
fn c11_6_so_have_layers() {
    let time = fake_clock();
    let script = Script::new(&time, [Step::status(503), Step::status(200)]);
    let wire = service_fn(move |request| {
        let script = script.clone();
        async move { script.exchange(Outgoing::new(request), &mut Progress::default()).await }
    });
    let whole = ServiceClient::builder("http://rates.test").build_layer().unwrap();
    let request = Request::get("http://rates.test/x").body(RequestBody::from("")).unwrap();
    assert_eq!(block_on(whole.layer(wire.clone()).oneshot(request)).unwrap().status(), 200);
    assert_eq!(time.sleeps().len(), 1);

    let alone = RateLimitLayer::builder("rates").rate_limit(1).build().unwrap();
    for _ in 0..2 {
        let request = Request::get("http://rates.test/x").body(RequestBody::from("")).unwrap();
        block_on(alone.layer(wire.clone()).oneshot(request)).unwrap();
    }
    assert_eq!(time.sleeps().len(), 2);
}

#[test]
fn c11_6_an_inner_scope_hides_an_outer_one_and_gives_it_back() {
    assert_eq!(ambient(), "System");
    let outer = fake_clock();
    assert_eq!(ambient(), "Virtual");
    {
        let _inner = fast_mode();
        assert_eq!(ambient(), "Fast");
    }
    assert_eq!(ambient(), "Virtual");
    outer.advance(secs(5));
    assert_eq!(Clock::system().now(), outer.now(), "it is the very clock");
    drop(outer);
    assert_eq!(ambient(), "System");
}

#[test]
fn c11_6_scopes_may_end_in_any_order() {
    let outer = fake_clock();
    let inner = fake_clock();
    inner.advance(secs(7));
    drop(outer);
    assert_eq!(Clock::system().now(), inner.now());
    drop(inner);
    assert_eq!(ambient(), "System");
}

#[test]
fn c11_6_another_thread_has_a_scope_of_its_own() {
    let time = fake_clock();
    time.advance(secs(9));
    let clock = time.clock();
    let other = std::thread::spawn(move || {
        assert_eq!(ambient(), "System");
        let _own = fake_clock();
        assert_eq!(Clock::system().now().as_nanos(), 0);
        clock.advance(secs(1));
    });
    other.join().unwrap();
    assert_eq!(time.elapsed(), secs(10), "the clock itself goes where it is wanted");
}

#[test]
fn c11_6_a_scope_that_ends_with_its_thread_is_harmless() {
    thread_local!(static KEPT: RefCell<Option<FakeClock>> = const { RefCell::new(None) });
    let thread = std::thread::spawn(|| {
        KEPT.with_borrow_mut(|kept| *kept = Some(fake_clock()));
        assert_eq!(ambient(), "Virtual");
    });
    thread.join().unwrap();
}

#[test]
fn c11_6_a_clock_of_its_own_wins_and_is_kept_after_the_scope() {
    let time = fake_clock();
    let own = VirtualClock::new();
    let of_its_own = guard().clock(own.clone()).build().unwrap();
    let of_the_scope = guard().build().unwrap();
    let clock = time.clock();
    drop(time);
    let mut results = vec![Err("busy"), Ok(1), Err("busy"), Ok(2)].into_iter();
    let mut call = || ready(results.next().unwrap());
    own.run(of_its_own.transient(|_| true).call(&mut call)).unwrap().unwrap();
    assert_eq!((own.now().as_nanos(), clock.now().as_nanos()), (1_000_000_000, 0));
    // There is no runtime here: the system's clock would panic.
    block_on(of_the_scope.transient(|_| true).call(&mut call)).unwrap();
    assert_eq!(clock.now().as_nanos(), 1_000_000_000);
}
