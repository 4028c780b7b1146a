//! Readers of single values: durations, rates, numbers of seeds.

use std::num::NonZero;
use std::time::Duration;

/// Prefix of the environment variables unless another is named.
pub(crate) const ENV_PREFIX: &str = "STEADFAST_";

/// The longest duration that is accepted anywhere.
const MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads a duration: a number of seconds (`1.5`), or a number with its unit (`250ms`, `2s`, `5m`, `1h`). More than
/// zero and at most 24 hours.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(String::from("expected a duration such as 250ms, 2s, 1.5 (seconds) or 5m")),
    };
    let number: f64 = number
        .trim_end()
        .parse()
        .map_err(|_| String::from("expected a duration such as 250ms, 2s, 1.5 (seconds) or 5m"))?;
    match Duration::try_from_secs_f64(number * scale) {
        Ok(duration) if !duration.is_zero() && duration <= MAX => Ok(duration),
        _ => Err(String::from("expected more than zero and at most 24h")),
    }
}

/// Reads how long the demo lasts: 5 s to 10 min.
pub(crate) fn demo_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if (Duration::from_secs(5)..=Duration::from_secs(600)).contains(&duration) {
        Ok(duration)
    } else {
        Err(String::from("expected 5s to 10m"))
    }
}

/// Reads calls per second: above zero, at most 100 000.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err(String::from("expected a number from 0.001 to 100000")),
    }
}

/// Reads how many seeds: every run is kept until all of a file are done, so that there is a most.
pub(crate) fn seeds(text: &str) -> Result<NonZero<u32>, String> {
    match text.parse::<NonZero<u32>>() {
        Ok(seeds) if seeds.get() <= 100 => Ok(seeds),
        _ => Err(String::from("expected an integer from 1 to 100")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_carry_their_unit() {
        for (text, millis) in [
            ("250ms", 250),
            ("2s", 2000),
            ("1.5", 1500),
            ("1", 1000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("0.5 s", 500),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "0", "0ms", "-1", "nan", "inf", "NaNs", "25h", "1d", "1e400", "2 2s", "1.5.5"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(demo_duration("4s").is_err() && demo_duration("11m").is_err() && demo_duration("5s").is_ok());
    }

    #[test]
    fn rates_are_positive_and_finite() {
        assert_eq!(rate("2.5"), Ok(2.5));
        for text in ["0", "-1", "nan", "inf", "1e9", "x"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
