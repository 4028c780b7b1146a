//! Whether a request may be sent twice.
//!
//! Decides by the method, the `Idempotency-Key`, and the caller's own word, before anything is sent; what an attempt
//! then proves about the upstream can only widen it ([`Repeat::permits`]). The caller's word wins over both.

use std::fmt;

use http::{HeaderMap, HeaderName, Method};

use crate::fault::Sent;

/// The header that lets an upstream recognise a request that it has seen already.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Safe or idempotent by RFC 9110 9.2.2. A list of our own, so that what may be sent twice never grows by an upgrade.
const REPEATABLE: [Method; 6] =
    [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE];

/// Whether a request may be sent twice, as far as is known before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// Sending it twice does no harm.
    Yes,
    /// Only if the upstream certainly never processed it.
    No,
    /// The caller forbade it, whatever happens.
    Forbidden,
}

impl Repeat {
    /// Decides from the method, the headers as they will be sent, and the caller's word, if there is one.
    ///
    /// GET, HEAD, PUT, DELETE, OPTIONS and TRACE may be repeated (RFC 9110 9.2.2), and any method with a non-empty
    /// `Idempotency-Key`. Methods are compared with case, as RFC 9110 9.1 says: `get` is another method than `GET`.
    ///
    /// # Errors
    ///
    /// If there is an `Idempotency-Key` without a value, whatever the method and the caller's word: the caller meant
    /// to protect the request, and it would not be.
    pub fn of(method: &Method, headers: &HeaderMap, retry: Option<bool>) -> Result<Self, EmptyIdempotencyKey> {
        let mut keyed = false;
        for value in headers.get_all(IDEMPOTENCY_KEY) {
            if value.as_bytes().trim_ascii().is_empty() {
                return Err(EmptyIdempotencyKey);
            }
            keyed = true;
        }
        let repeatable = keyed || REPEATABLE.contains(method);
        Ok(match retry {
            Some(false) => Self::Forbidden,
            Some(true) => Self::Yes,
            None if repeatable => Self::Yes,
            None => Self::No,
        })
    }

    /// Whether it may be sent again after an attempt that got as far as `sent`.
    pub const fn permits(self, sent: Sent) -> bool {
        match self {
            Self::Yes => true,
            Self::No => matches!(sent, Sent::No),
            Self::Forbidden => false,
        }
    }
}

/// An `Idempotency-Key` header without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EmptyIdempotencyKey;

impl fmt::Display for EmptyIdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the Idempotency-Key header is empty, so it protects nothing; give it a value or leave it out")
    }
}

impl std::error::Error for EmptyIdempotencyKey {}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(method: &str, keys: &[&'static str], retry: Option<bool>) -> Result<Repeat, EmptyIdempotencyKey> {
        let mut headers = HeaderMap::new();
        for key in keys {
            headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static(key));
        }
        Repeat::of(&Method::from_bytes(method.as_bytes()).unwrap(), &headers, retry)
    }

    /// 2.2
    #[test]
    fn c2_2_the_method_decides() {
        for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"] {
            assert_eq!(of(method, &[], None), Ok(Repeat::Yes), "{method}");
        }
        for method in ["POST", "PATCH", "CONNECT", "PROPFIND", "get", "Put"] {
            assert_eq!(of(method, &[], None), Ok(Repeat::No), "{method}");
        }
    }

    /// 2.2, B13: an empty key is an error and never a licence.
    #[test]
    fn c2_2_a_key_decides_for_any_method() {
        assert_eq!(of("POST", &["k1"], None), Ok(Repeat::Yes));
        assert_eq!(of("PATCH", &["k1"], None), Ok(Repeat::Yes));
        for keys in [&[""][..], &["  \t"], &["k1", ""], &["", "k1"]] {
            for method in ["GET", "POST"] {
                for retry in [None, Some(true), Some(false)] {
                    assert_eq!(of(method, keys, retry), Err(EmptyIdempotencyKey), "{method} {keys:?}");
                }
            }
        }
    }

    /// 2.2
    #[test]
    fn c2_2_the_callers_word_wins() {
        assert_eq!(of("POST", &[], Some(true)), Ok(Repeat::Yes));
        assert_eq!(of("GET", &[], Some(false)), Ok(Repeat::Forbidden));
        assert_eq!(of("POST", &["k1"], Some(false)), Ok(Repeat::Forbidden));
    }

    /// 2.3, A29, A33, A34
    #[test]
    fn c2_3_what_was_sent_widens_but_never_overrules() {
        for (repeat, yes, no, unknown) in [
            (Repeat::Yes, true, true, true),
            (Repeat::No, false, true, false),
            (Repeat::Forbidden, false, false, false),
        ] {
            assert_eq!(repeat.permits(Sent::Yes), yes, "{repeat:?}");
            assert_eq!(repeat.permits(Sent::No), no, "{repeat:?}");
            assert_eq!(repeat.permits(Sent::Unknown), unknown, "{repeat:?}");
        }
    }
}
