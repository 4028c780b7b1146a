//! The blocking client: plain threads, and where it may not be called.

use std::io::{self, BufRead, Cursor, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use steadfast::blocking::{Clients, ServiceClient};
use steadfast::testing::{self, Script, VirtualClock};
use steadfast::{ClientBuilder, Error, ErrorKind};

use crate::server::*;

fn client_with(server: &Server, configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> ServiceClient {
    let builder = ServiceClient::builder(&format!("http://{}", server.address)).name("upstream");
    configure(builder.backoff_base(ms(1))).build_blocking().unwrap()
}

fn client(server: &Server) -> ServiceClient {
    client_with(server, |client| client)
}

/// Answers each request on a connection.
fn answers(body: &'static str) -> impl Fn(usize) -> Vec<Step> + Send + 'static {
    move |_| (0..256).flat_map(|_| [Step::Read, ok(body)]).chain([Step::ReadToEnd]).collect()
}

/// Waits, on a plain thread, until it is so.
fn wait_until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "it never came to be");
        thread::sleep(ms(2));
    }
}

fn outcomes(error: &Error) -> Vec<String> {
    error.report().attempts().map(|attempt| attempt.outcome.name().into_owned()).collect()
}

/// What a blocking call was told where it may not be made.
#[track_caller]
fn assert_refused<T>(result: Result<T, Error>, why: &str) {
    let Err(error) = result else { panic!("it was made") };
    assert!(error.is_invalid_request() && error.to_string().contains(why), "{error}");
}

/// 5.1: one bulkhead for all threads.
#[test]
fn c5_1_threads_share_one_client_and_its_bulkhead() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let server = Server::on_thread(move |_| vec![Step::Read, Step::Until(Arc::clone(&gate)), ok("x"), Step::ReadToEnd]);
    let client = client_with(&server, |client| client.max_concurrent(2).bulkhead_wait(Duration::ZERO));
    let (tell, told) = mpsc::channel();
    for _ in 0..8 {
        let (client, tell) = (client.clone(), tell.clone());
        thread::spawn(move || tell.send(client.get("/").send().map_err(|error| error.kind()).map(|_| ())));
    }
    let refused: Vec<_> = (0..6).map(|_| told.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(refused, [Err(ErrorKind::BulkheadFull); 6]);
    open.store(true, Ordering::SeqCst);
    let answered: Vec<_> = (0..2).map(|_| told.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(answered, [Ok(()); 2]);
    assert_eq!((server.connections(), client.snapshot().line.in_use), (2, 0));
}

#[test]
fn eight_threads_wait_for_two_slots_and_all_are_answered() {
    let server = Server::on_thread(answers("x"));
    let client = client_with(&server, |client| client.max_concurrent(2).bulkhead_wait(LONG));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..8).for_each(|_| assert_eq!(client.get("/").send().unwrap().text(), "x")));
        }
    });
    assert_eq!(server.request_count(), 64);
    assert!(server.connections() <= 2, "{}", server.connections());
}

/// 2.4
#[test]
fn c2_4_a_call_is_retried_on_the_thread_that_waits() {
    let busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let server = Server::on_thread(move |_| vec![Step::Read, write(busy), Step::Read, ok("x"), Step::ReadToEnd]);
    let me = thread::current().id();
    let threads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&threads);
    let client =
        client_with(&server, |client| client.on_event(move |_| seen.lock().unwrap().push(thread::current().id())));
    let response = client.put("/").query(&[("a", "b")]).header("x-one", "1").body("abc").send().unwrap();
    assert_eq!((response.text().as_ref(), response.report().attempt_count()), ("x", 2));
    let requests = server.requests(0);
    assert_eq!(requests[0], requests[1]);
    assert!(
        requests[0].starts_with("PUT /?a=b HTTP/1.1\r\n") && requests[0].contains("x-one: 1\r\n"),
        "{}",
        requests[0]
    );
    assert!(requests[0].ends_with("\r\n\r\nabc"), "{}", requests[0]);
    let threads = threads.lock().unwrap();
    assert!(threads.len() >= 3 && threads.iter().all(|thread| *thread == me));
}

/// 1.1, 1.4: the upstream's deadline, the call's own, the one inherited, and a phase's timeout.
#[test]
fn c1_1_c1_4_a_call_ends_by_its_deadline() {
    let server = Server::on_thread(|_| vec![Step::Read, Step::ReadToEnd]);
    let client = client_with(&server, |client| client.total_timeout(ms(120)).retries(0));
    let start = Instant::now();
    let error = client.get("/").send().unwrap_err();
    assert!((ms(120)..ms(1_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!((error.kind(), outcomes(&error)), (ErrorKind::Timeout, vec!["deadline".to_owned()]));
    assert!(client.get("/").timeout(ms(20)).send().unwrap_err().is_timeout());
    assert!(client.get("/").deadline(Instant::now() + ms(20)).send().unwrap_err().is_timeout());
    let spent = client.get("/").timeout(Duration::ZERO).send().unwrap_err();
    assert_eq!((spent.kind(), spent.attempts()), (ErrorKind::Timeout, 0));
    wait_until(|| server.connections() == 3 && server.still_open() == 0);
    let slow = client_with(&server, |client| client.read_timeout(ms(30)).retries(0));
    let error = slow.get("/").send().unwrap_err();
    assert_eq!((error.kind(), outcomes(&error)), (ErrorKind::Unreachable, vec!["read_timeout".to_owned()]));
    assert_eq!(slow.snapshot().line.in_use, 0);
}

/// 7.6: the body is a reader, with its lines and its pieces, and the connection is used again after it.
#[test]
fn c7_6_a_body_is_read_as_it_comes() {
    let server = Server::on_thread(|_| {
        let head = write("HTTP/1.1 200 OK\r\nX-Kind: lines\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n");
        let rest = write("6\r\ntwo\nth\r\n3\r\nree\r\n0\r\n\r\n");
        let round = [Step::Read, head, Step::Wait(ms(20)), rest];
        (0..5).flat_map(|_| round.clone()).chain([Step::ReadToEnd]).collect()
    });
    let client = client(&server);
    let stream = || client.get("/").send_streaming().unwrap();
    let response = stream();
    assert_eq!((response.status().as_u16(), response.header("x-kind").unwrap().to_str().unwrap()), (200, "lines"));
    assert_eq!((response.upstream(), response.report().attempt_count()), ("upstream", 1));
    let lines: Vec<_> = response.lines().map(Result::unwrap).collect();
    assert_eq!(lines, ["one", "two", "three"]);

    let mut text = String::new();
    assert_eq!(stream().read_to_string(&mut text).unwrap(), 13);
    assert_eq!(text, "one\ntwo\nthree");

    // What a reader has left of a piece comes first.
    let (mut response, mut two) = (stream(), [0; 2]);
    response.read_exact(&mut two).unwrap();
    assert_eq!((&two, &response.chunk().unwrap().unwrap()[..]), (b"on", &b"e\n"[..]));
    assert_eq!(response.bytes(9).unwrap(), "two\nthree");

    let mut body = stream().into_body();
    assert_eq!(io::copy(&mut body, &mut io::sink()).unwrap(), 13);
    assert_eq!((body.received(), body.chunk().unwrap(), body.read(&mut two).unwrap()), (13, None, 0));
    assert_eq!((server.connections(), client.snapshot().line.in_use), (1, 0));

    let error = stream().bytes(12).unwrap_err();
    assert_eq!((error.kind(), outcomes(&error)), (ErrorKind::Unreachable, vec!["too_large".to_owned()]));

    // What was about the connection stays behind.
    let response = stream().into_http();
    assert!(response.headers().contains_key("x-kind") && !response.headers().contains_key("transfer-encoding"));
}

/// 7.6: a body that ended early is never taken for a whole one.
#[test]
fn c7_6_a_reader_fails_with_the_reason_and_goes_on_failing() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
    let server = Server::on_thread(move |number| match number {
        0 => vec![Step::Read, write(half)],
        _ => vec![Step::Read, write(half), Step::ReadToEnd],
    });
    let client = client_with(&server, |client| client.total_timeout(ms(150)));
    for (kind, ours) in
        [(io::ErrorKind::UnexpectedEof, ErrorKind::Unreachable), (io::ErrorKind::TimedOut, ErrorKind::Timeout)]
    {
        let mut response = client.get("/").send_streaming().unwrap();
        let mut text = String::new();
        let error = response.read_to_string(&mut text).unwrap_err();
        assert_eq!((error.kind(), text.as_str()), (kind, "half"));
        assert_eq!(error.get_ref().unwrap().downcast_ref::<Error>().unwrap().kind(), ours);
        assert_eq!(response.read(&mut [0; 4]).unwrap_err().kind(), kind);
        assert_eq!(client.snapshot().line.in_use, 0);
    }
    let read_timeout = client_with(&server, |client| client.read_timeout(ms(30)));
    let mut body = read_timeout.get("/").send_streaming().unwrap().into_body();
    assert_eq!(&body.chunk().unwrap().unwrap()[..], b"half");
    assert_eq!(body.read(&mut [0; 4]).unwrap_err().kind(), io::ErrorKind::TimedOut);
}

/// 7.6: dropping gives back everything at once.
#[test]
fn c7_6_dropping_a_response_closes_its_connection() {
    let server = Server::on_thread(|_| {
        vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), Step::ReadToEnd]
    });
    let client = client(&server);
    let mut response = client.get("/").send_streaming().unwrap();
    assert_eq!(response.read(&mut [0; 2]).unwrap(), 2);
    assert_eq!(client.snapshot().line.in_use, 1);
    drop(response);
    assert_eq!(client.snapshot().line.in_use, 0);
    wait_until(|| server.still_open() == 0 && client.snapshot().pool.unwrap().open == 0);
}

/// A reader that tells how far it was read.
struct Counted<R>(R, Arc<AtomicUsize>);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        self.1.fetch_add(read, Ordering::SeqCst);
        Ok(read)
    }
}

#[test]
fn a_reader_is_sent_with_its_length_or_in_chunks() {
    let server = Server::on_thread(answers("x"));
    let client = client(&server);
    client.post("/").body_reader(Cursor::new("hello"), Some(5)).send().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let large = vec![b'x'; 40_000];
    let request = client.post("/").body_reader(Cursor::new(large), Some(40_000));
    request.on_upload(move |uploaded| tell.lock().unwrap().push(uploaded.bytes)).send().unwrap();
    let requests = server.requests(0);
    assert!(requests[0].contains("content-length: 5\r\n") && requests[0].ends_with("\r\n\r\nhello"), "{}", requests[0]);
    assert!(requests[1].contains("content-length: 40000\r\n") && requests[1].ends_with("xxx"));
    assert_eq!(*told.lock().unwrap(), [16_384, 32_768, 40_000]);

    let chunked = Server::on_thread(|_| vec![Step::ReadSome(60), Step::Wait(ms(20)), ok("x"), Step::ReadToEnd]);
    let response = self::client(&chunked).post("/").body_reader(Cursor::new("hello"), None).send().unwrap();
    assert_eq!(response.text(), "x");
}

/// 2.8: the same bytes on each attempt, read once.
#[test]
fn c2_8_what_was_read_is_sent_again() {
    let busy = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let server = Server::on_thread(move |number| match number {
        0 => vec![Step::Read, write(busy)],
        _ => vec![Step::Read, ok("x"), Step::ReadToEnd],
    });
    let read = Arc::new(AtomicUsize::new(0));
    let reader = Counted(Cursor::new("hello"), Arc::clone(&read));
    let response = client(&server).put("/").body_reader(reader, Some(5)).send().unwrap();
    assert_eq!((response.report().attempt_count(), read.load(Ordering::SeqCst)), (2, 5));
    for connection in 0..2 {
        let request = &server.requests(connection)[0];
        assert!(request.ends_with("\r\n\r\nhello"), "{request}");
    }
}

/// The upstream takes nothing: the reader is asked for no more than is on its way.
#[test]
fn a_reader_is_not_read_ahead_of_its_connection() {
    let server = Server::on_thread(|_| vec![Step::ReadSome(10), Step::Hang]);
    let read = Arc::new(AtomicUsize::new(0));
    let endless = Counted(io::repeat(b'x'), Arc::clone(&read));
    let client = client(&server);
    assert!(client.post("/").body_reader(endless, None).timeout(ms(200)).send().unwrap_err().is_timeout());
    wait_until(|| client.snapshot().pool.unwrap().open == 0);
    // The last read may still be under way.
    thread::sleep(ms(20));
    let on_its_way = read.load(Ordering::SeqCst);
    assert!((16_384..32 * 1024 * 1024).contains(&on_its_way), "{on_its_way}");
    thread::sleep(ms(50));
    assert_eq!(read.load(Ordering::SeqCst), on_its_way);
}

struct Failing(bool);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        assert!(!self.0, "on purpose");
        Err(io::Error::other("the disk is gone"))
    }
}

/// A fault of the caller's reader: told as such, and no verdict on the upstream.
#[test]
fn c4_3_a_reader_that_fails_ends_the_call() {
    let server = Server::on_thread(|_| vec![Step::Read, Step::ReadToEnd]);
    let client = client_with(&server, |client| client.breaker_failures(1));
    let readers: [(Box<dyn Read + Send>, &str); 4] = [
        (Box::new(Failing(false)), "the disk is gone"),
        (Box::new(Failing(true)), "the reader of the request's body panicked"),
        (Box::new(Cursor::new("abc")), "ended after 3 of the announced 5 bytes"),
        (Box::new(Cursor::new("abcdef")), "more than the announced 5 bytes"),
    ];
    for (reader, why) in readers {
        let error = client.post("/").body_reader(reader, Some(5)).send().unwrap_err();
        assert_eq!((error.kind(), outcomes(&error)), (ErrorKind::Unreachable, vec!["request_body".to_owned()]));
        let mut source = std::error::Error::source(&error);
        let mut texts = Vec::new();
        while let Some(error) = source {
            texts.push(error.to_string());
            source = error.source();
        }
        assert!(texts.iter().any(|text| text.contains(why)), "{why}: {texts:?}");
    }
    assert_eq!(client.snapshot().breaker.failures, 0);
}

/// A read that never returns holds up neither the call nor others.
#[test]
fn c1_1_a_reader_that_hangs_does_not_outlast_the_deadline() {
    struct Hanging(mpsc::Receiver<()>);
    impl Read for Hanging {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(0)
        }
    }
    let server = Server::on_thread(|number| match number {
        0 => vec![Step::Read, Step::ReadToEnd],
        _ => vec![Step::Read, ok("x"), Step::ReadToEnd],
    });
    let client = client(&server);
    let (end, ended) = mpsc::channel();
    let request = client.post("/").body_reader(Hanging(ended), None).timeout(ms(60));
    assert!(request.send().unwrap_err().is_timeout());
    assert_eq!(client.get("/").send().unwrap().text(), "x");
    drop(end);
}

/// From one upstream into another: the reader of the upload makes blocking calls itself.
#[test]
fn a_download_can_be_uploaded() {
    let body = "0123456789".repeat(5_000);
    let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let from = Server::on_thread(move |_| vec![Step::Read, write(&response), Step::ReadToEnd]);
    let to = Server::on_thread(answers("taken"));
    let download = client(&from).get("/").send_streaming().unwrap();
    let upload = client(&to).post("/").body_reader(download, Some(body.len() as u64)).send().unwrap();
    assert_eq!(upload.text(), "taken");
    assert!(to.requests(0)[0].ends_with(&body));
}

/// A task would hold up the others of its thread: told, and nothing is sent.
#[tokio::test]
async fn a_call_in_an_async_context_is_refused() {
    let server = Server::on_thread(answers("x"));
    let client = client(&server);
    assert_refused(client.get("/").send(), "in an async context");
    let task = client.clone();
    tokio::spawn(async move { assert_refused(task.get("/").send_streaming(), "in an async context") }).await.unwrap();
    client.close();
    assert_eq!((server.connections(), client.snapshot().closed), (0, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_on_a_worker_is_refused_and_one_that_holds_nobody_up_is_made() {
    let server = Server::on_thread(answers("x"));
    let client = client(&server);
    let call = |client: &ServiceClient| client.get("/").send().map(|response| response.text().into_owned());
    let (on_worker, made_room) = (client.clone(), client.clone());
    tokio::spawn(async move {
        assert_refused(call(&on_worker), "in an async context");
        assert_eq!(tokio::task::block_in_place(|| call(&made_room)).unwrap(), "x");
    })
    .await
    .unwrap();
    let on_helper = client.clone();
    assert_eq!(tokio::task::spawn_blocking(move || call(&on_helper)).await.unwrap().unwrap(), "x");
    // The runtime of the caller is still the one that was there.
    assert_eq!(tokio::spawn(async { 7 }).await.unwrap(), 7);
}

/// The same in a runtime that has only the one thread.
#[tokio::test]
async fn a_call_in_spawn_blocking_is_made() {
    let server = Server::start(answers("x")).await;
    let client = client(&server);
    // More often than a task may ask its sockets without letting others have a turn.
    let calls = move || (0..256).filter(|_| client.get("/").send().is_ok()).count();
    assert_eq!(tokio::task::spawn_blocking(calls).await.unwrap(), 256);
}

/// The main future is no task: its thread runs no others. More calls than its share of a turn allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_in_the_main_future_holds_up_that_future_alone() {
    let server = Server::start(answers("x")).await;
    let client = client(&server);
    assert_eq!((0..256).filter(|_| client.get("/").send().is_ok()).count(), 256);
    assert_eq!(server.connections(), 1);
}

/// A response that was begun elsewhere can be read on elsewhere, and is not spoilt by being refused.
#[tokio::test]
async fn a_body_refused_in_an_async_context_can_be_read_on() {
    let server = Server::on_thread(answers("x"));
    let client = client(&server);
    let stream = move || client.get("/").send_streaming().unwrap();
    let mut response = tokio::task::spawn_blocking(stream).await.unwrap();
    assert_eq!(response.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::Other);
    let read = move || response.bytes(9).unwrap();
    assert_eq!(tokio::task::spawn_blocking(read).await.unwrap(), "x");
}

/// An event hook that calls would be called by its own call.
#[test]
fn a_call_in_an_event_hook_is_refused() {
    let server = Server::on_thread(answers("x"));
    let (own, told) = (Arc::new(OnceLock::<ServiceClient>::new()), Arc::new(Mutex::new(Vec::new())));
    let (hooked, tell) = (Arc::clone(&own), Arc::clone(&told));
    let client = client_with(&server, |client| {
        client.on_event(move |_| {
            let Some(client) = hooked.get() else { return };
            client.close();
            tell.lock().unwrap().push(client.get("/").send());
        })
    });
    assert!(own.set(client.clone()).is_ok());
    assert_eq!(client.get("/").send().unwrap().text(), "x");
    let refused = std::mem::take(&mut *told.lock().unwrap());
    assert!(!refused.is_empty());
    for result in refused {
        assert_refused(result, "in an event hook");
    }
    assert!(client.get("/").send().unwrap_err().is_closed());
}

/// A hook that fetches a token may call; one that calls its own client ends.
#[test]
fn other_hooks_may_call_so_deep_and_no_deeper() {
    let (tokens, server) = (Server::on_thread(answers("token")), Server::on_thread(answers("x")));
    let issuer = client(&tokens);
    let signed = client_with(&server, |client| {
        client.before_attempt(move |parts| {
            let token = issuer.get("/").send()?.text().into_owned();
            parts.headers.insert("authorization", format!("Bearer {token}").parse()?);
            Ok(())
        })
    });
    assert_eq!(signed.get("/").send().unwrap().text(), "x");
    assert!(server.requests(0)[0].contains("authorization: Bearer token\r\n"));

    let own = Arc::new(OnceLock::<ServiceClient>::new());
    let (hooked, deep) = (Arc::clone(&own), Arc::new(AtomicUsize::new(0)));
    let calls = Arc::clone(&deep);
    let endless = client_with(&server, |client| {
        client.before_attempt(move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
            hooked.get().unwrap().get("/").send()?;
            Ok(())
        })
    });
    assert!(own.set(endless.clone()).is_ok());
    assert!(endless.get("/").send().is_err());
    assert_eq!((deep.load(Ordering::SeqCst), server.request_count()), (4, 1));
}

/// 1.6: a panic unwinds the call, and gives back what it held.
#[test]
fn c1_6_a_panic_on_the_calling_thread_leaks_nothing() {
    let server = Server::on_thread(answers("x"));
    let panicking = client_with(&server, |client| {
        client.max_concurrent(1).bulkhead_wait(Duration::ZERO).classify(|_, _| panic!("on purpose"))
    });
    for _ in 0..2 {
        let call = std::panic::AssertUnwindSafe(|| panicking.get("/").send());
        assert!(std::panic::catch_unwind(call).is_err());
        assert_eq!(panicking.snapshot().line.in_use, 0);
    }
    assert_eq!(client(&server).get("/").send().unwrap().text(), "x");
}

/// Time that stands still until a test moves it holds a plain thread up like any other waiter.
#[test]
fn c1_1_a_virtual_clock_ends_a_blocking_call() {
    let clock = VirtualClock::new();
    let transport = Script::new(clock.clone(), [testing::Step::hang()]);
    let builder = ServiceClient::builder("http://upstream.test").clock(clock.clone()).transport(transport);
    let client = builder.total_timeout(Duration::from_secs(5)).build_blocking().unwrap();
    let call = thread::spawn(move || client.get("/").send().unwrap_err());
    wait_until(|| clock.armed_timers() > 0);
    clock.advance(Duration::from_secs(5));
    let error = call.join().unwrap();
    assert_eq!((error.kind(), error.report().duration()), (ErrorKind::Timeout, Duration::from_secs(5)));
}

/// 7.7: new calls are refused, running ones end, and connections are closed.
#[test]
fn c7_7_close_waits_for_the_running_calls() {
    let server = Server::on_thread(|_| vec![Step::Read, Step::Wait(ms(150)), ok("slow"), Step::ReadToEnd]);
    let client = client(&server);
    let running = client.clone();
    let running = thread::spawn(move || running.get("/").send().unwrap().text().into_owned());
    wait_until(|| server.request_count() == 1);
    let start = Instant::now();
    client.close();
    assert!((ms(50)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert!(client.get("/").send().unwrap_err().is_closed());
    assert_eq!(running.join().unwrap(), "slow");
    wait_until(|| server.still_open() == 0);
}

/// 4.1: the async client made of it, or that it was made of, has the same state.
#[test]
fn c4_1_both_kinds_of_client_share_one_state() {
    let server = Server::on_thread(answers("x"));
    let client = client(&server);
    let other = steadfast::ServiceClient::from(client.clone());
    other.force_open();
    assert!(client.get("/").send().unwrap_err().is_circuit_open());
    ServiceClient::from(other.clone()).reset_breaker();
    assert_eq!(client.get("/").send().unwrap().text(), "x");
    // The connection is the background thread's, which goes on: other runtimes may use it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(other.get("/").send()).unwrap().text(), "x");
    assert_eq!((server.connections(), client.as_async().name()), (1, "upstream"));
    client.force_close();
    assert_eq!(client.settings().name, "upstream");
}

#[test]
fn the_clients_of_a_configuration() {
    let (one, two) = (Server::on_thread(answers("one")), Server::on_thread(answers("two")));
    let file = format!(
        "[upstreams.one]\nbase_url = \"http://{}\"\n[upstreams.two]\nbase_url = \"http://{}\"",
        one.address, two.address
    );
    let config = steadfast::config::Loader::new().text("app.toml", &file).load().unwrap();
    let clients = Clients::new(&config).unwrap();
    for client in clients.all() {
        assert_eq!(client.get("/").send().unwrap().text(), client.name());
    }
    assert!(clients.client("three").is_err());
    assert_eq!(clients.snapshot().len(), 2);
    clients.close();
    assert!(clients.client("one").unwrap().get("/").send().unwrap_err().is_closed());
    wait_until(|| one.still_open() + two.still_open() == 0);
}
