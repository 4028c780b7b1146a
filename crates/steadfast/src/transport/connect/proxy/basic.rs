//! `Basic` credentials (RFC 7617): user and password in base64 (RFC 4648 section 4).
//!
//! By hand, as nothing else here needs base64.

use http::HeaderValue;

use super::url::Credentials;

const DIGITS: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of `Proxy-Authorization`, marked as a secret.
pub(super) fn authorization(credentials: &Credentials) -> Option<HeaderValue> {
    let pair = format!("{}:{}", credentials.user, credentials.password);
    // base64 is always a header's value; `None` only satisfies the type.
    let mut value = HeaderValue::try_from(format!("Basic {}", encode(pair.as_bytes()))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().chain(&[0, 0]).take(3).fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > group.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648 section 10
    #[test]
    fn base64_has_the_digits_and_the_padding_of_its_rfc() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
            ("\u{3ff}\u{fbf}", "z7/gvr8="),
        ] {
            assert_eq!(encode(plain.as_bytes()), encoded, "{plain}");
        }
    }

    /// RFC 7617 section 2; 8.6
    #[test]
    fn c8_6_basic_credentials_are_marked_as_secret() {
        let credentials = Credentials { user: "Aladdin".to_owned(), password: "open sesame".to_owned() };
        let value = authorization(&credentials).unwrap();
        assert_eq!(value, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(value.is_sensitive() && !format!("{value:?}").contains("QWxh"));
    }
}
