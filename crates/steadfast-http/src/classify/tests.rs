use std::time::Duration;

use http::HeaderValue;
use http::header::RETRY_AFTER;

use super::*;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn response(repeat: Repeat, status: u16, slow: bool) -> Judgement {
    let status = StatusCode::from_u16(status).unwrap();
    judge_response(&Rules::default(), repeat, status, &HeaderMap::new(), slow, NOW)
}

/// 2.4, 4.2, and the budget's mapping: every status by the default rules.
#[test]
fn c4_2_every_status_by_default() {
    for status in 100..=999 {
        for slow in [false, true] {
            let judged = response(Repeat::Yes, status, slow);
            let good = if slow { Answer::SlowOk } else { Answer::Ok };
            let (verdict, answer, cause, advice) = match status {
                100..=399 => (Verdict::Success, good, Cause::Fast, Advice::Done),
                429 => (Verdict::Paced, Answer::Failed, Cause::Fast, Advice::Retry),
                400..=499 => (Verdict::Success, good, Cause::Fast, Advice::NotRetryable),
                502 | 503 => (Verdict::Failure, Answer::Failed, Cause::Fast, Advice::Retry),
                504 => (Verdict::Failure, Answer::Failed, Cause::Timeout, Advice::Retry),
                _ => (Verdict::Success, Answer::ServerError, Cause::Fast, Advice::NotRetryable),
            };
            let expected = Judgement { verdict: Some(verdict), answer, cause, advice, retry_after: None };
            assert_eq!(judged, expected, "{status} slow={slow}");
        }
    }
}

/// 2.2: only the advice depends on whether the request may be repeated.
#[test]
fn c2_2_an_answered_request_that_may_not_be_repeated() {
    for status in 100..=999 {
        let free = response(Repeat::Yes, status, false);
        for repeat in [Repeat::No, Repeat::Forbidden] {
            let judged = response(repeat, status, false);
            let advice = if free.advice == Advice::Retry { Advice::NotRepeatable } else { free.advice };
            assert_eq!(judged, Judgement { advice, ..free }, "{status} {repeat:?}");
        }
    }
}

/// 2.4, 4.2: the two sets are independent, and a 429 or a 500 can be put into either.
#[test]
fn c4_2_configured_sets() {
    let judge = |retry: &[u16], breaker: &[u16], status: u16| {
        let rules = Rules { retry: retry.iter().copied().collect(), breaker: breaker.iter().copied().collect() };
        let status = StatusCode::from_u16(status).unwrap();
        let judged = judge_response(&rules, Repeat::Yes, status, &HeaderMap::new(), false, NOW);
        (judged.verdict.unwrap(), judged.answer, judged.advice)
    };
    assert_eq!(judge(&[], &[429], 429), (Verdict::Failure, Answer::Ok, Advice::NotRetryable));
    assert_eq!(judge(&[], &[], 429), (Verdict::Paced, Answer::Ok, Advice::NotRetryable));
    assert_eq!(judge(&[500], &[], 500), (Verdict::Success, Answer::Failed, Advice::Retry));
    assert_eq!(judge(&[], &[500], 500), (Verdict::Failure, Answer::ServerError, Advice::NotRetryable));
    assert_eq!(judge(&[], &[], 503), (Verdict::Success, Answer::ServerError, Advice::NotRetryable));
    assert_eq!(judge(&[408, 425], &[], 425), (Verdict::Success, Answer::Failed, Advice::Retry));
    assert_eq!(judge(&[202], &[], 202), (Verdict::Success, Answer::Failed, Advice::Retry));
}

/// 2.6: the field is read on a status that another attempt can fix, and on no other.
#[test]
fn c2_6_retry_after_counts_on_retryable_statuses_only() {
    let mut headers = HeaderMap::new();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
    for (status, expected) in [(200, None), (301, None), (429, Some(7)), (500, None), (502, Some(7)), (503, Some(7))] {
        let status = StatusCode::from_u16(status).unwrap();
        let judged = judge_response(&Rules::default(), Repeat::Yes, status, &headers, false, NOW);
        assert_eq!(judged.retry_after, expected.map(Duration::from_secs), "{status}");
    }
}

/// Every fault: verdict, cause, and whether it is permanent. A new fault must be put into this table.
fn table() -> Vec<(Fault, Option<Verdict>, Cause, bool)> {
    use Cause::{Fast, Timeout};
    let failure = Some(Verdict::Failure);
    let late = Some(Verdict::Timeout);
    vec![
        (Fault::Dns, failure, Fast, false),
        (Fault::Connect, failure, Fast, false),
        (Fault::ConnectTimeout, late, Timeout, false),
        (Fault::Tls, failure, Fast, false),
        (Fault::Certificate, failure, Fast, true),
        (Fault::Proxy, failure, Fast, false),
        (Fault::ProxyRefused, None, Fast, true),
        (Fault::Reset, failure, Fast, false),
        (Fault::RefusedStream, failure, Fast, false),
        (Fault::GoAway, failure, Fast, false),
        (Fault::Protocol, failure, Fast, false),
        (Fault::LocalProtocol, None, Fast, true),
        (Fault::Decode, failure, Fast, false),
        (Fault::Incomplete, failure, Fast, false),
        (Fault::TooLarge, Some(Verdict::Success), Fast, true),
        (Fault::ReadTimeout, late, Timeout, false),
        (Fault::WriteTimeout, late, Timeout, false),
        (Fault::AttemptTimeout, late, Timeout, false),
        (Fault::Deadline, late, Timeout, false),
        (Fault::PoolTimeout, None, Fast, true),
    ]
}

/// 2.3, 2.4, 4.2, 4.3, A29 to A31, A33, A34, B5, B10: every fault, with every degree of repeatability and of proof.
#[test]
fn c4_3_every_fault() {
    for (fault, verdict, cause, permanent) in table() {
        for repeat in [Repeat::Yes, Repeat::No, Repeat::Forbidden] {
            for sent in [Sent::Yes, Sent::No, Sent::Unknown] {
                let may = repeat == Repeat::Yes || (repeat == Repeat::No && sent == Sent::No);
                let advice = match (permanent, may) {
                    (true, _) => Advice::NotRetryable,
                    (false, true) => Advice::Retry,
                    (false, false) => Advice::NotRepeatable,
                };
                let expected = Judgement { verdict, answer: Answer::Failed, cause, advice, retry_after: None };
                assert_eq!(judge_fault(repeat, fault, sent), expected, "{fault} {repeat:?} {sent:?}");
            }
        }
    }
}
