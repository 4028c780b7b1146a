//! Rate limits that are off for a while.

use futures_executor::block_on;
use futures_util::future::join_all;
use steadfast::config::{Config, Loader};
use steadfast::policy::line::RateConfig;
use steadfast::testing::{FakeClock, Reply, Script, ScriptedOperation, Step, fake_clock, fast_mode};
use steadfast::{ErrorKind, Guard, ServiceClient};

use super::{five_a_second, guard};
use crate::harness::{ms, secs};

fn calls(guard: &Guard, time: &FakeClock, count: usize) -> usize {
    time.clear();
    let rates = ScriptedOperation::new(time, [Ok::<_, &str>(())]);
    for _ in 0..count {
        block_on(guard.key("tenant").call(|| rates.call())).unwrap();
    }
    time.sleeps().len()
}

#[test]
fn p21_every_call_passes_while_they_are_off_and_then_no_longer() {
    let time = fake_clock();
    let guard = guard().rate_limit(five_a_second()).build().unwrap();
    assert_eq!(calls(&guard, &time, 5), 0);
    let off = time.disable_rate_limits();
    assert_eq!(calls(&guard, &time, 50), 0);
    drop(off);
    assert_eq!(calls(&guard, &time, 5), 0, "what passed was not counted");
    assert_eq!(calls(&guard, &time, 1), 1);
}

#[test]
fn p21_they_are_on_again_when_the_last_scope_has_ended() {
    let time = fake_clock();
    let guard = guard().rate_limit(five_a_second()).build().unwrap();
    let (first, second) = (time.disable_rate_limits(), time.disable_rate_limits());
    drop(first);
    assert_eq!(calls(&guard, &time, 20), 0);
    drop(second);
    assert_eq!(calls(&guard, &time, 7), 2 - 1, "the sixth waits for a second, and the seventh starts with it");
}

#[test]
fn p21_those_of_another_clock_stay() {
    let other = fake_clock();
    let of_other = guard().rate_limit(five_a_second()).build().unwrap();
    let time = fake_clock();
    let _off = time.disable_rate_limits();
    let of_time = guard().rate_limit(five_a_second()).build().unwrap();
    assert_eq!((calls(&of_time, &time, 6), calls(&of_other, &other, 6)), (0, 1));
}

#[test]
fn p21_the_bulkhead_stays() {
    let time = fake_clock();
    let _off = time.disable_rate_limits();
    let guard = guard().rate_limit(five_a_second()).max_concurrent(3, secs(60)).build().unwrap();
    let rates = ScriptedOperation::new(&time, [Reply::from(Ok::<_, &str>(())).after(ms(10))]);
    let results = block_on(join_all((0..30).map(|_| guard.call(|| rates.call()))));
    assert!(results.iter().all(Result::is_ok));
    assert_eq!((rates.peak(), time.elapsed()), (3, ms(100)));
}

#[test]
fn p21_a_refusal_at_once_is_off_as_well() {
    let time = fake_clock();
    let rate = RateConfig { limit: 1, wait: Some(ms(0)), ..five_a_second() };
    let guard = guard().rate_limit(rate).build().unwrap();
    let rates = ScriptedOperation::new(&time, [Ok::<_, &str>(())]);
    let call = || block_on(guard.call(|| rates.call()));
    call().unwrap();
    assert_eq!(call().unwrap_err().limit(), Some(ErrorKind::RateLimited));
    let off = time.disable_rate_limits();
    call().unwrap();
    drop(off);
    call().unwrap();
    assert_eq!(call().unwrap_err().limit(), Some(ErrorKind::RateLimited));
}

fn config(limit: u32) -> Config {
    let toml = format!("[upstreams.rates]\nbase_url = \"http://rates.test\"\nrate_limit = {limit}\n");
    Loader::new().text("test.toml", toml).load().unwrap()
}

#[test]
fn p21_a_reload_puts_other_limits_in_force_but_not_on() {
    let time = fake_clock();
    let script = Script::new(&time, [Step::status(200)]);
    let settings = |limit| config(limit).upstream("rates").unwrap().settings().clone();
    let builder = steadfast::ClientBuilder::from_settings(settings(5));
    let client: ServiceClient = builder.transport(script).build().unwrap();
    let sleeps_of = |count: usize| {
        time.clear();
        for _ in 0..count {
            block_on(client.get("/x").send()).unwrap();
        }
        time.sleeps().len()
    };
    let off = time.disable_rate_limits();
    assert_eq!(sleeps_of(10), 0);
    assert!(client.reload(settings(2)).unwrap());
    assert_eq!(sleeps_of(10), 0, "still off");
    drop(off);
    assert_eq!(sleeps_of(3), 1, "the new limit, not the old one");
}

#[test]
fn p21_fast_mode_can_switch_them_off_too() {
    let fast = fast_mode();
    let rate = RateConfig { limit: 1, wait: Some(ms(0)), ..five_a_second() };
    let guard = guard().rate_limit(rate).build().unwrap();
    let rates = ScriptedOperation::new(&fast, [Ok::<_, &str>(())]);
    let off = fast.disable_rate_limits();
    for _ in 0..10 {
        block_on(guard.call(|| rates.call())).unwrap();
    }
    drop(off);
    block_on(guard.call(|| rates.call())).unwrap();
    assert!(block_on(guard.call(|| rates.call())).is_err());
}
