//! The known name that a mistyped one was probably meant to be.

/// The longest name that is compared: the distance costs the product of both lengths.
const LONGEST: usize = 64;

/// The name among `known` nearest to `given`: the same but for case and `-` for `_`; or a few keystrokes away; or
/// sharing most of its words (`max_retries`, `url`). `None` where nothing is near or two are equally near by words.
pub fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > LONGEST {
        return None;
    }
    let given = fold(given);
    let length = given.chars().count();
    let known: Vec<&str> = known.filter(|name| name.len() <= LONGEST).collect();
    let distances = known.iter().map(|name| (strsim::osa_distance(&given, &fold(name)), *name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    // A third of the shorter name may be wrong: `retrys`, `conect_timeout`, but not `a` for `b`.
    if distance <= length.min(name.chars().count()).div_ceil(3).min(4) && distance < length {
        return Some(name);
    }
    let mut scored: Vec<(usize, &str)> = known.into_iter().map(|name| (shared_words(&given, name), name)).collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    match scored[..] {
        [(best, name), (second, _), ..] if best > second && best >= 40 => Some(name),
        [(best, name)] if best >= 40 => Some(name),
        _ => None,
    }
}

/// How two names are compared where case and `-` for `_` do not count (9.4).
pub(crate) fn fold(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// Shared words in percent of all words of both; more than that where `name` stands in `given` whole (`max_retries`).
fn shared_words(given: &str, name: &str) -> usize {
    let mut given: Vec<&str> = given.split('_').filter(|word| !word.is_empty()).collect();
    given.dedup();
    let words: Vec<&str> = name.split('_').collect();
    if words.iter().all(|word| given.contains(word)) {
        return 100 + words.len();
    }
    let is_shared = |word: &&&str| words.iter().any(|known| stem(known) == stem(word));
    let shared = given.iter().filter(is_shared).count();
    shared * 100 / (words.len() + given.len() - shared).max(1)
}

/// The word without the ending that tells one from many: `retry` and `retries` are one word here.
fn stem(word: &str) -> &str {
    ["ies", "y", "s"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::KEYS;

    /// 9.2: the nearest known key.
    #[test]
    fn c9_2_finds_what_was_meant() {
        for (given, meant) in [
            ("retrys", Some("retries")),
            ("retry", Some("retries")),
            ("Read-Timeout", Some("read_timeout")),
            ("READ_TIMEOUT", Some("read_timeout")),
            ("conect_timeout", Some("connect_timeout")),
            ("read_timeuot", Some("read_timeout")),
            ("url", Some("base_url")),
            ("baseurl", Some("base_url")),
            ("max_retries", Some("retries")),
            ("breaker_cooldown", Some("breaker_cool_down")),
            ("breaker_failure", Some("breaker_failures")),
            ("header", Some("headers")),
            ("max_concurrency", Some("max_concurrent")),
            ("timeout", None),
            ("colour", None),
            ("x", None),
            ("", None),
            ("_", None),
        ] {
            assert_eq!(nearest(given, KEYS.iter().map(|key| key.name)), meant, "{given}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), KEYS.iter().map(|key| key.name)), None);
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
