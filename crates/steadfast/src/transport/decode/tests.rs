//! The same promises for each coding: whole or an error, wherever the pieces are cut, and never much at once.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_executor::block_on;
use http_body::Frame;
use http_body_util::BodyExt;
use proptest::prelude::*;

use super::*;

const MAX: u64 = 1_000_000;

/// A body in the pieces that it is made of; it is pending once before each, where it `waits`.
struct Pieces {
    pieces: VecDeque<Bytes>,
    waits: bool,
    waited: bool,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        if self.waits && !mem::replace(&mut self.waited, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.waited = false;
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

fn response(coding: &str, pieces: VecDeque<Bytes>, waits: bool) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::boxed(Pieces { pieces, waits, waited: false }));
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_str(coding).unwrap());
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("1"));
    response
}

fn cut(bytes: &[u8], piece: usize) -> VecDeque<Bytes> {
    bytes.chunks(piece).map(Bytes::copy_from_slice).collect()
}

fn decode(coding: Coding, bytes: &[u8], piece: usize, max: u64) -> Result<Bytes, TransportError> {
    let response = response(coding.name(), cut(bytes, piece), piece.is_multiple_of(2));
    block_on(collect_decoded(response, max, Codings::ALL)).map(Response::into_body)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    #[cfg(feature = "brotli")]
    Brotli,
    #[cfg(feature = "zstd")]
    Zstd,
}

const CODINGS: &[Coding] = &[
    Coding::Gzip,
    #[cfg(feature = "brotli")]
    Coding::Brotli,
    #[cfg(feature = "zstd")]
    Coding::Zstd,
];

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            #[cfg(feature = "brotli")]
            Self::Brotli => "br",
            #[cfg(feature = "zstd")]
            Self::Zstd => "zstd",
        }
    }

    fn encode(self, bytes: &[u8]) -> Vec<u8> {
        self.flushed(&[bytes]).concat()
    }

    /// What each part adds to the stream, and at last what ends it.
    fn flushed(self, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        let shared = Shared::default();
        let mut encoder: Box<dyn Write> = match self {
            Self::Gzip => Box::new(GzEncoder::new(shared.clone(), Compression::fast())),
            #[cfg(feature = "brotli")]
            Self::Brotli => Box::new(::brotli::CompressorWriter::new(shared.clone(), 4096, 1, 16)),
            #[cfg(feature = "zstd")]
            Self::Zstd => {
                let mut encoder = ::zstd::stream::write::Encoder::new(shared.clone(), 3).unwrap();
                encoder.include_checksum(true).unwrap();
                Box::new(encoder.auto_finish())
            }
        };
        let mut all = Vec::new();
        for part in parts {
            encoder.write_all(part).unwrap();
            if parts.len() > 1 {
                encoder.flush().unwrap();
            }
            all.push(shared.0.take());
        }
        drop(encoder);
        all.push(shared.0.take());
        all
    }

    /// Whether a change of a bit is noticed: br has no checksum.
    fn has_checksum(self) -> bool {
        !matches!(self.name(), "br")
    }
}

/// A place to write to that can be looked at meanwhile.
#[derive(Clone, Default)]
struct Shared(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn any_coding() -> impl Strategy<Value = Coding> {
    prop::sample::select(CODINGS)
}

/// Text that compresses, and bytes that do not.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..3_000),
        (prop::collection::vec(any::<u8>(), 0..300), 1..300_usize).prop_map(|(bytes, times)| bytes.repeat(times)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_pieces_do_not_matter(coding in any_coding(), bytes in any_bytes(), piece in 1..500_usize) {
        let encoded = coding.encode(&bytes);
        prop_assert_eq!(&decode(coding, &encoded, piece, MAX).unwrap(), &bytes);
        let exact = bytes.len() as u64;
        prop_assert!(decode(coding, &encoded, piece, exact).is_ok());
        if exact > 0 {
            prop_assert_eq!(decode(coding, &encoded, piece, exact - 1).unwrap_err().fault(), Fault::TooLarge);
        }
    }

    /// RFC 1952 section 2.2; RFC 8878 section 3.1. A br stream is one stream.
    #[test]
    fn what_may_follow_follows(
        coding in any_coding(),
        members in prop::collection::vec(any_bytes(), 2..4),
        piece in 1..500_usize,
    ) {
        let encoded: Vec<u8> = members.iter().flat_map(|member| coding.encode(member)).collect();
        let decoded = decode(coding, &encoded, piece, MAX);
        if coding.name() == "br" {
            prop_assert_eq!(decoded.unwrap_err().fault(), Fault::Decode);
        } else {
            prop_assert_eq!(decoded.unwrap(), members.concat());
        }
    }

    /// 2.4: a prefix is never taken for the whole, unless it ends where a member ends.
    #[test]
    fn c2_4_a_prefix_is_an_error(
        coding in any_coding(),
        bytes in any_bytes(),
        keep in any::<prop::sample::Index>(),
        piece in 1..500_usize,
    ) {
        let encoded = coding.encode(&bytes);
        prop_assume!(encoded.len() > 1);
        let keep = 1 + keep.index(encoded.len() - 1);
        prop_assert_eq!(decode(coding, &encoded[..keep], piece, MAX).unwrap_err().fault(), Fault::Decode);
    }

    #[test]
    fn bytes_that_are_too_many_are_an_error(
        coding in any_coding(),
        bytes in any_bytes(),
        more in prop::collection::vec(128..=255_u8, 1..40),
        piece in 1..500_usize,
    ) {
        let encoded = [coding.encode(&bytes), more].concat();
        prop_assert_eq!(decode(coding, &encoded, piece, MAX).unwrap_err().fault(), Fault::Decode);
    }

    #[test]
    fn rubbish_is_an_error_and_nothing_worse(
        coding in any_coding(),
        bytes in prop::collection::vec(any::<u8>(), 1..300),
        piece in 1..50_usize,
        at in any::<prop::sample::Index>(),
    ) {
        let rubbish = decode(coding, &bytes, piece, MAX);
        // Some short rubbish is br.
        prop_assert!(!coding.has_checksum() || rubbish.unwrap_err().fault() == Fault::Decode);
        let mut encoded = coding.encode(&bytes);
        let at = at.index(encoded.len());
        encoded[at] ^= 0x55;
        match decode(coding, &encoded, piece, MAX) {
            Ok(decoded) => prop_assert!(!coding.has_checksum() || decoded == bytes),
            Err(error) => prop_assert!(matches!(error.fault(), Fault::Decode | Fault::TooLarge)),
        }
    }
}

/// 7.5, whatever the coding: neither the limit nor a reader without one ever meets much at once.
#[test]
fn c7_5_a_bomb_comes_in_small_pieces() {
    const BOMB: usize = 10 * 1024 * 1024;
    for &coding in CODINGS {
        let bomb = coding.encode(&vec![0; BOMB]);
        assert!(bomb.len() < 64 * 1024, "{coding:?}: {}", bomb.len());
        assert_eq!(decode(coding, &bomb, bomb.len(), 1024 * 1024).unwrap_err().fault(), Fault::TooLarge);

        let mut body = wrap(response(coding.name(), cut(&bomb, bomb.len()), false), Codings::ALL).into_body();
        let (mut all, mut biggest) = (0, 0);
        while let Some(frame) = block_on(body.frame()) {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.iter().all(|byte| *byte == 0));
            all += piece.len();
            biggest = biggest.max(piece.len());
        }
        assert_eq!(all, BOMB, "{coding:?}");
        assert!(biggest <= 2 * PIECE, "{coding:?}: {biggest}");
    }
}

/// A58, for each coding: everything is there but the last bytes.
#[test]
fn a58_a_body_without_its_end_is_an_error() {
    let text: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    for &coding in CODINGS {
        let whole = coding.encode(text.as_bytes());
        assert_eq!(decode(coding, &whole, 1000, MAX).unwrap(), text);
        for cut in [1, 2, 4, 8, whole.len() / 2, whole.len() - 1] {
            let error = decode(coding, &whole[..whole.len() - cut], 1000, MAX).unwrap_err();
            assert_eq!((error.fault(), error.sent()), (Fault::Decode, Sent::Yes), "{coding:?} without {cut}");
        }
    }
}

/// A body that gives what it has been given, and waits for more.
struct Fed(Arc<Mutex<VecDeque<Bytes>>>);

impl Body for Fed {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        match self.0.lock().unwrap().pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None => Poll::Pending,
        }
    }
}

/// A message that has come is handed on whole, though nothing comes after it for a while.
#[test]
fn what_has_come_is_not_held_back() {
    let long = vec![7; 5 * PIECE + 1];
    let messages = [&b"data: one\n\n"[..], b"data: two\n\n", &long, b"data: three\n\n"];
    let mut cx = Context::from_waker(std::task::Waker::noop());
    for &coding in CODINGS {
        let fed = Arc::new(Mutex::new(VecDeque::new()));
        let mut head = response(coding.name(), VecDeque::new(), false);
        *head.body_mut() = ResponseBody::boxed(Fed(Arc::clone(&fed)));
        let mut body = wrap(head, Codings::ALL).into_body();
        for (message, piece) in messages.into_iter().zip(coding.flushed(&messages)) {
            fed.lock().unwrap().push_back(Bytes::from(piece));
            let mut come = Vec::new();
            while let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(&mut cx) {
                come.extend_from_slice(&frame.unwrap().unwrap().into_data().unwrap());
            }
            assert!(come == message, "{coding:?}: {} of {}", come.len(), message.len());
        }
    }
}

/// Parts of a body that bring nothing give others a turn, although all of them are there.
#[test]
fn empty_members_do_not_keep_the_thread() {
    let members = Coding::Gzip.encode(b"").repeat(AT_A_STRETCH * 3);
    let mut body = wrap(response("gzip", cut(&members, members.len()), false), Codings::ALL).into_body();
    let mut turns = 0;
    let mut cx = Context::from_waker(std::task::Waker::noop());
    while Pin::new(&mut body).poll_frame(&mut cx).is_pending() {
        turns += 1;
    }
    assert!((3..100).contains(&turns), "{turns}");
}

#[test]
fn an_empty_body_is_an_empty_one() {
    for &coding in CODINGS {
        for pieces in [VecDeque::new(), VecDeque::from([Bytes::new(), Bytes::new()])] {
            let decoded = block_on(collect_decoded(response(coding.name(), pieces, true), 0, Codings::ALL)).unwrap();
            assert_eq!(decoded.body(), "");
        }
    }
}

/// What the response becomes under this head: whether it was decoded.
fn is_decoded(head: &str, codings: Codings) -> bool {
    let wrapped = wrap(response(head, cut(b"abc", 1), false), codings);
    let left = [CONTENT_ENCODING, CONTENT_LENGTH].map(|name| wrapped.headers().contains_key(name));
    assert_eq!(left, [!wrapped.body().is_decoded(); 2]);
    wrapped.body().is_decoded()
}

#[test]
fn only_a_coding_that_is_on_is_decoded() {
    for name in ["gzip", "x-gzip", "GZIP", " gzip\t"] {
        assert!(is_decoded(name, Codings { gzip: true, ..Codings::NONE }), "{name}");
        assert!(!is_decoded(name, Codings { gzip: false, ..Codings::ALL }), "{name}");
    }
    for name in ["br", "Br"] {
        assert_eq!(is_decoded(name, Codings::ALL), cfg!(feature = "brotli"));
        assert!(!is_decoded(name, Codings { brotli: false, ..Codings::ALL }));
    }
    assert_eq!(is_decoded("zstd", Codings::ALL), cfg!(feature = "zstd"));
    assert!(!is_decoded("zstd", Codings { zstd: false, ..Codings::ALL }));
    for other in ["identity", "deflate", "compress", "gzip, br", "gzip,", "gzipped", "", "x-br", "aes128gcm"] {
        assert!(!is_decoded(other, Codings::ALL), "{other}");
    }
    let mut twice = response("gzip", cut(b"abc", 1), false);
    twice.headers_mut().append(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    assert!(!wrap(twice, Codings::ALL).body().is_decoded());
    let mut part = response("gzip", cut(b"abc", 1), false);
    *part.status_mut() = StatusCode::PARTIAL_CONTENT;
    assert!(!wrap(part, Codings::ALL).body().is_decoded());
}

#[test]
fn what_is_on_is_asked_for() {
    let accept = |codings: Codings| codings.accept().map_or(String::new(), |value| value.to_str().unwrap().to_owned());
    let mut all = vec!["gzip"];
    all.extend(cfg!(feature = "brotli").then_some("br"));
    all.extend(cfg!(feature = "zstd").then_some("zstd"));
    for bits in 0..8 {
        let codings = Codings { gzip: bits & 1 != 0, brotli: bits & 2 != 0, zstd: bits & 4 != 0 };
        let on = [("gzip", codings.gzip), ("br", codings.brotli), ("zstd", codings.zstd)];
        let expected: Vec<&str> =
            on.into_iter().filter(|(name, on)| *on && all.contains(name)).map(|(name, _)| name).collect();
        assert_eq!(accept(codings), expected.join(", "));
    }
}

#[cfg(feature = "zstd")]
mod of_zstd {
    use super::*;

    fn with_window(log: u32, bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.set_parameter(::zstd::stream::raw::CParameter::WindowLog(log)).unwrap();
        encoder.include_contentsize(false).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// RFC 9659 section 3.
    #[test]
    fn a_window_of_8_mib_is_the_largest() {
        let bytes = vec![7; 100_000];
        assert_eq!(decode(Coding::Zstd, &with_window(23, &bytes), 1000, MAX).unwrap(), bytes);
        for log in [24, 27] {
            let error = decode(Coding::Zstd, &with_window(log, &bytes), 1000, MAX).unwrap_err();
            assert_eq!(error.fault(), Fault::Decode);
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(source, "the zstd window is larger than 8 MiB (RFC 9659)");
        }
    }

    /// Without one the input ends before the output does.
    #[test]
    fn a_frame_without_a_checksum_is_whole_too() {
        let bytes = vec![7; 500_000];
        let encoded = ::zstd::encode_all(&bytes[..], 3).unwrap();
        for piece in [1, encoded.len() - 1, encoded.len()] {
            assert_eq!(decode(Coding::Zstd, &encoded, piece, MAX).unwrap(), bytes);
        }
    }

    /// RFC 8878 section 3.1.2.
    #[test]
    fn skippable_frames_are_skipped() {
        let skippable = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
            [&[0x5A, 0x2A, 0x4D, 0x18][..], &length, bytes].concat()
        };
        let text = Coding::Zstd.encode(b"text");
        let encoded = [skippable(b"x"), text.clone(), skippable(&[0; 70_000]), text, skippable(b"")].concat();
        for piece in [1, 7, 100_000] {
            assert_eq!(decode(Coding::Zstd, &encoded, piece, MAX).unwrap(), "texttext");
            assert_eq!(decode(Coding::Zstd, &skippable(b"alone"), piece, 0).unwrap(), "");
            let cut = decode(Coding::Zstd, &encoded[..encoded.len() - 3], piece, MAX);
            assert_eq!(cut.unwrap_err().fault(), Fault::Decode);
        }
    }
}

#[cfg(feature = "brotli")]
mod of_brotli {
    use super::*;

    /// RFC 7932 knows windows to 16 MiB; the extension for larger ones is another format.
    #[test]
    fn a_large_window_is_refused() {
        let parameters = |large: bool, lgwin: i32| ::brotli::enc::BrotliEncoderParams {
            large_window: large,
            lgwin,
            quality: 1,
            ..Default::default()
        };
        let bytes = vec![7; 100_000];
        let encode = |parameters| {
            let mut out = Vec::new();
            ::brotli::BrotliCompress(&mut &bytes[..], &mut out, &parameters).unwrap();
            out
        };
        assert_eq!(decode(Coding::Brotli, &encode(parameters(false, 24)), 1000, MAX).unwrap(), bytes);
        let error = decode(Coding::Brotli, &encode(parameters(true, 28)), 1000, MAX).unwrap_err();
        assert_eq!(error.fault(), Fault::Decode);
    }
}
