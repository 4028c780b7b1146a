//! Outages in virtual time, with the shipped retry budget and circuit breaker in the loop.
//!
//! The model is the worst honest upstream: one worker behind an unbounded queue that serves every request in full, also
//! those whose client has given up. Calls arrive whatever happens (Poisson, spread evenly over N clients), each client
//! has a budget and a breaker of its own. An attempt times out half a second after it was sent; three attempts; full
//! jitter. What such a model must not do is wait for an answer before the next call arrives, or drop the requests that
//! nobody waits for: either hides what retries do to an upstream.
//!
//! The same seed gives all rules the same arrivals, and each attempt the same luck, so that they are compared run by run.
//! The letters of the tests are those of the acceptance lists of the two rules; every figure is a mean over five seeds.
//! `OUTAGE_SEEDS=30 cargo test --release -p steadfast-policy --test outage -- --nocapture` shows the figures of more.

mod breaker_cells;
mod budget_cells;
mod client;
mod random;
mod run;
mod scenarios;
mod seed_breaker;
mod sheet;
mod world;

/// Same seed, same run.
#[test]
fn a_run_repeats() {
    let scenario = scenarios::slow(0.85, 10);
    let rules = client::Rules::shipped_budget().with_breaker(client::BreakerRule::Shipped);
    assert_eq!(run::run(&scenario, rules, 7), run::run(&scenario, rules, 7));
    assert_ne!(run::run(&scenario, rules, 7), run::run(&scenario, rules, 8));
}
