//! Taking turns, and what is made of it.

use crate::Failure;

/// What one turn of one contender cost, per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Nanoseconds on the wall clock.
    pub wall_ns: f64,
    /// Nanoseconds of CPU time, all threads of the process together.
    pub cpu_ns: f64,
}

/// One turn: does its operations and says what they cost.
pub type Turn<'a> = Box<dyn FnMut() -> Result<Sample, Failure> + 'a>;

/// Something that takes part.
pub struct Contender<'a> {
    /// Its name in the table.
    pub name: &'static str,
    /// One turn of it.
    pub turn: Turn<'a>,
}

/// All turns of one contender; turn `n` belongs to round `n`.
#[derive(Clone, Debug)]
pub struct Series {
    /// The contender's name.
    pub name: &'static str,
    /// Its turns.
    pub samples: Vec<Sample>,
}

/// The middle of several figures, and how far they spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

/// Lets the contenders take turns for `rounds` rounds. Each round begins with another one, so that nobody always runs
/// first or after the same neighbour; one turn each beforehand, not counted, warms them up.
///
/// # Errors
///
/// The first turn that fails, with the contender's name.
pub fn interleave(contenders: &mut [Contender<'_>], rounds: usize) -> Result<Vec<Series>, Failure> {
    let mut series: Vec<_> =
        contenders.iter().map(|c| Series { name: c.name, samples: Vec::with_capacity(rounds) }).collect();
    for contender in contenders.iter_mut() {
        take_turn(contender)?;
    }
    let count = contenders.len();
    for round in 0..rounds {
        for place in 0..count {
            let index = (round + place) % count;
            series[index].samples.push(take_turn(&mut contenders[index])?);
        }
    }
    Ok(series)
}

fn take_turn(contender: &mut Contender<'_>) -> Result<Sample, Failure> {
    (contender.turn)().map_err(|failure| format!("{}: {failure}", contender.name).into())
}

impl Series {
    /// A figure over all turns.
    pub fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(self.samples.iter().map(figure).collect())
    }

    /// The ratio of a figure to the same figure of `baseline` in the same round, over all rounds.
    pub fn ratio(&self, baseline: &Self, figure: impl Fn(&Sample) -> f64) -> Spread {
        let pairs = self.samples.iter().zip(&baseline.samples);
        Spread::of(pairs.map(|(own, base)| figure(own) / figure(base)).collect())
    }
}

impl Spread {
    /// The spread of these figures; all zero if there are none.
    pub fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (figures.first(), figures.last()) else {
            return Self { median: 0.0, min: 0.0, max: 0.0 };
        };
        let middle = figures.len() / 2;
        let median =
            if figures.len() % 2 == 1 { figures[middle] } else { f64::midpoint(figures[middle - 1], figures[middle]) };
        Self { median, min, max }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn sample(wall_ns: f64) -> Sample {
        Sample { wall_ns, cpu_ns: 2.0 * wall_ns }
    }

    #[test]
    fn the_order_rotates_and_the_first_turns_are_not_counted() {
        let order = &RefCell::new(String::new());
        let mut contenders: Vec<_> = ["a", "b", "c"]
            .map(|name| {
                let turn: Turn<'_> = Box::new(move || {
                    order.borrow_mut().push_str(name);
                    Ok(sample(1.0))
                });
                Contender { name, turn }
            })
            .into();
        let series = interleave(&mut contenders, 3).unwrap();
        assert_eq!(*order.borrow(), "abcabcbcacab");
        assert!(series.iter().all(|s| s.samples.len() == 3));
    }

    #[test]
    fn a_failing_turn_names_its_contender() {
        let mut contenders = [Contender { name: "broken", turn: Box::new(|| Err("no server".into())) }];
        assert_eq!(interleave(&mut contenders, 1).unwrap_err().to_string(), "broken: no server");
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let base = Series { name: "base", samples: [10.0, 20.0, 40.0].map(sample).into() };
        let own = Series { name: "own", samples: [5.0, 20.0, 30.0].map(sample).into() };
        assert_eq!(own.ratio(&base, |s| s.cpu_ns), Spread { median: 0.75, min: 0.5, max: 1.0 });
        assert_eq!(own.spread(|s| s.wall_ns), Spread { median: 20.0, min: 5.0, max: 30.0 });
        assert_eq!(Spread::of(vec![4.0, 1.0]).median, 2.5);
        assert_eq!(Spread::of(Vec::new()), Spread { median: 0.0, min: 0.0, max: 0.0 });
    }
}
