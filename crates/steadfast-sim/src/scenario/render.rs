//! An outcome for people: passed, or what differs, beside what happened around it.

use std::fmt::{self, Write as _};
use std::time::Duration;

use super::run::{Difference, Outcome};
use super::timeline::Moment;

/// The most lines of the time line that are shown of one scenario.
const MOST: usize = 60;

/// `pass` or `FAIL` with file and title; then, of one that failed, each step that differs, and the time line in which those
/// steps are marked.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.passed() { "pass" } else { "FAIL" };
        write!(f, "{word}  {}: {}", self.file, self.title)?;
        if !self.variant.is_empty() {
            write!(f, " [{}]", self.variant)?;
        }
        if !self.passed() {
            f.write_str("\n")?;
            f.write_str(&self.details())?;
        }
        Ok(())
    }
}

impl Outcome {
    /// What differs, and the time line; nothing of one that passed.
    pub fn details(&self) -> String {
        if self.passed() {
            return String::new();
        }
        let mut text = String::new();
        let mut step = None;
        for difference in &self.differences {
            if step != Some(difference.step) {
                step = Some(difference.step);
                let Difference { line, action, .. } = difference;
                // Writing to a string cannot fail.
                let _ = writeln!(text, "  line {line}, step {}: {action}", difference.step + 1);
            }
            let _ = writeln!(
                text,
                "    {}\n      expected  {}\n      seen      {}",
                difference.what, difference.expected, difference.seen
            );
        }
        text.push_str("  time line\n");
        self.time_line(&mut text);
        text
    }

    fn time_line(&self, text: &mut String) {
        let is_marked = |moment: &Moment| self.differences.iter().any(|one| one.step == moment.step);
        // From the step before the first that differs.
        let first = self.differences.iter().map(|one| one.step).min().unwrap_or_default().saturating_sub(1);
        let shown: Vec<&Moment> = self.moments.iter().filter(|moment| moment.step >= first).collect();
        let skipped = self.moments.len() - shown.len();
        if skipped > 0 {
            let _ = writeln!(text, "    … {skipped} moments before");
        }
        let who = shown.iter().take(MOST).map(|moment| moment.who.len()).max().unwrap_or_default().max(4);
        let at = shown.iter().take(MOST).map(|moment| seconds(moment.at).len()).max().unwrap_or_default();
        for moment in shown.iter().take(MOST) {
            let mark = if is_marked(moment) { '>' } else { ' ' };
            let (time, name) = (seconds(moment.at), moment.who.as_str());
            let line = if name.is_empty() {
                format!("  {mark} {time:>at$}  step {}: {}", moment.step + 1, moment.what)
            } else {
                format!("  {mark} {time:>at$}    {name:<who$}  {}", moment.what)
            };
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let more = shown.len().saturating_sub(MOST) + self.moments_left_out;
        if more > 0 {
            let _ = writeln!(text, "    … {more} moments more");
        }
    }
}

/// Seconds to the microsecond: `0.057200 s`.
fn seconds(at: Duration) -> String {
    format!("{}.{:06} s", at.as_secs(), at.subsec_micros())
}
