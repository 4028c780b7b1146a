//! `steadfast simulate`: the policies beside one another, as text, JSON and CSV, the same each time.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{File, Run, command, finish, steadfast};

const FILE: &str = r#"title = "Down for three seconds"
length = "20s"

[upstreams.a]
base_url = "http://a.test"
breaker_cool_down = "2s"

[model.a]
service_time = { mean = "5ms" }

[workload]
clients = 2
rate = 40

[[trigger]]
effect = "down"
at = "6s"
for = "3s"

[policies.hasty.upstreams.a]
breaker_cool_down = "1s"

[[expect]]
recovery = "..4s"

[[expect]]
phase = "during"
amplification = "..0.6"
"#;

fn simulate(file: &File, args: &[&str]) -> Run {
    steadfast(&[&["simulate", file.path()], args].concat())
}

/// What is printed without the path of the file, which differs from run to run.
fn printed(file: &File, run: &Run) -> String {
    run.stdout.replace(file.path(), "down.toml")
}

#[test]
fn the_text_shows_plots_and_the_policies_beside_one_another() {
    let file = File::new("simulate-text.toml", FILE);
    let run = simulate(&file, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(run.stdout.is_ascii(), "nobody is watching: {}", run.stdout);
    insta::assert_snapshot!(printed(&file, &run));
}

#[test]
fn several_seeds_show_how_far_the_figures_spread() {
    let file = File::new("simulate-seeds.toml", FILE);
    let run = simulate(&file, &["--seeds", "3", "--seed", "11"]);
    assert!(run.code == 0 && run.stdout.contains("seeds 11 to 13: mean (least to most)"), "{run:?}");
    let row = run.stdout.lines().find(|line| line.contains("sent to a")).expect("a row");
    assert_eq!(row.matches(" to ").count(), 5, "a spread for each of four policies: {row}");
}

/// The same seed, the same bytes: twice in a row, and with other numbers of threads.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    let file = File::new("simulate-bytes.toml", FILE);
    for output in ["text", "json", "csv"] {
        let once = |jobs: &str| simulate(&file, &["--seeds", "4", "--output", output, "--jobs", jobs]).stdout;
        let first = once("1");
        assert_eq!(first, once("1"), "{output}");
        assert_eq!(first, once("4"), "{output}");
        assert_ne!(first, simulate(&file, &["--seeds", "4", "--output", output, "--seed", "2"]).stdout, "{output}");
    }
}

#[test]
fn json_has_the_figures_and_the_series() {
    let file = File::new("simulate-json.toml", FILE);
    let run = simulate(&file, &["--output", "json", "--seeds", "2"]);
    let lines = run.lines();
    assert_eq!((run.code, lines.len()), (0, 2), "{run:?}");
    let (ran, summary) = (&lines[0], &lines[1]);
    assert_eq!((&ran["event"], &ran["passed"], &ran["expected"]), (&"simulation".into(), &true.into(), &2.into()));
    assert_eq!((&ran["seeds"], &ran["trouble_ms"]), (&serde_json::json!([1, 2]), &serde_json::json!([6000.0, 9000.0])));
    let policies = ran["policies"].as_array().expect("policies");
    let names: Vec<&Value> = policies.iter().map(|policy| &policy["name"]).collect();
    assert_eq!(names, ["none", "blind", "configured", "hasty"]);
    let configured = &policies[2];
    let phases: Vec<&Value> = configured["phases"].as_array().unwrap().iter().map(|phase| &phase["name"]).collect();
    assert_eq!(phases, ["before", "during", "after", "all"]);
    let before = &configured["phases"][0];
    assert_eq!((&before["goodput"]["mean"], &before["goodput"]["seeds"]), (&1.0.into(), &2.into()), "{before}");
    let during = &configured["phases"][1];
    assert!(during["amplification"]["max"].as_f64().unwrap() < 0.6, "{during}");
    for run in configured["runs"].as_array().unwrap() {
        let series = |name: &str| -> Vec<u64> {
            let series = run["calls"][name].as_array().unwrap_or_else(|| panic!("no {name}: {run}"));
            series.iter().map(|figure| figure.as_u64().unwrap()).collect()
        };
        let sum = |name: &str| series(name).iter().sum::<u64>();
        assert_eq!(series("offered").len(), 20);
        let ends =
            ["ok", "bad_answer", "unreachable", "timeout", "circuit_open", "bulkhead_full", "rate_limited", "other"];
        assert_eq!(ends.iter().map(|end| sum(end)).sum::<u64>(), sum("offered"), "every call ended somehow");
        assert!(sum("sent") > 0 && run["upstream"]["requests"].as_array().unwrap().len() == 20);
        let opened = &run["breakers"][0];
        assert_eq!((&opened["from"], &opened["to"]), (&"closed".into(), &"open".into()));
    }
    assert_eq!(summary, &serde_json::json!({ "event": "summary", "passed": 1, "missed": 0, "bad": 0 }));
}

#[test]
fn csv_has_a_row_for_each_interval() {
    let file = File::new("simulate-csv.toml", FILE);
    let run = simulate(&file, &["--output", "csv"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let lines: Vec<Vec<&str>> = run.stdout.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + 4 * 20, "a head, and four policies of twenty seconds");
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{}", run.stdout);
    let column = |name: &str| lines[0].iter().position(|known| *known == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!((lines[1][column("policy")], lines[1][column("seed")], lines[1][column("at_s")]), ("none", "1", "0"));
    let offered = |policy: &str| -> Vec<&str> {
        let rows = lines.iter().filter(|line| line[column("policy")] == policy);
        rows.map(|line| line[column("offered")]).collect()
    };
    assert_eq!(offered("none"), offered("configured"), "the same arrivals for all");
}

/// A bound that is missed is an exit status of 1, with what was measured; in every form of output.
#[test]
fn a_missed_bound_fails_and_says_what_was_measured() {
    let file = File::new("simulate-missed.toml", &FILE.replace("..0.6", "..0.01"));
    let run = simulate(&file, &[]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.starts_with("MISS  ") && run.stdout.contains("0 as expected, 1 not"), "{run:?}");
    let said = "  line 28: configured: amplification in phase during: expected 0..0.01, measured 0.";
    assert!(run.stdout.contains(said), "{run:?}");
    let run = simulate(&file, &["--output", "json"]);
    let missed = &run.lines()[0]["missed"][0];
    assert_eq!((run.code, &missed["line"], &missed["figure"]), (1, &28.into(), &"amplification".into()), "{missed}");
    assert!(missed["measured"][0].as_f64().unwrap() > 0.01 && missed["seeds"] == serde_json::json!([1]), "{missed}");
    let run = simulate(&file, &["--output", "csv"]);
    assert!(run.code == 1 && run.stderr.contains("line 28: configured: amplification"), "{run:?}");
}

#[test]
fn a_file_with_problems_keeps_no_other_from_being_run() {
    let bad = File::new("simulate-bad.toml", &FILE.replace("rate = 40", "rte = 40"));
    let good = File::new("simulate-good.toml", FILE);
    let run = steadfast(&["simulate", bad.path(), good.path()]);
    assert_eq!(run.code, 78, "{run:?}");
    let said = format!("  {}:13:1: workload.rte: unknown key; did you mean `rate`?", bad.path());
    assert!(run.stdout.contains(&said), "{said}: {run:?}");
    assert!(run.stdout.ends_with("1 as expected, 0 not, 1 could not be run\n"), "{run:?}");
    let run = steadfast(&["simulate", bad.path(), "--output", "json"]);
    let problem = &run.lines()[0]["problems"][0];
    assert_eq!((run.code, &problem["line"], &problem["nearest"]), (78, &13.into(), &"rate".into()), "{run:?}");
    let run = steadfast(&["simulate", bad.path(), "--output", "csv"]);
    assert!(run.code == 78 && run.stderr.contains("workload.rte") && run.stdout.lines().count() == 1, "{run:?}");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let file = File::new("simulate-usage.toml", FILE);
    for args in
        [&["--seeds", "0"][..], &["--seeds", "101"], &["--jobs", "0"], &["--output", "junit"], &["--seed", "-1"]]
    {
        assert_eq!(simulate(&file, args).code, 64, "{args:?}");
    }
    assert_eq!(steadfast(&["simulate"]).code, 64);
    assert_eq!(steadfast(&["simulate", "/does/not/exist"]).code, 64);
    let empty: PathBuf = std::env::temp_dir().join(format!("steadfast-simulate-empty-{}", std::process::id()));
    std::fs::create_dir_all(&empty).unwrap();
    let run = steadfast(&["simulate", empty.to_str().unwrap()]);
    std::fs::remove_dir_all(&empty).unwrap();
    assert!(run.code == 64 && run.stderr.contains("no file in it, or below it, ends in .toml"), "{run:?}");
}

/// A terminal that can do no more gets ASCII, as a pipe does; the variable changes nothing else.
#[test]
fn a_dumb_terminal_gets_ascii() {
    let file = File::new("simulate-dumb.toml", FILE);
    let mut dumb = command(&["simulate", file.path()]);
    dumb.env("TERM", "dumb");
    assert_eq!(finish(dumb).stdout, simulate(&file, &[]).stdout);
}

#[test]
fn its_schema_is_one_of_the_schemas() {
    let run = steadfast(&["schema", "simulation"]);
    let schema: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((run.code, &schema["required"][0]), (0, &"title".into()), "{run:?}");
    let run = steadfast(&["schema", "simulation", "--table", "x"]);
    assert!(run.code == 64 && run.stderr.contains("a simulation has its tables at the top level"), "{run:?}");
}
