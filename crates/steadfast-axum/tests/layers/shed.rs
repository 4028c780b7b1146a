//! The door: who is let in, who waits, who is turned away.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::{join, join_all};
use http::{HeaderName, Request, Response};
use steadfast::Clock;
use steadfast::testing::VirtualClock;
use steadfast_axum::{ContextLayer, ShedLayer, ShedSnapshot};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::harness::{Answer, Body, answer, json, ms, request, secs};

const X_TIME_LEFT: HeaderName = HeaderName::from_static("x-time-left-ms");

/// A service that takes as long as the request's header `takes` says, and notes who was worked on.
#[derive(Clone)]
struct Work {
    clock: Clock,
    worked_on: Arc<Mutex<Vec<String>>>,
    now: Arc<AtomicUsize>,
    peak: Arc<AtomicUsize>,
}

struct Leave(Arc<AtomicUsize>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Work {
    fn new(clock: &VirtualClock) -> Self {
        let (now, peak) = Default::default();
        Self { clock: clock.clone().into(), worked_on: Arc::default(), now, peak }
    }

    fn service(
        &self,
    ) -> impl Service<Request<Body>, Response = Response<Body>, Error = std::convert::Infallible, Future: Send>
    + Clone
    + Send
    + 'static {
        let this = self.clone();
        service_fn(move |request: Request<Body>| {
            let this = this.clone();
            async move {
                let header = |name: &str| request.headers()[name].to_str().unwrap();
                this.worked_on.lock().unwrap().push(header("name").to_owned());
                this.peak.fetch_max(this.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let _leave = Leave(Arc::clone(&this.now));
                this.clock.wait(ms(header("takes").parse().unwrap())).await;
                answer("done")
            }
        })
    }

    fn worked_on(&self) -> Vec<String> {
        self.worked_on.lock().unwrap().clone()
    }
}

struct World {
    clock: VirtualClock,
    work: Work,
    layer: ShedLayer,
}

impl World {
    fn new(max_in_flight: usize, configure: impl FnOnce(ShedLayer) -> ShedLayer) -> Self {
        let clock = VirtualClock::new();
        let work = Work::new(&clock);
        let layer = configure(ShedLayer::new(max_in_flight)).clock(clock.clone());
        Self { clock, work, layer }
    }

    /// A request that comes at a time, and takes its time; with a deadline of its own. Returns the answer and when it came.
    async fn call(&self, name: &str, at: u64, takes: u64, left: Option<u64>) -> (Response<Body>, Duration) {
        let clock = Clock::from(self.clock.clone());
        clock.wait(ms(at)).await;
        let (takes, left) = (takes.to_string(), left.map(|left| left.to_string()));
        let mut headers = vec![("name", name), ("takes", takes.as_str())];
        headers.extend(left.as_deref().map(|left| ("x-time-left-ms", left)));
        let context = ContextLayer::new().deadline_header(X_TIME_LEFT).clock(clock.clone());
        // A service for each: they have the layer's places together.
        let service = context.layer(self.layer.layer(self.work.service()));
        let response = service.oneshot(request(&headers)).await.unwrap();
        (response, clock.now().since(steadfast::policy::Time::ZERO))
    }

    fn assert_at_rest(&self) {
        let ShedSnapshot { in_flight, queued, .. } = self.layer.snapshot();
        assert_eq!((in_flight, queued), (0, 0), "a place is lost");
        assert_eq!(self.clock.armed_timers(), 0, "a timer is left");
    }
}

fn status(answer: &(Response<Body>, Duration)) -> (u16, u64) {
    (answer.0.status().as_u16(), answer.1.as_millis() as u64)
}

#[test]
fn so_many_are_in_so_many_wait_and_the_rest_is_turned_away_at_once() {
    let world = World::new(2, |layer| layer.max_queued(1));
    let calls = ["a", "b", "c", "d"].map(|name| world.call(name, 0, 100, None));
    let answers = world.clock.run(join_all(calls)).unwrap();
    let statuses: Vec<_> = answers.iter().map(status).collect();
    assert_eq!(statuses, [(200, 100), (200, 100), (200, 200), (503, 0)]);
    assert_eq!(world.work.worked_on(), ["a", "b", "c"]);
    let refused = answers.into_iter().next_back().unwrap().0;
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert_eq!(refused.headers()["retry-after"], "1");
    let id = refused.headers()["x-request-id"].to_str().unwrap().to_owned();
    let problem = json(refused);
    assert_eq!((&problem["reason"], &problem["status"]), (&"overloaded".into(), &503.into()));
    assert_eq!((&problem["request_id"], &problem["retry_after"]), (&id.into(), &1.0.into()));
    let ShedSnapshot { admitted, overloaded, expired, .. } = world.layer.snapshot();
    assert_eq!((admitted, overloaded, expired), (3, 1, 0));
    world.assert_at_rest();
}

#[test]
fn who_waits_is_let_in_in_the_order_of_arrival() {
    let world = World::new(1, |layer| layer.max_queued(10).queue_wait(secs(10)));
    let names = ["a", "b", "c", "d", "e"];
    let calls = names.iter().enumerate().map(|(at, name)| world.call(name, at as u64, 100, None));
    world.clock.run(join_all(calls)).unwrap();
    assert_eq!(world.work.worked_on(), names);
    world.assert_at_rest();
}

#[test]
fn a_wait_that_is_too_long_is_over_when_it_is() {
    let world = World::new(1, |layer| layer.max_queued(2).queue_wait(ms(50)).retry_after(ms(2_500)));
    let calls = [world.call("a", 0, 100, None), world.call("b", 10, 1, None), world.call("c", 50, 1, None)];
    let answers = world.clock.run(join_all(calls)).unwrap();
    // The last one's place and the end of its wait come in the same moment: the place wins.
    assert_eq!(answers.iter().map(status).collect::<Vec<_>>(), [(200, 100), (503, 60), (200, 101)]);
    assert_eq!(answers[1].0.headers()["retry-after"], "3");
    world.assert_at_rest();
    let world = World::new(1, |layer| layer.queue_wait(Duration::ZERO));
    let calls = [world.call("a", 0, 100, None), world.call("b", 10, 1, None)];
    assert_eq!(
        world.clock.run(join_all(calls)).unwrap().iter().map(status).collect::<Vec<_>>(),
        [(200, 100), (503, 10)]
    );
    let world = World::new(1, |layer| layer.max_queued(0));
    let calls = [world.call("a", 0, 100, None), world.call("b", 10, 1, None)];
    assert_eq!(
        world.clock.run(join_all(calls)).unwrap().iter().map(status).collect::<Vec<_>>(),
        [(200, 100), (503, 10)]
    );
}

/// And a place that comes to one that has just expired goes on to the next.
#[test]
fn an_expired_request_is_answered_at_that_moment_and_never_worked_on() {
    let world = World::new(1, |layer| layer.max_queued(5).queue_wait(secs(10)));
    let calls = [
        world.call("runs", 0, 100, Some(50)),
        world.call("expires in the queue", 10, 1, Some(20)),
        world.call("expired before", 20, 1, Some(0)),
        world.call("expires as its turn comes", 30, 1, Some(70)),
        world.call("in time", 40, 1, Some(61)),
    ];
    let answers = world.clock.run(join_all(calls)).unwrap();
    let statuses: Vec<_> = answers.iter().map(status).collect();
    // One in the service is not cut: its own calls have its deadline.
    assert_eq!(statuses, [(200, 100), (504, 30), (504, 20), (504, 100), (200, 101)]);
    assert_eq!(world.work.worked_on(), ["runs", "in time"]);
    assert_eq!(world.layer.snapshot().expired, 3);
    let expired = answers.into_iter().nth(1).unwrap().0;
    assert_eq!(expired.headers().get("retry-after"), None);
    assert_eq!(json(expired)["reason"], "deadline_passed");
    world.assert_at_rest();
}

/// Wherever it is dropped.
#[test]
fn a_request_that_is_dropped_gives_everything_back() {
    let world = World::new(1, |layer| layer.max_queued(2).queue_wait(secs(10)));
    let mut cx = Context::from_waker(Waker::noop());
    let mut runs = Box::pin(world.call("runs", 0, 100, None));
    let mut waits = Box::pin(world.call("waits", 0, 100, None));
    let mut behind = Box::pin(world.call("behind", 0, 100, None));
    for call in [&mut runs, &mut waits, &mut behind] {
        assert!(call.as_mut().poll(&mut cx).is_pending());
    }
    let now = |world: &World| (world.layer.snapshot().in_flight, world.layer.snapshot().queued);
    assert_eq!(now(&world), (1, 2));
    // In the service: its place goes to the first in line, whether it is polled or not.
    drop(runs);
    assert_eq!(now(&world), (1, 2));
    // Granted and never polled: it goes on.
    drop(waits);
    assert!(behind.as_mut().poll(&mut cx).is_pending());
    assert_eq!(now(&world), (1, 0));
    assert_eq!(world.work.worked_on(), ["runs", "behind"]);
    // In the queue.
    let mut queued = Box::pin(world.call("queued", 0, 100, None));
    assert!(queued.as_mut().poll(&mut cx).is_pending());
    assert_eq!(now(&world), (1, 1));
    drop(queued);
    assert_eq!(now(&world), (1, 0));
    drop(behind);
    world.assert_at_rest();
}

#[test]
fn a_service_that_panics_gives_its_place_back() {
    let clock = VirtualClock::new();
    let layer = ShedLayer::new(1).clock(clock.clone());
    let service = layer.layer(service_fn(|_: Request<Body>| async { if true { panic!("mine") } else { answer("") } }));
    let call = std::panic::AssertUnwindSafe(|| clock.run(service.oneshot(request(&[]))));
    assert!(std::panic::catch_unwind(call).is_err());
    assert_eq!(layer.snapshot().in_flight, 0);
}

/// The readiness of the service inside is what its caller sees, and the one that was asked is the one that is called.
#[test]
fn the_service_that_was_asked_is_the_one_that_is_called() {
    // A clone is another, which nobody has asked.
    struct Inner(bool);
    impl Clone for Inner {
        fn clone(&self) -> Self {
            Self(false)
        }
    }
    impl Service<Request<Body>> for Inner {
        type Response = Response<Body>;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Answer>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            self.0 = true;
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: Request<Body>) -> Self::Future {
            assert!(self.0, "called without having been asked");
            std::future::ready(answer(""))
        }
    }
    let clock = VirtualClock::new();
    let mut service = ShedLayer::new(1).clock(clock.clone()).layer(Inner(false));
    for _ in 0..3 {
        clock.run(async { service.ready().await.unwrap().call(request(&[])).await }).unwrap().unwrap();
    }
}

/// A small generator, so that a run is the same each time.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Random crowds: with deadlines, with callers who leave. Never too many inside, nobody worked on after his deadline, and
/// nothing left at the end.
#[test]
fn whatever_comes_the_door_keeps_its_bounds() {
    for seed in 0..200 {
        let mut random = Lcg(seed);
        let (inside, queued) = (1 + random.below(4) as usize, random.below(6) as usize);
        let wait = ms(random.below(60));
        let world = World::new(inside, |layer| layer.max_queued(queued).queue_wait(wait));
        let outcomes = RefCell::new(Vec::new());
        let calls = (0..60).map(|number| {
            let (at, takes) = (random.below(200), random.below(40));
            let left = (random.below(3) == 0).then(|| random.below(60));
            let leaves = (random.below(4) == 0).then(|| at + random.below(50));
            let (world, outcomes) = (&world, &outcomes);
            async move {
                let name = number.to_string();
                let mut call = pin!(world.call(&name, at, takes, left));
                let clock = Clock::from(world.clock.clone());
                let mut leave = pin!(async move {
                    match leaves {
                        Some(leaves) => clock.wait(ms(leaves)).await,
                        None => std::future::pending().await,
                    }
                });
                let answered = std::future::poll_fn(|cx| {
                    if let Poll::Ready(answer) = call.as_mut().poll(cx) {
                        return Poll::Ready(Some(answer));
                    }
                    let snapshot = world.layer.snapshot();
                    assert!(snapshot.in_flight <= inside && snapshot.queued <= queued, "{snapshot:?}");
                    Pin::new(&mut leave).poll(cx).map(|()| None)
                })
                .await;
                let Some(answered) = answered else { return };
                let (status, came) = status(&answered);
                match (status, left) {
                    (200, left) => {
                        let began = came - takes;
                        assert!(left.is_none_or(|left| began < at + left), "{name}: worked on for nobody");
                        assert!(began <= at + wait.as_millis() as u64, "{name}: waited too long");
                    }
                    (504, Some(left)) => assert_eq!(came, at + left, "{name}: at that moment"),
                    (503, _) => assert!(came == at || came == at + wait.as_millis() as u64, "{name}: {came}"),
                    other => panic!("{name}: {other:?}"),
                }
                outcomes.borrow_mut().push(status);
            }
        });
        world.clock.run(join_all(calls.collect::<Vec<_>>())).unwrap();
        assert!(world.work.peak.load(Ordering::SeqCst) <= inside);
        assert!(outcomes.borrow().contains(&200));
        world.assert_at_rest();
    }
}

/// Without a context there is no deadline, and the door works all the same.
#[test]
fn without_a_context_there_is_no_deadline() {
    let world = World::new(1, |layer| layer);
    let plain = || {
        let service = world.layer.layer(world.work.service());
        async move { service.oneshot(request(&[("name", "x"), ("takes", "10")])).await.unwrap() }
    };
    let (one, two) = world.clock.run(join(plain(), plain())).unwrap();
    assert_eq!((one.status().as_u16(), two.status().as_u16()), (200, 200));
    world.assert_at_rest();
}
