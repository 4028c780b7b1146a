//! Runs the acceptance checks and prints their table: see the library's page and `--help`.

use std::process::{Command, ExitCode};
use std::time::Instant;

use steadfast_acceptance::check::Check;
use steadfast_acceptance::options::{HELP, Options};
use steadfast_acceptance::table::{self, Findings, Origin};
use steadfast_acceptance::{Failure, pool, selected};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, Failure> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let checks = selected(&options);
    if checks.is_empty() {
        return Err("no check has this section and cell: see --help".into());
    }
    // Before anything runs: a checkout may change meanwhile.
    let commit = commit();
    let began = Instant::now();
    let seeds: Vec<u64> = (1..=options.seeds).collect();
    let results = pool::run(&checks, &seeds, options.jobs, |done, all| {
        if done % 100 == 0 {
            eprintln!("{done} of {all} runs, {:.0} s", began.elapsed().as_secs_f64());
        }
    })?;
    let origin = Origin {
        commit,
        seeds: seeds.clone(),
        runs: results.len(),
        calls: results.values().map(|figures| figures.calls).sum(),
    };
    let evaluate = |check: Check| check.evaluate(&seeds, &results).map(|finding| (check, finding));
    let findings: Option<Findings> = checks.into_iter().map(evaluate).collect();
    let findings = findings.ok_or("a run that a check needs was not made")?;
    print!("{}", table::markdown(&origin, &findings));
    if let Some(file) = options.json {
        let text = serde_json::to_string_pretty(&table::json(&origin, &findings))?;
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    eprintln!("{} runs in {:.0} s", origin.runs, began.elapsed().as_secs_f64());
    Ok(ExitCode::from(table::exit_status(&findings)))
}

/// The commit of the checkout in which this runs, and whether it was changed since.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| Command::new("git").args(arguments).output().ok();
    let head = git(&["rev-parse", "--short=12", "HEAD"]).filter(|output| output.status.success())?;
    let head = String::from_utf8(head.stdout).ok()?.trim().to_owned();
    let changed = git(&["diff", "--quiet", "HEAD"]).is_none_or(|output| !output.status.success());
    Some(if changed { format!("{head} with changes") } else { head })
}
