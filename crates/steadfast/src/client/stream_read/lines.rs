//! Lines of text, such as JSON lines.
//!
//! A line ends with LF or CRLF, which are not part of it; a lone CR is. The last line needs no end. A byte order mark is
//! part of the first line.

use super::buffer::Buffer;
use super::{MAX_BYTES, StreamError};

/// Cuts bytes into lines, without I/O.
///
/// ```
/// use steadfast::client::stream_read::LineDecoder;
///
/// let mut decoder = LineDecoder::new();
/// decoder.push(b"one\r\ntw");
/// assert_eq!(decoder.next_line()?.as_deref(), Some("one"));
/// assert_eq!(decoder.next_line()?, None);
/// decoder.push(b"o");
/// decoder.finish();
/// assert_eq!(decoder.next_line()?.as_deref(), Some("two"));
/// assert_eq!(decoder.next_line()?, None);
/// # Ok::<(), steadfast::client::stream_read::StreamError>(())
/// ```
#[derive(Debug)]
pub struct LineDecoder {
    buffer: Buffer,
    max: usize,
    /// The number of the line that is being read.
    line: u64,
    finished: bool,
    failed: Option<StreamError>,
}

impl LineDecoder {
    /// A decoder of lines of at most 1 MiB.
    pub fn new() -> Self {
        Self { buffer: Buffer::default(), max: MAX_BYTES, line: 1, finished: false, failed: None }
    }

    /// Another bound on the length of a line in bytes, its end not counted.
    #[must_use]
    pub fn max_bytes(mut self, max: usize) -> Self {
        self.max = max;
        self
    }

    /// Adds what has come. All of it is held until it is asked for, so ask until there is nothing before adding more. Of
    /// no effect after [`finish`](Self::finish) or an error.
    pub fn push(&mut self, piece: &[u8]) {
        if !self.finished && self.failed.is_none() {
            self.buffer.push(piece);
        }
    }

    /// Nothing more will come: what is left is the last line.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The next line, without its end. `None`: more bytes are needed, or, after [`finish`](Self::finish), there are no
    /// more lines.
    ///
    /// # Errors
    /// [`StreamError::LineTooLong`], [`StreamError::NotUtf8`]. The same is returned from then on.
    pub fn next_line(&mut self) -> Result<Option<String>, StreamError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (length, end) = match self.buffer.find(|byte| byte == b'\n') {
            Some(length) => match self.buffer.rest().get(..length) {
                Some([.., b'\r']) => (length - 1, 2),
                _ => (length, 1),
            },
            None => {
                let rest = self.buffer.rest();
                // A CR that is last may belong to the end of the line.
                let open = usize::from(rest.ends_with(b"\r"));
                if rest.len() - open > self.max {
                    return Err(self.fail(StreamError::LineTooLong { line: self.line, max: self.max }));
                }
                if !self.finished || rest.is_empty() {
                    return Ok(None);
                }
                (rest.len(), 0)
            }
        };
        if length > self.max {
            return Err(self.fail(StreamError::LineTooLong { line: self.line, max: self.max }));
        }
        match str::from_utf8(self.buffer.take(length, end)) {
            Ok(text) => {
                let text = text.to_owned();
                self.line = self.line.saturating_add(1);
                Ok(Some(text))
            }
            Err(_) => Err(self.fail(StreamError::NotUtf8 { line: self.line })),
        }
    }

    fn fail(&mut self, error: StreamError) -> StreamError {
        self.buffer.clear();
        self.failed = Some(error);
        error
    }
}

impl Default for LineDecoder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = (Vec<String>, Option<StreamError>);

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, max: usize) -> Read {
        let mut decoder = LineDecoder::new().max_bytes(max);
        let mut lines = Vec::new();
        let mut drain = |decoder: &mut LineDecoder| {
            loop {
                match decoder.next_line() {
                    Ok(Some(line)) => lines.push(line),
                    Ok(None) => return None,
                    Err(error) => {
                        assert_eq!(decoder.next_line(), Err(error));
                        return Some(error);
                    }
                }
            }
        };
        for piece in pieces {
            decoder.push(piece);
            if let Some(error) = drain(&mut decoder) {
                return (lines, Some(error));
            }
        }
        decoder.finish();
        let error = drain(&mut decoder);
        (lines, error)
    }

    fn lines(bytes: &[u8]) -> Vec<String> {
        let (lines, error) = read([bytes], 10);
        assert_eq!(error, None);
        lines
    }

    #[test]
    fn a_line_ends_with_lf_or_crlf() {
        assert_eq!(lines(b"a\nb\r\n\nc\rd\n\r\r\n"), ["a", "b", "", "c\rd", "\r"]);
        assert_eq!(lines(b""), [""; 0]);
        assert_eq!(lines(b"\n"), [""]);
        assert_eq!(lines(b"a\n"), ["a"]);
        assert_eq!(lines(b"a\nb"), ["a", "b"]);
        assert_eq!(lines(b"a\r"), ["a\r"]);
        assert_eq!(lines("ä\nö".as_bytes()), ["ä", "ö"]);
    }

    #[test]
    fn a_line_has_a_bound() {
        let too_long = |line| Some(StreamError::LineTooLong { line, max: 4 });
        for fits in [&b"1234"[..], b"1234\n", b"1234\r\n", b"123\r"] {
            assert_eq!(read([fits], 4).1, None, "{fits:?}");
        }
        for more in [&b"a\n12345"[..], b"a\n12345\n", b"a\n12345\r\n", b"a\n1234\r", b"a\n1234\r5\n"] {
            assert_eq!(read([more], 4), (vec![String::from("a")], too_long(2)), "{more:?}");
        }
        assert_eq!(LineDecoder::default().max, 1024 * 1024);
        assert_eq!(too_long(2).unwrap().to_string(), "line 2 of the body has more than 4 bytes");
    }

    /// It does not wait for the end of a line that is too long already.
    #[test]
    fn a_long_line_is_noticed_while_it_comes() {
        let mut decoder = LineDecoder::new().max_bytes(4);
        decoder.push(b"1234");
        assert_eq!(decoder.next_line(), Ok(None));
        decoder.push(b"5");
        assert!(decoder.next_line().is_err());
        decoder.push(&[b'x'; 1000]);
        assert!(decoder.buffer.rest().is_empty());
    }

    #[test]
    fn what_is_not_utf_8_is_an_error_with_its_line() {
        let (lines, error) = read([&b"a\nb\n\xFF\nc\n"[..]], 10);
        assert_eq!((lines.len(), error), (2, Some(StreamError::NotUtf8 { line: 3 })));
        assert_eq!(read([&b"a\xC3"[..]], 10).1, Some(StreamError::NotUtf8 { line: 1 }));
    }

    /// Each byte is looked at and moved a bounded number of times; else this would take hours.
    #[test]
    fn small_pieces_of_a_long_line_take_linear_time() {
        let mut decoder = LineDecoder::new();
        decoder.push(b"first\n");
        assert!(decoder.next_line().unwrap().is_some());
        for _ in 0..1_000_000 {
            decoder.push(b"x");
            assert_eq!(decoder.next_line(), Ok(None));
        }
        decoder.finish();
        assert_eq!(decoder.next_line().unwrap().unwrap().len(), 1_000_000);
    }

    fn any_text() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop::sample::select(&b"ab\r\n\r\n\xC3\xA4"[..]);
        prop::collection::vec(byte, 0..40)
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(bytes in any_text(), max in 0..6_usize) {
            let whole = read([&bytes[..]], max);
            for at in 0..=bytes.len() {
                let (left, right) = bytes.split_at(at);
                prop_assert_eq!(&read([left, right], max), &whole);
            }
            prop_assert_eq!(&read(bytes.chunks(1), max), &whole);
        }

        #[test]
        fn it_is_what_the_standard_library_says(text in "[aä\r\n]{0,30}") {
            let (read, error) = read(text.as_bytes().chunks(1), 1000);
            prop_assert_eq!(error, None);
            prop_assert_eq!(read, text.lines().collect::<Vec<_>>());
        }
    }
}
