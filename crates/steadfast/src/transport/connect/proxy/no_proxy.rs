//! `NO_PROXY`: which upstreams are reached directly.
//!
//! There is no standard. Where curl 7.88 and Python's requests 2.34 agree, this does the same: they agree on domains,
//! dots, case, ranges of addresses, `*` alone, and that no other pattern means anything. An entry with a port, which
//! curl ignores and requests reads, is read. The rule in full is with [`Proxy::Environment`](super::Proxy::Environment).

use std::net::IpAddr;

/// Whether one of the entries covers this upstream. `host`: IPv6 without brackets.
pub(super) fn covers(list: &str, host: &str, port: u16) -> bool {
    let entries = list.split(|char: char| char == ',' || char.is_whitespace()).filter(|entry| !entry.is_empty());
    let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    entries.map(split_port).any(|(entry, only)| {
        let is_port = only.is_none_or(|only| number(only) == Some(u32::from(port)));
        let is_host = || match address {
            _ if entry == "*" => true,
            Some(address) => is_in(address, entry),
            None => is_within(host, entry),
        };
        is_port && is_host()
    })
}

/// `name:1`, `10.0.0.0/8:1` and `[::1]:1` have a port; `::1` has none.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    let bracketed = entry.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    if let Some((host, after)) = bracketed {
        return if after.is_empty() { (host, None) } else { (host, Some(after.strip_prefix(':').unwrap_or(after))) };
    }
    match entry.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (entry, None),
    }
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Whether a name is this domain or lies in it.
fn is_within(name: &str, domain: &str) -> bool {
    let (name, domain) = (name.trim_end_matches('.').as_bytes(), domain.trim_matches('.').as_bytes());
    let Some(before) = name.len().checked_sub(domain.len()).filter(|_| !domain.is_empty()) else { return false };
    let (before, end) = name.split_at(before);
    end.eq_ignore_ascii_case(domain) && before.last().is_none_or(|byte| *byte == b'.')
}

/// Whether an address is this one or lies in this range.
fn is_in(address: IpAddr, range: &str) -> bool {
    let (first, length) = range.split_once('/').map_or((range, None), |(first, length)| (first, Some(length)));
    let Ok(first) = first.parse::<IpAddr>() else { return false };
    let Some(length) = length else { return first.to_canonical() == address };
    let (width, differing) = match (first, address) {
        (IpAddr::V4(first), IpAddr::V4(address)) => (32_u32, u128::from(first.to_bits() ^ address.to_bits())),
        (IpAddr::V6(first), IpAddr::V6(address)) => (128, first.to_bits() ^ address.to_bits()),
        _ => return false,
    };
    let free = number(length).and_then(|length| width.checked_sub(length));
    // All bits free: a shift by the whole width has no result.
    free.is_some_and(|free| differing.checked_shr(free).unwrap_or(0) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cases: &[(&str, &str, u16, bool)]) {
        for &(list, host, port, direct) in cases {
            assert_eq!(covers(list, host, port), direct, "NO_PROXY={list} for {host}:{port}");
        }
    }

    /// A116, A117
    #[test]
    fn a116_a117_a_domain_covers_itself_and_what_lies_in_it() {
        check(&[
            ("example.com", "example.com", 443, true),
            ("example.com", "api.example.com", 443, true),
            ("example.com", "a.b.example.com", 443, true),
            ("example.com", "notexample.com", 443, false),
            ("example.com", "example.com.org", 443, false),
            ("example.com", "com", 443, false),
            (".example.com", "example.com", 443, true),
            (".example.com", "api.example.com", 443, true),
            (".example.com", "notexample.com", 443, false),
            ("EXAMPLE.com", "api.Example.COM", 443, true),
            ("example.com.", "example.com", 443, true),
            ("example.com", "api.example.com.", 443, true),
            ("localhost", "localhost", 80, true),
            ("localhost", "127.0.0.1", 80, false),
            ("", "example.com", 443, false),
            (".", "example.com", 443, false),
            (",, ,", "example.com", 443, false),
            ("\u{e9}", "aa", 443, false),
        ]);
    }

    #[test]
    fn a_star_covers_everything_and_is_the_only_pattern() {
        check(&[
            ("*", "example.com", 443, true),
            ("*", "10.0.0.1", 443, true),
            ("*", "::1", 443, true),
            ("other, *", "example.com", 443, true),
            ("*:443", "example.com", 443, true),
            ("*:443", "example.com", 80, false),
            ("*.example.com", "api.example.com", 443, false),
            ("*.example.com", "example.com", 443, false),
            ("exam*", "example.com", 443, false),
        ]);
    }

    /// A115
    #[test]
    fn a115_an_entry_with_a_port_covers_that_port_alone() {
        check(&[
            ("localhost:1234", "localhost", 5678, false),
            ("localhost:1234", "localhost", 1234, true),
            ("example.com:443", "api.example.com", 443, true),
            ("10.0.0.1:80", "10.0.0.1", 80, true),
            ("10.0.0.1:80", "10.0.0.1", 81, false),
            ("10.0.0.0/8:80", "10.0.0.1", 80, true),
            ("[::1]:80", "::1", 80, true),
            ("[::1]:80", "::1", 81, false),
            ("localhost:", "localhost", 80, false),
            ("localhost:+80", "localhost", 80, false),
            ("localhost:65616", "localhost", 80, false),
        ]);
    }

    #[test]
    fn addresses_and_ranges_of_addresses() {
        check(&[
            ("10.0.0.1", "10.0.0.1", 80, true),
            ("10.0.0.1", "10.0.0.10", 80, false),
            ("0.0.1", "10.0.0.1", 80, false),
            ("127.0.0.0/8", "127.0.0.5", 80, true),
            ("127.0.0.0/8", "128.0.0.1", 80, false),
            ("10.1.2.3/16", "10.1.255.255", 80, true),
            ("10.1.2.3/16", "10.2.0.0", 80, false),
            ("10.0.0.1/32", "10.0.0.1", 80, true),
            ("10.0.0.1/32", "10.0.0.0", 80, false),
            ("0.0.0.0/0", "255.1.2.3", 80, true),
            ("0.0.0.0/0", "::1", 80, false),
            ("10.0.0.0/33", "10.0.0.0", 80, false),
            ("10.0.0.0/-1", "10.0.0.0", 80, false),
            ("10.0.0.0/", "11.0.0.0", 80, false),
            ("10.0.0.0/8", "10.example.com", 80, false),
            ("::1", "::1", 80, true),
            ("[::1]", "::1", 80, true),
            ("0:0::1", "::1", 80, true),
            ("fd00::/8", "fd12::1", 80, true),
            ("fd00::/8", "fe00::1", 80, false),
            ("::/0", "fe00::1", 80, true),
            ("::1/128", "::1", 80, true),
            ("::1/128", "::2", 80, false),
            ("::1/129", "::1", 80, false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", 80, true),
            ("::ffff:10.0.0.1", "10.0.0.1", 80, true),
        ]);
    }

    #[test]
    fn entries_are_parted_by_commas_and_by_white_space() {
        for list in ["a.test,b.test", "a.test, b.test", "a.test b.test", "a.test\tb.test\n", " ,a.test,,  b.test, "] {
            check(&[(list, "a.test", 80, true), (list, "b.test", 80, true), (list, "c.test", 80, false)]);
        }
    }
}
