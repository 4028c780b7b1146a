//! One policy alone, and stacks of them.

use super::*;

/// Puts a layer around a service.
type Wrap = Arc<dyn Fn(ClientService) -> ClientService>;

/// Every single policy, each so that it has nothing to say.
fn single_policies(clock: &VirtualClock) -> Vec<(&'static str, Wrap)> {
    let clock = || clock.clone();
    let deadline = DeadlineLayer::builder("one").clock(clock()).build().unwrap();
    let retry = RetryLayer::builder("one").clock(clock()).retries(0).build().unwrap();
    let breaker =
        CircuitBreakerLayer::builder("one").clock(clock()).breaker_failures(1_000).breaker_minimum_calls(9_999);
    let breaker = breaker.build().unwrap();
    let bulkhead = BulkheadLayer::builder("one").clock(clock()).max_concurrent(1_000).build().unwrap();
    let rate_limit = RateLimitLayer::builder("one").clock(clock()).rate_limit(1_000).build().unwrap();
    vec![
        ("deadline", Arc::new(move |inner| deadline.layer(inner))),
        ("retry", Arc::new(move |inner| retry.layer(inner))),
        ("breaker", Arc::new(move |inner| breaker.layer(inner))),
        ("bulkhead", Arc::new(move |inner| bulkhead.layer(inner))),
        ("rate limit", Arc::new(move |inner| rate_limit.layer(inner))),
    ]
}

#[test]
fn a_single_policy_does_nothing_else() {
    let stack = Stack::new([Step::status(503).after(secs(40))]);
    for (name, layer) in single_policies(&stack.clock) {
        // No retry, no breaker, no bulkhead, no deadline: 300 at once, all failing, all slow.
        let service = layer(stack.bare());
        let before = stack.upstream.requests();
        let answers = stack.run(join_all((0..300).map(|_| service.clone().oneshot(get()))));
        for answer in &answers {
            assert_eq!(ending(answer), ("503".to_owned(), 1), "{name}");
            assert!(report(answer).waits().is_empty(), "{name}");
        }
        assert_eq!(stack.upstream.requests() - before, 300, "{name}");
        // Nothing added to the request, nothing decoded in the response.
        let heads = Heads::default();
        let bare = DeadlineLayer::builder("bare").clock(stack.clock.clone()).build().unwrap().layer(heads.service());
        let answer = stack.get(&layer(bare));
        let headers: HeaderMap = heads.last().headers;
        assert!(headers.is_empty() && !headers.contains_key(USER_AGENT) && !headers.contains_key(ACCEPT_ENCODING));
        assert_eq!(answer.as_ref().unwrap().headers()[CONTENT_ENCODING], "gzip", "{name}");
        assert_eq!(text(&stack, answer), gzip("paid"), "{name}");
    }
    stack.assert_at_rest();
}

/// And each does what it is for.
#[test]
fn a_single_policy_does_its_own() {
    let stack = Stack::new([Step::status(503), Step::status(200)]);
    let clock = || stack.clock.clone();
    let retry = RetryLayer::builder("retry").clock(clock()).retries(1).build().unwrap();
    assert_eq!(ending(&stack.get(&stack.within(&retry))), ("200".to_owned(), 2));

    stack.upstream.play([Step::status(200).after(secs(2))]);
    let deadline = DeadlineLayer::builder("deadline").clock(clock()).total_timeout(secs(1)).build().unwrap();
    assert_eq!(ending(&stack.get(&stack.within(&deadline))), ("timeout".to_owned(), 1));

    let bulkhead = BulkheadLayer::builder("bulkhead").clock(clock()).max_concurrent(1).bulkhead_wait(ms(500));
    let service = stack.within(&bulkhead.build().unwrap());
    let answers = stack.run(join_all((0..2).map(|_| service.clone().oneshot(get()))));
    assert_eq!(answers.iter().map(ending).map(|end| end.0).collect::<Vec<_>>(), ["200", "bulkhead_full"]);

    stack.upstream.play([Step::status(200)]);
    let rate = RateLimitLayer::builder("rate").clock(clock()).rate_limit(1).rate_limit_period(secs(5)).build().unwrap();
    let service = stack.within(&rate);
    let answers: Vec<_> = (0..2).map(|_| stack.get(&service)).collect();
    assert_eq!(report(&answers[1]).waits()[0].duration, secs(5));

    stack.upstream.play([Step::status(503)]);
    let breaker = CircuitBreakerLayer::builder("breaker").clock(clock()).breaker_failures(2).build().unwrap();
    let service = stack.within(&breaker);
    let ends: Vec<_> = (0..3).map(|_| ending(&stack.get(&service)).0).collect();
    assert_eq!(ends, ["503", "503", "circuit_open"]);
    assert_eq!(breaker.snapshot().breaker.state, State::Open);
    // A probe that never ends gives its place up after 30 s.
    stack.upstream.play([Step::hang(), Step::status(200)]);
    stack.upstream.set_read_timeout(secs(3_600));
    stack.clock.advance(secs(15));
    let mut stuck = Box::pin(service.clone().oneshot(get()));
    assert!(stuck.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    stack.clock.advance(secs(29));
    assert_eq!(ending(&stack.get(&service)).0, "circuit_open");
    stack.clock.advance(secs(1));
    assert_eq!(ending(&stack.get(&service)).0, "200");
}

/// What a stack of single layers must still hold: 2.12, 11.3.
#[test]
fn c2_12_an_inner_refusal_passes_through_as_it_is() {
    let stack = Stack::new([Step::status(503)]);
    let clock = || stack.clock.clone();
    let breaker = CircuitBreakerLayer::builder("inner").clock(clock()).breaker_failures(1).build().unwrap();
    let retry = RetryLayer::builder("outer").clock(clock()).backoff_base(ms(10)).build().unwrap();
    let outer_breaker = CircuitBreakerLayer::builder("outer").clock(clock()).breaker_failures(1).build().unwrap();
    let stacked = ServiceBuilder::new().layer(&outer_breaker).layer(&retry).layer(&breaker).service(stack.bare());
    // The first attempt opens the inner breaker; the retry is refused, and the 503 is what comes back (7.1).
    assert_eq!(ending(&stack.get(&stacked)).0, "503");
    outer_breaker.snapshot();
    assert_eq!(stack.upstream.requests(), 1);
    let through = ServiceBuilder::new().layer(&retry).layer(&breaker).service(stack.bare());
    let error = stack.get(&through).unwrap_err();
    assert_eq!((error.kind(), error.upstream(), error.attempts()), (ErrorKind::CircuitOpen, "inner", 0));
    assert!(error.retry_after().is_some());
    assert_eq!(stack.upstream.requests(), 1);
    // It is no verdict of the outer one.
    let fresh = CircuitBreakerLayer::builder("fresh").clock(clock()).breaker_failures(1).build().unwrap();
    assert_eq!(kind(&stack.get(&fresh.layer(through))), ErrorKind::CircuitOpen);
    assert_eq!(fresh.snapshot().breaker.state, State::Closed);
}

/// A deadline further in is an attempt that took too long, and may be retried.
#[test]
fn an_inner_deadline_is_an_attempts_timeout() {
    let stack = Stack::new([Step::hang(), Step::status(200)]);
    let deadline = DeadlineLayer::builder("inner").clock(stack.clock.clone()).total_timeout(secs(1)).build().unwrap();
    let retry = RetryLayer::builder("outer").clock(stack.clock.clone()).seed(7).build().unwrap();
    let stacked = ServiceBuilder::new().layer(retry).layer(deadline).service(wire(&stack.upstream));
    let answer = stack.get(&stacked);
    let outcomes: Vec<_> = report(&answer).attempts().map(|attempt| attempt.outcome.name().into_owned()).collect();
    assert_eq!(outcomes, ["attempt_timeout", "200"]);
}

#[test]
fn mistakes_are_reported_by_build() {
    let problems = |error: steadfast::client::BuildError| error.to_string();
    let error = problems(RetryLayer::builder("x").retries(5_000).backoff_factor(0.5).build().unwrap_err());
    assert!(error.contains("retries") && error.contains("backoff_factor"), "{error}");
    let error = problems(DeadlineLayer::builder("no spaces").total_timeout(Duration::ZERO).build().unwrap_err());
    assert!(error.contains("name") && error.contains("total_timeout"), "{error}");
}
