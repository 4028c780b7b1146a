//! One transport for several hosts and endpoints.

use futures_executor::block_on;
use steadfast::policy::breaker::State;
use steadfast::testing::{FakeClock, Script, Step, fake_clock};
use steadfast::{ErrorKind, ServiceClient};

use crate::harness::secs;

fn client(network: &Script, host: &str) -> ServiceClient {
    let url = format!("http://{host}");
    ServiceClient::builder(&url).retries(3).breaker_failures(3).transport(network.clone()).build().unwrap()
}

fn network(time: &FakeClock) -> Script {
    let network = Script::new(time, [Step::status(404)]);
    network.route("api.example.com", [Step::status(503), Step::reset(), Step::status(200)]);
    network.route("down.example.com", [Step::status(503)]);
    network
}

#[test]
fn w1_w2_w3_w4_the_second_seeds_network() {
    let time = fake_clock();
    let network = network(&time);
    let [api, missing, down] = ["api", "missing", "down"].map(|name| client(&network, &format!("{name}.example.com")));

    assert_eq!(block_on(api.get("/users").send()).unwrap().status(), 200);
    assert_eq!((network.requests_to("api.example.com"), time.sleeps().len()), (3, 2));

    time.clear();
    assert_eq!(block_on(missing.get("/x").send()).unwrap().status(), 404);
    assert_eq!((network.requests_to("missing.example.com"), time.sleeps().len()), (1, 0));

    // What comes back is the latest response; the next call is refused.
    assert_eq!(block_on(down.get("/a").send()).unwrap().status(), 503);
    assert_eq!(network.requests_to("down.example.com"), 3);
    assert_eq!(block_on(down.get("/b").send()).unwrap_err().kind(), ErrorKind::CircuitOpen);
    assert_eq!(network.requests_to("down.example.com"), 3);
    assert_eq!(block_on(api.get("/users").send()).unwrap().status(), 200);

    network.route("down.example.com", [Step::status(200)]);
    time.advance(secs(31));
    assert_eq!(block_on(down.get("/c").send()).unwrap().status(), 200);
    assert_eq!(down.snapshot().breaker.state, State::Closed);
    assert_eq!(network.requests(), 3 + 1 + 3 + 1 + 1);
}

#[test]
fn c11_6_the_route_that_was_set_last_has_the_request() {
    let time = fake_clock();
    let network = Script::new(&time, [Step::status(201)]);
    network.route("api.test", [Step::status(202)]);
    network.route("/orders/*", [Step::status(203)]);
    network.route("POST api.test/orders/7", [Step::status(204)]);
    let (api, other) = (client(&network, "api.test"), client(&network, "other.test"));
    let get = |client: &ServiceClient, path: &str| block_on(client.get(path).send()).unwrap().status().as_u16();
    assert_eq!(
        [get(&api, "/x"), get(&other, "/x"), get(&other, "/orders/7"), get(&api, "/orders/7?a=1")],
        [202, 201, 203, 203]
    );
    assert_eq!(block_on(api.post("/orders/7").send()).unwrap().status(), 204);
    assert_eq!(network.requests_to("/orders/7"), 3);
    assert_eq!(network.requests_to("POST api.test"), 1);
    network.route("/orders/*", [Step::status(200)]);
    assert_eq!(block_on(api.post("/orders/7").send()).unwrap().status(), 200, "set again, it is the last");
}
