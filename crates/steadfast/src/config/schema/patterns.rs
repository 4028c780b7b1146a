//! The regular expressions of the schema. They are written in what the dialects share: no lookaround, no flags, no
//! Unicode classes, and each anchored at both ends unless its comment says otherwise.

use std::time::Duration;

use crate::config::duration::UNITS;

/// A base URL: scheme, host, perhaps a port, perhaps a path without an empty segment.
pub(super) const BASE_URL: &str = "^[hH][tT][tT][pP][sS]?://\
     (\\[[0-9A-Fa-f:.]+\\]|[0-9A-Za-z_-]+(\\.[0-9A-Za-z_-]+)*\\.?)(:[1-9][0-9]{0,4})?(/[^/?#]+)*/?$";
/// Visible ASCII, and spaces within.
pub(super) const TEXT: &str = "^[!-~]([ -~]*[!-~])?$";
/// The same with tabs, or nothing.
pub(super) const HEADER_VALUE: &str = "^([!-~]([\\t -~]*[!-~])?)?$";
/// A token (RFC 9110 5.6.2).
pub(super) const HEADER_NAME: &str = "^[-!#$%&'*+.^_`|~0-9A-Za-z]+$";
/// What names and addresses are made of.
pub(super) const HOST_NAME: &str = "^[0-9A-Za-z._:-]+$";
/// Anything but nothing, without NUL.
pub(super) const PATH: &str = "^[^\\x00]+$";
/// Anywhere in a duration: it is not zero.
pub(super) const NOT_ZERO: &str = "[1-9]";

/// A text with a unit, exactly as the reader takes it, of at most `max`.
pub(super) fn duration(max: Duration) -> String {
    let of_unit = |(suffix, unit): &(&str, u128)| {
        let most = max.as_nanos() / unit;
        // A zero fraction may follow any whole number, another only what leaves room for it.
        let whole = format!("{most}(\\.0+)?");
        let fraction = fraction(*unit);
        let amount = match below(most) {
            Some(below) => format!("({below}{fraction}|{whole})"),
            None => whole,
        };
        format!("0*{amount}{suffix}")
    };
    let units: Vec<String> = UNITS.iter().map(of_unit).collect();
    format!("^({})$", units.join("|"))
}

/// The fractions of a unit that are whole nanoseconds: as many digits as the unit has zeros, and what its other factor
/// still divides. 60 s are 6 · 10^10 ns, so that a five may follow; an hour is 36 · 10^11 ns: a five, or 25, or 75.
fn fraction(unit: u128) -> String {
    let zeros = (1..=unit.ilog10()).take_while(|zeros| unit.is_multiple_of(10_u128.pow(*zeros))).count();
    let more = match unit / 10_u128.pow(zeros as u32) {
        1 => "",
        6 => "5?",
        _ => "(5|25|75)?",
    };
    if zeros == 0 { "(\\.0+)?".to_owned() } else { format!("(\\.[0-9]{{1,{zeros}}}{more}0*)?") }
}

/// The whole numbers below `limit`, without leading zeros or not; `None`: there are none.
fn below(limit: u128) -> Option<String> {
    let digits = limit.to_string();
    let shorter = digits.len() - 1;
    let mut forms = Vec::new();
    if shorter > 0 {
        forms.push(any_digits(1, shorter));
    }
    // As long as the limit: the same as far as one digit, which is less.
    for (index, digit) in digits.char_indices().filter(|(_, digit)| *digit != '0') {
        let less = match char::from_u32(u32::from(digit) - 1) {
            Some(less) if less > '0' => format!("[0-{less}]"),
            _ => "0".to_owned(),
        };
        forms.push(format!("{}{less}{}", &digits[..index], any_digits(shorter - index, shorter - index)));
    }
    if forms.is_empty() { None } else { Some(format!("({})", forms.join("|"))) }
}

fn any_digits(least: usize, most: usize) -> String {
    match (least, most) {
        (_, 0) => String::new(),
        (1, 1) => "[0-9]".to_owned(),
        _ if least == most => format!("[0-9]{{{most}}}"),
        _ => format!("[0-9]{{{least},{most}}}"),
    }
}

/// One of these names, in any case.
pub(super) fn one_of(names: impl Iterator<Item = String>) -> String {
    let any_case = |character: char| match character.is_ascii_alphabetic() {
        true => format!("[{}{}]", character.to_ascii_uppercase(), character.to_ascii_lowercase()),
        false => character.to_string(),
    };
    let names: Vec<String> = names.map(|name| name.chars().map(any_case).collect()).collect();
    format!("^({})$", names.join("|"))
}
