//! Figures over seeds, and the bounds that they have to keep.

use std::ops::RangeInclusive;

use super::client::Rules;
use super::run::{Record, run};
use super::world::Scenario;

/// Five seeds; `OUTAGE_SEEDS=20` runs more by hand.
fn seeds() -> RangeInclusive<u64> {
    let asked = std::env::var("OUTAGE_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    1..=asked.unwrap_or(5)
}

/// The runs of one scenario under one set of rules, one per seed.
pub(crate) struct Runs(Vec<Record>);

impl Runs {
    pub(crate) fn of(scenario: &Scenario, rules: Rules) -> Self {
        Self(seeds().map(|seed| run(scenario, rules, seed)).collect())
    }

    pub(crate) fn figure(&self, read: impl Fn(&Record) -> f64) -> Figure {
        Figure::over(self.0.iter().map(read))
    }

    /// In percent of the same figure of `base`, run by run.
    pub(crate) fn percent_of(&self, base: &Self, read: impl Fn(&Record) -> f64) -> Figure {
        Figure::over(self.0.iter().zip(&base.0).map(|(ours, base)| 100.0 * read(ours) / read(base)))
    }
}

/// One figure over all seeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    pub(crate) mean: f64,
    least: f64,
    most: f64,
}

impl Figure {
    fn over(figures: impl Iterator<Item = f64>) -> Self {
        let figures: Vec<f64> = figures.collect();
        Self {
            mean: figures.iter().sum::<f64>() / figures.len() as f64,
            least: figures.iter().copied().fold(f64::INFINITY, f64::min),
            most: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// A table of figures. All of them are measured before any bound fails the test, and `--nocapture` shows them.
#[derive(Default)]
pub(crate) struct Sheet {
    rows: Vec<String>,
    broken: usize,
}

impl Sheet {
    pub(crate) fn at_least(&mut self, what: &str, figure: Figure, bound: f64) {
        self.row(what, figure, figure.mean >= bound, &format!(">= {bound:.2}"));
    }

    pub(crate) fn at_most(&mut self, what: &str, figure: Figure, bound: f64) {
        self.row(what, figure, figure.mean <= bound, &format!("<= {bound:.2}"));
    }

    /// Bounds the mean, and every single run.
    pub(crate) fn at_least_each(&mut self, what: &str, figure: Figure, bound: f64, each: f64) {
        let holds = figure.mean >= bound && figure.least >= each;
        self.row(what, figure, holds, &format!(">= {bound:.2}, each >= {each:.2}"));
    }

    fn row(&mut self, what: &str, figure: Figure, holds: bool, bound: &str) {
        let Figure { mean, least, most } = figure;
        let mark = if holds { "" } else { "   <-- BROKEN" };
        self.broken += usize::from(!holds);
        self.rows.push(format!("{what:<56} {mean:>9.3} ({least:.3} .. {most:.3})  {bound}{mark}"));
    }

    /// Shows the table.
    ///
    /// # Panics
    ///
    /// If a bound is broken.
    pub(crate) fn finish(self) {
        let table = self.rows.join("\n");
        println!("{table}");
        assert_eq!(self.broken, 0, "bounds broken:\n{table}");
    }
}
