//! The table: one row for each threshold. The same checks, seeds and code give the same text on every machine.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::check::{Check, Finding};

/// What a table says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The commit that it was made from; `None` outside of a checkout.
    pub commit: Option<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Runs that were made.
    pub runs: usize,
    /// Calls that were made in them.
    pub calls: u64,
}

/// Checks with what they showed.
pub type Findings = Vec<(Check, Finding)>;

/// How many thresholds were missed.
pub fn missed(findings: &Findings) -> usize {
    findings.iter().filter(|(_, finding)| !finding.met).count()
}

/// The exit status of who checks them: 0 all met, 1 some missed.
pub fn exit_status(findings: &Findings) -> u8 {
    u8::from(missed(findings) > 0)
}

/// As markdown.
pub fn markdown(origin: &Origin, findings: &Findings) -> String {
    let mut text = String::new();
    let commit = origin.commit.as_deref().unwrap_or("unknown");
    let seeds: Vec<String> = origin.seeds.iter().map(u64::to_string).collect();
    text += &format!(
        "Commit {commit}; seeds {}; {} runs, {} calls. {} thresholds, {} missed.\n\n",
        seeds.join(", "),
        origin.runs,
        origin.calls,
        findings.len(),
        missed(findings)
    );
    text += &summary(findings);
    let mut section = "";
    for (check, finding) in findings {
        if check.section != section {
            section = check.section;
            text += &format!("\n### {section}\n\n");
            text += "| cell | measured | mean | worst | threshold | known | |\n|---|---|---:|---:|---|---|---|\n";
        }
        let single = check.single.map(|single| format!(", each {single}")).unwrap_or_default();
        text += &format!(
            "| {} | {} | {} | {} | {}{single} | {} | {} |\n",
            check.cell,
            check.measure.words(),
            number(finding.mean),
            number(finding.worst),
            check.bound,
            check.known,
            if finding.met { "met" } else { "**missed**" }
        );
    }
    text
}

fn summary(findings: &Findings) -> String {
    let mut sections: BTreeMap<(bool, &str), (usize, usize)> = BTreeMap::new();
    for (check, finding) in findings {
        let (all, missed) = sections.entry((check.section.starts_with("breaker"), check.section)).or_default();
        *all += 1;
        *missed += usize::from(!finding.met);
    }
    let mut text = "| section | thresholds | missed |\n|---|---:|---:|\n".to_owned();
    for ((_, section), (all, missed)) in sections {
        text += &format!("| {section} | {all} | {missed} |\n");
    }
    text
}

/// Enough digits to see on which side of its threshold a value is.
fn number(value: f64) -> String {
    // What is shown as zero has no sign.
    let value = if value.abs() < 0.000_5 { 0.0 } else { value };
    if value.abs() < 10.0 { format!("{value:.3}") } else { format!("{value:.2}") }
}

/// Everything, with the value of each seed.
pub fn json(origin: &Origin, findings: &Findings) -> Value {
    let rows: Vec<Value> = findings
        .iter()
        .map(|(check, finding)| {
            json!({
                "section": check.section,
                "cell": check.cell,
                "measure": check.measure.words(),
                "values": finding.values,
                "mean": finding.mean,
                "worst": finding.worst,
                "threshold": check.bound.to_string(),
                "each": check.single.map(|single| single.to_string()),
                "known": check.known,
                "met": finding.met,
            })
        })
        .collect();
    let Origin { commit, seeds, runs, calls } = origin;
    json!({"commit": commit, "seeds": seeds, "runs": runs, "calls": calls, "missed": missed(findings), "rows": rows})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Bound, Measure};
    use crate::figures::{Figure, Trial};
    use crate::rules::Rule;
    use crate::scenario::{Case, Scenario};

    fn findings() -> Findings {
        let trial = Trial { case: Case::new(Scenario::Slow, 85, 1), rule: Rule::Budget };
        let check = |section, cell: &str, bound, single| Check {
            section,
            cell: cell.to_owned(),
            measure: Measure::Of(Figure::After, trial),
            bound,
            single,
            known: "98",
            quick: false,
        };
        let finding = |mean: f64, worst, met| Finding { values: vec![mean], mean, worst, met };
        vec![
            (
                check("budget.A", "slow .85, N=1", Bound::AtLeast(95.0), Some(Bound::AtLeast(75.0))),
                finding(98.0, 97.126, true),
            ),
            (check("budget.H", "slow .85, N=1", Bound::Below(0.5), None), finding(-0.000_1, 0.0, true)),
            (check("breaker.C", "down 503 .70, N=1", Bound::AtMost(220.0), None), finding(221.04, 230.0, false)),
        ]
    }

    fn origin() -> Origin {
        Origin { commit: None, seeds: vec![1, 2], runs: 6, calls: 1_000 }
    }

    #[test]
    fn a_row_says_what_was_measured_and_what_it_had_to_be() {
        let text = markdown(&origin(), &findings());
        let row =
            "| slow .85, N=1 | goodput 30-70 s after: budget alone | 98.00 | 97.13 | ≥ 95, each ≥ 75 | 98 | met |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| 0.000 | 0.000 | < 0.5 |"), "zero has no sign: {text}");
        assert!(text.contains("| 221.04 | 230.00 | ≤ 220 | 98 | **missed** |"), "{text}");
    }

    #[test]
    fn the_summary_counts_by_section() {
        let text = markdown(&origin(), &findings());
        assert!(text.contains("Commit unknown; seeds 1, 2; 6 runs, 1000 calls. 3 thresholds, 1 missed."), "{text}");
        assert!(text.contains("| budget.A | 1 | 0 |\n| budget.H | 1 | 0 |\n| breaker.C | 1 | 1 |\n"), "{text}");
    }

    #[test]
    fn one_missed_threshold_is_an_exit_status_of_1() {
        let mut findings = findings();
        assert_eq!(exit_status(&findings), 1);
        findings.retain(|(_, finding)| finding.met);
        assert_eq!(exit_status(&findings), 0);
    }

    #[test]
    fn json_has_every_value() {
        let json = json(&origin(), &findings());
        assert_eq!(json["missed"], 1);
        assert_eq!(json["rows"][0]["values"][0], 98.0);
        assert_eq!(json["rows"][0]["each"], "≥ 75");
        assert_eq!(json["rows"][2]["met"], false);
    }
}
