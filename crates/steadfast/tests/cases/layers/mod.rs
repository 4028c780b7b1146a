//! The client and its policies as layers of a tower stack.

mod guard;
mod single;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HOST, TE, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, Version};
use http_body_util::{BodyExt, Full};
use steadfast::layer::{
    BulkheadLayer, CallOptions, CircuitBreakerLayer, ClientLayer, ClientService, DeadlineLayer, GuardLayer,
    GuardService, RateLimitLayer, RetryLayer,
};
use steadfast::policy::breaker::State;
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::transport::{Exchange, Outgoing, Progress, RequestBody, ResponseBody, ServiceTransport, TransportError};
use steadfast::{
    BoxError, CallContext, ClientBuilder, Error, ErrorKind, Fault, Guard, GuardError, Report, Sent, ServiceClient,
    StreamingBody,
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

use crate::harness::{ms, secs};

type Answer = Result<Response<StreamingBody>, Error>;

/// A scripted upstream behind a tower service, and the clock of everything.
struct Stack {
    clock: VirtualClock,
    upstream: Script,
}

/// The upstream as a service.
pub(crate) fn wire(
    upstream: &Script,
) -> impl Service<Request<RequestBody>, Response = Response<ResponseBody>, Error = TransportError, Future: Send>
+ Clone
+ Send
+ 'static {
    let upstream = upstream.clone();
    service_fn(move |request| {
        let upstream = upstream.clone();
        async move { upstream.exchange(Outgoing::new(request), &mut Progress::default()).await }
    })
}

impl Stack {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let clock = VirtualClock::new();
        Self { upstream: Script::new(clock.clone(), steps), clock }
    }

    fn layer(&self, configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> ClientLayer {
        let builder = ServiceClient::builder("http://unused.test").name("billing").clock(self.clock.clone()).seed(7);
        configure(builder).build_layer().unwrap()
    }

    /// The upstream inside of this layer.
    fn within(&self, layer: &impl Layer<ClientService, Service = ClientService>) -> ClientService {
        layer.layer(self.bare())
    }

    /// The upstream with nothing around it that does anything: `ClientService` is what layers of ours make of any service.
    fn bare(&self) -> ClientService {
        DeadlineLayer::builder("bare").clock(self.clock.clone()).build().unwrap().layer(wire(&self.upstream))
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.clock.run(future).expect("the call waits only for the clock")
    }

    fn send(&self, service: &ClientService, request: Request<RequestBody>) -> Answer {
        self.run(service.clone().oneshot(request))
    }

    fn get(&self, service: &ClientService) -> Answer {
        self.send(service, get())
    }

    fn assert_at_rest(&self) {
        assert_eq!((self.upstream.in_flight(), self.clock.armed_timers()), (0, 0));
    }
}

fn request(method: Method, body: impl Into<RequestBody>) -> Request<RequestBody> {
    Request::builder().method(method).uri("http://billing.test/x?y=1").body(body.into()).unwrap()
}

fn get() -> Request<RequestBody> {
    request(Method::GET, "")
}

fn post() -> Request<RequestBody> {
    request(Method::POST, "abc")
}

fn with_options(mut request: Request<RequestBody>, options: CallOptions) -> Request<RequestBody> {
    request.extensions_mut().insert(options);
    request
}

fn kind(answer: &Answer) -> ErrorKind {
    answer.as_ref().expect_err("an error").kind()
}

fn report(answer: &Answer) -> &Report {
    match answer {
        Ok(response) => response.extensions().get::<Report>().expect("a report"),
        Err(error) => error.report(),
    }
}

/// The status, or the kind of the error, and how many attempts there were.
fn ending(answer: &Answer) -> (String, u32) {
    let end = match answer {
        Ok(response) => response.status().as_str().to_owned(),
        Err(error) => error.kind().name().to_owned(),
    };
    (end, report(answer).attempt_count())
}

fn text(stack: &Stack, answer: Answer) -> Bytes {
    stack.run(answer.unwrap().into_body().collect()).unwrap().to_bytes()
}

/// A layer hands a response's head on as it came: what is about the connection is the stack's affair.
#[test]
fn a_layer_takes_no_header_out_of_a_response() {
    let stack = Stack::new([Step::status(200).header("connection", "x-hop").header("x-hop", "1").body("x")]);
    let response = stack.get(&stack.within(&stack.layer(|client| client))).unwrap();
    assert_eq!(response.headers().keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["connection", "x-hop"]);
}

/// 2.4, 2.8, 7.4
#[test]
fn c2_8_a_layer_retries_with_the_same_request_and_reports_it() {
    let stack = Stack::new([Step::status(503), Step::status(502), Step::status(200).body("paid")]);
    let service = stack.layer(|client| client).layer(wire(&stack.upstream));
    let mut sent = request(Method::PUT, "abc");
    sent.headers_mut().insert("x-own", "1".parse().unwrap());
    let answer = stack.send(&service, sent);
    assert_eq!(ending(&answer), ("200".to_owned(), 3));
    assert_eq!((report(&answer).ended().name(), report(&answer).waits().len()), ("response", 2));
    assert_eq!(text(&stack, answer), "paid");
    for seen in stack.upstream.seen() {
        assert_eq!((seen.method, seen.uri.to_string()), (Method::PUT, "http://billing.test/x?y=1".to_owned()));
        assert_eq!((&seen.headers["x-own"], seen.body), (&http::HeaderValue::from_static("1"), Bytes::from("abc")));
    }
    stack.assert_at_rest();
}

/// 2.2, 2.3
#[test]
fn c2_2_what_may_be_repeated_is_as_everywhere() {
    let cases: [(Step, Request<RequestBody>, &str, u32); 6] = [
        (Step::reset(), post(), "unreachable", 1),
        (Step::refuse(), post(), "unreachable", 3),
        (Step::reset(), with_options(post(), CallOptions::new().retry(true)), "unreachable", 3),
        (Step::reset(), with_options(get(), CallOptions::new().retry(false)), "unreachable", 1),
        (Step::status(500), get(), "500", 1),
        (Step::status(503), get(), "503", 3),
    ];
    for (step, request, end, attempts) in cases {
        let stack = Stack::new([step]);
        let service = stack.layer(|client| client).layer(wire(&stack.upstream));
        assert_eq!(ending(&stack.send(&service, request)), (end.to_owned(), attempts));
    }
    let stack = Stack::new([Step::reset()]);
    let service = stack.layer(|client| client).layer(wire(&stack.upstream));
    for (key, end, attempts) in [("k1", "unreachable", 3), ("", "invalid_request", 0)] {
        let mut request = post();
        request.headers_mut().insert("idempotency-key", key.parse().unwrap());
        assert_eq!(ending(&stack.send(&service, request)), (end.to_owned(), attempts));
    }
}

/// 0.2, 4.1, 4.5
#[test]
fn c4_1_clones_and_services_of_one_layer_share_one_breaker() {
    let stack = Stack::new([Step::status(503)]);
    let layer = stack.layer(|client| client.retries(0).breaker_failures(3));
    let first = layer.layer(wire(&stack.upstream));
    let second = layer.clone().layer(wire(&stack.upstream));
    for service in [&first, &second, &first.clone()] {
        assert_eq!(ending(&stack.get(service)), ("503".to_owned(), 1));
    }
    assert_eq!(layer.snapshot().breaker.state, State::Open);
    for service in [&first, &second] {
        let answer = stack.get(service);
        assert_eq!(ending(&answer), ("circuit_open".to_owned(), 0));
        let error = answer.unwrap_err();
        assert_eq!(
            (error.retry_after(), error.to_string().as_str()),
            (Some(secs(15)), "circuit breaker 'billing' is open")
        );
    }
    assert_eq!(stack.upstream.requests(), 3);
    // Another layer is another upstream.
    assert_eq!(ending(&stack.get(&stack.layer(|client| client.retries(0)).layer(wire(&stack.upstream)))).0, "503");
    layer.reset_breaker();
    stack.upstream.play([Step::status(200)]);
    assert_eq!(ending(&stack.get(&first)).0, "200");
    layer.force_open();
    assert_eq!(ending(&stack.get(&second)).0, "circuit_open");
}

/// A94, 4.6, 5.1: being ready reserves nothing, so a service that is ready and never called keeps nobody out.
#[test]
fn a94_readiness_reserves_nothing() {
    let stack = Stack::new([Step::status(200).after(ms(50))]);
    let layer = stack.layer(|client| client.max_concurrent(1).bulkhead_wait(Duration::ZERO).rate_limit(1));
    let service = layer.layer(wire(&stack.upstream));
    let mut cx = Context::from_waker(Waker::noop());
    let mut ready: Vec<_> = (0..100).map(|_| service.clone()).collect();
    for service in &mut ready {
        assert!(matches!(Service::<Request<RequestBody>>::poll_ready(service, &mut cx), Poll::Ready(Ok(()))));
    }
    assert_eq!((layer.snapshot().line.in_use, layer.snapshot().line.queued), (0, 0));
    assert_eq!(ending(&stack.get(&service)).0, "200");
    drop(ready);
}

/// 5.1, 5.2, 2.8: a slot is held to the end of the body, and free during a backoff.
#[test]
fn c5_2_the_slot_covers_the_body() {
    let stack = Stack::new([Step::status(503), Step::status(200).body("paid")]);
    let layer = stack.layer(|client| client.max_concurrent(1).bulkhead_wait(Duration::ZERO));
    let service = layer.layer(wire(&stack.upstream));
    let held = stack.get(&service);
    assert_eq!((ending(&held), layer.snapshot().line.in_use), (("200".to_owned(), 2), 1));
    assert_eq!(kind(&stack.get(&service)), ErrorKind::BulkheadFull);
    assert_eq!(text(&stack, held), "paid");
    assert_eq!(layer.snapshot().line.in_use, 0);
    drop(stack.get(&service));
    assert_eq!(layer.snapshot().line.in_use, 0, "a response that is dropped gives its slot back");
}

/// 1.1, 1.4, 1.6
#[test]
fn c1_4_the_deadline_drops_the_inner_future() {
    let stack = Stack::new([Step::hang()]);
    stack.upstream.set_read_timeout(secs(3_600));
    let service = stack.layer(|client| client.total_timeout(secs(3))).layer(wire(&stack.upstream));
    assert_eq!(kind(&stack.get(&service)), ErrorKind::Timeout);
    assert_eq!(stack.clock.now().as_nanos(), 3_000_000_000);
    let answer = stack.send(&service, with_options(get(), CallOptions::new().timeout(secs(1))));
    assert_eq!((kind(&answer), stack.clock.now().as_nanos()), (ErrorKind::Timeout, 4_000_000_000));
    let late = CallOptions::new().deadline(std::time::Instant::now());
    assert_eq!(ending(&stack.send(&service, with_options(get(), late))), ("timeout".to_owned(), 0));
    stack.assert_at_rest();
}

/// 1.6: dropping a call gives everything back, and is no verdict.
#[test]
fn c1_6_a_dropped_call_leaves_nothing_behind() {
    let stack = Stack::new([Step::hang()]);
    let layer = stack.layer(|client| client.max_concurrent(1));
    let service = layer.layer(wire(&stack.upstream));
    {
        let mut call = pin!(service.clone().oneshot(get()));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!((stack.upstream.in_flight(), layer.snapshot().line.in_use), (1, 1));
    }
    assert_eq!((layer.snapshot().line.in_use, layer.snapshot().breaker.failures), (0, 0));
    stack.assert_at_rest();
}

/// What reached the innermost service.
#[derive(Clone, Default)]
struct Heads(Arc<Mutex<Vec<http::request::Parts>>>);

impl Heads {
    /// A service that notes what it gets, and answers with a gzip body.
    fn service(
        &self,
    ) -> impl Service<Request<RequestBody>, Response = Response<Full<Bytes>>, Error = BoxError, Future: Send>
    + Clone
    + Send
    + 'static {
        let heads = Arc::clone(&self.0);
        service_fn(move |request: Request<RequestBody>| {
            heads.lock().unwrap().push(request.into_parts().0);
            let response = Response::builder().header(CONTENT_ENCODING, "gzip");
            std::future::ready(Ok(response.body(Full::new(gzip("paid"))).unwrap()))
        })
    }

    fn last(&self) -> http::request::Parts {
        self.0.lock().unwrap().pop().unwrap()
    }
}

fn gzip(text: &str) -> Bytes {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().into()
}

/// 8.1: what the upstream configures is weaker than what the request has, and nothing of the request is lost.
#[test]
fn c8_1_the_request_passes_as_it_is_and_what_it_lacks_is_added() {
    let (stack, heads) = (Stack::new([]), Heads::default());
    let layer = stack.layer(|client| {
        client.header("x-team", "a").header("x-own", "weak").user_agent("layered").deadline_header("x-time-left")
    });
    let service = layer.layer(heads.service());
    let mut request = request(Method::POST, "abc");
    *request.version_mut() = Version::HTTP_2;
    for (name, value) in [(HOST, "other.test"), (CONTENT_LENGTH, "3"), (TE, "trailers")] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request.headers_mut().insert("x-own", "strong".parse().unwrap());
    request.extensions_mut().insert(7_u8);
    let context = CallContext::new().with_request_id("r-1");
    let answer = stack.send(&service, with_options(request, CallOptions::new().context(&context)));
    let head = heads.last();
    assert_eq!(head.version, Version::HTTP_2);
    assert_eq!((head.extensions.get::<u8>(), head.extensions.get::<CallOptions>().is_some()), (Some(&7), false));
    let value = |name: &str| head.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
    for (name, expected) in [
        ("host", "other.test"),
        ("content-length", "3"),
        ("te", "trailers"),
        ("x-own", "strong"),
        ("x-team", "a"),
        ("user-agent", "layered"),
        ("accept-encoding", "gzip"),
        ("x-request-id", "r-1"),
        ("x-time-left", "30000"),
    ] {
        let found = value(name);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert!(name == "accept-encoding" || found == [expected], "{name}: {found:?}");
    }
    assert!(answer.as_ref().unwrap().headers().get(CONTENT_ENCODING).is_none());
    assert_eq!(text(&stack, answer), "paid");
}

/// 2.3: what the inner service's errors mean can be said in a layer too.
#[test]
fn c2_3_a_layer_around_a_service_with_explained_errors() {
    let stack = Stack::new([]);
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let refused = service_fn(move |_: Request<RequestBody>| {
        count.fetch_add(1, Ordering::SeqCst);
        let error = io::Error::from(io::ErrorKind::ConnectionRefused);
        std::future::ready(Err::<Response<Full<Bytes>>, _>(error))
    });
    let explained = ServiceTransport::new(refused.clone()).with_errors(|_| Some((Fault::Connect, Sent::No)));
    let layer = stack.layer(|client| client);
    assert_eq!(ending(&stack.send(&layer.layer(refused), post())), ("unreachable".to_owned(), 1));
    assert_eq!(ending(&stack.send(&layer.layer(explained), post())), ("unreachable".to_owned(), 3));
    assert_eq!(calls.load(Ordering::SeqCst), 4);
}

#[test]
fn bodies_that_stacks_have_are_taken() {
    use http_body_util::{Empty, combinators::UnsyncBoxBody};
    let stack = Stack::new([Step::status(503), Step::status(200)]);
    let service = stack.layer(|client| client).layer(wire(&stack.upstream));
    let send = |body: RequestBody| {
        let answer = stack.run(service.clone().oneshot(request(Method::PUT, body)));
        assert!(answer.is_ok());
        stack.upstream.play([Step::status(503), Step::status(200)]);
    };
    send(Full::new(Bytes::from("abc")).into());
    send(UnsyncBoxBody::new(Full::new(Bytes::from("abc"))).into());
    send(Full::new(Bytes::from("abc")).boxed().into());
    send(Empty::new().into());
    let bodies: Vec<_> = stack.upstream.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, ["abc", "abc", "abc", "abc", "abc", "abc", "", ""]);
    // A whole body is kept whatever its length; the stack's own request types need no conversion by hand.
    let large = Full::new(Bytes::from(vec![b'x'; 1 << 20]));
    let request = Request::put("http://billing.test/").body(large).unwrap();
    let answer = stack.run(service.clone().oneshot(request));
    assert_eq!(ending(&answer), ("200".to_owned(), 2));
}

#[test]
fn layers_and_their_services_can_be_shared() {
    fn is_shared<T: Clone + Send + Sync + 'static>() {}
    is_shared::<ClientLayer>();
    is_shared::<ClientService>();
    is_shared::<DeadlineLayer>();
    is_shared::<RetryLayer>();
    is_shared::<CircuitBreakerLayer>();
    is_shared::<BulkheadLayer>();
    is_shared::<RateLimitLayer>();
    is_shared::<GuardLayer<io::Error>>();
    is_shared::<GuardService<ClientService, Error>>();
    is_shared::<CallOptions>();
}
