//! The cases. `expected` is what the pool does, and what everybody does who has no line of its own in `differs`.

use std::sync::LazyLock;

use super::{Case, Wire};
use crate::server::*;

const GET: fn(&steadfast::ServiceClient) -> steadfast::RequestBuilder = |client| client.get("/");
const POST: fn(&steadfast::ServiceClient) -> steadfast::RequestBuilder = |client| client.post("/").body("abc");
const PUT: fn(&steadfast::ServiceClient) -> steadfast::RequestBuilder = |client| client.put("/").body("abc");

/// A case without anything special about it.
const PLAIN: Case = Case {
    name: "",
    script: |_| vec![Step::Read, ok("hello"), Step::ReadToEnd],
    configure: |client| client,
    calls: &[GET],
    expected: "200 'hello' <- 200",
    counts: (1, 1),
    differs: &[],
};

const NO_WORD: &str = "a service of others is asked no word about single phases: the attempt's timeout is what ends it";
const NO_MARK: &str =
    "only the pool knows that the connection was used before, and that the answer is older than the request";

static GZIP: LazyLock<Vec<u8>> = LazyLock::new(|| {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"hello").unwrap();
    let body = encoder.finish().unwrap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
});

/// The first connection does this, the others answer.
fn once(first: Vec<Step>, number: usize) -> Vec<Step> {
    if number == 0 { first } else { vec![Step::Read, ok("hello"), Step::ReadToEnd] }
}

pub(super) static CASES: &[Case] = &[
    Case { name: "a response of known length", ..PLAIN },
    Case {
        name: "a connection is used again",
        script: |_| vec![Step::Read, ok("first"), Step::Read, ok("second"), Step::Read, ok("hello"), Step::ReadToEnd],
        calls: &[GET, POST, GET],
        counts: (1, 3),
        ..PLAIN
    },
    Case {
        name: "Connection: close is heeded",
        script: |_| {
            let response = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
            vec![Step::Read, write(response), Step::ReadToEnd]
        },
        calls: &[GET, POST, GET],
        counts: (3, 3),
        ..PLAIN
    },
    Case {
        name: "2.11: a connection that the server has closed costs no attempt",
        script: |_| vec![Step::Read, ok("hello")],
        calls: &[GET, POST, POST],
        counts: (3, 3),
        ..PLAIN
    },
    Case {
        name: "HEAD: a length and no body",
        script: |_| {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
            vec![Step::Read, write(head), Step::Read, write(head), Step::ReadToEnd]
        },
        calls: &[|client| client.head("/"), |client| client.head("/")],
        expected: "200 '' <- 200",
        counts: (1, 2),
        ..PLAIN
    },
    Case {
        name: "204 and 304 have no body",
        script: |_| {
            let not_modified = write("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
            vec![Step::Read, write("HTTP/1.1 204 No Content\r\n\r\n"), Step::Read, not_modified, Step::ReadToEnd]
        },
        calls: &[GET, GET],
        expected: "304 '' <- 304",
        counts: (1, 2),
        ..PLAIN
    },
    Case {
        name: "interim responses are passed over",
        script: |_| {
            let early = write("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
            vec![Step::Read, early, write("HTTP/1.1 102 Processing\r\n\r\n"), ok("hello"), Step::ReadToEnd]
        },
        ..PLAIN
    },
    Case {
        name: "chunks, an extension, trailers",
        script: |_| {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let body = write(format!("{head}2\r\nhe\r\n3;ext=1\r\nllo\r\n0\r\nX-Sum: 1\r\n\r\n"));
            vec![Step::Read, body.clone(), Step::Read, body, Step::ReadToEnd]
        },
        calls: &[GET, GET],
        counts: (1, 2),
        ..PLAIN
    },
    Case {
        name: "a body without length ends with the connection",
        script: |_| vec![Step::Read, write("HTTP/1.0 200 OK\r\n\r\nhello")],
        ..PLAIN
    },
    Case { name: "gzip is decoded", script: |_| vec![Step::Read, Step::Write(GZIP.clone()), Step::ReadToEnd], ..PLAIN },
    Case {
        name: "8.3: a redirect is an answer",
        script: |_| {
            let found = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
            vec![Step::Read, write(found), Step::ReadToEnd]
        },
        expected: "302 '' <- 302",
        ..PLAIN
    },
    Case {
        name: "2.4, 2.8: a 503 is repeated on the same connection",
        script: |_| {
            let busy = write("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy");
            vec![
                Step::Read,
                busy.clone(),
                Step::Wait(ms(1)),
                Step::Read,
                busy,
                Step::Read,
                ok("hello"),
                Step::ReadToEnd,
            ]
        },
        // Long enough for a connection to be back in any pool.
        configure: |client| client.jitter(steadfast::policy::backoff::Jitter::None).backoff_base(ms(30)),
        calls: &[PUT],
        expected: "200 'hello' <- 503, 503, 200",
        counts: (1, 3),
        ..PLAIN
    },
    Case {
        name: "2.3: a POST is not repeated after a reset",
        script: |_| vec![Step::Read, Step::Reset],
        calls: &[POST],
        expected: "unreachable <- reset?",
        ..PLAIN
    },
    Case {
        name: "2.3: a POST is not repeated after a close",
        script: |_| vec![Step::Read],
        calls: &[POST],
        expected: "unreachable <- reset?",
        ..PLAIN
    },
    Case {
        name: "2.4: a GET is, after a reset before the head",
        script: |number| once(vec![Step::Read, Step::Reset], number),
        expected: "200 'hello' <- reset?, 200",
        counts: (2, 2),
        ..PLAIN
    },
    Case {
        name: "half a head is no head",
        script: |number| once(vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Le")], number),
        expected: "200 'hello' <- reset?, 200",
        counts: (2, 2),
        ..PLAIN
    },
    Case {
        name: "2.4: a body that is shorter than its length",
        script: |number| once(vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")], number),
        expected: "200 'hello' <- incomplete, 200",
        counts: (2, 2),
        ..PLAIN
    },
    Case {
        name: "2.4: a body that is cut by a reset",
        script: |number| {
            let half = write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
            once(vec![Step::Read, half, Step::Wait(ms(20)), Step::Reset], number)
        },
        expected: "200 'hello' <- incomplete, 200",
        counts: (2, 2),
        ..PLAIN
    },
    Case {
        name: "2.4: chunks without a last one",
        script: |number| {
            let cut = write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
            once(vec![Step::Read, cut], number)
        },
        expected: "200 'hello' <- incomplete, 200",
        counts: (2, 2),
        ..PLAIN
    },
    Case {
        name: "a chunk that cannot be read",
        script: |_| vec![Step::Read, write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n")],
        calls: &[|client| client.get("/").retry(false)],
        expected: "unreachable <- protocol",
        ..PLAIN
    },
    Case {
        name: "bytes that are not HTTP",
        script: |_| vec![Step::Read, write("SSH-2.0-OpenSSH_9.6\r\n")],
        expected: "unreachable <- protocol?, protocol?, protocol?",
        counts: (3, 3),
        ..PLAIN
    },
    Case {
        name: "two lengths that differ",
        script: |_| {
            let twice = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
            vec![Step::Read, write(twice)]
        },
        calls: &[POST],
        expected: "unreachable <- protocol?",
        ..PLAIN
    },
    Case {
        name: "what follows a response does not become the next",
        script: |number| {
            let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil".repeat(1_000);
            let long = write(format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst{evil}"));
            once(vec![Step::Read, long, Step::ReadToEnd], number)
        },
        calls: &[GET, GET],
        counts: (2, 2),
        ..PLAIN
    },
    Case {
        name: "2.11: a 408 for an idle connection",
        script: |number| {
            let late = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            once(vec![Step::Read, ok("first"), Step::Read, write(late)], number)
        },
        calls: &[GET, GET],
        counts: (2, 3),
        differs: &[
            (Wire::Service, "408 '' <- 408", (1, 2), NO_MARK),
            (Wire::Reqwest, "408 '' <- 408", (1, 2), NO_MARK),
        ],
        ..PLAIN
    },
    Case {
        name: "1.2: an answer that does not come, against the attempt's timeout",
        script: |_| vec![Step::Read, Step::ReadToEnd],
        configure: |client| client.attempt_timeout(ms(100)).retries(1),
        expected: "unreachable <- attempt_timeout?, attempt_timeout?",
        counts: (2, 2),
        ..PLAIN
    },
    Case {
        name: "1.2: an answer that does not come, against the read timeout",
        script: |_| vec![Step::Read, Step::ReadToEnd],
        configure: |client| client.read_timeout(ms(100)).attempt_timeout(ms(300)).retries(0),
        expected: "unreachable <- read_timeout?",
        differs: &[
            (Wire::Service, "unreachable <- attempt_timeout?", (1, 1), NO_WORD),
            (Wire::Reqwest, "unreachable <- attempt_timeout?", (1, 1), NO_WORD),
        ],
        ..PLAIN
    },
    Case {
        name: "1.1, 1.4: the deadline covers the body",
        script: |_| {
            let half = write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
            vec![Step::Read, half, Step::ReadToEnd]
        },
        configure: |client| client.total_timeout(ms(200)),
        expected: "timeout <- deadline?",
        ..PLAIN
    },
    Case {
        name: "1.4: after a timeout the next call works",
        script: |number| once(vec![Step::Read, Step::ReadToEnd], number),
        configure: |client| client.attempt_timeout(ms(150)).retries(0),
        calls: &[GET, GET],
        counts: (2, 2),
        ..PLAIN
    },
    Case {
        name: "7.5: a response that is too large",
        script: |_| vec![Step::Read, ok(&"x".repeat(1_001)), Step::ReadToEnd],
        configure: |client| client.max_response_bytes(1_000),
        expected: "unreachable <- too_large",
        ..PLAIN
    },
    Case {
        name: "7.5: a response that is just not",
        script: |_| vec![Step::Read, ok("hello"), Step::ReadToEnd],
        configure: |client| client.max_response_bytes(5),
        ..PLAIN
    },
    Case {
        name: "an empty key is no key",
        calls: &[|client| client.post("/").header("idempotency-key", "")],
        expected: "invalid_request <- ",
        counts: (0, 0),
        ..PLAIN
    },
];
