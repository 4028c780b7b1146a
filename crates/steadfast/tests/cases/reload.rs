//! Other settings for clients in use (contract 9.5).

use std::sync::{Arc, Mutex};

use futures_util::future::{join, join_all};
use steadfast::client::BuildError;
use steadfast::config::{Config, Loader};
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{ClientBuilder, Clients};

use crate::harness::{ms, secs};

/// The clients of a configuration over one scripted upstream, in virtual time.
struct World {
    clock: VirtualClock,
    upstream: Script,
    clients: Clients,
}

fn config(toml: &str) -> Config {
    Loader::new().text("test.toml", toml).load().unwrap()
}

/// Two upstreams; `keys` are the first one's.
fn two(keys: &str) -> Config {
    config(&format!(
        "[upstreams.billing]\nbase_url = 'http://billing.test'\n{keys}\n[upstreams.mail]\nbase_url = 'http://mail.test'\n"
    ))
}

impl World {
    fn new(config: &Config, steps: impl IntoIterator<Item = Step>) -> Self {
        let clock = VirtualClock::new();
        let upstream = Script::new(clock.clone(), steps);
        let (time, script) = (clock.clone(), upstream.clone());
        let clients =
            Clients::with(config, move |_, builder| builder.clock(time.clone()).seed(3).transport(script.clone()));
        Self { clock, upstream, clients: clients.unwrap() }
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.clock.run(future).unwrap()
    }

    fn get(&self, name: &str) -> Result<u16, steadfast::Error> {
        let client = self.clients.client(name).unwrap();
        self.run(client.get("/x").send()).map(|response| response.status().as_u16())
    }

    async fn wait(&self, duration: std::time::Duration) {
        steadfast::Clock::from(self.clock.clone()).wait(duration).await;
    }

    fn open(&self, name: &str) {
        self.upstream.play([Step::refuse()]);
        while !self.get(name).unwrap_err().is_circuit_open() {}
    }
}

fn changed(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What a configuration fixes and a closure sets all the same is told, every key once, and not passed over.
#[test]
fn a_key_that_is_set_over_a_configuration_is_an_error() {
    let error = Clients::with(&two("retries = 1"), |name, builder| match name {
        "billing" => builder.retries(7).header("a", "1").header("b", "2").retries(8).name("other"),
        _ => builder,
    })
    .unwrap_err();
    let text = ["retries", "headers", "name"]
        .map(|key| format!("{key}: the settings of upstream 'billing' come from a configuration, which fixes it"));
    assert_eq!(error.to_string(), text.join("\n"));
    let BuildError::Settings(problems) = error else { panic!("{error:?}") };
    assert_eq!(problems.iter().map(|problem| problem.path()).collect::<Vec<_>>(), ["retries", "headers", "name"]);
}

/// The same for an upstream that a reload brings: it changes nothing then.
#[test]
fn c9_5_a_reload_whose_closure_sets_a_key_changes_nothing() {
    let one = config("[upstreams.billing]\nbase_url = 'http://billing.test'");
    let customize = |name: &str, builder: ClientBuilder| if name == "mail" { builder.retries(7) } else { builder };
    let clients = Clients::with(&one, customize).unwrap();
    assert!(matches!(clients.reload(&two("retries = 1")), Err(BuildError::Settings(_))));
    assert_eq!(clients.all().len(), 1);
    assert_eq!(clients.client("billing").unwrap().settings().retries, 2);
}

/// 200 calls in flight, 100 reloads: none fails for it, and what has happened is not forgotten.
#[test]
fn c9_5_no_call_fails_for_a_hundred_reloads() {
    let world = World::new(&two("max_concurrent = 200"), [Step::reset(), Step::status(200).after(secs(2))]);
    let billing = world.clients.client("billing").unwrap();
    assert!(world.run(billing.post("/x").send()).is_err());
    let before = billing.snapshot();
    let calls = join_all((0..200).map(|_| billing.get("/x").send()));
    let reloads = async {
        for round in 0..100_u32 {
            world.wait(ms(10)).await;
            let keys = format!("max_concurrent = 200\nretries = {}\nbulkhead_wait = '{}ms'", round % 3, 400 + round);
            let reloaded = world.clients.reload(&two(&keys)).unwrap();
            assert_eq!(reloaded.changed, changed(&["billing"]), "round {round}");
            assert_eq!(billing.snapshot().line.in_use, 200);
        }
    };
    let (results, ()) = world.run(join(calls, reloads));
    assert!(results.iter().all(|result| result.as_ref().unwrap().status().as_u16() == 200));
    let after = billing.snapshot();
    assert_eq!(after.line.in_use, 0);
    assert_eq!(after.breaker.failures, before.breaker.failures, "the failure before is still counted");
    assert_eq!(after.breaker.calls, before.breaker.calls + 200);
    assert_eq!(after.budget.requests, before.budget.requests + 200);
}

#[test]
fn c9_5_a_changed_breaker_key_resets_that_breaker_only() {
    let world = World::new(&two(""), [Step::refuse()]);
    world.open("billing");
    world.open("mail");
    // Any other key leaves it as it is.
    assert_eq!(world.clients.reload(&two("retries = 1")).unwrap().changed, changed(&["billing"]));
    assert!(world.get("billing").unwrap_err().is_circuit_open());
    assert!(world.clients.reload(&two("retries = 1\nbreaker_failures = 4")).is_ok());
    world.upstream.play([Step::status(200)]);
    assert_eq!(world.get("billing").unwrap(), 200);
    assert!(world.get("mail").unwrap_err().is_circuit_open());
}

/// Keys that the breaker does not see itself are breaker keys too.
#[test]
fn c9_5_which_statuses_are_failures_is_a_breaker_key() {
    for key in ["breaker_statuses = [500, 503]", "breaker_timeout_evidence = 2"] {
        let world = World::new(&two("retries = 0"), [Step::status(503)]);
        for _ in 0..4 {
            assert!(world.get("billing").is_ok());
        }
        let billing = world.clients.client("billing").unwrap();
        assert_eq!(billing.snapshot().breaker.streak, 4);
        world.clients.reload(&two(&format!("retries = 0\n{key}"))).unwrap();
        assert_eq!(billing.snapshot().breaker.streak, 0, "{key}");
    }
}

#[test]
fn c9_5_the_rate_limit_keeps_its_starts() {
    let world = World::new(&two("rate_limit = 2\nrate_limit_period = 10\nrate_limit_wait = 0"), [Step::status(200)]);
    assert!(world.get("billing").is_ok() && world.get("billing").is_ok());
    let _ = world.clients.reload(&two("rate_limit = 3\nrate_limit_period = 10\nrate_limit_wait = 0")).unwrap();
    assert!(world.get("billing").is_ok(), "one more");
    assert!(world.get("billing").unwrap_err().is_rate_limited(), "the two before still count");
}

#[test]
fn c9_5_calls_under_way_end_as_they_began() {
    let world = World::new(&two("total_timeout = 5"), [Step::hang()]);
    let billing = world.clients.client("billing").unwrap();
    let call = async {
        let result = billing.get("/x").send().await;
        (result.unwrap_err().is_timeout(), world.clock.now())
    };
    let reload = async {
        world.wait(secs(1)).await;
        world.clients.reload(&two("total_timeout = 2")).unwrap();
    };
    let ((timed_out, at), _) = world.run(join(call, reload));
    assert!(timed_out);
    assert_eq!(at.since(Default::default()), secs(5));
    let _ = world.run(billing.get("/x").send());
    assert_eq!(world.clock.now().since(at), secs(2), "the next one has the new deadline");
}

#[test]
fn c9_5_more_slots_let_waiters_in_at_once() {
    let world = World::new(&two("max_concurrent = 1\nbulkhead_wait = 10"), [Step::status(200).after(secs(1))]);
    let billing = world.clients.client("billing").unwrap();
    let calls = join_all((0..3).map(|_| billing.get("/x").send()));
    let reload = async {
        world.wait(ms(500)).await;
        world.clients.reload(&two("max_concurrent = 3\nbulkhead_wait = 10")).unwrap();
    };
    let (results, _) = world.run(join(calls, reload));
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(world.clock.now().since(Default::default()), ms(1_500));
}

#[test]
fn c9_5_upstreams_come_and_go() {
    let world = World::new(&two(""), [Step::status(200)]);
    let mail = world.clients.client("mail").unwrap();
    let other = config(
        "[upstreams.billing]\nbase_url = 'http://billing.test'\n[upstreams.search]\nbase_url = 'http://search.test'\n",
    );
    let reloaded = world.clients.reload(&other).unwrap();
    assert_eq!(
        (reloaded.changed, reloaded.added, reloaded.removed),
        (vec![], changed(&["search"]), changed(&["mail"]))
    );
    assert_eq!(world.get("search").unwrap(), 200);
    assert!(world.clients.client("mail").is_err());
    assert!(world.run(mail.get("/x").send()).is_ok(), "whoever holds it goes on");
    assert!(world.clients.reload(&other).unwrap().is_empty());
}

#[test]
fn a_client_takes_only_its_own_settings() {
    let world = World::new(&two(""), [Step::status(200)]);
    let mail = world.clients.client("mail").unwrap();
    let settings = two("").upstream("billing").unwrap().settings().clone();
    let error = mail.reload(settings).unwrap_err();
    assert!(matches!(error, BuildError::Name { .. }));
    assert_eq!(error.to_string(), "upstream 'mail': the settings are those of upstream 'billing'");
}

#[test]
fn c7_7_closed_clients_stay_closed() {
    let world = World::new(&two(""), [Step::status(200)]);
    world.run(world.clients.close());
    assert!(matches!(world.clients.reload(&two("retries = 1")).unwrap_err(), BuildError::Closed));
}

/// The reload and the calls may be on different threads.
#[test]
fn c9_5_reloads_and_calls_on_several_threads() {
    let world = World::new(&two(""), [Step::status(200)]);
    let billing = world.clients.client("billing").unwrap();
    let failures = Arc::new(Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..500 {
                    if let Err(error) = futures_executor::block_on(billing.get("/x").send()) {
                        failures.lock().unwrap().push(error.to_string());
                    }
                }
            });
        }
        scope.spawn(|| {
            for round in 0..200 {
                world.clients.reload(&two(&format!("retries = {}", round % 5))).unwrap();
            }
        });
    });
    assert_eq!(*failures.lock().unwrap(), Vec::<String>::new());
    assert_eq!(world.upstream.requests(), 1_000);
}
