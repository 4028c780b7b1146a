//! The rate limit (6.1 to 6.4) and how it shares one line with the bulkhead.

use std::time::Duration;

use steadfast_policy::Time;
use steadfast_policy::line::{Entry, Line, LineConfig, LineSnapshot, Missing, RateConfig, RateStyle, Refusal};

mod line_support;

use line_support::{FAR, admitted, at, queued, wakes};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

const RATE: RateConfig =
    RateConfig { limit: 2, period: Duration::from_secs(1), wait: None, style: RateStyle::Window, max_keys: 100 };

fn line_with(slots: u32, rate: RateConfig) -> Line {
    Line::new(LineConfig { slots, slot_wait: millis(500), rate: Some(rate) })
}

fn line(limit: u32) -> Line {
    line_with(1000, RateConfig { limit, ..RATE })
}

fn smooth(limit: u32, period: Duration) -> Line {
    line_with(1000, RateConfig { limit, period, style: RateStyle::Smooth, ..RATE })
}

fn limited(retry_after: Duration) -> Entry {
    Entry::Refused(Refusal::RateLimited { retry_after })
}

/// Starts one attempt that is over at once.
fn start(line: &mut Line, now: Time, key: &str) {
    let slot = admitted(line.enter(now, key, FAR));
    assert!(line.release(now, slot));
}

#[test]
fn w5_of_six_at_once_at_five_a_second_one_waits_a_second() {
    let mut line = line(5);
    for _ in 0..5 {
        start(&mut line, at(0), "");
    }
    let (ticket, asks_at) = queued(line.enter(at(0), "", FAR));
    assert_eq!(asks_at, at(1000));
    let just_before = Time::from_nanos(at(1000).as_nanos() - 1);
    assert_eq!(line.poll(just_before, ticket), Entry::Queued(ticket, at(1000)));
    let _slot = admitted(line.poll(at(1000), ticket));
}

#[test]
fn c6_1_no_window_holds_more_wherever_it_starts() {
    let mut line = line(2);
    start(&mut line, at(900), "");
    start(&mut line, at(999), "");
    // A fixed window would admit two more at 1000.
    assert_eq!(queued(line.enter(at(1000), "", FAR)).1, at(1900));
    assert_eq!(queued(line.enter(at(1000), "", FAR)).1, at(1999));
    assert_eq!(queued(line.enter(at(1000), "", FAR)).1, at(2900));
    assert_eq!(queued(line.enter(at(1000), "", FAR)).1, at(2999));
    assert_eq!(queued(line.enter(at(1000), "", FAR)).1, at(3900));
}

#[test]
fn c6_1_a_rested_key_admits_a_whole_window_at_once() {
    let mut line = line_with(10, RateConfig { limit: 5, wait: Some(Duration::ZERO), ..RATE });
    for now in [at(0), at(1000), at(100_000)] {
        for _ in 0..5 {
            start(&mut line, now, "");
        }
        assert_eq!(line.enter(now, "", FAR), limited(millis(1000)));
    }
}

#[test]
fn c6_1_smooth_spreads_evenly() {
    let mut line = smooth(4, millis(1000));
    start(&mut line, at(0), "");
    for i in 1..=5 {
        assert_eq!(queued(line.enter(at(0), "", FAR)).1, at(250 * i));
    }
}

#[test]
fn c6_1_smooth_rounds_against_the_caller() {
    let mut line = smooth(3, Duration::from_nanos(10));
    start(&mut line, at(1), "");
    let first = at(1).as_nanos();
    assert_eq!(queued(line.enter(at(1), "", FAR)).1, Time::from_nanos(first + 4));
    assert_eq!(queued(line.enter(at(1), "", FAR)).1, Time::from_nanos(first + 8));
    assert_eq!(queued(line.enter(at(1), "", FAR)).1, Time::from_nanos(first + 12));
}

#[test]
fn c6_1_smooth_takes_any_limit() {
    let mut line = smooth(1_000_000, Duration::from_secs(1));
    start(&mut line, at(0), "");
    assert_eq!(queued(line.enter(at(0), "", FAR)).1, Time::from_nanos(1000));
    // More starts than nanoseconds: at least one nanosecond apart.
    let mut line = smooth(u32::MAX, Duration::from_nanos(5));
    start(&mut line, at(0), "");
    assert_eq!(queued(line.enter(at(0), "", FAR)).1, Time::from_nanos(1));
}

#[test]
fn c6_2_a_waiter_for_a_place_holds_no_slot() {
    let mut line = line_with(1, RATE);
    start(&mut line, at(0), "a");
    start(&mut line, at(0), "a");
    queued(line.enter(at(0), "a", FAR));
    assert_eq!(line.snapshot(at(0)), LineSnapshot { in_use: 0, slots: 1, queued: 1, keys: 1 });
    // Nor does a key without places hold up another.
    start(&mut line, at(1), "b");
    start(&mut line, at(1), "");
}

#[test]
fn c6_2_a_waiter_for_a_slot_holds_no_place() {
    let mut line = line_with(1, RateConfig { limit: 1, ..RATE });
    let held = admitted(line.enter(at(0), "other", FAR));
    let (ticket, _) = queued(line.enter(at(0), "key", FAR));
    assert_eq!(line.poll(at(500), ticket), Entry::Refused(Refusal::BulkheadFull));
    assert!(line.release(at(501), held));
    start(&mut line, at(501), "key");
}

#[test]
fn c6_2_the_start_is_stamped_at_the_grant() {
    let mut line = line_with(1, RateConfig { limit: 1, ..RATE });
    let held = admitted(line.enter(at(0), "other", FAR));
    let (ticket, _) = queued(line.enter(at(0), "key", FAR));
    assert!(line.release(at(400), held));
    let held = admitted(line.poll(at(450), ticket));
    assert!(line.release(at(450), held));
    assert_eq!(queued(line.enter(at(450), "key", FAR)).1, at(1400));
}

#[test]
fn c6_2_the_slot_wait_counts_only_what_is_missing_besides_the_place() {
    let mut line = line_with(1, RateConfig { limit: 1, ..RATE });
    start(&mut line, at(0), "key");
    let (ticket, asks_at) = queued(line.enter(at(100), "key", FAR));
    assert_eq!(asks_at, at(1000));
    let held = admitted(line.enter(at(200), "other", FAR));
    // The place is there at 1000, and this call is late: the wait for the slot began at 1000 all the same.
    assert_eq!(line.poll(at(1100), ticket), Entry::Queued(ticket, at(1500)));
    assert_eq!(line.poll(at(1500), ticket), Entry::Refused(Refusal::BulkheadFull));
    drop(held);
}

#[test]
fn c6_2_first_come_first_served_among_keys() {
    let mut line = line_with(1, RateConfig { limit: 1, ..RATE });
    start(&mut line, at(0), "a");
    let (a, _) = queued(line.enter(at(100), "a", FAR));
    let held = admitted(line.enter(at(200), "hog", FAR));
    let (b, _) = queued(line.enter(at(700), "b", FAR));
    let (c, _) = queued(line.enter(at(900), "c", FAR));
    // At 1000 the first has a place too, and it came before the others.
    assert!(line.release(at(1001), held));
    assert_eq!(wakes(&mut line), [a]);
    let held = admitted(line.poll(at(1001), a));
    assert!(line.release(at(1002), held));
    assert_eq!(wakes(&mut line), [b]);
    let held = admitted(line.poll(at(1002), b));
    assert!(line.release(at(1003), held));
    assert_eq!(wakes(&mut line), [c]);
}

/// A96
#[test]
fn c6_2_nobody_overtakes_within_a_key() {
    let mut line = line(1);
    start(&mut line, at(0), "");
    let (first, _) = queued(line.enter(at(1), "", FAR));
    // There is a place at 1000, but it is the first waiter's.
    let (second, asks_at) = queued(line.enter(at(1000), "", FAR));
    assert_eq!(wakes(&mut line), [first]);
    assert_eq!(asks_at, at(1500), "should the first not come for its grant");
    let _slot = admitted(line.poll(at(1001), first));
    assert_eq!(line.poll(at(1500), second), Entry::Queued(second, at(2000)));
    let _slot = admitted(line.poll(at(2000), second));
}

#[test]
fn c6_2_a_rate_wait_of_zero_refuses_at_once() {
    let mut line = line_with(10, RateConfig { wait: Some(Duration::ZERO), ..RATE });
    start(&mut line, at(0), "");
    start(&mut line, at(300), "");
    assert_eq!(line.enter(at(400), "", FAR), limited(millis(600)));
    assert_eq!(line.enter(at(999), "", FAR), limited(millis(1)));
    start(&mut line, at(1000), "");
}

#[test]
fn c6_3_what_the_wait_cannot_hold_is_refused_at_once() {
    let mut line = line_with(10, RateConfig { wait: Some(millis(1000)), ..RATE });
    start(&mut line, at(0), "");
    start(&mut line, at(0), "");
    // Exactly the wait can be held; the limit expires at its instant, but what is ready then beats it.
    let (a, asks_at) = queued(line.enter(at(0), "", FAR));
    assert_eq!(asks_at, at(1000));
    let (_b, _) = queued(line.enter(at(0), "", FAR));
    assert_eq!(line.enter(at(0), "", FAR), limited(millis(2000)));
    assert_eq!(line.enter(at(500), "", FAR), limited(millis(1500)));
    let _slot = admitted(line.poll(at(1001), a));
}

#[test]
fn c6_3_what_the_deadline_cannot_hold_is_refused_at_once() {
    let mut line = line(2);
    start(&mut line, at(0), "");
    start(&mut line, at(0), "");
    assert_eq!(line.enter(at(0), "", at(1000)), limited(millis(1000)));
    queued(line.enter(at(0), "", at(1001)));
}

#[test]
fn c6_3_a_waiter_is_refused_when_its_new_estimate_cannot_be_held() {
    let mut line = line_with(1, RateConfig { limit: 1, ..RATE });
    start(&mut line, at(0), "key");
    let (first, _) = queued(line.enter(at(0), "key", FAR));
    let (second, asks_at) = queued(line.enter(at(0), "key", at(2300)));
    assert_eq!(asks_at, at(2000));
    // The slot keeps the first from starting until 1400, so the second could not before 2400.
    let held = admitted(line.enter(at(900), "other", FAR));
    assert!(line.release(at(1400), held));
    let _slot = admitted(line.poll(at(1400), first));
    assert_eq!(line.poll(at(2000), second), limited(millis(400)));
}

#[test]
fn c6_3_when_one_leaves_those_behind_move_up() {
    let mut line = line(1);
    start(&mut line, at(0), "");
    let (a, _) = queued(line.enter(at(0), "", FAR));
    let (b, _) = queued(line.enter(at(0), "", FAR));
    let (c, asks_at) = queued(line.enter(at(0), "", FAR));
    assert_eq!(asks_at, at(3000));
    line.leave(at(10), a);
    assert_eq!(wakes(&mut line), [b], "only the next; the other hears when its turn comes");
    assert_eq!(line.poll(at(10), b), Entry::Queued(b, at(1000)));
    let _slot = admitted(line.poll(at(1000), b));
    assert_eq!(wakes(&mut line), [c]);
    assert_eq!(line.poll(at(1000), c), Entry::Queued(c, at(2000)));
    // A late leaver behind changes nothing for those before.
    let (d, _) = queued(line.enter(at(1000), "", FAR));
    line.leave(at(1001), d);
    assert!(wakes(&mut line).is_empty());
}

#[test]
fn c6_3_a_deadline_in_the_middle_moves_the_rest_up() {
    let mut line = line(1);
    start(&mut line, at(0), "");
    let (_a, _) = queued(line.enter(at(0), "", FAR));
    let (b, _) = queued(line.enter(at(0), "", at(2001)));
    let (c, _) = queued(line.enter(at(0), "", FAR));
    line.leave(at(1), b);
    assert_eq!(line.poll(at(1), c), Entry::Queued(c, at(2000)));
}

#[test]
fn c6_2_a_place_that_a_leaver_frees_starts_the_slot_wait() {
    let mut line = line_with(1, RateConfig { limit: 1, ..RATE });
    let held = admitted(line.enter(at(0), "other", FAR));
    let (a, _) = queued(line.enter(at(0), "key", FAR));
    let (b, asks_at) = queued(line.enter(at(0), "key", FAR));
    assert_eq!(asks_at, at(999_000), "when its deadline cannot be held any more, unless the first starts");
    line.leave(at(300), a);
    assert_eq!(wakes(&mut line), [b]);
    assert_eq!(line.poll(at(300), b), Entry::Queued(b, at(800)));
    assert_eq!(line.poll(at(800), b), Entry::Refused(Refusal::BulkheadFull));
    drop(held);
}

/// A95: the line is as if that start had never been.
#[test]
fn c6_4_a_start_that_never_was_gives_its_place_back() {
    let mut line = line(2);
    let first = admitted(line.enter(at(0), "", FAR));
    start(&mut line, at(100), "");
    let (ticket, asks_at) = queued(line.enter(at(200), "", FAR));
    assert_eq!(asks_at, at(1000));
    line.undo_start(at(300), first);
    assert_eq!(wakes(&mut line), [ticket]);
    let _slot = admitted(line.poll(at(300), ticket));
    // As if only those at 100 and 300 had ever been.
    assert_eq!(queued(line.enter(at(400), "", FAR)).1, at(1100));
    assert_eq!(queued(line.enter(at(400), "", FAR)).1, at(1300));
}

/// A98
#[test]
fn c6_4_an_inner_gate_that_always_refuses_spends_nothing() {
    let mut line = line(2);
    for _ in 0..1000 {
        let slot = admitted(line.enter(at(0), "", FAR));
        line.undo_start(at(0), slot);
    }
    start(&mut line, at(0), "");
    start(&mut line, at(0), "");
    queued(line.enter(at(0), "", FAR));
}

#[test]
fn c6_4_undoing_a_start_of_a_dropped_key_touches_no_other() {
    let mut line = line(1);
    let old = admitted(line.enter(at(0), "old", FAR));
    start(&mut line, at(5000), "new");
    assert_eq!(line.snapshot(at(5000)).keys, 1);
    line.undo_start(at(5000), old);
    assert_eq!(queued(line.enter(at(5000), "new", FAR)).1, at(6000));
}

#[test]
fn c6_2_a_grant_that_lapses_gives_its_place_back() {
    let mut line = line_with(1, RateConfig { limit: 1, ..RATE });
    let held = admitted(line.enter(at(0), "other", FAR));
    let (lazy, _) = queued(line.enter(at(0), "key", FAR));
    let (next, _) = queued(line.enter(at(0), "key", FAR));
    assert!(line.release(at(100), held));
    assert_eq!(wakes(&mut line), [lazy, next], "the next must ask before the grant lapses");
    assert_eq!(line.poll(at(100), next), Entry::Queued(next, at(500)));
    let held = admitted(line.poll(at(500), next));
    assert!(line.release(at(500), held));
    assert_eq!(queued(line.enter(at(600), "key", FAR)).1, at(1500));
}

/// A142, A143
#[test]
fn c6_4_keys_are_bounded_and_idle_ones_dropped() {
    let mut line = line_with(10, RateConfig { max_keys: 3, ..RATE });
    start(&mut line, at(0), "a");
    start(&mut line, at(100), "b");
    start(&mut line, at(200), "c");
    assert_eq!(line.enter(at(300), "d", FAR), limited(millis(700)));
    start(&mut line, at(400), "a");
    assert_eq!(line.enter(at(500), "d", FAR), limited(millis(600)));
    start(&mut line, at(500), "");
    start(&mut line, at(1100), "d");
    assert_eq!(line.snapshot(at(1100)).keys, 3);
}

#[test]
fn c6_4_a_key_with_a_waiter_is_not_dropped() {
    let mut line = line_with(1, RateConfig { max_keys: 1, ..RATE });
    start(&mut line, at(0), "a");
    let held = admitted(line.enter(at(1500), "", FAR));
    let (a, _) = queued(line.enter(at(1500), "a", FAR));
    assert_eq!(line.snapshot(at(1600)).keys, 1);
    assert_eq!(line.enter(at(1600), "b", FAR), limited(millis(1000)), "nothing better is known");
    line.leave(at(1700), a);
    assert_eq!(line.snapshot(at(1700)).keys, 0);
    assert!(line.release(at(1700), held));
    start(&mut line, at(1700), "b");
}

/// A142
#[test]
fn c6_4_a_hundred_thousand_keys_leave_a_bounded_map() {
    let mut line = line_with(10, RateConfig { max_keys: 1000, ..RATE });
    for i in 0..100_000 {
        start(&mut line, Time::from_nanos(i * 2_000_000), &format!("key {i}"));
        assert!(line.snapshot(at(0)).keys <= 500);
    }
    let end = Time::from_nanos(100_000 * 2_000_000) + millis(1000);
    start(&mut line, end, "");
    assert_eq!(line.snapshot(end).keys, 0);
}

#[test]
fn a_refused_call_leaves_no_key_behind() {
    let mut line = Line::new(LineConfig { slots: 1, slot_wait: Duration::ZERO, rate: Some(RATE) });
    let _held = admitted(line.enter(at(0), "", FAR));
    assert_eq!(line.enter(at(0), "a", FAR), Entry::Refused(Refusal::BulkheadFull));
    assert_eq!(line.snapshot(at(0)).keys, 0);
}

#[test]
fn odd_configurations_are_harmless() {
    let mut none = line_with(10, RateConfig { period: Duration::ZERO, limit: 1, ..RATE });
    for _ in 0..100 {
        start(&mut none, at(0), "a");
    }
    assert_eq!(none.snapshot(at(0)).keys, 0);
    let mut zero = line_with(10, RateConfig { limit: 0, max_keys: 0, ..RATE });
    start(&mut zero, at(0), "a");
    assert_eq!(queued(zero.enter(at(0), "a", FAR)).1, at(1000));
    let mut huge = line_with(u32::MAX, RateConfig { limit: u32::MAX, period: Duration::MAX, ..RATE });
    for _ in 0..10_000 {
        let _slot = admitted(huge.enter(at(0), "", FAR));
    }
    assert_eq!(huge.enter(at(0), "", Time::MAX), limited(Time::ZERO.until(Time::MAX)));
}

#[test]
fn c6_2_a_waiter_can_be_asked_what_it_lacks() {
    let mut line = line_with(1, RateConfig { limit: 1, ..RATE });
    let slot = admitted(line.enter(at(0), "", FAR));
    let (ticket, asks_at) = queued(line.enter(at(100), "", FAR));
    assert_eq!((line.missing(ticket), asks_at), (Missing::Place, at(1000)));
    // Its place has come, and the only slot is still taken.
    queued(line.poll(at(1000), ticket));
    assert_eq!(line.missing(ticket), Missing::Slot);
    assert!(line.release(at(1100), slot));
    let _slot = admitted(line.poll(at(1100), ticket));
}

#[test]
fn c6_2_whoever_waits_for_the_start_of_another_is_told_so() {
    let mut line = line_with(1, RateConfig { limit: 1, ..RATE });
    let slot = admitted(line.enter(at(0), "", FAR));
    let (first, _) = queued(line.enter(at(0), "", FAR));
    let (second, _) = queued(line.enter(at(0), "", FAR));
    assert_eq!(line.missing(second), Missing::Place, "two seconds from now, as far as can be told");
    // The first has its place, and no slot: how long that takes nobody knows, and the second waits for it.
    queued(line.poll(at(1000), first));
    queued(line.poll(at(1000), second));
    assert_eq!((line.missing(first), line.missing(second)), (Missing::Slot, Missing::Turn));
    assert!(line.release(at(1200), slot));
    let _slot = admitted(line.poll(at(1200), first));
    assert_eq!(queued(line.poll(at(1200), second)).1, at(2200));
    assert_eq!(line.missing(second), Missing::Place);
}
