//! What the compiler must be able to say of the public types and futures.

use std::future::Future;
use std::mem::size_of_val;

use steadfast::client::stream_read::{Events, Lines};
use steadfast::client::{BodyError, StatusError, StreamingBody};
use steadfast::transport::{Pool, RequestBody, ResponseBody, Transport, TransportError};
use steadfast::{
    ClientBuilder, Clients, Clock, Error, Event, Guard, GuardBuilder, GuardError, Report, RequestBuilder, Response,
    ServiceClient, Snapshot, StreamingResponse,
};

fn is_shared<T: Send + Sync + 'static>() {}
fn is_unpin<T: Unpin>() {}
fn is_sent<F: Future + Send>(future: F) -> F {
    future
}

#[test]
fn public_types_can_be_sent_and_shared() {
    is_shared::<ServiceClient>();
    is_shared::<Clients>();
    is_shared::<ClientBuilder>();
    is_shared::<RequestBuilder>();
    is_shared::<Response>();
    is_shared::<StatusError>();
    is_shared::<BodyError>();
    is_shared::<Error>();
    is_shared::<Report>();
    is_shared::<Snapshot>();
    is_shared::<Event>();
    is_shared::<Clock>();
    is_shared::<Guard>();
    is_shared::<GuardBuilder>();
    is_shared::<GuardError<Error>>();
    is_shared::<Pool>();
    is_shared::<Transport>();
    is_shared::<TransportError>();
    is_shared::<ResponseBody>();
    is_shared::<RequestBody>();
    is_shared::<StreamingResponse>();
    is_shared::<StreamingBody>();
    is_shared::<Lines<StreamingBody>>();
    is_shared::<Events<StreamingBody>>();
    is_unpin::<StreamingBody>();
    is_unpin::<RequestBody>();
}

/// A future lives on its task's heap or inside another future; none is so large that it needs a box of its own.
#[test]
fn futures_can_be_sent_and_are_small() {
    let client = ServiceClient::builder("http://billing.test").build().unwrap();
    let guard = Guard::builder("mail").build().unwrap();
    let send = is_sent(client.get("/x").send());
    let close = is_sent(client.close());
    let call = is_sent(guard.call(|| async { Ok::<_, std::io::Error>(()) }));
    let transient = is_sent(guard.transient(|_: &std::io::Error| true).call(|| async { Ok::<_, std::io::Error>(()) }));
    let clients = Clients::default();
    let close_all = is_sent(clients.close());
    let sizes = [
        ("send", size_of_val(&send), 6 * 1024),
        ("close", size_of_val(&close), 1024),
        ("close_all", size_of_val(&close_all), 1024),
        ("call", size_of_val(&call), 2 * 1024),
        ("transient().call", size_of_val(&transient), 2 * 1024),
    ];
    println!("{sizes:?}");
    for (name, size, most) in sizes {
        assert!(size <= most, "{name}: {size} bytes");
    }
}
