//! What follows from an attempt (section 2): every reason, the order in which they are asked, and the waits.

use std::time::Duration;

use steadfast_policy::backoff::{Backoff, Jitter};
use steadfast_policy::breaker::{Breaker, BreakerConfig};
use steadfast_policy::budget::{Budget, BudgetConfig};
use steadfast_policy::deadline::Deadline;
use steadfast_policy::retry::{Decision, GiveUp, RetryRules, WaitReason, decide};
use steadfast_policy::{Advice, Answer, Cause, Judgement, Time, Verdict};

const NOW: Time = Time::from_secs(1000);
const NO_BUDGET: BudgetConfig = BudgetConfig { ratio: 0.0, min_per_second: 0.0, gate: false };

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// One question, with an answer that differs from "retry" in what a test changes.
struct Question {
    rules: RetryRules,
    attempt: u32,
    advice: Advice,
    cause: Cause,
    retry_after: Option<Duration>,
    left: Duration,
    breaker: Breaker,
    budget: Budget,
    random: u64,
}

impl Question {
    /// The first attempt failed fast, 30 s are left, and backoff is without jitter.
    fn new() -> Self {
        let backoff = Backoff { jitter: Jitter::None, ..Backoff::default() };
        Self {
            rules: RetryRules { backoff, ..RetryRules::default() },
            attempt: 1,
            advice: Advice::Retry,
            cause: Cause::Fast,
            retry_after: None,
            left: secs(30),
            breaker: Breaker::new(BreakerConfig::default()),
            budget: Budget::new(BudgetConfig::default()),
            random: 0,
        }
    }

    fn open_breaker(mut self, cool_down: Duration) -> Self {
        self.breaker = Breaker::new(BreakerConfig { cool_down, ..BreakerConfig::default() });
        for _ in 0..5 {
            let Ok(permit) = self.breaker.try_acquire(NOW) else { break };
            self.breaker.record(NOW, permit, Verdict::Failure);
        }
        assert!(self.breaker.check(NOW).is_err());
        self
    }

    fn ask(&mut self) -> Decision {
        let judgement = Judgement {
            verdict: Some(Verdict::Failure),
            answer: Answer::Failed,
            cause: self.cause,
            advice: self.advice,
            retry_after: self.retry_after,
        };
        let deadline = Deadline::earliest(NOW, self.left, None, None);
        let Self { rules, attempt, breaker, budget, random, .. } = self;
        decide(rules, *attempt, &judgement, NOW, deadline, breaker, budget, *random)
    }

    /// The wait, and what it follows; `Err` with the reason where there is none.
    fn wait(&mut self) -> Result<(Duration, WaitReason), Option<GiveUp>> {
        match self.ask() {
            Decision::Return => Err(None),
            Decision::GiveUp(why) => Err(Some(why)),
            Decision::RetryAt { at, wait, reason, permit } => {
                assert_eq!(at, NOW + wait);
                self.budget.retry_unsent(NOW, permit);
                Ok((wait, reason))
            }
        }
    }

    fn gives_up(mut self, why: GiveUp) {
        let before = self.budget.snapshot(NOW);
        assert_eq!(self.wait(), Err(Some(why)));
        assert_eq!(self.budget.snapshot(NOW), before, "{why:?} costs nothing");
    }
}

#[test]
fn c2_1_a_failure_that_all_allow_is_retried() {
    assert_eq!(Question::new().wait(), Ok((millis(100), WaitReason::Backoff)));
    let mut second = Question { attempt: 2, ..Question::new() };
    assert_eq!(second.wait(), Ok((millis(200), WaitReason::Backoff)));
}

#[test]
fn c2_1_each_condition_has_its_reason() {
    let q = Question::new;
    assert_eq!(Question { advice: Advice::Done, ..q() }.ask(), Decision::Return);
    Question { advice: Advice::NotRetryable, ..q() }.gives_up(GiveUp::NotRetryable);
    Question { advice: Advice::NotRepeatable, ..q() }.gives_up(GiveUp::NotRepeatable);
    Question { attempt: 3, ..q() }.gives_up(GiveUp::AttemptsExhausted);
    Question { retry_after: Some(secs(31)), left: secs(60), ..q() }.gives_up(GiveUp::RetryAfterTooLong);
    Question { left: millis(109), ..q() }.gives_up(GiveUp::Deadline);
    q().open_breaker(secs(15)).gives_up(GiveUp::CircuitOpen);
    Question { budget: Budget::new(NO_BUDGET), ..q() }.gives_up(GiveUp::BudgetCeiling);
    let mut budget = Budget::new(BudgetConfig { min_per_second: 100.0, ..BudgetConfig::default() });
    while let Ok(permit) = budget.ask(NOW, Cause::Fast, 0) {
        budget.retry_done(NOW, permit, Answer::Failed);
    }
    Question { budget, ..q() }.gives_up(GiveUp::BudgetEfficacy);
}

/// Each line makes all the later conditions fail as well.
#[test]
fn c2_1_the_conditions_are_asked_in_order() {
    let all_fail = || Question { attempt: 3, retry_after: Some(secs(31)), left: secs(0), ..budget_and_breaker_fail() };
    assert_eq!(Question { advice: Advice::Done, ..all_fail() }.ask(), Decision::Return);
    Question { advice: Advice::NotRetryable, ..all_fail() }.gives_up(GiveUp::NotRetryable);
    Question { advice: Advice::NotRepeatable, ..all_fail() }.gives_up(GiveUp::NotRepeatable);
    all_fail().gives_up(GiveUp::AttemptsExhausted);
    Question { attempt: 2, ..all_fail() }.gives_up(GiveUp::RetryAfterTooLong);
    Question { left: millis(50), ..budget_and_breaker_fail() }.gives_up(GiveUp::Deadline);
    budget_and_breaker_fail().gives_up(GiveUp::CircuitOpen);
}

fn budget_and_breaker_fail() -> Question {
    Question { budget: Budget::new(NO_BUDGET), ..Question::new().open_breaker(secs(15)) }
}

#[test]
fn c2_1_attempts_count_the_first() {
    for (attempts, last) in [(1, 1), (3, 3)] {
        let rules = RetryRules { attempts, ..RetryRules::default() };
        let gives_up = |attempt| Question { rules, attempt, ..Question::new() }.wait().is_err();
        let sent = (1..10).find(|&attempt| gives_up(attempt));
        assert_eq!(sent, Some(last));
    }
    let rules = RetryRules { attempts: 0, ..RetryRules::default() };
    Question { rules, ..Question::new() }.gives_up(GiveUp::AttemptsExhausted);
}

#[test]
fn c2_6_a_retry_after_is_waited_for_exactly() {
    let mut q = Question { retry_after: Some(millis(2500)), random: u64::MAX, ..Question::new() };
    assert_eq!(q.wait(), Ok((millis(2500), WaitReason::RetryAfter)));
}

#[test]
fn c2_6_a_retry_after_as_long_as_allowed_is_waited_for() {
    let mut q = Question { retry_after: Some(secs(30)), left: secs(60), ..Question::new() };
    assert_eq!(q.wait(), Ok((secs(30), WaitReason::RetryAfter)));
    let beyond = Some(secs(30) + Duration::from_nanos(1));
    Question { retry_after: beyond, left: secs(60), ..Question::new() }.gives_up(GiveUp::RetryAfterTooLong);
}

#[test]
fn c2_6_a_retry_after_equal_to_what_the_deadline_leaves_is_not_waited_for() {
    // With the defaults, 30 s and 30 s, a value of 30 is never waited for, and 29 is.
    Question { retry_after: Some(secs(30)), ..Question::new() }.gives_up(GiveUp::RetryAfterTooLong);
    let mut q = Question { retry_after: Some(secs(29)), ..Question::new() };
    assert_eq!(q.wait(), Ok((secs(29), WaitReason::RetryAfter)));
}

#[test]
fn c2_7_a_wait_must_leave_ten_milliseconds() {
    let at_the_limit = |left| Question { left, ..Question::new() }.wait();
    assert_eq!(at_the_limit(millis(110)), Ok((millis(100), WaitReason::Backoff)));
    assert_eq!(at_the_limit(millis(110) - Duration::from_nanos(1)), Err(Some(GiveUp::Deadline)));
    let asked = |left| Question { retry_after: Some(millis(500)), left, ..Question::new() }.wait();
    assert_eq!(asked(millis(510)), Ok((millis(500), WaitReason::RetryAfter)));
    assert_eq!(asked(millis(509)), Err(Some(GiveUp::Deadline)));
    assert_eq!(asked(millis(500)), Err(Some(GiveUp::RetryAfterTooLong)));
}

#[test]
fn c2_6_jitter_is_added_to_a_retry_after_for_large_fleets() {
    let rules = RetryRules { retry_after_jitter: secs(1), ..RetryRules::default() };
    let wait = |random| Question { rules, retry_after: Some(secs(2)), random, ..Question::new() }.wait();
    assert_eq!(wait(0), Ok((secs(2), WaitReason::RetryAfter)));
    assert_eq!(wait(1 << 63), Ok((millis(2500), WaitReason::RetryAfter)));
    assert_eq!(wait(u64::MAX), Ok((secs(3), WaitReason::RetryAfter)));
    // What the upstream asked for is within its limit; what is added does not count against that.
    let mut q = Question { rules, retry_after: Some(secs(30)), left: secs(60), random: u64::MAX, ..Question::new() };
    assert_eq!(q.wait(), Ok((secs(31), WaitReason::RetryAfter)));
}

#[test]
fn c2_6_a_time_that_has_passed_means_the_ordinary_backoff() {
    let mut q = Question { retry_after: Some(Duration::ZERO), ..Question::new() };
    assert_eq!(q.wait(), Ok((millis(100), WaitReason::Backoff)));
}

#[test]
fn c2_10_a_breaker_that_closes_in_time_does_not_forbid() {
    let cool_down = millis(100);
    assert!(Question::new().open_breaker(cool_down).wait().is_ok());
    Question::new().open_breaker(cool_down + Duration::from_nanos(1)).gives_up(GiveUp::CircuitOpen);
    let mut later = Question { retry_after: Some(secs(15)), ..Question::new().open_breaker(secs(15)) };
    assert!(later.wait().is_ok());
}

#[test]
fn c2_9_the_budget_is_asked_at_the_decision_with_the_price_of_the_failure() {
    let credit = |cause| {
        let mut q = Question { cause, ..Question::new() };
        let before = q.budget.snapshot(NOW).credit;
        let Decision::RetryAt { permit, .. } = q.ask() else { return None };
        let after = q.budget.snapshot(NOW);
        q.budget.retry_unsent(NOW, permit);
        Some((before - after.credit, after.retries))
    };
    assert_eq!(credit(Cause::Fast), Some((8, 1)));
    assert_eq!(credit(Cause::Timeout), Some((20, 1)));
}

#[test]
fn c2_7_a_call_without_limits_does_not_overflow() {
    let rules = RetryRules {
        attempts: u32::MAX,
        max_retry_after: Duration::MAX,
        retry_after_jitter: Duration::MAX,
        ..RetryRules::default()
    };
    let unlimited = || Question { rules, left: Duration::MAX, random: u64::MAX, ..Question::new() };
    assert!(Question { attempt: u32::MAX - 1, ..unlimited() }.wait().is_ok());
    Question { retry_after: Some(Duration::MAX), ..unlimited() }.gives_up(GiveUp::RetryAfterTooLong);
    let long = Question { retry_after: Some(secs(1 << 32)), ..unlimited() }.wait();
    assert_eq!(long.map(|(_, reason)| reason), Ok(WaitReason::RetryAfter));
}
