//! The configured headers: which names and values are refused at load, and whose values are shown.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::kind::Wrong;
use super::value::{Item, Name, Value};

/// Names whose values are shown. Every other value may be a token, and a masked tenant name costs less than a leaked
/// secret.
const SHOWN: [HeaderName; 7] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_TYPE,
    header::USER_AGENT,
];

/// Names that belong to one connection (RFC 9110 7.6.1) and so to the transport.
const PER_CONNECTION: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Names that are set by others: a deadline there would replace what they say.
const TAKEN: [&str; 5] = ["authorization", "cookie", "traceparent", "tracestate", "x-request-id"];

/// The most headers, the longest name, and the longest value.
pub(super) const MOST: usize = 100;
pub(super) const LONGEST_NAME: usize = 256;
pub(super) const LONGEST_VALUE: usize = 8 * 1024;

/// Names that no configuration may set, whatever the key.
pub(super) fn refused() -> impl Iterator<Item = String> {
    ["idempotency-key", "host", "content-length"].into_iter().chain(PER_CONNECTION).map(str::to_owned)
}

/// Names that the deadline's header may not have either.
pub(super) fn taken() -> impl Iterator<Item = String> {
    SHOWN.iter().map(|name| name.to_string()).chain(TAKEN.map(str::to_owned))
}

/// Whether the value of `name` may be shown.
pub(super) fn is_shown(name: &HeaderName) -> bool {
    SHOWN.contains(name)
}

/// The map of a `headers` table. Every faulty entry is reported, not only the first.
pub(super) fn read(entries: &[(Name, Item)]) -> Result<HeaderMap, Vec<Wrong>> {
    let mut wrongs = Vec::new();
    let mut headers = HeaderMap::new();
    if entries.len() > MOST {
        wrongs.push(Wrong::mismatch(format!("at most {MOST} headers"), entries.len().to_string()));
    }
    for (name, item) in entries.iter().take(MOST) {
        match (read_name(&name.text), read_value(&item.value)) {
            (Ok(known), Ok(_)) if headers.contains_key(&known) => {
                let twice = Wrong::says("this header is set twice (names are compared without case)");
                wrongs.push(twice.inside(&name.text, name.at));
            }
            (Ok(known), Ok(mut value)) => {
                value.set_sensitive(!is_shown(&known));
                headers.insert(known, value);
            }
            (name_read, value_read) => {
                wrongs.extend(name_read.err().map(|wrong| wrong.inside(&name.text, name.at)));
                wrongs.extend(value_read.err().map(|wrong| wrong.inside(&name.text, item.at)));
            }
        }
    }
    if wrongs.is_empty() { Ok(headers) } else { Err(wrongs) }
}

/// A header name that configuration may set.
pub(super) fn read_name(text: &str) -> Result<HeaderName, Wrong> {
    if text.len() > LONGEST_NAME {
        return Err(Wrong::says(format!("a header's name has at most {LONGEST_NAME} characters")));
    }
    let Ok(name) = HeaderName::from_bytes(text.as_bytes()) else {
        return Err(Wrong::says("not a header name: letters, digits, and - . _ ~ ! # $ % & ' * + ^ ` | only"));
    };
    let refusal = match name.as_str() {
        "idempotency-key" => {
            "one configured key would make all calls one; give each call its own with `.idempotency_key(…)`"
        }
        "host" => "`Host` follows from base_url and cannot be set",
        "content-length" => "`Content-Length` follows from the body and cannot be set",
        known if PER_CONNECTION.contains(&known) => {
            "this header belongs to one connection (RFC 9110 7.6.1) and cannot be set"
        }
        _ => return Ok(name),
    };
    Err(Wrong::says(refusal))
}

/// The value of a configured header. What was found is never quoted: it may be a secret.
fn read_value(value: &Value) -> Result<HeaderValue, Wrong> {
    let refuse = |found: String| {
        let expected = format!("a string of visible ASCII, no space at its ends, at most {LONGEST_VALUE} bytes");
        Err(Wrong::mismatch(expected, found))
    };
    let Value::Text(text) = value else {
        return refuse(value.describe(true));
    };
    match HeaderValue::from_str(text) {
        _ if text.len() > LONGEST_VALUE => refuse(format!("{} bytes", text.len())),
        _ if !text.is_ascii() => refuse("a string with another character".to_owned()),
        _ if text.trim() != text => refuse("a string with a space at its end".to_owned()),
        Ok(value) => Ok(value),
        Err(_) => refuse("a string with another character".to_owned()),
    }
}

/// The name of the header that carries the deadline: one of its own, so that it replaces nothing.
pub(super) fn read_deadline_name(text: &str) -> Result<HeaderName, Wrong> {
    let name = read_name(text)?;
    if is_shown(&name) || TAKEN.contains(&name.as_str()) {
        Err(Wrong::says(format!("`{name}` has another meaning; the deadline needs a header of its own")))
    } else {
        Ok(name)
    }
}
