//! Joining a request's path and query to a base URL.
//!
//! Decides where a request goes, so that it can only go to the configured upstream and below its prefix, whatever
//! text the path was made from (contract 8.4).
//!
//! - `/x` and `x` are the same, and the prefix of the base is kept in front of both. `sub:path` is a path.
//! - An absolute URL, `//host`, a backslash, a control character, a space, a `#`, and a `%` without two hexadecimal
//!   digits are refused.
//! - Every dot segment is refused, one that stays inside the prefix too: someone on the way would rewrite the path,
//!   and not everyone rewrites it in the same way. Segments are compared as a careless server may read them:
//!   percent-decoded, with `%2F` and `%5C` as separators, and without what follows a `;`.
//! - Percent-encoding is kept as it is, `%2F` included. What may not stand in a URL (non-ASCII text, `"`, `{`, …) is
//!   percent-encoded as UTF-8.
//! - A query in the path and the query given beside it are both kept, in this order.
//!
//! No error repeats the path or the query.

use std::fmt;

use bytes::Bytes;
use http::Uri;
use http::uri::{PathAndQuery, Scheme};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::base_url::BaseUrl;

#[cfg(test)]
mod tests;

/// What is encoded in a query; `%` is not, as it has been checked.
const QUERY: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
/// What is encoded in a path.
const PATH: &AsciiSet = &QUERY.add(b'[').add(b']');
/// What is encoded in a segment that is data: everything but the unreserved characters (RFC 3986 2.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The longest path and query together, in bytes.
pub(crate) const MAX_LEN: usize = 65_534;

/// Why a path or query cannot be sent: a mistake of the caller, with nothing sent. Its message repeats nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TargetError {
    /// It is a URL of its own.
    Absolute,
    /// It begins with `//`, which names another host.
    OtherHost,
    /// The path has a backslash, which some read as a slash.
    Backslash,
    /// A control character.
    Control,
    /// A space.
    Space,
    /// A `#`.
    Fragment,
    /// A `%` that is not followed by two hexadecimal digits.
    BadPercent,
    /// A segment is `.` or `..`, written out or percent-encoded.
    DotSegment,
    /// A segment made from data is empty, so that the path would name something else.
    EmptySegment,
    /// Path and query are longer than 65 534 bytes.
    TooLong,
    /// A character that the HTTP library does not let through.
    BadCharacter,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absolute => "a path was expected, not a whole URL: requests go to the configured upstream only",
            Self::OtherHost => "the path may not begin with `//`, which names another host",
            Self::Backslash => "the path may not hold a backslash",
            Self::Control => "a control character is not allowed; percent-encode it",
            Self::Space => "a space is not allowed; write %20",
            Self::Fragment => "a fragment (`#`) is never sent; write %23 for the character",
            Self::BadPercent => "a `%` must be followed by two hexadecimal digits; write %25 for the character",
            Self::DotSegment => "the path may not hold a `.` or `..` segment, percent-encoded or not",
            Self::EmptySegment => "a segment of the path may not be empty",
            Self::TooLong => "path and query are longer than 65534 bytes",
            Self::BadCharacter => "a character is not allowed in a URL",
        })
    }
}

impl std::error::Error for TargetError {}

impl BaseUrl {
    /// The URL of a request.
    ///
    /// `path` may begin with a slash or not, and may carry a query of its own; `""` is the base itself. `query` is
    /// appended as it is, so it must be encoded already; an empty one adds nothing.
    ///
    /// # Errors
    ///
    /// If the path leaves the upstream or its prefix, or cannot be sent; see the head of [`target`](self).
    pub fn join(&self, path: &str, query: Option<&str>) -> Result<Uri, TargetError> {
        refuse_other_host(path)?;
        let (path, own_query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let query = query.filter(|query| !query.is_empty());
        let lengths = [self.prefix().len(), path.len(), own_query.map_or(0, str::len), query.map_or(0, str::len)];
        if lengths.iter().sum::<usize>() > MAX_LEN {
            return Err(TargetError::TooLong);
        }

        let mut target = String::with_capacity(lengths.iter().sum::<usize>() + 3);
        target.push_str(self.prefix());
        if target.is_empty() || self.has_slash() || !path.is_empty() {
            target.push('/');
        }
        push_path(&mut target, path.strip_prefix('/').unwrap_or(path))?;
        if let Some(own) = own_query {
            target.push('?');
            push_query(&mut target, own)?;
        }
        if let Some(query) = query {
            match own_query {
                None => target.push('?'),
                Some("") => {}
                Some(_) => target.push('&'),
            }
            push_query(&mut target, query)?;
        }
        if target.len() > MAX_LEN {
            return Err(TargetError::TooLong);
        }
        self.uri(target)
    }

    fn uri(&self, target: String) -> Result<Uri, TargetError> {
        let target = PathAndQuery::from_maybe_shared(Bytes::from(target)).map_err(|_| TargetError::BadCharacter)?;
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(if self.is_https() { Scheme::HTTPS } else { Scheme::HTTP });
        parts.authority = Some(self.authority().clone());
        parts.path_and_query = Some(target);
        Uri::from_parts(parts).map_err(|_| TargetError::BadCharacter)
    }
}

/// Encodes data as one segment of a path: a space becomes `%20`, a slash `%2F`.
///
/// ```
/// use steadfast_http::encode_segment;
///
/// assert_eq!(encode_segment("a b/c").unwrap(), "a%20b%2Fc");
/// assert!(encode_segment("..").is_err());
/// ```
///
/// # Errors
///
/// If it is empty or would act as a dot segment, so that the path would name something else.
pub fn encode_segment(data: &str) -> Result<String, TargetError> {
    if data.is_empty() {
        return Err(TargetError::EmptySegment);
    }
    if is_dotted(data.as_bytes()) {
        return Err(TargetError::DotSegment);
    }
    Ok(utf8_percent_encode(data, SEGMENT).to_string())
}

/// Whether a text is a scheme of RFC 3986 3.1.
pub(crate) fn is_scheme(text: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) && text.bytes().all(rest)
}

/// Appends a path, checked and encoded.
pub(crate) fn push_path(out: &mut String, path: &str) -> Result<(), TargetError> {
    check_text(path)?;
    if path.contains('\\') {
        return Err(TargetError::Backslash);
    }
    if path.split('/').any(is_dot_segment) {
        return Err(TargetError::DotSegment);
    }
    out.extend(utf8_percent_encode(path, PATH));
    Ok(())
}

fn push_query(out: &mut String, query: &str) -> Result<(), TargetError> {
    check_text(query)?;
    out.extend(utf8_percent_encode(query, QUERY));
    Ok(())
}

fn refuse_other_host(path: &str) -> Result<(), TargetError> {
    if path.starts_with("//") {
        return Err(TargetError::OtherHost);
    }
    // `http:x` has no host by RFC 3986, but browsers and the libraries made after them read one.
    let absolute = path.split_once(':').is_some_and(|(scheme, rest)| {
        let http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        is_scheme(scheme) && (http || rest.starts_with("//"))
    });
    if absolute { Err(TargetError::Absolute) } else { Ok(()) }
}

/// What may stand neither in a path nor in a query.
fn check_text(text: &str) -> Result<(), TargetError> {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b' ' => return Err(TargetError::Space),
            b'#' => return Err(TargetError::Fragment),
            b'%' => match bytes.get(at + 1..at + 3) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => {}
                _ => return Err(TargetError::BadPercent),
            },
            byte if byte.is_ascii_control() => return Err(TargetError::Control),
            _ => {}
        }
    }
    Ok(())
}

fn is_dot_segment(segment: &str) -> bool {
    if segment.contains('%') {
        is_dotted(&percent_decode_str(segment).collect::<Vec<u8>>())
    } else {
        is_dotted(segment.as_bytes())
    }
}

/// Whether a decoded segment is a dot segment to anyone who may read it.
fn is_dotted(segment: &[u8]) -> bool {
    segment.split(|byte| matches!(byte, b'/' | b'\\')).any(|part| {
        let name = part.split(|byte| *byte == b';').next().unwrap_or(part);
        matches!(name, b"." | b"..")
    })
}
