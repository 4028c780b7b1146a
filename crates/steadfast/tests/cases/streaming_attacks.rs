//! What went wrong once, or could: bodies and hooks that misbehave, and reloads from within (contract 2.8, 7.5 to 7.7,
//! 9.5).

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body::{Body, Frame};
use steadfast::config::{Config, Loader};
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::transport::{Exchange, ExchangeFuture, Outgoing, Progress, RequestBody, ResponseBody, TransportError};
use steadfast::{Assessment, Clients, Event, ServiceClient};

use crate::harness::{World, ended, ms, outcomes, secs, status};

type Piece = Result<Bytes, std::io::Error>;

/// Polls a body until it has nothing ready, ends or fails; how many bytes it gave, and how it ended.
fn drain(body: &mut RequestBody) -> (Vec<u8>, &'static str) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    loop {
        match Pin::new(&mut *body).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => all.extend_from_slice(&frame.into_data().unwrap()),
            Poll::Ready(Some(Err(_))) => return (all, "failed"),
            Poll::Ready(None) => return (all, "over"),
            Poll::Pending => return (all, "pending"),
        }
    }
}

// ---- responses

/// 7.6: what the classifier said of the head is what counts, whatever it would say the next time.
#[test]
fn c7_6_a_classifier_is_asked_once_about_an_open_body() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let fickle = move |_: &http::response::Parts, _: &Bytes| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Assessment::ByStatus,
        _ => Assessment::Transient { retry_after: None },
    };
    let world =
        World::with([Step::status(200).piece(ms(100), "one"), Step::reset()], |builder| builder.classify(fickle));
    let response = world.run(world.client.get("/x").send_streaming()).unwrap();
    assert_eq!((response.report().attempt_count(), asked.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(world.client.snapshot().line.in_use, 1, "the body has its slot");
    assert_eq!(world.run(response.bytes(10)).unwrap(), "one");
    world.assert_at_rest();
}

/// A body that is kept after its end keeps no timer.
#[test]
fn c7_6_a_body_at_its_end_holds_nothing() {
    for step in [
        Step::status(200).piece(ms(100), "one"),
        Step::status(200).piece(ms(100), "one").cut(steadfast::Fault::Incomplete),
    ] {
        let world = World::new([step]);
        let mut response = world.run(world.client.get("/x").send_streaming()).unwrap();
        while let Ok(Some(_)) = world.run(response.chunk()) {}
        world.assert_at_rest();
        drop(response);
    }
}

#[test]
fn the_end_of_a_body_is_told_once() {
    let pieces = || Step::status(200).piece(ms(1), "one ").piece(ms(1), "two");
    // In one piece, which is known to be the last.
    let whole = || Step::status(200).body("one two");
    for (step, limit, faults) in
        [(pieces(), 6, "[Some(TooLarge)]"), (pieces(), 7, "[None]"), (whole(), 6, "[None]"), (whole(), 7, "[None]")]
    {
        let world = World::new([step]);
        let response = world.run(world.client.get("/x").send_streaming()).unwrap();
        assert_eq!(world.run(response.bytes(limit)).is_ok(), limit == 7);
        let events = world.events.lock().unwrap();
        let ends: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::BodyEnded { fault, .. } => Some(*fault),
                _ => None,
            })
            .collect();
        assert_eq!(format!("{ends:?}"), faults, "at most {limit} bytes");
    }
}

/// A body of nothing but empty pieces.
struct Void;

impl Body for Void {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::new()))))
    }
}

struct Voids;

impl Exchange for Voids {
    fn exchange<'a>(&'a self, _: Outgoing, _: &'a mut Progress) -> ExchangeFuture<'a> {
        Box::pin(async { Ok(http::Response::new(ResponseBody::boxed(Void))) })
    }
}

/// 7.6: a body that is always ready and brings nothing lets others have a turn, and ends at the deadline.
#[test]
fn c7_6_a_body_of_empty_pieces_ends_at_the_deadline() {
    let clock = VirtualClock::new();
    let builder = ServiceClient::builder("http://billing.test").clock(clock.clone()).transport(Voids);
    let client = builder.total_timeout(secs(1)).build().unwrap();
    let mut response = clock.run(client.get("/x").send_streaming()).unwrap().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(std::pin::pin!(response.chunk()).poll(&mut cx).is_pending());
    clock.advance(secs(2));
    assert!(clock.run(response.chunk()).unwrap().unwrap_err().is_timeout());
    assert_eq!(client.snapshot().line.in_use, 0);
}

// ---- requests

/// Memory that knows how much of it there is.
struct Owned(Vec<u8>, Arc<AtomicUsize>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A27: a small piece of something large does not keep all of it, and pieces without bytes keep nothing.
#[test]
fn a27_what_is_kept_is_the_bytes_and_not_what_they_were_cut_from() {
    let alive = Arc::new(AtomicUsize::new(0));
    let owners = Arc::clone(&alive);
    let cut = move |length: usize| -> Piece {
        owners.fetch_add(1, Ordering::SeqCst);
        Ok(Bytes::from_owner(Owned(vec![b'x'; 64 * 1024], Arc::clone(&owners))).slice(..length))
    };
    for length in [1, 0] {
        let cut = cut.clone();
        let mut body = RequestBody::stream(stream::iter((0..1_000).map(move |_| cut(length))), None);
        let mut given = 0;
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()))
        {
            given += frame.into_data().unwrap().len();
            assert!(alive.load(Ordering::SeqCst) <= 1, "after {given} bytes");
        }
        assert_eq!((given, alive.load(Ordering::SeqCst)), (1_000 * length, 0));
        assert_eq!(drain(&mut body.again().unwrap()).0.len(), 1_000 * length);
    }
}

/// An endless stream of empty pieces lets others have a turn.
#[test]
fn a_source_of_empty_pieces_is_not_asked_for_ever() {
    let mut body = RequestBody::stream(stream::repeat_with(|| -> Piece { Ok(Bytes::new()) }), None);
    assert_eq!(drain(&mut body), (vec![], "pending"));
}

/// 2.8: a source that panicked has perhaps lost a piece; nothing is sent after it, and nothing is sent again.
#[test]
fn c2_8_a_source_that_panicked_is_not_asked_again() {
    let first = AtomicBool::new(true);
    let source = stream::iter(["ab", "lost", "cd"]).map(move |piece| -> Piece {
        assert!(piece != "lost" || !first.swap(false, Ordering::SeqCst), "a test's panic");
        Ok(piece.into())
    });
    let mut body = RequestBody::stream(source, None);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drain(&mut body)));
    assert!(panicked.is_err());
    assert!(!body.is_replayable() && body.again().is_none());
    assert_eq!(drain(&mut body), (vec![], "failed"));
    assert_eq!(drain(&mut body), (vec![], "over"));
}

/// A hook only listens: one that panics is noted in the log, and the call goes on.
#[test]
fn an_upload_hook_that_panics_changes_nothing() {
    let world = World::new([Step::status(200)]);
    let request = world.client.post("/x").body("abc").on_upload(|_| panic!("a test's panic"));
    assert_eq!(status(&world.run(request.send())), 200);
    assert_eq!(world.upstream.seen()[0].body, "abc");
}

/// A body whose progress is told is as whole as before: who signs attempts needs its bytes.
#[test]
fn before_attempt_sees_the_bytes_of_a_body_whose_progress_is_told() {
    let world = World::with([Step::status(503), Step::status(200)], |builder| {
        builder.before_attempt(|parts| {
            let body = parts.body.ok_or("no body to sign")?;
            let digest = http::HeaderValue::from_bytes(body)?;
            parts.headers.insert("x-digest", digest);
            Ok(())
        })
    });
    let result = world.run(world.client.put("/x").body("abc").on_upload(|_| {}).send());
    assert_eq!(status(&result), 200, "{result:?}");
    assert!(world.upstream.seen().iter().all(|seen| seen.headers["x-digest"] == "abc" && seen.body == "abc"));
}

/// The older reader may be polled at any time: it never gives another byte, and takes none away.
#[test]
fn c2_8_an_older_reader_never_mixes_in() {
    let pieces = ["ab", "cd", "ef"].map(|piece| -> Piece { Ok(piece.into()) });
    let mut older = RequestBody::stream(stream::iter(pieces), Some(6));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut older).poll_frame(&mut cx).is_ready());
    let mut later = older.again().unwrap();
    assert!(Pin::new(&mut later).poll_frame(&mut cx).is_ready());
    assert_eq!(drain(&mut older), (vec![], "failed"));
    assert_eq!(drain(&mut older), (vec![], "over"));
    assert_eq!(drain(&mut later), (b"cdef".to_vec(), "over"));
    assert!(later.is_end_stream());
    assert_eq!(drain(&mut later.again().unwrap()), (b"abcdef".to_vec(), "over"));
}

/// A reader that would have to begin in the middle does not read at all.
#[test]
fn c2_8_what_is_lost_cannot_be_begun_again() {
    let pieces = ["ab", "cd", "ef"].map(|piece| -> Piece { Ok(piece.into()) });
    let mut first = RequestBody::stream(stream::iter(pieces), None).keep(3);
    let mut second = first.again().unwrap();
    assert_eq!(drain(&mut first), (vec![], "failed"), "the second is the latest");
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..2 {
        assert!(Pin::new(&mut second).poll_frame(&mut cx).is_ready());
    }
    assert!(second.again().is_none());
    assert_eq!(drain(&mut second), (b"ef".to_vec(), "over"), "it goes on itself");
}

/// Announced and come: what is there beyond is a mistake, wherever the pieces are cut.
#[test]
fn a_body_with_more_than_was_announced_is_an_error_wherever_it_is_cut() {
    for pieces in [vec!["hello world"], vec!["hello", " world"], vec!["hel", "lo", "", " world"]] {
        let pieces: Vec<Piece> = pieces.into_iter().map(|piece| Ok(piece.into())).collect();
        let mut body = RequestBody::stream(stream::iter(pieces), Some(5));
        let (given, how) = drain(&mut body);
        assert!(given.len() < 5 && how == "failed", "{given:?} {how}");
    }
    // A source that has nothing more at the moment has given what it was to give.
    let open = stream::iter([Ok::<_, std::io::Error>(Bytes::from("hello"))]).chain(stream::pending());
    let mut body = RequestBody::stream(open, Some(5));
    assert_eq!(drain(&mut body), (b"hello".to_vec(), "over"));
    assert!(body.is_replayable());
    let mut largest = RequestBody::stream(stream::iter([Ok::<_, std::io::Error>(Bytes::from("x"))]), Some(u64::MAX));
    assert_eq!(largest.size_hint().exact(), Some(u64::MAX));
    assert_eq!(drain(&mut largest), (b"x".to_vec(), "failed"));
}

/// 4.3: the head was there, and the rest of the response failed because the request's body did.
#[test]
fn c4_3_an_upload_that_fails_behind_the_head_is_no_verdict() {
    struct Early;
    impl Exchange for Early {
        fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
            progress.hand_over();
            Box::pin(async move {
                // As a connection does it: both ways at once, and closed as soon as the request's body fails.
                let mut upload = outgoing.request.into_body();
                let body = stream::poll_fn(move |cx| match Pin::new(&mut upload).poll_frame(cx) {
                    Poll::Ready(Some(Err(error))) => {
                        let cut = TransportError::new(steadfast::Fault::Incomplete, steadfast::Sent::Yes);
                        Poll::Ready(Some(Err(cut.with_source(error))))
                    }
                    Poll::Ready(None) => Poll::Ready(None),
                    Poll::Ready(Some(Ok(_))) => Poll::Ready(Some(Ok(Frame::data(Bytes::from("x"))))),
                    Poll::Pending => Poll::Pending,
                });
                Ok(http::Response::new(ResponseBody::boxed(http_body_util::StreamBody::new(body))))
            })
        }
    }
    let clock = VirtualClock::new();
    let client = ServiceClient::builder("http://billing.test").clock(clock.clone()).transport(Early).build().unwrap();
    let failing = || {
        let pieces = [Ok(Bytes::from_static(b"abc")), Err(std::io::Error::other("the disk is gone"))];
        client.put("/x").body(RequestBody::stream(stream::iter(pieces), None))
    };
    let result = clock.run(failing().send()).unwrap();
    assert_eq!((outcomes(&result), ended(&result)), (vec!["request_body".to_owned()], "not_retryable"));
    let response = clock.run(failing().send_streaming()).unwrap().unwrap();
    let error = clock.run(response.bytes(10)).unwrap().unwrap_err();
    assert_eq!(error.report().attempts().last().unwrap().outcome.name(), "request_body");
    let breaker = client.snapshot().breaker;
    assert_eq!((breaker.calls, breaker.failures), (0, 0));
}

// ---- reloads

fn config(toml: &str) -> Config {
    Loader::new().text("test.toml", toml).load().unwrap()
}

fn one(keys: &str) -> Config {
    config(&format!("[upstreams.billing]\nbase_url = 'http://billing.test'\n{keys}\n"))
}

/// Runs what might wait for itself on a thread of its own, and says whether it came to an end. The time is the test's
/// patience, and nothing depends on it otherwise.
fn ends(what: impl FnOnce() + Send + 'static) -> bool {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        what();
        done.send(())
    });
    is_done.recv_timeout(Duration::from_secs(20)).is_ok()
}

/// Hooks are called outside of every lock, in a reload too: they may reload, and see what is in force.
#[test]
fn c9_5_an_event_hook_may_reload() {
    let clients: Arc<OnceLock<Clients>> = Arc::default();
    let seen = Arc::new(AtomicUsize::new(0));
    let (own, count) = (Arc::clone(&clients), Arc::clone(&seen));
    let clock = VirtualClock::new();
    let script = Script::new(clock.clone(), [Step::refuse()]);
    let time = clock.clone();
    let made = Clients::with(&one("breaker_failures = 3"), move |_, builder| {
        let (clients, count) = (Arc::clone(&own), Arc::clone(&count));
        builder.clock(time.clone()).seed(3).transport(script.clone()).on_event(move |event| {
            let (Event::Transition { .. }, Some(clients)) = (event, clients.get()) else { return };
            let client = clients.client("billing").unwrap();
            let now = client.settings().breaker_failures;
            if now == 4 {
                count.fetch_add(1, Ordering::SeqCst);
                client
                    .reload(one("breaker_failures = 4\nretries = 1").upstream("billing").unwrap().settings().clone())
                    .unwrap();
                clients.reload(&one("breaker_failures = 4\nretries = 0")).unwrap();
                let _ = client.snapshot();
            }
        })
    });
    assert!(clients.set(made.unwrap()).is_ok());
    let clients = clients.get().unwrap().clone();
    let billing = clients.client("billing").unwrap();
    for _ in 0..9 {
        assert!(clock.run(billing.get("/x").send()).unwrap().is_err());
    }
    assert_eq!(billing.snapshot().breaker.state, steadfast::policy::breaker::State::Open);
    let reloading = clients.clone();
    assert!(ends(move || drop(reloading.reload(&one("breaker_failures = 4")).unwrap())), "it waits for itself");
    assert_eq!(seen.load(Ordering::SeqCst), 1, "the hook saw the new settings in force");
    assert_eq!(billing.settings().retries, 0);
}

/// `customize` is the user's code, and may ask the clients for anything.
#[test]
fn c9_5_a_customized_client_may_be_made_from_within() {
    let clients: Arc<OnceLock<Clients>> = Arc::default();
    let own = Arc::clone(&clients);
    let made = Clients::with(&one(""), move |name, builder| {
        if let Some(clients) = own.get()
            && name == "search"
        {
            let _ = clients.snapshot();
            let _ = clients
                .client("billing")
                .unwrap()
                .reload(one("retries = 1").upstream("billing").unwrap().settings().clone());
            let _ = clients.reload(&one("retries = 0")).unwrap();
        }
        builder
    });
    assert!(clients.set(made.unwrap()).is_ok());
    let reloading = clients.get().unwrap().clone();
    let two = config(
        "[upstreams.billing]\nbase_url = 'http://billing.test'\n[upstreams.search]\nbase_url = 'http://search.test'\n",
    );
    assert!(ends(move || assert_eq!(reloading.reload(&two).unwrap().added, ["search"])), "it waits for itself");
    assert!(clients.get().unwrap().client("search").is_ok());
}

/// A request that was begun before a reload is sent with what was in force then; the next one with what is now.
#[test]
fn c9_5_a_request_made_before_a_reload_can_be_sent_after_it() {
    let world = World::new([Step::status(503)]);
    let before = world.client.get("/x");
    let settings =
        ServiceClient::builder("http://billing.test/api").name("billing").retries(0).build().unwrap().settings();
    assert!(world.client.reload(settings.as_ref().clone()).unwrap());
    assert_eq!(outcomes(&world.run(before.send())).len(), 3);
    assert_eq!(outcomes(&world.get()).len(), 1);
    world.assert_at_rest();
}

/// 7.7: streams go on through a reload, and `close` waits as long as the longest of them may last.
#[test]
fn c7_7_close_waits_for_a_stream_that_began_before_a_reload() {
    let world =
        World::with([Step::status(200).piece(secs(4), "late").stall()], |builder| builder.total_timeout(secs(9)));
    let mut response = world.run(world.client.get("/x").send_streaming()).unwrap();
    let settings = ServiceClient::builder("http://billing.test/api").name("billing").total_timeout(secs(1)).build();
    assert!(world.client.reload(settings.unwrap().settings().as_ref().clone()).unwrap());
    let ((), last) = world.run(futures_util::future::join(world.client.close(), async move {
        assert_eq!(response.chunk().await.unwrap().unwrap(), "late");
        response.chunk().await
    }));
    assert!(last.unwrap_err().is_timeout());
    assert_eq!(world.clock.now().since(Default::default()), secs(9));
    world.assert_at_rest();
}
