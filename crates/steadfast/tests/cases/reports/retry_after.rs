//! What servers write into `Retry-After`, and how long clients made of that (A1 to A14).

use std::time::Duration;

use steadfast::report::WaitReason;
use steadfast::testing::Step;

use crate::harness::{World, ended, ms, secs, status, waits};

const PAST: &str = "Wed, 21 Oct 2015 07:28:00 GMT";

/// The wall shows Thursday, 2026-01-01T00:00:00Z when a call begins.
#[test]
fn a1_to_a8_the_field_is_an_exact_wait_or_as_if_absent() {
    for (report, value, wait) in [
        ("A1", "1m0s", None),
        ("A2", "-1", None),
        ("A2, A7", PAST, None),
        ("A3", "0.503", None),
        ("A4", "0", None),
        ("A4", "00", None),
        ("A5", "Thu, 01 Jan 2026 00:00:03 GMT", Some(3)),
        ("A6", "Thursday, 01-Jan-26 00:00:03 GMT", Some(3)),
        ("A6", "Thu Jan  1 00:00:03 2026", Some(3)),
        ("A6", "Sunday, 06-Nov-77 08:49:37 GMT", None),
        ("A8", "Sun, 31 Feb 2027 00:00:00 GMT", None),
        ("A11", "1", Some(1)),
    ] {
        let world = World::new([Step::status(503).header("Retry-After", value), Step::status(200)]);
        let result = world.get();
        assert_eq!((status(&result), world.upstream.requests()), (200, 2), "{report}: {value}");
        let (asked, own) = (waits(&result, WaitReason::RetryAfter), waits(&result, WaitReason::Backoff));
        match wait {
            Some(wait) => assert_eq!((asked, own), (vec![secs(wait)], vec![]), "{report}: {value}"),
            None => {
                assert!(asked.is_empty(), "{report}: {value}");
                assert!(own.iter().all(|wait| *wait <= ms(100)), "{report}: {value}: {own:?}");
            }
        }
    }
}

/// A cap says how long is waited at most, never that the retry goes earlier than the upstream asked.
#[test]
fn a9_a10_a12_a13_too_long_a_wait_is_none_and_no_retry_goes_early() {
    let day = secs(86_400);
    for (report, value, total, allowed) in [
        ("A9", "9999999999", day, day),
        ("A9", "99999999999999999999999999", day, day),
        ("A10", "86400", secs(5), day),
        ("A12", "600", day, secs(180)),
        ("A13", "411000", day, secs(30)),
        ("A8, A13", "Fri, 31 Dec 9999 23:59:59 GMT", day, secs(30)),
    ] {
        let steps = [Step::status(429).header("Retry-After", value), Step::status(200)];
        let world = World::with(steps, |client| client.total_timeout(total).max_retry_after(allowed));
        let result = world.get();
        assert_eq!((status(&result), world.upstream.requests()), (429, 1), "{report}");
        assert_eq!(ended(&result), "retry_after_too_long", "{report}");
        assert_eq!(world.clock.now().as_nanos(), 0, "{report}: at once");
    }
}

/// Whatever the jitter draws and whenever the answer comes.
#[test]
fn a11_no_retry_goes_before_its_time() {
    for run in 0..200_u64 {
        let after = Duration::from_micros(run * 7_919);
        let step = Step::status(503).header("Retry-After", "1").after(after);
        let world = World::with([step, Step::status(200)], |client| client.retry_after_jitter(ms(run)).seed(run));
        world.get().unwrap();
        let seen = world.upstream.seen();
        let gap = seen[1].at.since(seen[0].at + after);
        assert!(gap >= secs(1) && gap <= secs(1) + ms(run), "run {run}: {gap:?}");
    }
}

/// The clocks agree or not: a 401 or 403 is an answer.
#[test]
fn a14_no_retry_for_what_looks_like_a_skewed_clock() {
    for code in [401, 403] {
        for date in ["Thu, 01 Jan 2026 00:00:00 GMT", PAST] {
            let world = World::new([Step::status(code).header("Date", date)]);
            assert_eq!((status(&world.get()), world.upstream.requests()), (code, 1));
        }
    }
}
