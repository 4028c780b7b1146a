//! `steadfast test`: what it prints in each form, and how it exits.

use crate::support::{File, Run, steadfast};

const SCENARIO: &str = r#"title = "A 503 is repeated <once>"
contract = ["2.1", "C1"]
why = "Another attempt may be answered."
each = [{ status = 200 }, { status = 404 }]
[upstreams.billing]
base_url = "http://billing.test"
jitter = "none"
[[script.billing]]
status = 503
[[script.billing]]
status = "{status}"
[[step]]
call = "billing"
expect = { result = 200, waits = [{ backoff = "100ms" }] }
"#;

/// What was printed, with a name in the place of the file's.
fn printed(run: &Run, file: &File) -> String {
    run.stdout.replace(file.path(), "a.toml")
}

#[test]
fn a_difference_is_shown_with_the_time_line() {
    let file = File::new("differs.toml", SCENARIO);
    let run = steadfast(&["test", file.path()]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    insta::assert_snapshot!("scenarios_text", printed(&run, &file));
}

#[test]
fn as_json_and_as_junit() {
    let file = File::new("forms.toml", SCENARIO);
    for form in ["json", "junit"] {
        let run = steadfast(&["test", file.path(), "--output", form]);
        assert_eq!((run.code, run.stderr.as_str()), (1, ""));
        insta::assert_snapshot!(format!("scenarios_{form}"), printed(&run, &file));
    }
}

#[test]
fn a_file_with_problems_does_not_keep_others_from_being_played() {
    let good = File::new("good.toml", &SCENARIO.replace("{ status = 404 }", "{ status = 200 }"));
    let bad = File::new("bad.toml", &SCENARIO.replace("[[step]]", "[[steps]]").replace("503", "53"));
    let run = steadfast(&["test", bad.path(), good.path()]);
    assert_eq!(run.code, 78, "{run:?}");
    let said = run.stdout.replace(bad.path(), "bad.toml").replace(good.path(), "good.toml");
    insta::assert_snapshot!("scenarios_problems", said);
    for form in ["json", "junit"] {
        let run = steadfast(&["test", bad.path(), good.path(), "--output", form]);
        assert_eq!(run.code, 78, "{run:?}");
        let said = run.stdout.replace(bad.path(), "bad.toml").replace(good.path(), "good.toml");
        insta::assert_snapshot!(format!("scenarios_problems_{form}"), said);
    }
}

#[test]
fn over_sockets_it_is_the_same_and_what_cannot_be_is_left_out() {
    let passing = SCENARIO.replace("{ status = 404 }", "{ status = 200 }").replace("100ms", "50ms..200ms");
    let file = File::new("sockets.toml", &passing);
    let virtual_only = passing.replace("contract", "virtual_only = \"a & b\"\ncontract");
    let other = File::new("virtual.toml", &virtual_only);
    let run = steadfast(&["test", "--sockets", file.path(), other.path()]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let said = run.stdout.replace(file.path(), "a.toml").replace(other.path(), "b.toml");
    insta::assert_snapshot!("scenarios_sockets", said);
    for form in ["json", "junit"] {
        let run = steadfast(&["test", "--sockets", other.path(), "--output", form]);
        let nothing = "error: --sockets: all of it was left out, and nothing was played\n";
        assert_eq!((run.code, run.stderr.as_str()), (64, nothing), "{run:?}");
        insta::assert_snapshot!(format!("scenarios_sockets_{form}"), run.stdout.replace(other.path(), "b.toml"));
    }
    // It is played where it can be.
    assert_eq!(steadfast(&["test", other.path()]).code, 0);
}

#[test]
fn a_wrong_expectation_fails_over_sockets_too() {
    let file = File::new("wrong.toml", SCENARIO);
    let run = steadfast(&["test", "--sockets", file.path()]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run:?}");
    for part in ["expected  200", "seen      404", "time line", "request GET /: 503", "1 passed, 1 failed"] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
}

#[test]
fn a_filter_picks_by_title_variant_path_or_number() {
    let file = File::new("filter.toml", SCENARIO);
    for (filter, code, played) in
        [("REPEATED", 1, 2), ("status = 200", 0, 1), ("filter.toml", 1, 2), ("C1", 1, 2), ("2.1", 1, 2)]
    {
        let run = steadfast(&["test", file.path(), "--filter", filter, "--output", "json"]);
        assert_eq!((run.code, run.lines().len()), (code, played + 1), "{filter}");
    }
    // A number is meant whole.
    assert_eq!(steadfast(&["test", file.path(), "--filter", "2.10"]).code, 64);
    let run = steadfast(&["test", file.path(), "--filter", "elsewhere"]);
    assert_eq!(run.code, 64);
    assert_eq!(run.stderr, "error: --filter: no scenario has this in its path, its title, or its numbers\n");
}

#[test]
fn what_is_not_there() {
    let run = steadfast(&["test", "nowhere"]);
    assert_eq!((run.code, run.stdout.as_str()), (64, ""));
    assert!(run.stderr.starts_with("error: nowhere: "), "{run:?}");
    let empty = std::env::temp_dir().join(format!("steadfast-cli-{}-empty", std::process::id()));
    std::fs::create_dir_all(&empty).expect("a directory");
    let run = steadfast(&["test", empty.to_str().expect("UTF-8")]);
    std::fs::remove_dir(&empty).expect("an empty directory");
    assert_eq!(run.code, 64);
    assert!(run.stderr.ends_with(": no file in it, or below it, ends in .toml\n"), "{run:?}");
}

#[test]
fn the_projects_own_pass() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let run = steadfast(&["test", directory]);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn its_schema() {
    let run = steadfast(&["schema", "scenario"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let schema: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(schema["required"], serde_json::json!(["title", "why", "step"]));
    let run = steadfast(&["schema", "scenario", "--table", "x"]);
    assert_eq!((run.code, run.stderr.as_str()), (64, "error: --table: a scenario has its tables at the top level\n"));
}
