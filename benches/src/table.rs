//! A case's figures: a table for people, or one JSON line per contender.

use std::collections::BTreeMap;

use serde_json::json;

use crate::rounds::{Sample, Series, Spread};

/// What a case compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Wall-clock time per operation, less that of the contender of this name, which does the operation and nothing else.
    TimeOver(&'static str),
    /// CPU time per operation, and operations per second: the other side of the socket is another process.
    CpuAndRate,
}

/// One case: who took part, and what came out.
pub struct Case<'a> {
    /// The benchmark: `policies` or `http`.
    pub bench: &'a str,
    /// What was done.
    pub title: &'a str,
    /// What is compared.
    pub compare: Compare,
    /// The contender that the others are compared with.
    pub baseline: &'a str,
    /// The turns.
    pub series: &'a [Series],
    /// Heap allocations per operation, by contender.
    pub allocations: &'a BTreeMap<String, f64>,
}

/// A column of figures, and its ratio to the baseline's.
struct Column {
    title: &'static str,
    key: &'static str,
    figures: Vec<(Spread, Option<Spread>)>,
}

impl Column {
    fn has_ratio(&self) -> bool {
        self.figures.iter().any(|(_, ratio)| ratio.is_some())
    }
}

impl Case<'_> {
    /// Prints the case on standard output: a table, or one JSON line per contender.
    pub fn print(&self, json: bool) {
        let columns = self.columns();
        if json { self.print_json(&columns) } else { self.print_table(&columns) }
    }

    fn columns(&self) -> Vec<Column> {
        match self.compare {
            Compare::TimeOver(floor) => {
                let plain = self.series.iter().map(|series| (series.spread(|s| s.wall_ns), None)).collect();
                let over = self.series.iter().map(|series| self.over(floor, series)).collect();
                vec![
                    Column { title: "ns/call", key: "wall_ns", figures: plain },
                    Column { title: "over bare", key: "over_bare_ns", figures: over },
                ]
            }
            Compare::CpuAndRate => vec![
                self.column("CPU ns/request", "cpu_ns", |sample| sample.cpu_ns),
                self.column("requests/s", "per_second", |sample| 1e9 / sample.wall_ns),
            ],
        }
    }

    fn column(&self, title: &'static str, key: &'static str, figure: impl Fn(&Sample) -> f64) -> Column {
        let baseline = self.find(self.baseline);
        let of = |series: &Series| (series.spread(&figure), baseline.map(|base| series.ratio(base, &figure)));
        Column { title, key, figures: self.series.iter().map(of).collect() }
    }

    /// What `series` takes longer than the contender `floor`, round by round, and the ratio of that to the baseline's.
    fn over(&self, floor: &str, series: &Series) -> (Spread, Option<Spread>) {
        let Some(floor) = self.find(floor) else {
            return (series.spread(|sample| sample.wall_ns), None);
        };
        let less_floor = |series: &Series| -> Vec<f64> {
            series.samples.iter().zip(&floor.samples).map(|(own, floor)| own.wall_ns - floor.wall_ns).collect()
        };
        let own = less_floor(series);
        let ratio = (series.name != floor.name)
            .then(|| self.find(self.baseline))
            .flatten()
            .map(|baseline| Spread::of(own.iter().zip(less_floor(baseline)).map(|(own, base)| own / base).collect()));
        (Spread::of(own), ratio)
    }

    fn find(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// Allocations are counted once per contender, also for the baseline that enters twice.
    fn allocated(&self, series: &Series) -> Option<f64> {
        self.allocations.get(series.name.trim_end_matches(", again")).copied()
    }

    fn print_table(&self, columns: &[Column]) {
        let rounds = self.series.first().map_or(0, |series| series.samples.len());
        println!("{} (median of {rounds} rounds; ratio to {}, lowest-highest)\n", self.title, self.baseline);
        let (mut head, mut rule) = (format!("| {:<22} |", "contender"), format!("|{}|", "-".repeat(24)));
        for column in columns {
            head += &format!(" {:>14} |", column.title);
            rule += &format!("{}:|", "-".repeat(15));
            if column.has_ratio() {
                head += &format!(" {:>18} |", "ratio");
                rule += &format!("{}:|", "-".repeat(19));
            }
        }
        println!("{head} {:>11} |\n{rule}{}:|", "allocations", "-".repeat(12));
        for (index, series) in self.series.iter().enumerate() {
            let mut row = format!("| {:<22} |", series.name);
            for column in columns {
                let (figure, ratio) = column.figures[index];
                row += &format!(" {:>14.0} |", figure.median);
                if column.has_ratio() {
                    let range = |r: Spread| format!("{:.2} ({:.2}-{:.2})", r.median, r.min, r.max);
                    row += &format!(" {:>18} |", ratio.map_or_else(|| "-".to_owned(), range));
                }
            }
            let allocated = self.allocated(series).map_or_else(|| "-".to_owned(), |count| format!("{count:.1}"));
            println!("{row} {allocated:>11} |");
        }
        println!();
    }

    fn print_json(&self, columns: &[Column]) {
        let spread = |spread: Spread| json!({"median": spread.median, "min": spread.min, "max": spread.max});
        for (index, series) in self.series.iter().enumerate() {
            let mut line = json!({
                "bench": self.bench,
                "case": self.title,
                "contender": series.name,
                "baseline": self.baseline,
                "rounds": series.samples.len(),
                "allocations": self.allocated(series),
            });
            for column in columns {
                let (figure, ratio) = column.figures[index];
                line[column.key] = json!({"figure": spread(figure), "ratio": ratio.map(spread)});
            }
            println!("{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &'static str, times: [f64; 3]) -> Series {
        let sample = |wall_ns| Sample { wall_ns, cpu_ns: wall_ns / 2.0 };
        Series { name, samples: times.map(sample).into() }
    }

    fn case<'a>(compare: Compare, series: &'a [Series], allocations: &'a BTreeMap<String, f64>) -> Case<'a> {
        Case { bench: "policies", title: "ready", compare, baseline: "tower", series, allocations }
    }

    #[test]
    fn time_over_the_bare_operation_is_compared_round_by_round() {
        let all = [
            series("bare", [10.0, 20.0, 10.0]),
            series("tower", [110.0, 220.0, 60.0]),
            series("own", [60.0, 70.0, 60.0]),
        ];
        let allocations = BTreeMap::from([("tower".to_owned(), 3.0)]);
        let case = case(Compare::TimeOver("bare"), &all, &allocations);
        let over = &case.columns()[1].figures;
        assert_eq!((over[0].0.median, over[0].1), (0.0, None));
        assert_eq!((over[1].0.median, over[1].1.unwrap().median), (100.0, 1.0));
        assert_eq!((over[2].0.median, over[2].1.unwrap()), (50.0, Spread { median: 0.5, min: 0.25, max: 1.0 }));
        assert_eq!(case.allocated(&series("tower, again", [1.0; 3])), Some(3.0));
    }

    #[test]
    fn cpu_and_rate_are_compared_with_the_baseline() {
        let all = [series("tower", [100.0; 3]), series("own", [50.0; 3])];
        let columns = case(Compare::CpuAndRate, &all, &BTreeMap::new()).columns();
        assert_eq!((columns[0].figures[1].0.median, columns[0].figures[1].1.unwrap().median), (25.0, 0.5));
        assert_eq!((columns[1].figures[1].0.median, columns[1].figures[1].1.unwrap().median), (2e7, 2.0));
    }
}
