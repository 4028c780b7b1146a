//! The page, the dashboard and the alert rules say what the table says.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde_json::Value;
use steadfast::metrics::{Kind, MOST_NAMES, OTHER, SECONDS, TABLE};

use crate::queries::problems;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_page_has_the_table() {
    let page = read("docs/telemetry.md");
    let mut expected = String::from("| metric | in Prometheus | kind | labels | says |\n|---|---|---|---|---|\n");
    let mut labels = Vec::new();
    for metric in TABLE {
        let names: Vec<_> = metric.labels.iter().map(|label| format!("`{}`", label.name())).collect();
        let (name, prometheus, kind) = (metric.name, metric.prometheus_name(), metric.kind.name());
        writeln!(expected, "| `{name}` | `{prometheus}` | {kind} | {} | {} |", names.join(", "), metric.help).unwrap();
        labels.extend(metric.labels.iter().filter_map(|label| Some((metric.name, label.name(), label.values()?))));
    }
    assert!(page.contains(&expected), "docs/telemetry.md wants this table:\n\n{expected}");
    let mut expected = String::from("| metric | label | values |\n|---|---|---|\n");
    for (metric, label, values) in labels {
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        writeln!(expected, "| `{metric}` | `{label}` | {} |", values.join(", ")).unwrap();
    }
    assert!(page.contains(&expected), "docs/telemetry.md wants this table:\n\n{expected}");
    let bounds: Vec<_> = SECONDS.iter().map(ToString::to_string).collect();
    for fact in [bounds.join(", "), format!("{MOST_NAMES} names"), format!("`{OTHER}`")] {
        assert!(page.contains(&fact), "docs/telemetry.md does not say: {fact}");
    }
}

#[test]
fn every_query_of_the_dashboard_is_about_metrics_that_there_are() {
    let dashboard: Value = serde_json::from_str(&read("ops/grafana/steadfast.json")).unwrap();
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    for query in &queries {
        assert_eq!(problems(query), [""; 0], "{query}");
    }
    let all = queries.join("\n");
    for metric in TABLE {
        assert!(all.contains(&metric.prometheus_name()), "no panel shows {metric}");
    }
}

/// What Grafana looks at when it imports a dashboard, and what a reader needs.
#[test]
fn the_dashboard_can_be_imported() {
    let dashboard: Value = serde_json::from_str(&read("ops/grafana/steadfast.json")).unwrap();
    assert!(dashboard["title"].is_string() && dashboard["uid"].is_string());
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36), "panels name their data source by `uid`");
    assert!(dashboard["id"].is_null(), "an id is the importing Grafana's to give");
    let variables: Vec<_> = dashboard["templating"]["list"].as_array().unwrap().iter().map(|v| &v["name"]).collect();
    assert_eq!(variables, ["datasource", "job", "upstream"]);
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels have the id of {}", panel["title"]);
        let grid = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        for (x, y) in
            (grid("x")..grid("x") + grid("w")).flat_map(|x| (grid("y")..grid("y") + grid("h")).map(move |y| (x, y)))
        {
            assert!(x < 24 && taken.insert((x, y)), "{} lies on another panel", panel["title"]);
        }
        if panel["type"] != "row" {
            assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{}", panel["title"]);
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{}", panel["title"]);
        }
    }
}

#[test]
fn every_alert_is_about_metrics_that_there_are_and_says_what_to_do() {
    let rules = read("ops/prometheus/steadfast.rules.yml");
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 5);
    let mut all = String::new();
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        assert!(name.starts_with("Steadfast"), "{name}");
        let query = expression(alert);
        assert_eq!(problems(&query), [""; 0], "{name}: {query}");
        all += &query;
        assert!(alert.contains("severity: page\n") || alert.contains("severity: ticket\n"), "{name}");
        for annotation in ["summary: \"", "description: \"", "runbook: \""] {
            let text = alert.split_once(annotation).unwrap_or_else(|| panic!("{name} has no {annotation}")).1;
            assert!(text.find('"').is_some_and(|length| length > 20), "{name}: {annotation}");
        }
    }
    // Each of these has an alert.
    for metric in [
        "steadfast_calls_total",
        "steadfast_circuit_breaker_state",
        "steadfast_retry_budget_denials_total",
        "steadfast_rejections_total",
        "steadfast_call_duration_seconds",
        "steadfast_degraded_total",
    ] {
        assert!(all.contains(metric), "no alert on {metric}");
    }
}

/// What follows `expr:`, on its line or indented below it.
fn expression(alert: &str) -> String {
    let (_, rest) = alert.split_once("expr: ").expect("an alert has an expression");
    let mut lines = rest.lines();
    match lines.next() {
        Some("|") => lines.take_while(|line| line.starts_with("          ")).collect::<Vec<_>>().join("\n"),
        line => line.expect("it is on this line").to_owned(),
    }
}

/// Every string under `expr`, and the queries of variables.
fn collect(value: &Value, queries: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(query) if name == "expr" || name == "definition" => queries.push(query.clone()),
                    _ => collect(value, queries),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, queries)),
        _ => {}
    }
}

#[test]
fn a_histogram_counts_what_the_longest_usual_deadline_allows() {
    assert!(SECONDS.contains(&30.0), "the default of total_timeout");
    assert!(TABLE.iter().filter(|metric| metric.kind == Kind::Histogram).all(|metric| metric.in_seconds));
}
