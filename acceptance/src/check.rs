//! A threshold, what is held against it, and whether it was met.
//!
//! Each seed gives one value, compared within the seed: every rule of a seed meets the same arrivals. The threshold is for
//! the mean of the seeds; some cells have a second one for each run alone.

use std::collections::HashMap;
use std::fmt;

use crate::figures::{Figure, Figures, Trial};

/// One cell of a section.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its section, such as `budget.A`.
    pub section: &'static str,
    /// Scenario, load, clients, in words.
    pub cell: String,
    /// What is measured.
    pub measure: Measure,
    /// What the mean must be.
    pub bound: Bound,
    /// What each run must be.
    pub single: Option<Bound>,
    /// What the study from which the threshold comes had measured, where it says so of this cell.
    pub known: &'static str,
    /// Whether it is among the few that `--quick` checks.
    pub quick: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// A figure of one run.
    Of(Figure, Trial),
    /// A figure of the first, in percent of that of the second.
    PercentOf(Figure, Trial, Trial),
    /// A figure of the first, less that of the second.
    Less(Figure, Trial, Trial),
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// Less than this.
    Below(f64),
    /// No further from zero than this.
    Within(f64),
}

/// The runs that were made, by trial and seed.
pub type Results = HashMap<(Trial, u64), Figures>;

/// What a check showed.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Of each seed.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// The one that is nearest to missing the threshold, or misses it by most.
    pub worst: f64,
    /// Whether mean and each run are as they must be.
    pub met: bool,
}

impl Check {
    /// The trials that it needs.
    pub fn trials(&self) -> Vec<Trial> {
        match self.measure {
            Measure::Of(_, one) => vec![one],
            Measure::PercentOf(_, one, other) | Measure::Less(_, one, other) => vec![one, other],
        }
    }

    /// Holds the results against the threshold; `None` if a run is missing.
    pub fn evaluate(&self, seeds: &[u64], results: &Results) -> Option<Finding> {
        let values: Option<Vec<f64>> = seeds.iter().map(|seed| self.measure.value(*seed, results)).collect();
        Some(self.find(values?))
    }

    fn find(&self, values: Vec<f64>) -> Finding {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let by_margin = |a: &f64, b: &f64| self.bound.margin(*a).total_cmp(&self.bound.margin(*b));
        let worst = values.iter().copied().min_by(by_margin).unwrap_or(f64::NAN);
        let all = self.single.is_none_or(|single| values.iter().all(|value| single.holds(*value)));
        // Without a run nothing was shown, and nothing is met.
        Finding { mean, worst, met: !values.is_empty() && self.bound.holds(mean) && all, values }
    }
}

impl Measure {
    fn value(&self, seed: u64, results: &Results) -> Option<f64> {
        let figure = |figure, trial: &Trial| results.get(&(*trial, seed)).map(|figures| figures.figure(figure));
        Some(match self {
            Self::Of(what, one) => figure(*what, one)?,
            Self::PercentOf(what, one, other) => 100.0 * figure(*what, one)? / figure(*what, other)?,
            Self::Less(what, one, other) => figure(*what, one)? - figure(*what, other)?,
        })
    }

    /// What it is, in words.
    pub fn words(&self) -> String {
        match self {
            Self::Of(figure, trial) => format!("{}: {}", figure.words(), trial.rule),
            Self::PercentOf(figure, one, other) => {
                format!("{}: {}, in % of {}", figure.words(), one.rule, other.rule)
            }
            Self::Less(figure, one, other) => format!("{}: {} less {}", figure.words(), one.rule, other.rule),
        }
    }
}

impl Figure {
    fn words(self) -> &'static str {
        match self {
            Self::During => "success % during",
            Self::After => "goodput 30-70 s after",
            Self::NextTen => "success % in the 10 s after",
            Self::FiveToFifteen => "success % 5-15 s after",
            Self::SentPerCall => "sent per call",
            Self::Retries => "retries",
            Self::SentEach => "sent per client",
            Self::Opens => "opens after s",
            Self::Closes => "closes after s",
        }
    }
}

impl Bound {
    /// Whether the value is as it must be. What is no number never is.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Below(limit) => value < limit,
            Self::Within(most) => value.abs() <= most,
        }
    }

    /// How far the value is on the good side; negative if it is on the bad one.
    pub fn margin(self, value: f64) -> f64 {
        match self {
            Self::AtLeast(least) => value - least,
            Self::AtMost(most) | Self::Below(most) => most - value,
            Self::Within(most) => most - value.abs(),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
            Self::Below(limit) => write!(f, "< {limit}"),
            Self::Within(most) => write!(f, "within {most}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rule;
    use crate::scenario::{Case, Scenario};

    fn check(bound: Bound, single: Option<Bound>) -> Check {
        let trial = Trial { case: Case::new(Scenario::Slow, 85, 1), rule: Rule::Budget };
        let measure = Measure::Of(Figure::After, trial);
        Check { section: "budget.A", cell: String::new(), measure, bound, single, known: "", quick: false }
    }

    #[test]
    fn the_mean_is_held_against_the_threshold_and_the_worst_is_on_its_side() {
        let found = check(Bound::AtLeast(95.0), None).find(vec![90.0, 100.0, 96.0]);
        assert_eq!((found.mean, found.worst, found.met), (286.0 / 3.0, 90.0, true));
        let found = check(Bound::AtMost(1.02), None).find(vec![1.0, 1.03]);
        assert_eq!((found.worst, found.met), (1.03, true));
        let found = check(Bound::Within(1.0), None).find(vec![-4.0, 1.0]);
        assert_eq!((found.mean, found.worst, found.met), (-1.5, -4.0, false));
    }

    #[test]
    fn thresholds_are_inclusive_but_for_below() {
        assert!(Bound::AtLeast(5.0).holds(5.0) && Bound::AtMost(5.0).holds(5.0) && Bound::Within(5.0).holds(-5.0));
        assert!(!Bound::Below(5.0).holds(5.0) && Bound::Below(5.0).holds(4.9));
        for bound in [Bound::AtLeast(0.0), Bound::AtMost(0.0), Bound::Below(0.0), Bound::Within(0.0)] {
            assert!(!bound.holds(f64::NAN), "{bound}");
        }
    }

    #[test]
    fn one_run_alone_can_miss() {
        let values = vec![74.0, 100.0, 100.0, 100.0, 100.0, 100.0];
        assert!(check(Bound::AtLeast(95.0), None).find(values.clone()).met);
        assert!(!check(Bound::AtLeast(95.0), Some(Bound::AtLeast(75.0))).find(values).met);
        assert!(!check(Bound::AtLeast(0.0), None).find(Vec::new()).met, "nothing was run");
    }

    #[test]
    fn values_are_compared_within_the_seed() {
        let trial = |rule| Trial {
            case: Case::new(
                Scenario::Noise { percent: 20, failing: crate::scenario::Failing::Answers503, seconds: 1 },
                70,
                1,
            ),
            rule,
        };
        let (ours, theirs) = (trial(Rule::Shipped), trial(Rule::None));
        let results: Results = [(ours, 1), (ours, 2), (theirs, 1), (theirs, 2)]
            .into_iter()
            .zip([1.0, 4.0, 2.0, 2.0])
            .map(|(key, during)| (key, Figures::for_tests(during)))
            .collect();
        let with = |measure| Check { measure, ..check(Bound::AtLeast(0.0), None) };
        let percent = with(Measure::PercentOf(Figure::During, ours, theirs));
        assert_eq!(percent.evaluate(&[1, 2], &results).unwrap().values, [50.0, 200.0]);
        let less = with(Measure::Less(Figure::During, ours, theirs));
        assert_eq!(less.evaluate(&[1, 2], &results).unwrap().values, [-1.0, 2.0]);
        assert!(less.evaluate(&[1, 2, 3], &results).is_none(), "a run is missing");
    }
}
