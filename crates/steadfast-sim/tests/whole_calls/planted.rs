//! Who watches the watcher: faults, planted one at a time in the shipped code, and each is complained of.
//!
//! `RUSTC_WORKSPACE_WRAPPER=$PWD/.ci/with-planted-faults cargo test -p steadfast-sim --test whole_calls planted`

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast::planted::{Planted, plant};

use crate::hunt;
use crate::observer::{Complaint, Rule};

/// Within so many calls each has to be found.
const WITHIN: u64 = 100_000;

/// What is to be complained of, and the word that tells it from other breaches of that rule.
fn expected(fault: Planted) -> (Rule, &'static str) {
    let rule = match fault {
        Planted::EarlyRetry => Rule::RetryAfter,
        Planted::LostResponse => Rule::Response,
        Planted::LeakedSlot => Rule::Slots,
        Planted::SecondProbe => return (Rule::Probe, "a second probe"),
        Planted::KeptProbe => return (Rule::Probe, "refused"),
        Planted::RepeatedPost => Rule::Repeat,
        Planted::OneTooMany => Rule::Attempts,
        Planted::FreeRetry => return (Rule::Ceiling, "a retry after"),
        Planted::EndlessBackoff => Rule::Deadline,
        Planted::PlaceGivenBack => Rule::RateLimit,
        Planted::OldVerdict => Rule::Opening,
        Planted::SleepingWaiter => Rule::Wake,
        Planted::OneSlotMore => Rule::Bulkhead,
        Planted::OpenGate => Rule::Gate,
        Planted::ShortCoolDown => Rule::Open,
        Planted::EndlessCall => Rule::Held,
    };
    (rule, "")
}

/// The right complaint, and after how many calls it came.
fn find(fault: Planted) -> Option<(u64, Complaint)> {
    let (rule, word) = expected(fault);
    plant(Some(fault));
    let (mut calls, mut right) = (0, None);
    let mut seeds = 0..;
    while calls < WITHIN && right.is_none() {
        let found = hunt::seed(seeds.next()?);
        calls += found.calls;
        right = found.complaints.into_iter().find(|told| told.rule == rule && told.text.contains(word));
    }
    plant(None);
    right.map(|complaint| (calls, complaint))
}

#[test]
fn each_planted_fault_is_found_and_called_by_its_name() {
    let none = hunt::calls(0, 5_000);
    assert!(none.bad.is_empty(), "{none}, and nothing is planted yet");
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(&fault) = Planted::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            match find(fault) {
                Some((calls, complaint)) => println!("{fault:?}: after {calls} calls: {complaint}"),
                None => missed.lock().unwrap().push(fault),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
    assert_eq!(missed.into_inner().unwrap(), [], "not found within {WITHIN} calls");
}
