use proptest::prelude::*;

use super::*;

type Read = (Vec<ServerSentEvent>, Option<StreamError>, Arc<str>, Option<Duration>);

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, max: usize) -> Read {
    let mut decoder = EventDecoder::new().max_bytes(max);
    let mut events = Vec::new();
    let mut drain = |decoder: &mut EventDecoder| {
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => return None,
                Err(error) => {
                    assert_eq!(decoder.next_event(), Err(error));
                    return Some(error);
                }
            }
        }
    };
    let mut error = None;
    for piece in pieces {
        decoder.push(piece);
        error = error.or(drain(&mut decoder));
    }
    decoder.finish();
    error = error.or(drain(&mut decoder));
    (events, error, Arc::clone(decoder.last_event_id()), decoder.retry())
}

/// Kind and data of each event.
fn events(text: &str) -> Vec<(String, String)> {
    let (events, error, ..) = read([text.as_bytes()], 1000);
    assert_eq!(error, None);
    events.into_iter().map(|event| (event.event, event.data)).collect()
}

/// The data of events of no special kind.
fn data(text: &str) -> Vec<String> {
    events(text)
        .into_iter()
        .map(|(event, data)| {
            assert_eq!(event, "message");
            data
        })
        .collect()
}

fn ids(text: &str) -> Vec<String> {
    read([text.as_bytes()], 1000).0.into_iter().map(|event| event.last_event_id.to_string()).collect()
}

/// The examples of the standard, section 9.2.6.
#[test]
fn the_examples_of_the_standard() {
    assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
    let four = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
    assert_eq!(data(four), ["first event", "second event", " third event"]);
    assert_eq!(ids(four), ["1", "", ""]);
    assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
    assert_eq!(data("data:test\n\ndata: test\n\n"), ["test", "test"]);
    let kinds = "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: add\ndata: 113411\n\n";
    let expected = [("add", "73857293"), ("remove", "2153"), ("add", "113411")];
    assert_eq!(events(kinds), expected.map(|(event, data)| (event.to_owned(), data.to_owned())));
}

#[test]
fn a_line_ends_with_cr_lf_or_both() {
    for end in ["\n", "\r", "\r\n"] {
        let text = "data: a\ndata: b\n\ndata: c\n\n".replace('\n', end);
        assert_eq!(data(&text), ["a\nb", "c"], "{end:?}");
    }
    // CRLF is one end, LFCR two.
    assert_eq!(data("data: a\r\ndata: b\n\rdata: c\r\r"), ["a\nb", "c"]);
}

/// An event is there with its empty line, even if an LF may still belong to that.
#[test]
fn a_cr_does_not_hold_an_event_back() {
    let mut decoder = EventDecoder::new();
    decoder.push(b"data: a\r\r");
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "a");
    decoder.push(b"\ndata: b\r\n\r");
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "b");
    decoder.push(b"\n\n");
    assert_eq!(decoder.next_event(), Ok(None));
}

#[test]
fn what_is_not_a_field_is_passed_over() {
    assert_eq!(data("data : a\n\nDATA: b\n\n data: c\n\nother: d\ndata: e\n:data: f\n\n:\n\n"), ["e"]);
    assert_eq!(data("data: a:b: c\n\n"), ["a:b: c"]);
    assert_eq!(data("data:\ta\n\n"), ["\ta"]);
}

#[test]
fn an_event_without_data_is_none() {
    assert_eq!(data("event: a\n\n\n\nid: 1\n\ndata: b\n\n"), ["b"]);
    assert_eq!(ids("id: 1\n\ndata: b\n\n"), ["1"]);
    let named = [(String::from("b"), String::from("c"))];
    assert_eq!(events("event: a\nevent: b\ndata: c\n\n"), named);
    assert_eq!(data("event: a\nevent\ndata: c\n\n"), ["c"]);
}

#[test]
fn an_event_that_the_end_cuts_is_dropped() {
    for cut in ["data: b", "data: b\n", "data: b\r\n", "id: 2\ndata: b\n"] {
        let (events, error, last_event_id, _) = read([format!("id: 1\ndata: a\n\n{cut}").as_bytes()], 1000);
        assert_eq!((events.len(), error), (1, None), "{cut:?}");
        // The dropped one has to come again.
        assert_eq!(&*last_event_id, "1", "{cut:?}");
    }
}

#[test]
fn an_id_stays_until_another_comes_and_has_no_nul() {
    assert_eq!(ids("data: a\nid: 1\n\ndata: b\n\ndata: c\nid: x\0y\n\ndata: d\nid:\n\n"), ["1", "1", "1", ""]);
}

/// Over a reconnect the id stays as well, until the new stream gives another; an empty one takes it back.
#[test]
fn the_id_of_the_stream_before_counts_until_another_comes() {
    let mut decoder = EventDecoder::new().with_last_event_id("7").max_bytes(1000);
    assert_eq!(&**decoder.last_event_id(), "7");
    decoder.push(b"data: a\n\nid: 8\ndata: b\n\nid\ndata: c\n\nid: 9\ndata: cut");
    for id in ["7", "8", ""] {
        assert_eq!(&*decoder.next_event().unwrap().unwrap().last_event_id, id);
        assert_eq!(&**decoder.last_event_id(), id);
    }
    decoder.finish();
    assert_eq!((decoder.next_event(), &**decoder.last_event_id()), (Ok(None), ""));
}

#[test]
fn retry_is_digits_only() {
    let retry = |value: &str| read([format!("retry:{value}\n\n").as_bytes()], 1000).3;
    assert_eq!(retry(" 1500"), Some(Duration::from_millis(1500)));
    assert_eq!(retry("0"), Some(Duration::ZERO));
    assert_eq!(retry("99999999999999999999999"), Some(Duration::from_millis(u64::MAX)));
    for bad in ["", " ", "-1", "+1", "1.5", "1s", "  1", "1 ", "٣"] {
        assert_eq!(retry(bad), None, "{bad:?}");
    }
    let (events, ..) = read([&b"retry: 5\ndata: a\n\ndata: b\n\n"[..]], 1000);
    assert_eq!(events[0].retry, Some(Duration::from_millis(5)));
    assert_eq!(events[1].retry, None);
}

#[test]
fn one_byte_order_mark_is_passed_over() {
    assert_eq!(data("\u{FEFF}data: a\n\n\u{FEFF}data: b\n\n"), ["a"]);
    assert_eq!(data("\u{FEFF}\u{FEFF}data: a\n\ndata: b\n\n"), ["b"]);
    assert_eq!(data("\u{FEFF}\ndata: \u{FEFF}b\n\n"), ["\u{FEFF}b"]);
}

#[test]
fn what_is_not_utf_8_is_replaced() {
    let (events, ..) = read([&b"data: a\xFFb\xE2\x82\ndata: \xC3\xA4\n\n"[..]], 1000);
    assert_eq!(events[0].data, "a\u{FFFD}b\u{FFFD}\nä");
}

#[test]
fn an_event_has_a_bound() {
    let too_large = |line| Some(StreamError::EventTooLarge { line, max: 10 });
    assert_eq!(read([&b"data: 1234\n\n"[..]], 10).1, None);
    // One line, whether its end has come or not; many lines; a comment is a line too.
    assert_eq!(read([&b"data: 12345\n\n"[..]], 10).1, too_large(1));
    assert_eq!(read([&b"\n\n: 345678901"[..]], 10).1, too_large(3));
    assert_eq!(read([b"data:1\n".repeat(100).as_slice()], 10).1, too_large(6));
    assert_eq!(read([b"data\n".repeat(100).as_slice()], 10).1, too_large(11));
    // The kind counts too.
    assert_eq!(read([&b"event:abcd\ndata:12345\n\n"[..]], 10).1, None);
    assert_eq!(read([&b"event:abcd\ndata:12345\ndata\n"[..]], 10).1, too_large(3));
    // What was complete before it is there.
    let (events, error, ..) = read([&b"data:1\n\ndata:12345678901\n\n"[..]], 10);
    assert_eq!((events.len(), error), (1, too_large(3)));
    // Comments are not held.
    assert_eq!(read([b": ping\n".repeat(1000).as_slice()], 10).1, None);
    assert_eq!(EventDecoder::default().max, 1024 * 1024);
}

#[test]
fn what_has_come_is_not_shown() {
    let mut decoder = EventDecoder::new();
    decoder.push(b"data: secret\nid: secret\nda");
    assert_eq!(decoder.next_event(), Ok(None));
    assert!(!format!("{decoder:?}").contains("secret"));
}

/// The standard's algorithm, on the whole text at once.
fn model(bytes: &[u8]) -> Vec<(String, String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    let (mut event, mut data, mut id, mut all) = (String::new(), String::new(), String::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            if !data.is_empty() {
                let kind = if event.is_empty() { "message" } else { &event };
                all.push((kind.to_owned(), data.strip_suffix('\n').unwrap().to_owned(), id.clone()));
            }
            event.clear();
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => event = value.to_owned(),
            "data" => data += &format!("{value}\n"),
            "id" if !value.contains('\0') => id = value.to_owned(),
            _ => {}
        }
    }
    all
}

fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        &b"data"[..],
        b"event",
        b"id",
        b"retry",
        b":",
        b": ",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"a",
        b"7",
        b"\0",
        b"\xEF\xBB\xBF",
        b"\xC3",
        b"\xA4",
        b"\xFF",
        b"data: x\n",
        b"data:y\r\n\r\n",
    ]);
    prop::collection::vec(token, 0..30).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn it_is_what_the_standard_says(bytes in any_stream()) {
        let (events, error, ..) = read([&bytes[..]], 1000);
        prop_assert_eq!(error, None);
        let events: Vec<_> =
            events.into_iter().map(|event| (event.event, event.data, event.last_event_id.to_string())).collect();
        prop_assert_eq!(events, model(&bytes));
    }

    #[test]
    fn the_pieces_do_not_matter(bytes in any_stream(), max in 0..12_usize) {
        for max in [max, 1000] {
            let whole = read([&bytes[..]], max);
            for at in 0..=bytes.len() {
                let (left, right) = bytes.split_at(at);
                prop_assert_eq!(&read([left, right], max), &whole);
            }
            prop_assert_eq!(&read(bytes.chunks(1), max), &whole);
        }
    }
}
