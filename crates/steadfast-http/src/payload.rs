//! A request's body that is there already.
//!
//! Decides its bytes and its content type, once and before anything is sent: a body that cannot be written is the
//! caller's mistake and costs no attempt. It is held as [`Bytes`], so that every attempt sends the same bytes and a
//! retry costs no copy.
//!
//! Limit: a body is whole. One that comes piece by piece is a matter of the transport, which has to keep what it has read.

use std::fmt;

use bytes::Bytes;
use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

/// What the `application/x-www-form-urlencoded` serialiser of the URL standard encodes; a space becomes `+` then.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_').remove(b' ');

/// A body that can be sent any number of times. Its `Debug` shows the length, never the bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Payload {
    /// The body.
    pub bytes: Bytes,
    /// The `Content-Type`, unless the call sets its own.
    pub content_type: Option<HeaderValue>,
}

impl Payload {
    /// Bytes as they are, without a content type.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), content_type: None }
    }

    /// Text, as `text/plain; charset=utf-8`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::typed(text.into(), "text/plain; charset=utf-8")
    }

    /// A value as `application/json`.
    ///
    /// # Errors
    ///
    /// If the value does not serialise, for example because a map's keys are not text.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, PayloadError> {
        let bytes = serde_json::to_vec(value).map_err(|error| PayloadError { why: error.to_string() })?;
        Ok(Self::typed(bytes, "application/json"))
    }

    /// Pairs as `application/x-www-form-urlencoded`, in their order. Names may repeat.
    ///
    /// ```
    /// use steadfast_http::Payload;
    ///
    /// let form = Payload::form([("amount", "12 €"), ("note", "a&b")]);
    /// assert_eq!(form.bytes, "amount=12+%E2%82%AC&note=a%26b");
    /// ```
    pub fn form<N: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut text = String::new();
        for (name, value) in pairs {
            if !text.is_empty() {
                text.push('&');
            }
            push_form(&mut text, name.as_ref());
            text.push('=');
            push_form(&mut text, value.as_ref());
        }
        Self::form_encoded(text)
    }

    /// Text that is encoded already, as `application/x-www-form-urlencoded`.
    pub fn form_encoded(text: impl Into<String>) -> Self {
        Self::typed(text.into(), "application/x-www-form-urlencoded")
    }

    fn typed(bytes: impl Into<Bytes>, content_type: &'static str) -> Self {
        Self { bytes: bytes.into(), content_type: Some(HeaderValue::from_static(content_type)) }
    }
}

fn push_form(out: &mut String, text: &str) {
    for piece in utf8_percent_encode(text, FORM) {
        // A space is not encoded, so it can only be part of a piece that was not.
        for (at, part) in piece.split(' ').enumerate() {
            if at > 0 {
                out.push('+');
            }
            out.push_str(part);
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload")
            .field("bytes", &format_args!("{} bytes", self.bytes.len()))
            .field("content_type", &self.content_type)
            .finish()
    }
}

/// A body that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadError {
    why: String,
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body cannot be written as JSON: {}", self.why)
    }
}

impl std::error::Error for PayloadError {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// S22
    #[test]
    fn each_kind_has_its_type() {
        for (payload, bytes, content_type) in [
            (Payload::default(), "", None),
            (Payload::bytes("abc"), "abc", None),
            (Payload::bytes(vec![97]), "a", None),
            (Payload::text("\u{e4}"), "\u{e4}", Some("text/plain; charset=utf-8")),
            (Payload::json(&[1, 2]).unwrap(), "[1,2]", Some("application/json")),
            (Payload::json("x").unwrap(), "\"x\"", Some("application/json")),
            (Payload::form([("a", "1"), ("a", "2")]), "a=1&a=2", Some("application/x-www-form-urlencoded")),
            (Payload::form_encoded("a=b"), "a=b", Some("application/x-www-form-urlencoded")),
            (Payload::form(Vec::<(String, String)>::new()), "", Some("application/x-www-form-urlencoded")),
        ] {
            assert_eq!(payload.bytes, bytes);
            assert_eq!(payload.content_type.as_ref().map(|value| value.to_str().unwrap()), content_type);
        }
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        let error = Payload::json(&BTreeMap::from([((1, 2), 3)])).unwrap_err();
        assert_eq!(error.to_string(), "the body cannot be written as JSON: key must be a string");
    }

    /// A133
    #[test]
    fn a133_debug_shows_no_body() {
        let shown = format!("{:?}", Payload::form([("password", "hunter2")]));
        assert!(!shown.contains("hunter2") && !shown.contains("password"), "{shown}");
        assert!(shown.contains("16 bytes"), "{shown}");
    }

    #[test]
    fn a_form_is_encoded_as_the_url_standard_says() {
        let form = Payload::form([(" a+b ", "c&d=e%\n*-._~\u{e4}"), ("", "")]);
        assert_eq!(form.bytes, "+a%2Bb+=c%26d%3De%25%0A*-._%7E%C3%A4&=");
    }

    proptest! {
        #![proptest_config(crate::testing::seeded())]

        #[test]
        fn a_form_decodes_to_its_pairs(pairs in prop::collection::vec((".{0,12}", ".{0,12}"), 0..5)) {
            let text = String::from_utf8(Payload::form(pairs.clone()).bytes.to_vec()).unwrap();
            let decode = |part: &str| {
                let part = part.replace('+', " ");
                percent_encoding::percent_decode_str(&part).decode_utf8().unwrap().into_owned()
            };
            let read: Vec<_> = text.split('&').filter(|pair| !pair.is_empty())
                .map(|pair| pair.split_once('=').unwrap())
                .map(|(name, value)| (decode(name), decode(value)))
                .collect();
            prop_assert_eq!(read, pairs);
        }
    }
}
