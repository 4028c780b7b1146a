//! What a stage may differ in: figures of time that are not exact, work that never ends, something that is left.

use std::time::Duration;

use steadfast_sim::scenario::{CallEnd, Cast, Slack, Stage, StageError, Ticket, VirtualStage, Work, play};

use crate::read;

const SCENARIO: &str = r#"
title = "a"
why = "b"
[upstreams.billing]
base_url = "http://billing.test"
jitter = "none"
[[script.billing]]
status = 503
[[script.billing]]
status = 200
after = "1s"
[[step]]
call = "billing"
expect = { took = "1.08s", waits = [{ backoff = "120ms" }] }
"#;

/// Virtual time with something that is not as it should be.
struct Odd {
    inner: VirtualStage,
    slack: Slack,
    never_ends: bool,
    left: Vec<String>,
}

impl Odd {
    fn new(slack: Slack) -> Self {
        Self { inner: VirtualStage::new(&read(SCENARIO)).unwrap(), slack, never_ends: false, left: Vec::new() }
    }
}

impl Stage for Odd {
    fn cast(&self) -> &Cast {
        self.inner.cast()
    }

    fn begin(&mut self, work: Work) -> Ticket {
        self.inner.begin(work)
    }

    fn finish(&mut self, ticket: Ticket) -> Result<Vec<CallEnd>, StageError> {
        if self.never_ends { Err(StageError("it never will".to_owned())) } else { self.inner.finish(ticket) }
    }

    fn pass(&mut self, duration: Duration) {
        self.inner.pass(duration);
    }

    fn slack(&self) -> Slack {
        self.slack
    }

    fn held(&self) -> Vec<String> {
        self.left.clone()
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The call takes 1.1 s and waits for 0.1 s.
#[test]
fn figures_of_time_may_be_off_by_the_slack_and_no_further() {
    let passes = |below, above| play(&read(SCENARIO), &mut Odd::new(Slack { below, above })).passed();
    assert!(passes(ms(20), ms(20)));
    assert!(!passes(ms(19), ms(20)) && !passes(ms(20), ms(19)) && !passes(ms(0), ms(0)));
}

#[test]
fn work_that_never_ends_is_a_difference_and_ends_the_scenario() {
    let mut stage = Odd::new(Slack { below: ms(50), above: ms(50) });
    stage.never_ends = true;
    let outcome = play(&read(&SCENARIO.replace("[[step]]", "[[step]]\nadvance = \"1s\"\n[[step]]")), &mut stage);
    let [difference] = &outcome.differences[..] else { panic!("{outcome}") };
    assert_eq!((difference.step, difference.seen.as_str()), (1, "it never will"));
}

#[test]
fn what_is_left_at_the_end_is_a_difference() {
    let mut stage = Odd::new(Slack { below: ms(50), above: ms(50) });
    stage.left.push("a connection is open".to_owned());
    let outcome = play(&read(SCENARIO), &mut stage);
    let [difference] = &outcome.differences[..] else { panic!("{outcome}") };
    assert_eq!((difference.what.as_str(), difference.seen.as_str()), ("at the end", "a connection is open"));
}
