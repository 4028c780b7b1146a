use std::collections::VecDeque;

use futures_executor::block_on;
use futures_util::stream;
use http_body::Body;
use http_body_util::BodyExt;
use proptest::prelude::*;

use super::*;

const BOUNDARY: &str = "boundary0123456789";

fn bytes_of(body: RequestBody) -> Bytes {
    block_on(body.collect()).unwrap().to_bytes()
}

fn text_of(form: Form) -> String {
    let (body, content_type) = form.with_boundary(BOUNDARY).unwrap();
    assert_eq!(content_type, "multipart/form-data; boundary=boundary0123456789");
    String::from_utf8(bytes_of(body).to_vec()).unwrap()
}

/// A part of these pieces, its length told or not.
fn streamed(pieces: &[&'static str], told: bool) -> Part {
    let length = told.then(|| pieces.iter().map(|piece| piece.len() as u64).sum());
    let pieces: Vec<_> =
        pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes()))).collect();
    Part::body(RequestBody::stream(stream::iter(pieces), length))
}

#[test]
fn the_bytes_are_those_of_rfc_7578() {
    let form = Form::new()
        .text("title", "Grüße\n")
        .bytes("scan", "ä.pdf", "application/pdf", &b"%PDF"[..])
        .part("note", Part::text("*").mime("text/markdown; charset=utf-8"))
        .part("raw", Part::bytes(&b""[..]).file_name("raw.bin"));
    let expected = "--boundary0123456789\r\n\
        Content-Disposition: form-data; name=\"title\"\r\n\
        \r\n\
        Grüße\n\r\n\
        --boundary0123456789\r\n\
        Content-Disposition: form-data; name=\"scan\"; filename=\"ä.pdf\"\r\n\
        Content-Type: application/pdf\r\n\
        \r\n\
        %PDF\r\n\
        --boundary0123456789\r\n\
        Content-Disposition: form-data; name=\"note\"\r\n\
        Content-Type: text/markdown; charset=utf-8\r\n\
        \r\n\
        *\r\n\
        --boundary0123456789\r\n\
        Content-Disposition: form-data; name=\"raw\"; filename=\"raw.bin\"\r\n\
        Content-Type: application/octet-stream\r\n\
        \r\n\
        \r\n\
        --boundary0123456789--\r\n";
    assert_eq!(text_of(form), expected);
    assert_eq!(text_of(Form::new()), "--boundary0123456789--\r\n");
}

#[test]
fn a_name_cannot_end_its_header() {
    let evil = "a\"; filename=\"b\r\nX-Evil: 1\r\n\r\n--boundary0123456789--";
    let text = text_of(Form::new().part(evil, Part::text("v").file_name(evil)));
    let head = text.split("\r\n\r\n").next().unwrap();
    let escaped = "a%22; filename=%22b%0D%0AX-Evil: 1%0D%0A%0D%0A--boundary0123456789--";
    assert_eq!(
        head,
        format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{escaped}\"; filename=\"{escaped}\"\r\n\
            Content-Type: application/octet-stream"
        )
    );
    // Nothing else is escaped: `%` and `\` are sent as they are.
    assert!(text_of(Form::new().text("50%\\", "")).contains("name=\"50%\\\"\r\n"));
}

#[test]
fn what_is_no_content_type_is_reported() {
    for good in ["text/plain", "image/svg+xml", "text/plain; charset=\"utf-8\"", "application/x.a-b ;a=b"] {
        assert!(Form::new().part("p", Part::text("").mime(good)).into_body().is_ok(), "{good}");
    }
    let evil = "text/plain\r\nX-Evil: 1";
    for bad in
        ["", "text", "text/", "/plain", "text/plain/x", "te xt/plain", evil, "text/plain; a=\r\n", "text/plain; é"]
    {
        let error = Form::new().text("first", "").bytes("the\nname", "f", bad, "").into_body().unwrap_err();
        assert_eq!(error.part(), "the\nname", "{bad}");
        assert_eq!(
            error.to_string(),
            "the content type of the form's part \"the\\nname\" is not one: type/subtype was expected, such as \
            text/plain; charset=utf-8"
        );
    }
}

#[test]
fn a_boundary_is_drawn_for_each_form() {
    let boundaries: std::collections::HashSet<String> = (0..100)
        .map(|_| {
            let (body, content_type) = Form::new().text("a", "b").into_body().unwrap();
            let boundary = content_type.to_str().unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
            assert!(boundary.len() >= 24 && boundary.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{boundary}");
            let start = format!("--{boundary}\r\n");
            assert!(body.as_bytes().unwrap().starts_with(start.as_bytes()));
            boundary.to_owned()
        })
        .collect();
    assert_eq!(boundaries.len(), 100);
}

#[test]
fn a_form_of_whole_parts_is_whole() {
    let (body, _) = Form::new().text("a", "b").part("c", Part::body("d")).into_body().unwrap();
    let whole = body.as_bytes().unwrap().clone();
    assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
    assert_eq!(bytes_of(body.again().unwrap()), whole);
    assert_eq!(bytes_of(body), whole);
}

#[test]
fn a_form_with_a_stream_is_the_same_on_each_attempt() {
    let form = || {
        let file = streamed(&["one ", "", "two"], true).file_name("f");
        Form::new().text("a", "b").part("file", file).part("empty", streamed(&[], true)).text("c", "d")
    };
    let whole =
        Form::new().text("a", "b").part("file", Part::text("one two").file_name("f")).text("empty", "").text("c", "d");
    let expected = text_of(whole);
    let (mut body, _) = form().with_boundary(BOUNDARY).unwrap();
    assert_eq!(body.as_bytes(), None);
    assert_eq!(body.size_hint().exact(), Some(expected.len() as u64));
    // The first attempt is cut after two pieces.
    for _ in 0..2 {
        block_on(body.frame()).unwrap().unwrap();
    }
    assert!(body.is_replayable());
    let second = body.again().unwrap();
    let third = second.again().unwrap();
    assert_eq!(bytes_of(third), expected);

    // More than is kept: this attempt is the last, and whole.
    let (body, _) = form().with_boundary(BOUNDARY).unwrap();
    let mut body = body.keep(20);
    block_on(body.frame()).unwrap().unwrap();
    assert!(body.again().is_none());
}

#[test]
fn a_length_that_is_not_known_is_not_told() {
    let (body, _) =
        Form::new().part("a", streamed(&["x"], true)).part("b", streamed(&["y"], false)).into_body().unwrap();
    assert_eq!(body.size_hint().exact(), None);
    let text = String::from_utf8(bytes_of(body).to_vec()).unwrap();
    assert!(text.contains("\r\n\r\nx\r\n--") && text.contains("\r\n\r\ny\r\n--"), "{text}");
}

#[test]
fn a_part_that_is_not_as_long_as_told_is_an_error() {
    for length in [2, 4] {
        let piece = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"abc"))]);
        let part = Part::body(RequestBody::stream(piece, Some(length)));
        let (body, _) = Form::new().part("a", part).into_body().unwrap();
        let error = block_on(body.collect()).unwrap_err().to_string();
        assert!(error.contains(&length.to_string()), "{error}");
    }
    let failing = stream::iter([Err::<Bytes, _>(std::io::Error::other("the disk is gone"))]);
    let part = Part::body(RequestBody::stream(failing, None));
    let (body, _) = Form::new().part("a", part).into_body().unwrap();
    assert_eq!(block_on(body.collect()).unwrap_err().to_string(), "the disk is gone");
}

#[test]
fn secrets_are_not_shown() {
    let form = Form::new().part("password", Part::text("hunter2").file_name("secret.txt"));
    assert_eq!(format!("{form:?}"), "Form { parts: 1, .. }");
    let part = format!("{:?}", Part::text("hunter2").file_name("secret.txt"));
    assert!(!part.contains("hunter2") && !part.contains("secret"), "{part}");
}

/// Name, file name, content type, bytes.
type Parsed = (String, Option<String>, Option<String>, Vec<u8>);

/// Reads a form as a server does: cuts at the boundary, then at the first empty line, then at the quotation marks.
fn parse(body: &[u8], boundary: &str) -> Vec<Parsed> {
    let cut = |bytes: &[u8], at: &[u8]| {
        let found = bytes.windows(at.len()).position(|window| window == at);
        found.map(|found| (bytes[..found].to_vec(), bytes[found + at.len()..].to_vec()))
    };
    let delimiter = format!("\r\n--{boundary}");
    let (nothing, mut rest) = cut(&[b"\r\n", body].concat(), delimiter.as_bytes()).unwrap();
    assert!(nothing.is_empty());
    let mut parts = Vec::new();
    while rest != b"--\r\n" {
        let (part, after) = cut(rest.strip_prefix(b"\r\n").unwrap(), delimiter.as_bytes()).unwrap();
        rest = after;
        let (head, bytes) = cut(&part, b"\r\n\r\n").unwrap();
        let head = String::from_utf8(head).unwrap();
        let mut lines: VecDeque<&str> = head.split("\r\n").collect();
        let disposition = lines.pop_front().unwrap();
        let quoted: Vec<&str> = disposition.split('"').collect();
        assert_eq!(quoted[0], "Content-Disposition: form-data; name=");
        let unescape = |text: &str| text.replace("%0A", "\n").replace("%0D", "\r").replace("%22", "\"");
        let file_name = match quoted[2..] {
            [""] => None,
            ["; filename=", name, ""] => Some(unescape(name)),
            _ => panic!("{disposition}"),
        };
        let content_type = lines.pop_front().map(|line| line.strip_prefix("Content-Type: ").unwrap().to_owned());
        assert!(lines.is_empty());
        parts.push((unescape(quoted[1]), file_name, content_type, bytes));
    }
    parts
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(
        parts in prop::collection::vec(
            ("[^%]{0,12}", prop::option::of("[^%]{0,12}"), prop::collection::vec(any::<u8>(), 0..100), any::<bool>()),
            0..6,
        ),
    ) {
        let mut form = Form::new();
        let mut expected = Vec::new();
        for (name, file_name, bytes, streamed) in parts {
            let mut part = if streamed {
                let pieces: Vec<_> = bytes.chunks(7).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
                Part::body(RequestBody::stream(stream::iter(pieces), Some(bytes.len() as u64)))
            } else {
                Part::bytes(bytes.clone())
            };
            let mut content_type = None;
            if let Some(file_name) = &file_name {
                part = part.file_name(file_name).mime("image/png");
                content_type = Some(String::from("image/png"));
            }
            form = form.part(&name, part);
            expected.push((name, file_name, content_type, bytes));
        }
        let (body, content_type) = form.into_body().unwrap();
        let length = body.size_hint().exact();
        let sent = bytes_of(body);
        prop_assert_eq!(length, Some(sent.len() as u64));
        let boundary = content_type.to_str().unwrap().split_once("boundary=").unwrap().1;
        prop_assert_eq!(parse(&sent, boundary), expected);
    }
}
