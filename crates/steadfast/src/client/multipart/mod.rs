//! Multipart forms (RFC 7578): fields and files in one body.
//!
//! Names and file names are escaped as the HTML standard says (section 4.10.22.8: `%0A`, `%0D` and `%22` for line feed,
//! carriage return and quotation mark, nothing else), so none of them can end its header or begin another. Content types
//! are checked. The boundary is drawn from a seed of the system's, so nobody who writes a part can guess it.
//!
//! Invariants: a form is put together once, so every attempt of a call sends the same bytes. A form of whole parts is a
//! whole body; one with a part that comes in pieces is read as those pieces come, and its length is announced where each
//! part's is known.
//!
//! Limits: whole parts are copied once, into the body. `_charset_` and `filename*` are not sent (RFC 7578 sections 4.2
//! and 4.6): names are UTF-8.

mod body;
#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::fmt::{self, Write as _};
use std::hash::BuildHasher;

use bytes::Bytes;
use http::HeaderValue;

use crate::transport::RequestBody;
use body::Pieces;

/// So many letters and digits; RFC 2046 section 5.1.1 allows 70 characters.
const BOUNDARY_LENGTH: usize = 32;

/// A form of fields and files (`multipart/form-data`).
///
/// ```
/// use steadfast::client::multipart::{Form, Part};
///
/// let form = Form::new()
///     .text("title", "Invoice 7")
///     .bytes("scan", "invoice.pdf", "application/pdf", &b"%PDF-1.7"[..])
///     .part("note", Part::text("paid").mime("text/markdown"));
/// let (body, content_type) = form.into_body()?;
/// assert!(body.is_replayable());
/// assert!(content_type.to_str()?.starts_with("multipart/form-data; boundary="));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
#[must_use = "a form does nothing until it is sent"]
pub struct Form {
    parts: Vec<(String, Part)>,
}

impl Form {
    /// A form without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// A field: its value, as it is.
    pub fn text(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.part(name, Part::text(value))
    }

    /// A file whose bytes are there already.
    pub fn bytes(
        self,
        name: impl Into<String>,
        file_name: impl Into<String>,
        content_type: &str,
        bytes: impl Into<Bytes>,
    ) -> Self {
        self.part(name, Part::bytes(bytes).file_name(file_name).mime(content_type))
    }

    /// Any part. A name may be given several times; the parts are sent in this order.
    pub fn part(mut self, name: impl Into<String>, part: Part) -> Self {
        self.parts.push((name.into(), part));
        self
    }

    /// The body, and the `Content-Type` that it needs, which holds the boundary.
    ///
    /// # Errors
    /// [`InvalidForm`]: a content type that is none.
    pub fn into_body(self) -> Result<(RequestBody, HeaderValue), InvalidForm> {
        self.with_boundary(&boundary())
    }

    fn with_boundary(self, boundary: &str) -> Result<(RequestBody, HeaderValue), InvalidForm> {
        // Letters and digits are always a header's value.
        let content_type = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"))
            .unwrap_or(HeaderValue::from_static("multipart/form-data"));
        let mut pieces = Pieces::default();
        for (name, part) in self.parts {
            let head = part.head(boundary, &name)?;
            pieces.whole(head.as_bytes());
            match part.body.as_bytes() {
                Some(bytes) => pieces.whole(bytes),
                None => pieces.streamed(part.body),
            }
            pieces.whole(b"\r\n");
        }
        pieces.whole(format!("--{boundary}--\r\n").as_bytes());
        Ok((pieces.into_body(), content_type))
    }
}

impl fmt::Debug for Form {
    /// How many parts; neither names nor values, which can be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

/// One part of a [`Form`].
#[must_use = "a part does nothing until it is in a form"]
pub struct Part {
    body: RequestBody,
    file_name: Option<String>,
    content_type: Option<String>,
}

impl Part {
    /// Text. It is sent without a content type, which means plain text.
    pub fn text(value: impl Into<String>) -> Self {
        Self::body(value.into())
    }

    /// Bytes that are there already.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::body(bytes.into())
    }

    /// Whatever a body can be: a file that is read as it is sent ([`RequestBody::reader`]), a stream, a body.
    ///
    /// How much of the form is kept for a further attempt is set on the body of the form; what `body` itself would keep
    /// does not count.
    pub fn body(body: impl Into<RequestBody>) -> Self {
        Self { body: body.into(), file_name: None, content_type: None }
    }

    /// The name of the file, which makes it one: without a content type it is sent as `application/octet-stream`.
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// The content type, such as `image/png` or `text/plain; charset=utf-8`. One that is none is reported by
    /// [`Form::into_body`].
    pub fn mime(mut self, content_type: &str) -> Self {
        self.content_type = Some(content_type.to_owned());
        self
    }

    /// What stands before the part's bytes.
    fn head(&self, boundary: &str, name: &str) -> Result<String, InvalidForm> {
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", Escaped(name));
        if let Some(file_name) = &self.file_name {
            // Writing to a string does not fail.
            let _ = write!(head, "; filename=\"{}\"", Escaped(file_name));
        }
        let default = self.file_name.as_ref().map(|_| "application/octet-stream");
        if let Some(content_type) = self.content_type.as_deref().or(default) {
            if !is_content_type(content_type) {
                return Err(InvalidForm(name.to_owned()));
            }
            let _ = write!(head, "\r\nContent-Type: {content_type}");
        }
        head.push_str("\r\n\r\n");
        Ok(head)
    }
}

impl fmt::Debug for Part {
    /// Without names and bytes, which can be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("body", &self.body).field("is_file", &self.file_name.is_some()).finish()
    }
}

/// A part of a form has a content type that is none: `type/subtype`, perhaps with parameters, was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidForm(String);

impl InvalidForm {
    /// The name of the part.
    pub fn part(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InvalidForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the content type of the form's part \"{}\" is not one: ", self.0.escape_debug())?;
        f.write_str("type/subtype was expected, such as text/plain; charset=utf-8")
    }
}

impl std::error::Error for InvalidForm {}

/// A name between quotation marks.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\n' => f.write_str("%0A")?,
                '\r' => f.write_str("%0D")?,
                '"' => f.write_str("%22")?,
                plain => f.write_char(plain)?,
            }
        }
        Ok(())
    }
}

/// Two tokens with a slash between them, and perhaps parameters, all in visible ASCII (RFC 9110 section 8.3.1).
fn is_content_type(text: &str) -> bool {
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_token = |part: &str| {
        let symbol = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || symbol(byte))
    };
    let tokens = essence.trim_end_matches([' ', '\t']).split_once('/');
    tokens.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
        && parameters.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
}

/// Letters and digits that nobody can foretell: the seed is a hash under keys that the system gave.
fn boundary() -> String {
    let seed = RandomState::new().hash_one(fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    (0..BOUNDARY_LENGTH).map(|_| random.alphanumeric()).collect()
}
