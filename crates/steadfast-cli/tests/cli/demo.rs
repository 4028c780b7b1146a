//! The demo keeps its promises, told by its own machine-readable output.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Run, command, steadfast};

fn demo(args: &[&str]) -> Run {
    steadfast(&[&["demo", "--duration", "5s"], args].concat())
}

fn upstream<'a>(lines: &'a [Value], name: &str) -> &'a Value {
    let of = |line: &&Value| line["event"] == "upstream" && line["upstream"] == name;
    lines.iter().find(of).unwrap_or_else(|| panic!("no {name}: {lines:?}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a number: {value}"))
}

#[test]
fn the_figures_prove_what_the_demo_says() {
    let run = demo(&["--output", "json"]);
    let lines = run.lines();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let start = &lines[0];
    assert_eq!((&start["event"], &start["breaker_cool_down_ms"]), (&"start".into(), &500.into()), "{start}");

    // The upstream that was down: what opened the breaker, and one probe per cool-down.
    let down = upstream(&lines, "down");
    let steps: Vec<_> = down["breaker_transitions"].as_array().unwrap().iter().collect();
    let states: Vec<_> = steps.iter().map(|step| step["to"].as_str().unwrap()).collect();
    assert_eq!(states.first(), Some(&"open"), "{down}");
    assert_eq!(states[states.len() - 2..], ["half_open", "closed"], "{down}");
    let opened = number(&steps[0]["opened_with"]["streak"]);
    let outage = number(&start["down_until_ms"]) - number(&start["down_from_ms"]);
    let cool_downs = outage.div_ceil(number(&start["breaker_cool_down_ms"]));
    let requests = number(&down["while_down"]["requests"]);
    // A retry may be in flight at the moment at which another attempt opens the breaker.
    assert!(requests <= opened + 1 + cool_downs, "{requests} requests, opened by {opened}: {down}");
    let blind = &down["blind"]["while_down"];
    // Four per call; on a busy machine a call may straddle an end of the outage.
    assert!(number(&blind["requests"]).abs_diff(4 * number(&blind["calls"])) <= 4, "{down}");
    assert_eq!(down["breaker"], "closed", "{down}");

    let healthy = upstream(&lines, "healthy");
    assert_eq!((&healthy["succeeded"], &healthy["requests_at_upstream"]), (&50.into(), &50.into()), "{healthy}");
    let mut resent_blindly = 0;
    for name in ["healthy", "flaky", "slow", "down", "limited"] {
        let line = upstream(&lines, name);
        assert_eq!((&line["calls"], &line["blind"]["calls"]), (&50.into(), &50.into()), "{line}");
        assert_eq!(line["unsafe_resends"], 0, "{line}");
        resent_blindly += number(&line["blind"]["unsafe_resends"]);
    }
    assert!(resent_blindly > 0, "{lines:?}");
    let transitions = lines.iter().filter(|line| line["event"] == "transition" && line["upstream"] == "down");
    assert_eq!(transitions.count(), steps.len());
    assert_eq!(lines.last().unwrap()["summary"], true);
}

#[test]
fn without_a_terminal_people_get_the_transitions_and_the_summary() {
    let run = demo(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    for text in ["down: closed → open", "down: half open → closed", "While `down` was down", "healthy", "100.0 %"] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
}

#[test]
fn an_interrupt_ends_it_with_the_summary_so_far() {
    let mut child = command(&["demo", "--output", "json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains(r#""event":"start""#));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!((rest.len(), &rest[5]["summary"]), (6, &true.into()), "{rest:?}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
