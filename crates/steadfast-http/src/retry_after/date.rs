//! HTTP dates (RFC 9110 5.6.7).
//!
//! The calendar is `httpdate`'s, which refuses dates that do not exist. Around it, as it differs from the RFC:
//!
//! - a two-digit year is the latest one with these digits that is not more than 50 years after now (`httpdate` takes
//!   1970 to 2069, whatever the clock says);
//! - a date before 1970 has passed; `httpdate` refuses it;
//! - the leap second `:60` exists in the grammar, and is read as the second after `:59`;
//! - the name of the weekday must be one, but need not be the right one: the rest says everything already, and the
//!   RFC encourages recipients to be robust.

use std::time::{Duration, SystemTime};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LONG_DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A mean Gregorian year, in seconds.
const YEAR: u64 = 31_556_952;

/// Reads a date in any of the three forms. What lies before 1970 becomes 1970, which has passed as well.
pub(super) fn parse(text: &str, now: SystemTime) -> Option<SystemTime> {
    // Slicing by position below needs one byte per character.
    if !text.is_ascii() {
        return None;
    }
    let fields = imf_fixdate(text).or_else(|| rfc850(text)).or_else(|| asctime(text))?;
    // What else must be digits is left to the calendar; a year is read here, and `+994` is none.
    if !fields.year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if fields.year.len() == 4 {
        return fields.instant(fields.year.parse().ok()?);
    }
    let digits: u32 = fields.year.parse().ok()?;
    let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let this_year = u32::try_from(1970 + since_1970 / YEAR).ok()?;
    let latest = now.checked_add(Duration::from_secs(50 * YEAR))?;
    let century = this_year / 100;
    [century + 1, century, century.saturating_sub(1)]
        .into_iter()
        .filter_map(|century| fields.instant(century * 100 + digits))
        .find(|instant| *instant <= latest)
}

/// The parts of a date, as text that still has to be checked.
struct Fields<'a> {
    day: &'a str,
    month: &'a str,
    /// Two or four digits.
    year: &'a str,
    time: &'a str,
}

impl Fields<'_> {
    /// The instant, if such a day and time exist in that year.
    fn instant(&self, year: u32) -> Option<SystemTime> {
        // The calendar repeats every 400 years, weekdays included, so a day exists in 1969 if it does in 2369.
        let past = year < 1970;
        let year = if past { year + 400 * (1970 - year).div_ceil(400) } else { year };
        let (time, leap) = match self.time.strip_suffix(":60") {
            // Only at the end of a day of UTC, but servers with their own idea of leap seconds do no harm.
            Some(minutes) => (format!("{minutes}:59"), 1),
            None => (self.time.to_owned(), 0),
        };
        let instant = DAYS.iter().find_map(|name| {
            let text = format!("{name}, {:0>2} {} {year:04} {time} GMT", self.day, self.month);
            httpdate::parse_http_date(&text).ok()
        })?;
        Some(if past { SystemTime::UNIX_EPOCH } else { instant + Duration::from_secs(leap) })
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(text: &str) -> Option<Fields<'_>> {
    let (name, rest) = text.split_once(", ")?;
    let rest = rest.strip_suffix(" GMT")?;
    let shape = DAYS.contains(&name) && rest.len() == 20 && blank_at(rest, &[2, 6, 11]);
    shape.then(|| Fields { day: &rest[..2], month: &rest[3..6], year: &rest[7..11], time: &rest[12..] })
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(text: &str) -> Option<Fields<'_>> {
    let (name, rest) = text.split_once(", ")?;
    let rest = rest.strip_suffix(" GMT")?;
    let bytes = rest.as_bytes();
    let shape =
        LONG_DAYS.contains(&name) && bytes.len() == 18 && bytes[2] == b'-' && bytes[6] == b'-' && bytes[9] == b' ';
    shape.then(|| Fields { day: &rest[..2], month: &rest[3..6], year: &rest[7..9], time: &rest[10..] })
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(text: &str) -> Option<Fields<'_>> {
    let shape = text.len() == 24 && blank_at(text, &[3, 7, 10, 19]) && DAYS.contains(&&text[..3]);
    let day = text.get(8..10)?;
    let day = day.strip_prefix(' ').unwrap_or(day);
    shape.then(|| Fields { day, month: &text[4..7], year: &text[20..], time: &text[11..19] })
}

fn blank_at(text: &str, places: &[usize]) -> bool {
    places.iter().all(|at| text.as_bytes().get(*at) == Some(&b' '))
}
