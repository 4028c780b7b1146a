//! What a file says is what is simulated.

use std::time::Duration;

use steadfast_sim::outage::{
    Balancer, Cold, DeadWork, Discipline, Effect, Of, Pulse, RateLimiter, ServiceTime, Tells, Workload,
};

use crate::{GOOD, read, run, with};

const SEC: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

#[test]
fn a_model_has_what_is_said_of_it() {
    let text = with(
        "service_time = { fixed = \"1ms\" }",
        r#"service_time = { median = "8ms", p99 = "60ms" }
replicas = 3
workers = 4
queue = 10
discipline = "lifo"
dead_work = "cancelled"
balancer = "least_busy"
health_check = "2s"
cold = { speed = 0.4, for = "5s" }
rate_limit = { limit = 60, period = "2s", per_client = true, tells = "rate_limit" }"#,
    );
    let model = &read(&text).simulation.upstreams[0];
    assert_eq!((model.replicas, model.workers, model.queue), (3, 4, Some(10)));
    assert_eq!((model.discipline, model.dead_work), (Discipline::Lifo, DeadWork::Cancelled));
    assert_eq!((model.balancer, model.health_check), (Balancer::LeastBusy, Some(SEC * 2)));
    assert_eq!(model.service, ServiceTime::LogNormal { median: MS * 8, p99: MS * 60 });
    assert_eq!(model.cold, Some(Cold { speed: 0.4, lasts: SEC * 5 }));
    let limit = RateLimiter { limit: 60, period: SEC * 2, per_client: true, tells: Tells::RateLimit };
    assert_eq!(model.rate_limit, Some(limit));
    for (said, service) in [
        ("mean = \"5ms\"", ServiceTime::Exponential { mean: MS * 5 }),
        ("drawn = [\"1ms\", \"2ms\"]", ServiceTime::Drawn(vec![MS, MS * 2])),
        ("replayed = [\"1ms\", \"2ms\"]", ServiceTime::Replayed(vec![MS, MS * 2])),
    ] {
        assert_eq!(read(&with("fixed = \"1ms\"", said)).simulation.upstreams[0].service, service);
    }
}

#[test]
fn a_workload_is_one_of_four() {
    for (said, clients, workload) in [
        ("rate = 10\nclients = 7", 7, Workload::Open { per_second: 10.0 }),
        ("rate = 0.5\neven = true", 1, Workload::Even { per_second: 0.5 }),
        ("callers = 3\nthink = \"200ms\"", 1, Workload::Closed { callers: 3, think: MS * 200 }),
        ("arrivals = [\"1s\", \"1s\", \"2s\"]", 1, Workload::Recorded { at: vec![SEC, SEC, SEC * 2] }),
    ] {
        let simulation = read(&with("rate = 10", said)).simulation;
        assert_eq!((simulation.clients, simulation.workload), (clients, workload));
    }
}

#[test]
fn each_effect_is_what_it_is_called() {
    let answer = |status, after, retry_after| Effect::Answer { status, after, retry_after };
    for (said, effect) in [
        ("\"slow\"\nspeed = 0.3", Effect::Slow { speed: 0.3 }),
        ("\"freeze\"", Effect::FROZEN),
        ("\"down\"", Effect::DOWN),
        ("\"answer\"\nstatus = 429\nafter = \"2ms\"\nretry_after = \"3s\"", answer(429, MS * 2, Some(SEC * 3))),
        ("\"costly\"\nstatus = 500", Effect::Costly { status: 500 }),
        ("\"refuse\"", Effect::REFUSED),
        ("\"unreachable\"", Effect::Unreachable),
        ("\"hang\"", Effect::Hang),
        ("\"reset\"", Effect::Reset),
        ("\"restart\"", Effect::Restart { graceful: true }),
        ("\"restart\"\ngraceful = false", Effect::Restart { graceful: false }),
        ("\"load\"\nfactor = 2", Effect::Load { factor: 2.0 }),
    ] {
        let text = GOOD.replacen("\"down\"", said, 1);
        let trigger = &read(&text).simulation.triggers[0];
        assert_eq!((trigger.effect, trigger.from, trigger.lasts, trigger.of), (effect, SEC * 4, SEC * 2, Of::All));
    }
    let more = "\"down\"\nevery = \"1s\"\neach = \"100ms\"\nstagger = \"3s\"\nreplica = 0\nshare_of_attempts = 0.2";
    let trigger = &read(&with("\"down\"", more)).simulation.triggers[0];
    assert_eq!(trigger.pulse, Some(Pulse { every: SEC, lasts: MS * 100 }));
    assert_eq!((trigger.stagger, trigger.replica, trigger.of), (SEC * 3, Some(0), Of::Attempts(0.2)));
    let calls = read(&with("\"down\"", "\"hang\"\nshare_of_calls = 0.1"));
    assert_eq!(calls.simulation.triggers[0].of, Of::Calls(0.1));
}

#[test]
fn policies_are_the_settings_and_what_is_laid_over_them() {
    let text =
        with("base_url", "breaker_failures = 9\nbase_url").replace("retries = 1", "retries = 7\nbreaker_failures = 3");
    let file = read(&format!("{text}\n[policies.off]\nbreaker = false\n"));
    let named = |name: &str| file.policies.iter().find(|policy| policy.name == name).unwrap();
    let names: Vec<&str> = file.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["none", "blind", "configured", "quick", "off"]);
    let of = |name: &str| {
        let policy = named(name);
        (policy.settings.retries, policy.settings.breaker_failures, policy.breaker)
    };
    assert_eq!(of("none"), (0, 9, false));
    assert_eq!(of("blind"), (2, 9, false));
    assert!(!named("blind").settings.retry_budget_gate && named("blind").settings.retry_budget_ratio > 100.0);
    assert_eq!(of("configured"), (2, 9, true));
    assert_eq!(of("quick"), (7, 3, true));
    assert_eq!(of("off"), (2, 9, false));
    let file = read(&with("title = \"a\"", "title = \"a\"\ncompare = [\"quick\", \"configured\"]"));
    let names: Vec<&str> = file.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["quick", "configured"], "those that are named, in their order");
}

/// Without a word about the upstream its settings are the defaults, and the address is nobody's business.
#[test]
fn a_model_alone_has_the_defaults() {
    let file = read(&with("[upstreams.a]\nbase_url = \"http://a.test\"\n", ""));
    assert_eq!(file.policies[2].settings.retries, 2);
}

#[test]
fn the_services_own_configuration_is_read_with_what_is_laid_over_it() {
    let dir = std::env::temp_dir().join(format!("steadfast-simulations-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let service = "[plugin.http.upstreams.a]\nbase_url = \"http://a.test\"\nretries = 5\nmax_concurrent = 3\n\
                   [plugin.http.upstreams.other]\nbase_url = \"http://other.test\"\n";
    std::fs::write(dir.join("steadfast.toml"), service).unwrap();
    let at = |text: &str| {
        let path = dir.join("a.toml");
        std::fs::write(&path, text).unwrap();
        steadfast_sim::outage::file::SimulationFile::read(&path)
    };
    let config = "title = \"a\"\nconfig = \"steadfast.toml\"\ntable = \"plugin.http\"";
    let text = with("title = \"a\"", config).replace("base_url = \"http://a.test\"", "max_concurrent = 4");
    let file = at(&text).unwrap();
    let settings = &file.policies[2].settings;
    assert_eq!((settings.retries, settings.max_concurrent), (5, 4));
    assert_eq!(file.policies[3].settings.retries, 1, "the candidate's, over both");
    let problems = at(&text.replace("model.a]", "model.othr]").replace("upstreams.a]", "upstreams.othr]")).unwrap_err();
    assert!(problems.to_string().contains("upstreams.othr.base_url: missing"), "{problems}");
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Every hop of a chain has the settings of its own upstream, and a candidate changes those that it names.
#[test]
fn each_hop_has_its_own_settings() {
    let text = r#"
title = "a"
length = "20s"
workload = { rate = 5, calls = "a" }
compare = ["blind", "outermost"]
[upstreams.a]
retries = 1
base_url = "http://a.test"
[upstreams.b]
retries = 3
base_url = "http://b.test"
[model.a]
workers = 50
service_time = { fixed = "1ms" }
calls = "b"
[model.b]
workers = 50
service_time = { fixed = "1ms" }
[[trigger]]
effect = "down"
upstream = "b"
at = "0s"
for = "60s"
[policies.outermost]
breaker = false
[policies.outermost.upstreams.a]
retry_budget_gate = false
retry_budget_ratio = 100
[policies.outermost.upstreams.b]
retries = 0
"#;
    let outcome = run(text, 1);
    let sent = |policy: usize, hop: usize| {
        let run = &outcome.runs[policy][0];
        run.upstream_total(hop).requests as f64 / run.total().offered as f64
    };
    assert_eq!((sent(0, 0), sent(0, 1)), (2.0, 8.0), "two attempts, each of four");
    assert_eq!((sent(1, 0), sent(1, 1)), (2.0, 2.0), "two attempts, each of one");
}
