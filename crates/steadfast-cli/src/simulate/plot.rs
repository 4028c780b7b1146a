//! A line of characters for a series of figures: how high each is, against a height that all plots beside one another share.

use std::time::Duration;

/// What a plot is drawn with, from nothing to full height.
const BLOCKS: &[char] = &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same where only ASCII can be shown.
const ASCII: &[char] = &[' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// The series in so many columns: each the mean of what falls into it.
pub(super) fn columns(series: &[f64], columns: usize) -> Vec<f64> {
    let count = columns.min(series.len());
    let edge = |column: usize| column * series.len() / count.max(1);
    let mean = |column: usize| {
        let part = series.get(edge(column)..edge(column + 1)).unwrap_or_default();
        part.iter().sum::<f64>() / part.len().max(1) as f64
    };
    (0..count).map(mean).collect()
}

/// One character for each figure. What is there at all is seen.
pub(super) fn line(figures: &[f64], full: f64, ascii: bool) -> String {
    let levels = if ascii { ASCII } else { BLOCKS };
    let most = levels.len() - 1;
    let level = |figure: &f64| {
        let height = (figure / full * most as f64).round();
        if *figure <= 0.0 || !height.is_finite() { 0 } else { (height as usize).clamp(1, most) }
    };
    figures.iter().map(|figure| levels.get(level(figure)).copied().unwrap_or(' ')).collect()
}

/// Under which columns the trouble is, from its beginning to its end.
pub(super) fn marks(from: Duration, to: Duration, length: Duration, columns: usize, ascii: bool) -> String {
    let mark = if ascii { '^' } else { '▔' };
    let at = |column: usize| length.mul_f64(column as f64 / columns.max(1) as f64);
    let is_in = |column: usize| at(column + 1) > from && at(column) < to;
    let line: String = (0..columns).map(|column| if is_in(column) { mark } else { ' ' }).collect();
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_shares_of_the_full_one_and_what_is_there_is_seen() {
        let figures = [0.0, 0.001, 25.0, 50.0, 100.0, 200.0, f64::NAN];
        assert_eq!(line(&figures, 100.0, false), " ▁▂▄███"[..].replace("███", "██ "));
        assert_eq!(line(&figures, 100.0, true), " .:+@@ ");
        assert_eq!(line(&[0.0, 1.0], 0.0, true), "  ", "no height, no line");
    }

    #[test]
    fn a_column_is_the_mean_of_what_falls_into_it_and_nothing_is_left_out() {
        let series = [1.0, 3.0, 5.0, 7.0, 9.0];
        assert_eq!(columns(&series, 2), [2.0, 7.0]);
        assert_eq!(columns(&series, 5), series);
        assert_eq!(columns(&series, 60), series);
        assert_eq!(columns(&[], 60), [0.0; 0]);
    }

    #[test]
    fn trouble_is_marked_where_it_is() {
        let seconds = Duration::from_secs;
        assert_eq!(marks(seconds(20), seconds(40), seconds(100), 10, true), "  ^^");
        assert_eq!(marks(seconds(25), seconds(26), seconds(100), 10, false), "  ▔");
    }
}
