//! The bulkhead (5.1, 5.2) on its own: slots, leases, and the line for them, without a rate limit.

use std::time::Duration;

use steadfast_policy::Time;
use steadfast_policy::line::{Entry, HANDOVER, Line, LineConfig, LineSnapshot, Refusal};

mod line_support;

use line_support::{FAR, admitted, at, queued, wakes};

fn line(slots: u32, slot_wait_millis: u64) -> Line {
    Line::new(LineConfig { slots, slot_wait: Duration::from_millis(slot_wait_millis), rate: None })
}

#[test]
fn c5_1_the_default_is_fifty_slots_and_half_a_second() {
    let mut line = Line::new(LineConfig::default());
    let held: Vec<_> = (0..50).map(|_| admitted(line.enter(at(0), "", FAR))).collect();
    let (_, asks_at) = queued(line.enter(at(0), "", FAR));
    assert_eq!(asks_at, at(500));
    assert_eq!(line.snapshot(at(0)), LineSnapshot { in_use: 50, slots: 50, queued: 1, keys: 0 });
    drop(held);
}

#[test]
fn c5_1_a_wait_of_zero_refuses_at_once() {
    let mut line = line(1, 0);
    let held = admitted(line.enter(at(0), "", FAR));
    assert_eq!(line.enter(at(0), "", FAR), Entry::Refused(Refusal::BulkheadFull));
    assert!(line.release(at(1), held));
    let _held = admitted(line.enter(at(1), "", FAR));
    assert_eq!(line.snapshot(at(1)).queued, 0);
}

#[test]
fn c5_1_the_wait_ends_at_its_instant() {
    let mut line = line(1, 500);
    let _held = admitted(line.enter(at(0), "", FAR));
    let (ticket, asks_at) = queued(line.enter(at(100), "", FAR));
    assert_eq!(asks_at, at(600));
    let just_before = Time::from_nanos(at(600).as_nanos() - 1);
    assert_eq!(line.poll(just_before, ticket), Entry::Queued(ticket, at(600)));
    assert_eq!(line.poll(at(600), ticket), Entry::Refused(Refusal::BulkheadFull));
    // The ticket has ended; asking again is answered, not counted.
    assert_eq!(line.poll(at(600), ticket), Entry::Refused(Refusal::Deadline));
    assert_eq!(line.snapshot(at(600)).queued, 0);
}

#[test]
fn c0_1_of_equal_limits_the_deadline_is_named() {
    let mut line = line(1, 500);
    let _held = admitted(line.enter(at(0), "", FAR));
    let (ticket, asks_at) = queued(line.enter(at(0), "", at(500)));
    assert_eq!(asks_at, at(500));
    assert_eq!(line.poll(at(500), ticket), Entry::Refused(Refusal::Deadline));
}

#[test]
fn c1_1_a_spent_deadline_takes_nothing() {
    let mut line = line(1, 500);
    assert_eq!(line.enter(at(5), "", at(5)), Entry::Refused(Refusal::Deadline));
    assert_eq!(line.enter(at(5), "", at(4)), Entry::Refused(Refusal::Deadline));
    assert_eq!(line.snapshot(at(5)).in_use, 0);
}

/// A91
#[test]
fn c5_1_first_in_first_out() {
    let mut line = line(1, 500);
    let mut held = admitted(line.enter(at(0), "", FAR));
    let tickets: Vec<_> = (1..=3).map(|i| queued(line.enter(at(i), "", FAR)).0).collect();
    assert!(wakes(&mut line).is_empty());
    for (i, &ticket) in tickets.iter().enumerate() {
        let now = at(10 * (i as u64 + 1));
        assert!(line.release(now, held));
        assert_eq!(wakes(&mut line), [ticket]);
        held = admitted(line.poll(now, ticket));
    }
    assert!(line.release(at(100), held));
    assert_eq!(line.snapshot(at(100)), LineSnapshot { in_use: 0, slots: 1, queued: 0, keys: 0 });
}

#[test]
fn c5_1_a_slot_is_handed_over_and_cannot_be_snatched() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(0), "", FAR));
    let (waiter, _) = queued(line.enter(at(1), "", FAR));
    assert!(line.release(at(2), held));
    // The waiter has not woken up yet.
    let (later, _) = queued(line.enter(at(2), "", FAR));
    let held = admitted(line.poll(at(3), waiter));
    assert!(line.release(at(4), held));
    let _held = admitted(line.poll(at(4), later));
}

#[test]
fn c0_1_a_grant_beats_an_expired_wait() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(0), "", FAR));
    let (ticket, _) = queued(line.enter(at(0), "", FAR));
    assert!(line.release(at(499), held));
    let _held = admitted(line.poll(at(700), ticket));
    assert_eq!(line.snapshot(at(700)).in_use, 1);
}

#[test]
fn c0_1_a_slot_that_is_free_when_the_limit_comes_is_given() {
    let mut line = line(1, 500);
    let _held = admitted(line.enter(at(0), "", at(500)));
    let (ticket, asks_at) = queued(line.enter(at(0), "", FAR));
    assert_eq!(asks_at, at(500));
    // At that instant the holder's lease is over and the wait has expired: the result beats the timer.
    let _held = admitted(line.poll(at(500), ticket));
}

#[test]
fn c0_1_no_grant_beats_the_deadline() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(0), "", FAR));
    let (ticket, _) = queued(line.enter(at(0), "", at(300)));
    assert!(line.release(at(299), held));
    assert_eq!(line.poll(at(300), ticket), Entry::Refused(Refusal::Deadline));
    let _held = admitted(line.enter(at(300), "", FAR));
}

/// A94: a grant is no reservation for ever.
#[test]
fn c5_1_a_grant_that_nobody_collects_goes_to_the_next() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(0), "", FAR));
    let (lazy, _) = queued(line.enter(at(0), "", FAR));
    let (next, asks_at) = queued(line.enter(at(100), "", FAR));
    assert_eq!(asks_at, at(500), "in time for the one before, should it not come");
    assert!(line.release(at(200), held));
    assert_eq!(line.poll(at(499), next), Entry::Queued(next, at(500)));
    let _held = admitted(line.poll(at(500), next));
    assert_eq!(line.poll(at(501), lazy), Entry::Refused(Refusal::BulkheadFull));
}

#[test]
fn a_grant_at_the_last_moment_leaves_time_to_wake_up() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(0), "", FAR));
    let (first, _) = queued(line.enter(at(0), "", FAR));
    let (second, _) = queued(line.enter(at(100), "", FAR));
    assert!(line.release(at(499), held));
    assert_eq!(line.poll(at(505), second), Entry::Queued(second, at(499) + HANDOVER));
    let _held = admitted(line.poll(at(506), first));
}

#[test]
fn c5_2_a_slot_is_reclaimed_at_the_deadline() {
    let mut line = line(2, 500);
    let short = admitted(line.enter(at(0), "", at(300)));
    let long = admitted(line.enter(at(0), "", FAR));
    let (ticket, asks_at) = queued(line.enter(at(0), "", FAR));
    assert_eq!(asks_at, at(300));
    let taken_over = admitted(line.poll(at(300), ticket));
    assert!(!line.release(at(300), short), "an older generation");
    assert_eq!(line.snapshot(at(300)).in_use, 2);
    assert!(line.release(at(301), taken_over));
    assert!(line.release(at(301), long));
    assert_eq!(line.snapshot(at(301)).in_use, 0);
}

/// A92: what is returned twice counts once.
#[test]
fn c5_2_a_late_release_counts_if_nobody_was_there_before() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(0), "", at(300)));
    assert_eq!(line.snapshot(at(299)).in_use, 1);
    assert_eq!(line.snapshot(at(300)).in_use, 0, "as the next caller would find it");
    assert!(line.release(at(400), held));
    let held = admitted(line.enter(at(400), "", at(500)));
    let _other = admitted(line.enter(at(500), "", FAR));
    assert!(!line.release(at(500), held));
}

/// A89: a waiter that was cancelled, granted or not.
#[test]
fn c6_3_who_leaves_gives_everything_back() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(0), "", FAR));
    let (a, _) = queued(line.enter(at(1), "", FAR));
    let (b, _) = queued(line.enter(at(2), "", FAR));
    let (c, _) = queued(line.enter(at(3), "", FAR));
    line.leave(at(4), a);
    line.leave(at(4), a);
    assert!(line.release(at(5), held));
    assert_eq!(wakes(&mut line), [b]);
    // It was granted, and goes without having asked.
    line.leave(at(6), b);
    assert_eq!(wakes(&mut line), [c]);
    let held = admitted(line.poll(at(6), c));
    assert!(line.release(at(7), held));
    assert_eq!(line.snapshot(at(7)), LineSnapshot { in_use: 0, slots: 1, queued: 0, keys: 0 });
}

/// A90
#[test]
fn c5_1_a_waiter_that_gave_up_never_takes_a_slot_with_it() {
    let mut line = line(1, 100);
    for round in 0..1000 {
        let start = 1000 * round;
        let a = admitted(line.enter(at(start), "", at(start + 500)));
        let (b, _) = queued(line.enter(at(start), "", at(start + 500)));
        assert_eq!(line.poll(at(start + 100), b), Entry::Refused(Refusal::BulkheadFull));
        assert!(line.release(at(start + 300), a));
        let c = admitted(line.enter(at(start + 300), "", at(start + 500)));
        assert!(line.release(at(start + 400), c));
    }
}

#[test]
fn c2_12_an_attempt_that_was_never_sent_frees_its_slot() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(0), "", FAR));
    let (ticket, _) = queued(line.enter(at(0), "", FAR));
    line.undo_start(at(1), held);
    assert_eq!(wakes(&mut line), [ticket]);
    let _held = admitted(line.poll(at(1), ticket));
}

#[test]
fn a_waiter_is_in_time_for_a_lease_that_it_was_not_told_of() {
    let mut line = line(2, 10_000);
    let a = admitted(line.enter(at(0), "", FAR));
    let b = admitted(line.enter(at(0), "", FAR));
    let (first, _) = queued(line.enter(at(0), "", at(400)));
    let (second, _) = queued(line.enter(at(0), "", at(5000)));
    let (third, asks_at) = queued(line.enter(at(0), "", FAR));
    assert_eq!(asks_at, at(5000));
    assert!(line.release(at(1), a));
    assert_eq!(wakes(&mut line), [first]);
    // With the second gone too, the third is next, and the first's grant would lapse before it meant to ask.
    assert!(line.release(at(2), b));
    assert_eq!(wakes(&mut line), [second, third]);
    assert_eq!(line.poll(at(2), third), Entry::Queued(third, at(400)));
}

#[test]
fn without_slots_nothing_is_admitted_and_nothing_breaks() {
    let mut line = line(0, 500);
    let (ticket, _) = queued(line.enter(at(0), "", FAR));
    assert_eq!(line.poll(at(500), ticket), Entry::Refused(Refusal::BulkheadFull));
}

/// A97
#[test]
fn a_clock_that_steps_back_changes_nothing() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(1000), "", FAR));
    let (ticket, asks_at) = queued(line.enter(at(0), "", FAR));
    assert_eq!(asks_at, at(1500));
    assert_eq!(line.poll(at(0), ticket), Entry::Queued(ticket, at(1500)));
    assert!(line.release(at(0), held));
    let _held = admitted(line.poll(at(0), ticket));
    assert_eq!(line.enter(at(0), "", at(999)), Entry::Refused(Refusal::Deadline));
}

#[test]
fn a_jump_to_the_end_of_time_is_harmless() {
    let mut line = line(1, u64::MAX / 2_000_000);
    let held = admitted(line.enter(at(0), "", Time::MAX));
    let (ticket, _) = queued(line.enter(at(0), "", Time::MAX));
    assert_eq!(line.poll(Time::MAX, ticket), Entry::Refused(Refusal::Deadline));
    assert!(!line.release(Time::MAX, held));
    assert_eq!(line.enter(Time::MAX, "", Time::MAX), Entry::Refused(Refusal::Deadline));
}

#[test]
fn c11_7_a_lease_without_an_end_outlasts_its_deadline() {
    let mut line = line(1, 5_000);
    let held = admitted(line.enter(at(0), "", at(100)));
    assert!(line.lease_until(at(10), &held, Time::MAX));
    let (waiter, asks_at) = queued(line.enter(at(20), "", FAR));
    assert_eq!(asks_at, at(5_020), "no lease ends before");
    assert_eq!(line.poll(at(3_000), waiter), Entry::Queued(waiter, at(5_020)));
    assert_eq!(line.snapshot(at(3_000)).in_use, 1);
    assert!(line.release(at(3_000), held), "it was held all the time");
    assert_eq!(wakes(&mut line), [waiter]);
}

#[test]
fn c11_7_an_end_that_is_put_back_is_kept_and_told_of() {
    let mut line = line(1, 5_000);
    let held = admitted(line.enter(at(0), "", at(100)));
    assert!(line.lease_until(at(0), &held, Time::MAX));
    let (waiter, _) = queued(line.enter(at(20), "", FAR));
    assert!(line.lease_until(at(50), &held, at(100)));
    assert_eq!(wakes(&mut line), [waiter], "it has to ask sooner than it was told");
    assert_eq!(line.poll(at(51), waiter), Entry::Queued(waiter, at(100)));
    let _next = admitted(line.poll(at(100), waiter));
    assert!(!line.release(at(101), held));
}

#[test]
fn c11_7_an_end_that_has_come_takes_the_slot_at_once() {
    let mut line = line(1, 5_000);
    let held = admitted(line.enter(at(0), "", at(100)));
    assert!(line.lease_until(at(0), &held, Time::MAX));
    let (waiter, _) = queued(line.enter(at(20), "", FAR));
    assert!(line.lease_until(at(200), &held, at(100)));
    assert_eq!(wakes(&mut line), [waiter]);
    let _next = admitted(line.poll(at(200), waiter));
    assert!(!line.release(at(201), held));
}

#[test]
fn c5_2_a_lease_that_is_over_is_not_made_longer() {
    let mut line = line(1, 500);
    let held = admitted(line.enter(at(0), "", at(100)));
    // Nobody has noticed yet.
    assert!(!line.lease_until(at(100), &held, Time::MAX));
    let other = admitted(line.enter(at(100), "", FAR));
    assert!(!line.lease_until(at(101), &held, Time::MAX), "nor that of another holding");
    assert!(!line.release(at(101), held));
    assert!(line.release(at(102), other));
}
