//! What a response and the log tell of the dependencies whose answers were stand-ins.
//!
//! Invariants: the header is a list of tokens (RFC 9110 5.6.1, 5.6.2) of at most [`MOST_BYTES`]; a name's other characters
//! are percent-encoded, and names that do not fit any more are left out. The log names them all.

use http::HeaderValue;
use steadfast::degraded::Degraded;

/// As much as a header may grow by, whatever dependencies are called.
const MOST_BYTES: usize = 1024;

/// The names as a header's value; `None` if there is none to tell.
pub(crate) fn names(noted: &[Degraded]) -> Option<HeaderValue> {
    list(noted.iter().map(Degraded::dependency))
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> Option<HeaderValue> {
    let mut value = String::new();
    for name in names.map(token).filter(|name| !name.is_empty()) {
        if value.len() + 2 + name.len() > MOST_BYTES {
            break;
        }
        if !value.is_empty() {
            value.push_str(", ");
        }
        value.push_str(&name);
    }
    HeaderValue::from_str(&value).ok().filter(|value| !value.is_empty())
}

fn token(name: &str) -> String {
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        // `%` is a token's character as well, and stands for itself nowhere else.
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            token.push(char::from(byte));
        } else {
            token.push_str(&format!("%{byte:02X}"));
        }
    }
    token
}

/// One line for the request.
pub(crate) fn log(noted: &[Degraded], request_id: &HeaderValue) {
    if !tracing::enabled!(tracing::Level::WARN) {
        return;
    }
    let degraded = noted.iter().map(Degraded::to_string).collect::<Vec<_>>().join(", ");
    let request_id = request_id.to_str().unwrap_or_default();
    tracing::warn!(request_id, degraded, "the answer is degraded");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(names: &[&str]) -> Option<String> {
        list(names.iter().copied()).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn names_are_a_list_of_tokens() {
        assert_eq!(text(&["billing", "tariffs-eu.1"]).unwrap(), "billing, tariffs-eu.1");
        assert_eq!(text(&["a b,c", "é\r\n", "5%"]).unwrap(), "a%20b%2Cc, %C3%A9%0D%0A, 5%25");
        assert_eq!((text(&[]), text(&[""])), (None, None));
    }

    #[test]
    fn the_header_is_bounded() {
        let name = "x".repeat(300);
        let all = text(&[name.as_str(); 100]).unwrap();
        assert_eq!(all.split(", ").count(), 3);
        assert!(all.len() <= MOST_BYTES);
        assert_eq!(text(&[&"x".repeat(5_000)]), None);
    }
}
