//! Keys that no single key can judge: the few pairs that are refused, and those that are probably not meant.
//!
//! What works, however badly, is not refused but gets a warning (9.3). Refused is what cannot be carried out as it
//! stands. The defaults never make a warning, and neither does a value that says what holds anyway.

use steadfast_policy::line::RateStyle;

use super::Settings;
use super::datum::Datum;
use super::draft::{Draft, join, problems};
use super::keys::{self, KEYS, MOST_IN_A_WINDOW};
use super::kind::Wrong;
use super::problem::{Problem, Warning};
use crate::transport::{HttpVersion, Proxy};

/// The pairs that are refused. A key that was refused by itself is not missed as well.
pub(super) fn refusals(draft: &Draft, path: &str) -> Vec<Problem> {
    let pairs = [("rate_limit", crowded_window(draft)), ("tls_identity_key", key_without_certificate(draft))];
    let problem = |(name, wrong): (&str, Option<Wrong>)| {
        let origin = draft.named(name)?.origin.clone();
        problems(vec![wrong?], &join(path, name), |_| origin.clone()).next()
    };
    pairs.into_iter().filter_map(problem).collect()
}

/// The window style remembers every start, so that its limit has a lower bound than the smooth style's (6.1).
fn crowded_window(draft: &Draft) -> Option<Wrong> {
    let smooth = Datum::Word(keys::word_of(&keys::STYLES, RateStyle::Smooth));
    let is_smooth = draft.named("rate_limit_style").is_some_and(|given| given.datum == smooth);
    match draft.named("rate_limit")?.datum {
        Datum::Count(count)
            if count > MOST_IN_A_WINDOW.into() && !is_smooth && !draft.was_refused("rate_limit_style") =>
        {
            let expected = format!(
                "at most {MOST_IN_A_WINDOW} with rate_limit_style = \"window\" (\"smooth\" takes up to 1000000000)"
            );
            Some(Wrong::mismatch(expected, count.to_string()))
        }
        _ => None,
    }
}

/// A private key proves nothing without the certificate that it belongs to.
fn key_without_certificate(draft: &Draft) -> Option<Wrong> {
    let missing = draft.named("tls_identity").is_none() && !draft.was_refused("tls_identity");
    missing.then(|| Wrong::says("needs tls_identity, the file with the certificate that this key belongs to"))
}

/// The pairs that are probably not meant. `given` are the keys that somebody set.
pub(super) fn warnings(settings: &Settings, given: &Draft, path: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |key: &str, message: String| warnings.push(Warning { path: join(path, key), message });
    exposed_token(settings, &mut warn);
    no_tls(settings, given, &mut warn);
    no_roots(settings, &mut warn);
    no_pings(settings, given, &mut warn);
    let decoded = [("brotli", cfg!(feature = "brotli")), ("zstd", cfg!(feature = "zstd"))];
    not_compiled_in(decoded, given, &mut warn);
    warnings
}

/// 8.3: a forwarded token that anybody on the way can read.
fn exposed_token(settings: &Settings, warn: &mut impl FnMut(&str, String)) {
    if settings.forward_authorization && !settings.base_url.is_https() && !settings.base_url.is_loopback() {
        warn("forward_authorization", format!("callers' tokens are sent to {} without TLS", settings.base_url));
    }
}

/// Keys of a handshake that never happens. A proxy that is itself reached through TLS may use them.
fn no_tls(settings: &Settings, given: &Draft, warn: &mut impl FnMut(&str, String)) {
    let tls_to_proxy = matches!(&settings.proxy, Proxy::Url(url) if url.to_string().starts_with("https://"));
    if settings.base_url.is_https() || tls_to_proxy {
        return;
    }
    for key in KEYS.iter().filter(|key| key.name.starts_with("tls_")) {
        if given.named(key.name).is_some() && key.show(settings) != key.default_text() {
            warn(key.name, "has no effect: the base_url is http, so there is no TLS".to_owned());
        }
    }
}

/// The TLS code refuses these when a client is made; a file that is only checked hears of them here.
fn no_roots(settings: &Settings, warn: &mut impl FnMut(&str, String)) {
    if settings.tls_roots_only && settings.tls_roots.is_empty() {
        warn("tls_roots_only", "no certificate can be trusted: there are no tls_roots".to_owned());
    } else if settings.tls_roots_only && settings.tls_platform_roots {
        warn(
            "tls_roots_only",
            "contradicts tls_platform_roots: with the platform's roots, tls_roots are not alone".to_owned(),
        );
    }
}

fn no_pings(settings: &Settings, given: &Draft, warn: &mut impl FnMut(&str, String)) {
    let (interval, timeout) = ("http2_ping_interval", "http2_ping_timeout");
    let why = match settings.http_version {
        HttpVersion::Http1 => "http_version is \"http1\"",
        HttpVersion::Auto if !settings.base_url.is_https() => {
            "the base_url is http, where http_version \"auto\" is HTTP/1.1"
        }
        _ if settings.http2_ping_interval.is_none() => "there is no http2_ping_interval",
        _ => return,
    };
    for key in [interval, timeout].into_iter().filter(|key| given.named(key).is_some()) {
        warn(key, format!("has no effect: {why}"));
    }
}

/// An encoding that somebody asks for by name, in a build that cannot decode it.
fn not_compiled_in(decoded: [(&str, bool); 2], given: &Draft, warn: &mut impl FnMut(&str, String)) {
    for (key, is_compiled_in) in decoded {
        let wanted = given.named(key).is_some_and(|given| given.datum == Datum::Flag(true));
        if wanted && !is_compiled_in {
            warn(key, format!("has no effect: this program is built without the feature `{key}` of steadfast"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::Origin;
    use super::*;

    /// A build that cannot decode an encoding says so to whom asks for it, and to nobody else.
    #[test]
    fn an_encoding_that_is_not_compiled_in() {
        let mut draft = Draft::new();
        let mut set = |key: &str, flag| {
            draft.set(keys::find(key).unwrap(), Datum::Flag(flag), Origin::Builder);
            let mut said = Vec::new();
            not_compiled_in([("brotli", false), ("zstd", true)], &draft, &mut |key, message| {
                said.push(format!("{key}: {message}"));
            });
            said.join("\n")
        };
        assert_eq!(set("zstd", true), "");
        assert_eq!(set("brotli", false), "");
        let expected = "brotli: has no effect: this program is built without the feature `brotli` of steadfast";
        assert_eq!(set("brotli", true), expected);
    }
}
