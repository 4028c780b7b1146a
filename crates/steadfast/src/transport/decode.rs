//! gzip, decoded piece by piece.
//!
//! The pieces are bounded, so a small body that would decode to a huge one is stopped at whatever limit its reader
//! has, without ever being held whole. A stream that ends before its trailer, or whose checksum is wrong, is an error
//! and never a short result (RFC 1952 section 2.3.1).

use std::io::Write;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::Body;
use steadfast_http::{Fault, Sent};

use super::body::AT_A_STRETCH;
use super::{ResponseBody, TransportError};

/// A piece is handed on when it has this many bytes; it has at most as many more as one step of the decoder makes.
const PIECE: usize = 32 * 1024;

/// Replaces a gzip body by the decoded one and takes `Content-Encoding` and `Content-Length` out of the head.
///
/// Any other response, one without a body among them (HEAD, 204, 304), stays as it is.
pub fn wrap(response: Response<ResponseBody>) -> Response<ResponseBody> {
    if response.body().is_end_stream() || !is_gzip(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_ENCODING);
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, ResponseBody::decoded(Decoded::new(body)))
}

/// Reads a response to its end, decoded, with at most `max_bytes` after decoding.
///
/// # Errors
///
/// [`Fault::Decode`] for a body that is not whole and valid gzip, [`Fault::TooLarge`] past the limit, otherwise what
/// ended the body.
pub async fn collect_decoded(
    response: Response<ResponseBody>,
    max_bytes: u64,
) -> Result<Response<Bytes>, TransportError> {
    let (parts, body) = wrap(response).into_parts();
    Ok(Response::from_parts(parts, body.collect(max_bytes).await?))
}

/// Whether gzip is the one and only encoding.
fn is_gzip(response: &Response<ResponseBody>) -> bool {
    let mut values = response.headers().get_all(CONTENT_ENCODING).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let name = value.as_bytes().trim_ascii();
    name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip")
}

/// A gzip body and how far it is decoded.
pub(crate) struct Decoded {
    body: ResponseBody,
    /// What has come and is not decoded yet.
    input: Bytes,
    /// Whether a byte has come at all: an empty body is an empty one, whatever its head says.
    begun: bool,
    /// `None` once the stream is over.
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
}

impl Decoded {
    fn new(body: ResponseBody) -> Self {
        Self { body, input: Bytes::new(), begun: false, decoder: Some(MultiGzDecoder::new(Vec::new())) }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.decoder.is_none()
    }

    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportError>>> {
        for _ in 0..AT_A_STRETCH {
            let Some(decoder) = &mut self.decoder else { return Poll::Ready(None) };
            while !self.input.is_empty() && decoder.get_ref().len() < PIECE {
                match decoder.write(&self.input) {
                    Ok(taken) => self.input.advance(taken),
                    Err(error) => return Poll::Ready(Some(Err(self.fail(error)))),
                }
            }
            if decoder.get_ref().len() >= PIECE {
                return Poll::Ready(Some(Ok(mem::take(decoder.get_mut()).into())));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    self.input = frame.into_data().unwrap_or_default();
                    self.begun |= !self.input.is_empty();
                }
                Some(Err(error)) => {
                    self.decoder = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => return Poll::Ready(self.finish()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The compressed stream has ended: what is left, if its trailer is there and right.
    fn finish(&mut self) -> Option<Result<Bytes, TransportError>> {
        let decoder = self.decoder.take().filter(|_| self.begun)?;
        match decoder.finish() {
            Ok(rest) if rest.is_empty() => None,
            Ok(rest) => Some(Ok(rest.into())),
            Err(error) => Some(Err(self.fail(error))),
        }
    }

    /// The stream is not gzip, or not whole. The connection is closed with the body.
    fn fail(&mut self, error: std::io::Error) -> TransportError {
        self.decoder = None;
        self.body = ResponseBody::full(Bytes::new());
        TransportError::new(Fault::Decode, Sent::Yes).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use futures_executor::block_on;
    use http_body::Frame;
    use proptest::prelude::*;

    use super::*;

    const MAX: u64 = 1_000_000;

    /// A body in the pieces that it is made of.
    struct Pieces(VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = TransportError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    fn decode(bytes: &[u8], piece: usize, max: u64) -> Result<Bytes, TransportError> {
        let pieces = bytes.chunks(piece).map(Bytes::copy_from_slice).collect();
        let mut response = Response::new(ResponseBody::boxed(Pieces(pieces)));
        response.headers_mut().insert(CONTENT_ENCODING, http::HeaderValue::from_static("gzip"));
        block_on(collect_decoded(response, max)).map(Response::into_body)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_pieces_do_not_matter(
            members in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3_000), 1..4),
            piece in 1..500_usize,
        ) {
            let encoded: Vec<u8> = members.iter().flat_map(|member| gzip(member)).collect();
            let whole = members.concat();
            prop_assert_eq!(decode(&encoded, piece, MAX).unwrap(), &whole);
            let exact = whole.len() as u64;
            prop_assert!(decode(&encoded, piece, exact).is_ok());
            if exact > 0 {
                prop_assert_eq!(decode(&encoded, piece, exact - 1).unwrap_err().fault(), Fault::TooLarge);
            }
        }

        /// 2.4: a prefix is never taken for the whole, unless it ends where a member ends.
        #[test]
        fn c2_4_a_prefix_is_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..3_000),
            keep in any::<prop::sample::Index>(),
            piece in 1..500_usize,
        ) {
            let encoded = gzip(&bytes);
            let keep = 1 + keep.index(encoded.len() - 1);
            prop_assert_eq!(decode(&encoded[..keep], piece, MAX).unwrap_err().fault(), Fault::Decode);
        }

        #[test]
        fn rubbish_is_an_error_and_nothing_worse(
            bytes in prop::collection::vec(any::<u8>(), 1..300),
            piece in 1..50_usize,
        ) {
            prop_assert_eq!(decode(&bytes, piece, MAX).unwrap_err().fault(), Fault::Decode);
            let mut encoded = gzip(&bytes);
            let middle = encoded.len() / 2;
            encoded[middle] ^= 0x55;
            if let Ok(decoded) = decode(&encoded, piece, MAX) {
                prop_assert_eq!(decoded, bytes);
            }
        }
    }
}
