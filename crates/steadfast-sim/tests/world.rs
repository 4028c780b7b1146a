//! What a world promises: order, determinism, and speed enough for a million calls.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use steadfast::policy::Time;
use steadfast::testing::{Script, Step};
use steadfast::{Clock, ServiceClient};
use steadfast_sim::{Stalled, World};

const MS: Duration = Duration::from_millis(1);

fn at(duration: Duration) -> Time {
    Time::ZERO + duration
}

#[test]
fn tasks_run_in_the_order_of_their_instants_and_equal_ones_as_they_were_armed() {
    let world = World::new(1);
    let seen = Rc::new(RefCell::new(Vec::new()));
    for (name, after) in [("c", 30), ("a", 10), ("b", 10), ("d", 30)] {
        let (clock, seen) = (Clock::from(world.clock().clone()), seen.clone());
        world.spawn(async move {
            clock.wait(MS * after).await;
            seen.borrow_mut().push((name, clock.now()));
        });
    }
    world.run().unwrap();
    let expected = [("a", at(MS * 10)), ("b", at(MS * 10)), ("c", at(MS * 30)), ("d", at(MS * 30))];
    assert_eq!(*seen.borrow(), expected);
}

#[test]
fn it_stops_where_it_is_told_to_and_goes_on_from_there() {
    let world = World::new(1);
    let (clock, done) = (Clock::from(world.clock().clone()), Rc::new(Cell::new(0)));
    let count = done.clone();
    world.spawn(async move {
        for _ in 0..3 {
            clock.wait(MS * 10).await;
            count.set(count.get() + 1);
        }
    });
    world.run_until(at(MS * 20));
    assert_eq!((world.now(), done.get()), (at(MS * 20), 2), "what is due at that instant has happened");
    world.run_for(MS * 5);
    assert_eq!((world.now(), done.get()), (at(MS * 25), 2));
    world.run().unwrap();
    assert_eq!((world.now(), done.get()), (at(MS * 30), 3));
}

#[test]
fn a_task_that_waits_for_nothing_of_this_world_is_told_of() {
    let world = World::new(1);
    world.spawn(std::future::pending());
    assert_eq!(world.run(), Err(Stalled { at: Time::ZERO }));
}

#[test]
fn dropping_a_handle_cancels_and_disarms() {
    let world = World::new(1);
    let clock = Clock::from(world.clock().clone());
    let task = world.start(async move { clock.wait(MS * 100).await });
    world.run_for(MS);
    assert_eq!(world.clock().armed_timers(), 1);
    drop(task);
    world.run().unwrap();
    assert_eq!((world.now(), world.clock().armed_timers()), (at(MS), 0));
}

#[test]
fn seeds_by_name_differ_by_name_and_by_seed_and_are_the_same_again() {
    let world = World::new(1);
    assert_eq!(world.seed_of("arrivals"), World::new(1).seed_of("arrivals"));
    assert_ne!(world.seed_of("arrivals"), world.seed_of("server"));
    assert_ne!(world.seed_of("arrivals"), World::new(2).seed_of("arrivals"));
}

/// `calls` calls at 1 000/s by 10 clients, of which one in five attempts fails; what became of them, in order.
fn noisy(seed: u64, calls: u32) -> Vec<(u64, bool, u32)> {
    let world = World::new(seed);
    let clients: Vec<_> = (0..10)
        .map(|number| {
            let mut steps = vec![Step::status(200).after(MS * 3); 4];
            steps.insert(number % 4, Step::status(503).after(MS));
            let steps: Vec<_> = steps.into_iter().cycle().take(5_000).collect();
            let upstream = Script::new(world.clock().clone(), steps);
            let builder = ServiceClient::builder("http://upstream").transport(upstream).clock(world.clock().clone());
            builder.seed(world.seed_of(&format!("client {number}"))).build().unwrap()
        })
        .collect();
    let ends = Rc::new(RefCell::new(Vec::new()));
    let mut random = world.random("arrivals");
    let mut arrival = Duration::ZERO;
    for number in 0..calls {
        arrival += Duration::from_nanos(random.u64(0..2_000_000));
        let client = clients[number as usize % clients.len()].clone();
        let (clock, ends, arrival) = (Clock::from(world.clock().clone()), ends.clone(), at(arrival));
        world.spawn(async move {
            clock.wait_until(arrival).await;
            let result = client.get("/x").send().await;
            let attempts = result.as_ref().map_or_else(|error| error.attempts(), |r| r.report().attempt_count());
            ends.borrow_mut().push((clock.now().as_nanos(), result.is_ok(), attempts));
        });
    }
    world.run().unwrap();
    ends.take()
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let first = noisy(7, 2_000);
    assert_eq!(first.len(), 2_000);
    assert!(first.iter().any(|(_, _, attempts)| *attempts > 1), "some retried");
    assert_eq!(first, noisy(7, 2_000));
    assert_ne!(first, noisy(8, 2_000));
}
