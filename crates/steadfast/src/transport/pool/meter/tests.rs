use super::*;

const LIMITS: Limits = Limits { read: 100, write: 200, idle: 1_000, age: 5_000 };

fn at(meter: &Meter, nanos: u64) -> Instant {
    meter.instant(nanos).unwrap()
}

fn begun(deadline: u64) -> Meter {
    let meter = Meter::new(LIMITS);
    meter.begin(at(&meter, 50), Some(at(&meter, deadline)), false);
    meter
}

fn limit(at: u64, fault: Fault) -> Limit {
    Limit { at, fault: Some(fault) }
}

/// 1.2
#[test]
fn c1_2_the_wait_for_the_response_runs_from_the_last_byte() {
    let meter = begun(10_000);
    assert_eq!(meter.limit(), limit(150, Fault::ReadTimeout));
    meter.last_moved.store(400, Ordering::Relaxed);
    assert_eq!(meter.limit(), limit(500, Fault::ReadTimeout));
}

/// 1.2: while a write is refused, that is the wait.
#[test]
fn c1_2_a_refused_write_has_a_limit_of_its_own() {
    let meter = begun(10_000);
    meter.blocked.store(60, Ordering::Relaxed);
    assert_eq!(meter.limit(), limit(260, Fault::WriteTimeout));
    meter.on_written();
    assert!(!meter.is_blocked());
}

/// 0.1: of equal limits the call's deadline is the one named.
#[test]
fn c0_1_the_deadline_is_named_before_an_equal_limit() {
    assert_eq!(begun(150).limit(), limit(150, Fault::Deadline));
    assert_eq!(begun(151).limit(), limit(150, Fault::ReadTimeout));
}

/// 7.6
#[test]
fn c7_6_a_pause_has_only_the_deadline() {
    let meter = begun(10_000);
    meter.pause();
    assert_eq!(meter.limit(), limit(10_000, Fault::Deadline));
    meter.begin(at(&meter, 50), None, true);
    meter.pause();
    assert_eq!(meter.limit().at, NEVER);
}

#[test]
fn an_idle_connection_lasts_until_it_is_unused_or_old() {
    let meter = begun(150);
    meter.rest();
    meter.last_moved.store(3_000, Ordering::Relaxed);
    assert_eq!(meter.limit(), Limit { at: 4_000, fault: None });
    meter.last_moved.store(4_900, Ordering::Relaxed);
    assert_eq!(meter.limit(), Limit { at: 5_000, fault: None });
    assert!(!meter.is_expired(at(&meter, 4_999)));
    assert!(meter.is_expired(at(&meter, 5_000)));
}

#[test]
fn which_limit_closed_it_is_known_until_the_next_use() {
    let meter = begun(150);
    for fault in FAULTS {
        meter.close_by(Some(fault));
        assert_eq!(meter.closed_by(), Some(fault));
    }
    meter.begin(at(&meter, 50), None, true);
    assert_eq!(meter.closed_by(), None);
    meter.close_by(None);
    assert_eq!(meter.closed_by(), None);
}

#[test]
fn a_connection_has_rested_if_no_byte_has_moved_for_a_while() {
    let meter = begun(150);
    meter.last_moved.store(40, Ordering::Relaxed);
    assert!(!meter.has_rested(at(&meter, RESTED + 39)));
    assert!(meter.has_rested(at(&meter, RESTED + 40)));
}

/// 1.2, 4.3: neither limit of the upstream runs while our own source has nothing; then they start anew.
#[test]
fn c1_2_c4_3_nothing_runs_while_our_own_source_has_nothing() {
    let meter = begun(10_000);
    meter.on_source(true);
    assert_eq!(meter.limit(), limit(10_000, Fault::Deadline));
    meter.blocked.store(60, Ordering::Relaxed);
    assert_eq!(meter.limit(), limit(10_000, Fault::Deadline));
    let before = meter.now();
    meter.on_source(false);
    let blocked = meter.blocked.load(Ordering::Relaxed);
    assert!(before <= blocked && blocked <= meter.now());
    meter.blocked.store(NEVER, Ordering::Relaxed);
    assert!(meter.since.load(Ordering::Relaxed) >= before);
}

/// Our own source does not hold the end of a response back for longer than the upstream may.
#[test]
fn a_connection_settles_within_its_limit_whatever_the_source_does() {
    let meter = begun(NEVER - 1);
    meter.on_source(true);
    meter.wait(Phase::Settling);
    assert_eq!(meter.limit().fault, Some(Fault::ReadTimeout));
}

/// What one request's source did is nothing to the next.
#[test]
fn a_new_use_has_a_source_of_its_own() {
    let meter = begun(10_000);
    meter.on_source(true);
    meter.begin(at(&meter, 50), None, false);
    assert_eq!(meter.limit(), limit(150, Fault::ReadTimeout));
}
