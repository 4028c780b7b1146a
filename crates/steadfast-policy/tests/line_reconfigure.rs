//! New limits for a line in use (9.5): what is in flight, waiting, or counted stays.

use std::time::Duration;

use steadfast_policy::line::{Entry, Line, LineConfig, RateConfig, RateStyle, Refusal};

mod line_support;

use line_support::{FAR, admitted, at, queued, wakes};

const RATE: RateConfig =
    RateConfig { limit: 3, period: Duration::from_secs(1), wait: None, style: RateStyle::Window, max_keys: 10 };

fn config(slots: u32, rate: Option<RateConfig>) -> LineConfig {
    LineConfig { slots, slot_wait: Duration::from_millis(500), rate }
}

#[test]
fn c9_5_more_slots_are_given_at_once() {
    let mut line = Line::new(config(1, None));
    let _held = admitted(line.enter(at(0), "", FAR));
    let (a, _) = queued(line.enter(at(0), "", FAR));
    let (b, _) = queued(line.enter(at(0), "", FAR));
    line.reconfigure(at(10), config(2, None));
    assert_eq!(wakes(&mut line), [a, b]);
    let _held = admitted(line.poll(at(10), a));
    assert_eq!(line.poll(at(10), b), Entry::Queued(b, at(500)));
}

#[test]
fn c9_5_fewer_slots_stop_nobody_and_admit_nobody() {
    let mut line = Line::new(config(3, None));
    let held: Vec<_> = (0..3).map(|_| admitted(line.enter(at(0), "", FAR))).collect();
    line.reconfigure(at(10), config(1, None));
    let (ticket, _) = queued(line.enter(at(10), "", FAR));
    let mut over = held.into_iter();
    for left in [2, 1] {
        assert!(over.next().is_some_and(|slot| line.release(at(20), slot)));
        assert_eq!(line.snapshot(at(20)).in_use, left);
        assert!(wakes(&mut line).is_empty());
    }
    assert!(over.next().is_some_and(|slot| line.release(at(30), slot)));
    let _held = admitted(line.poll(at(30), ticket));
    queued(line.enter(at(30), "", FAR));
}

#[test]
fn c9_5_the_new_limit_counts_the_starts_so_far() {
    let mut line = Line::new(config(10, Some(RATE)));
    for now in [0, 100, 200] {
        let _slot = admitted(line.enter(at(now), "", FAR));
    }
    line.reconfigure(at(300), config(10, Some(RateConfig { limit: 4, ..RATE })));
    let _slot = admitted(line.enter(at(300), "", FAR));
    assert_eq!(queued(line.enter(at(300), "", FAR)).1, at(1000));
    // Of the four, all but one must have left the window before another may start.
    line.reconfigure(at(300), config(10, Some(RateConfig { limit: 2, ..RATE })));
    assert_eq!(queued(line.enter(at(300), "", FAR)).1, at(1300));
}

#[test]
fn c9_5_a_waiter_for_a_slot_can_need_a_place_again() {
    let mut line = Line::new(config(1, None));
    let held = admitted(line.enter(at(0), "", FAR));
    let (a, _) = queued(line.enter(at(0), "", FAR));
    let (b, _) = queued(line.enter(at(0), "", FAR));
    line.reconfigure(at(100), config(1, Some(RateConfig { limit: 1, ..RATE })));
    assert!(line.release(at(200), held));
    let held = admitted(line.poll(at(200), a));
    assert!(line.release(at(201), held));
    assert_eq!(line.poll(at(201), b), Entry::Queued(b, at(1200)));
    let _held = admitted(line.poll(at(1200), b));
}

#[test]
fn c9_5_waits_keep_the_limits_that_they_began_with() {
    let mut line = Line::new(config(1, None));
    let _held = admitted(line.enter(at(0), "", FAR));
    let (old, _) = queued(line.enter(at(0), "", FAR));
    line.reconfigure(at(0), LineConfig { slot_wait: Duration::from_millis(100), ..config(1, None) });
    let (new, _) = queued(line.enter(at(0), "", FAR));
    assert_eq!(line.poll(at(100), old), Entry::Queued(old, at(500)));
    assert_eq!(line.poll(at(100), new), Entry::Refused(Refusal::BulkheadFull));
}

#[test]
fn c9_5_a_limit_that_goes_takes_its_keys_with_it() {
    let mut line = Line::new(config(10, Some(RateConfig { limit: 1, ..RATE })));
    let _slot = admitted(line.enter(at(0), "key", FAR));
    let (ticket, _) = queued(line.enter(at(0), "key", FAR));
    line.reconfigure(at(1), config(10, None));
    assert_eq!(wakes(&mut line), [ticket]);
    let slot = admitted(line.poll(at(1), ticket));
    assert_eq!(line.snapshot(at(1)).keys, 0);
    // It was not counted, so there is nothing to take back from those that are counted since.
    line.reconfigure(at(1), config(10, Some(RateConfig { limit: 1, ..RATE })));
    let _slot = admitted(line.enter(at(1), "key", FAR));
    line.undo_start(at(1), slot);
    assert_eq!(queued(line.enter(at(1), "key", FAR)).1, at(1001));
}

#[test]
fn c9_5_more_places_are_given_at_once_and_fewer_only_when_they_are_there() {
    let mut line = Line::new(config(10, Some(RateConfig { limit: 1, ..RATE })));
    let _slot = admitted(line.enter(at(0), "", FAR));
    let waiters: Vec<_> = (0..4).map(|_| queued(line.enter(at(0), "", FAR)).0).collect();
    line.reconfigure(at(100), config(10, Some(RATE)));
    assert_eq!(wakes(&mut line), waiters, "two are granted, and the others have to hear when their turn is");
    for &ticket in &waiters[..2] {
        let _slot = admitted(line.poll(at(100), ticket));
    }
    assert_eq!(line.poll(at(100), waiters[2]), Entry::Queued(waiters[2], at(1000)));
    line.reconfigure(at(200), config(10, Some(RateConfig { limit: 1, ..RATE })));
    assert_eq!(wakes(&mut line), waiters[2..]);
    assert_eq!(line.poll(at(200), waiters[2]), Entry::Queued(waiters[2], at(1100)));
    assert_eq!(line.poll(at(200), waiters[3]), Entry::Queued(waiters[3], at(2100)));
}

/// Who came when no key was asked for stands in the line of `""`; who comes now, in that of its key.
#[test]
fn c9_5_a_limit_that_comes_takes_the_waiters_of_before_as_one_key() {
    let mut line = Line::new(config(1, None));
    let held = admitted(line.enter(at(0), "a", FAR));
    let (first, _) = queued(line.enter(at(0), "a", FAR));
    let (second, _) = queued(line.enter(at(0), "b", FAR));
    line.reconfigure(at(0), config(3, Some(RateConfig { limit: 1, ..RATE })));
    assert_eq!(wakes(&mut line), [first, second]);
    let _slot = admitted(line.poll(at(0), first));
    assert!(line.release(at(0), held));
    assert_eq!(line.poll(at(0), second), Entry::Queued(second, at(1000)));
    let _slot = admitted(line.enter(at(0), "a", FAR));
    assert_eq!(line.snapshot(at(0)).queued, 1);
    let _slot = admitted(line.poll(at(1000), second));
}

/// A limit that goes and comes back in one instant counts from nothing; what was started before takes nothing back.
#[test]
fn c9_5_a_start_that_was_forgotten_takes_back_no_other() {
    for key in ["", "a"] {
        let limited = config(10, Some(RateConfig { limit: 1, ..RATE }));
        let mut line = Line::new(limited);
        let before = admitted(line.enter(at(5), key, FAR));
        line.reconfigure(at(5), config(10, None));
        line.reconfigure(at(5), limited);
        let _slot = admitted(line.enter(at(5), key, FAR));
        line.undo_start(at(5), before);
        assert_eq!(queued(line.enter(at(5), key, FAR)).1, at(1005), "{key:?}");
    }
}

#[test]
fn c9_5_a_grant_that_was_made_outlasts_stricter_limits() {
    let mut line = Line::new(config(1, Some(RATE)));
    let held = admitted(line.enter(at(0), "", FAR));
    let (ticket, _) = queued(line.enter(at(0), "", FAR));
    assert!(line.release(at(10), held));
    line.reconfigure(at(10), config(0, Some(RateConfig { limit: 1, ..RATE })));
    assert!(wakes(&mut line).contains(&ticket));
    let slot = admitted(line.poll(at(10), ticket));
    assert_eq!(line.snapshot(at(10)).in_use, 1);
    assert!(line.release(at(20), slot));
    assert_eq!(line.snapshot(at(20)).in_use, 0);
}

#[test]
fn c9_5_limits_that_mean_the_same_are_the_same() {
    let one = |style| config(5, Some(RateConfig { limit: 1, style, ..RATE }));
    let mut line = Line::new(one(RateStyle::Window));
    let _slot = admitted(line.enter(at(0), "", FAR));
    let (ticket, asks_at) = queued(line.enter(at(0), "", FAR));
    line.reconfigure(at(2000), one(RateStyle::Smooth));
    assert!(wakes(&mut line).is_empty(), "no time has passed either");
    assert_eq!(asks_at, at(1000));
    let _slot = admitted(line.poll(at(2000), ticket));
}
