//! The help as it is printed, so that a change of it is seen.

use crate::support::steadfast;

#[test]
fn the_help_teaches() {
    for name in ["", "call", "check", "test", "simulate", "schema", "init", "demo", "completions"] {
        let args: Vec<_> = [name, "--help"].into_iter().filter(|arg| !arg.is_empty()).collect();
        let run = steadfast(&args);
        assert_eq!(run.code, 0, "{run:?}");
        let lines: Vec<_> = run.stdout.lines().map(str::trim_end).collect();
        let longest = lines.iter().map(|line| line.chars().count()).max();
        assert!(longest <= Some(100), "{name}: {longest:?}");
        insta::assert_snapshot!(format!("help_{name}"), lines.join("\n"));
    }
}
