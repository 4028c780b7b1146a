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

    /// The moments of each step that differs, which are marked, and of the step before it.
    fn time_line(&self, text: &mut String) {
        let differs = |step: usize| self.differences.iter().any(|one| one.step == step);
        let is_near = |moment: &Moment| differs(moment.step) || differs(moment.step + 1);
        let shown: Vec<&Moment> = self.moments.iter().filter(|moment| is_near(moment)).take(MOST).collect();
        let who = shown.iter().map(|moment| moment.who.len()).max().unwrap_or_default();
        let at = shown.iter().map(|moment| seconds(moment.at).len()).max().unwrap_or_default();
        let (mut lines, mut skipped) = (0, 0);
        for moment in &self.moments {
            if lines == MOST || !is_near(moment) {
                skipped += 1;
                continue;
            }
            gap(text, std::mem::take(&mut skipped));
            lines += 1;
            let mark = if differs(moment.step) { '>' } else { ' ' };
            let (time, name) = (seconds(moment.at), moment.who.as_str());
            // Writing to a string cannot fail.
            let _ = match name {
                "" => writeln!(text, "  {mark} {time:>at$}  step {}: {}", moment.step + 1, moment.what),
                name => writeln!(text, "  {mark} {time:>at$}    {name:<who$}  {}", moment.what),
            };
        }
        gap(text, skipped + self.moments_left_out);
    }
}

/// What is not shown here.
fn gap(text: &mut String, moments: usize) {
    if moments > 0 {
        let plural = if moments == 1 { "" } else { "s" };
        let _ = writeln!(text, "    … {moments} moment{plural}");
    }
}

/// Seconds to the microsecond: `0.057200 s`.
fn seconds(at: Duration) -> String {
    format!("{}.{:06} s", at.as_secs(), at.subsec_micros())
}
