//! Reloads under load, over real connections (contract 9.5).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast::Clients;
use steadfast::client::BuildError;
use steadfast::config::{Config, Loader};

use crate::server::*;

fn config(address: std::net::SocketAddr, keys: &str) -> Config {
    let toml = format!("[upstreams.one]\nbase_url = 'http://{address}'\nproxy = false\nbulkhead_wait = 20\n{keys}\n");
    Loader::new().text("app.toml", &toml).load().unwrap()
}

fn slow() -> Vec<Step> {
    let one = [Step::Read, Step::Wait(ms(3)), ok("here")];
    (0..500).flat_map(|_| one.clone()).collect()
}

/// 200 calls in flight and 100 reloads, half of which move the upstream or give it another pool: no call fails for it,
/// and the breaker and the budget remember what they have seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c9_5_no_call_fails_for_a_hundred_reloads_under_load() {
    let (first, second) = (Server::start(|_| slow()).await, Server::start(|_| slow()).await);
    let clients = Clients::new(&config(first.address, "max_concurrent = 200")).unwrap();
    let client = clients.client("one").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..200)
        .map(|_| {
            let (client, stop) = (client.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut calls = 0_u64;
                while !stop.load(Ordering::SeqCst) {
                    let response = client.post("/").body("x").send().await.expect("no call fails");
                    assert_eq!(response.text(), "here");
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    until(|| client.snapshot().line.in_use > 100).await;
    for round in 0..100 {
        let address = if round % 4 == 3 { second.address } else { first.address };
        let idle = 60 + round / 2 % 2;
        let keys = format!("max_concurrent = 200\nretries = {}\nidle_timeout = {idle}", round % 3);
        assert_eq!(clients.reload(&config(address, &keys)).unwrap().changed, ["one"]);
        tokio::time::sleep(ms(5)).await;
    }
    stop.store(true, Ordering::SeqCst);
    let mut calls = 0;
    for caller in callers {
        calls += caller.await.unwrap();
    }
    let snapshot = client.snapshot();
    assert_eq!((snapshot.breaker.calls, snapshot.breaker.failures), (calls, 0), "every call is remembered");
    assert_eq!((snapshot.budget.requests, snapshot.line.in_use), (calls, 0));
    assert!(first.request_count() > 0 && second.request_count() > 0);
    // The pools of the settings before are gone with their connections.
    let now = clients.client("one").unwrap().snapshot().pool.unwrap();
    until(|| first.still_open() + second.still_open() <= now.open).await;
}

/// A problem in one upstream changes none.
#[tokio::test]
async fn c9_5_a_configuration_with_a_problem_changes_nothing() {
    let server = Server::start(|_| slow()).await;
    let clients = Clients::new(&config(server.address, "retries = 1")).unwrap();
    let client = clients.client("one").unwrap();
    let broken = format!(
        "[upstreams.one]\nbase_url = 'http://{}'\nretries = 9\n[upstreams.two]\nbase_url = 'https://two.test'\ntls_roots = ['/no/such/file.pem']\n",
        server.address
    );
    let broken = Loader::new().text("app.toml", &broken).load().unwrap();
    let error = clients.reload(&broken).unwrap_err();
    assert!(matches!(&error, BuildError::Tls { upstream, .. } if upstream == "two"), "{error}");
    assert!(error.to_string().contains("/no/such/file.pem"), "{error}");
    assert_eq!(client.settings().retries, 1);
    assert!(clients.client("two").is_err());
    assert_eq!(client.get("/").send().await.unwrap().text(), "here");
}

/// Connections are kept where nothing that they depend on differs.
#[tokio::test]
async fn c9_5_connections_are_kept_unless_a_key_of_theirs_differs() {
    let server = Server::start(|_| slow()).await;
    let clients = Clients::new(&config(server.address, "")).unwrap();
    let client = clients.client("one").unwrap();
    for keys in ["retries = 0", "retries = 0\nbreaker_failures = 9", "retries = 0\ngzip = false"] {
        client.get("/").send().await.unwrap();
        clients.reload(&config(server.address, keys)).unwrap();
    }
    client.get("/").send().await.unwrap();
    assert_eq!(server.connections(), 1);
    clients.reload(&config(server.address, "read_timeout = 9")).unwrap();
    client.get("/").send().await.unwrap();
    assert_eq!(server.connections(), 2);
}

/// The watch looks by itself, and ends with the clients.
#[tokio::test]
async fn c9_5_a_watch_follows_the_file_until_the_clients_are_closed() {
    let server = Server::start(|_| slow()).await;
    let path =
        std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("watched-{}.toml", std::process::id()));
    let write = |keys: &str| {
        let text = format!("[upstreams.one]\nbase_url = 'http://{}'\n{keys}\n", server.address);
        std::fs::write(&path, text).unwrap();
    };
    write("retries = 1");
    let loader = Loader::new().file(&path);
    let clients = Clients::new(&loader.clone().load().unwrap()).unwrap();
    let watching = tokio::spawn(clients.watch(loader).every(ms(20)).run());
    let client = clients.client("one").unwrap();
    write("retries = 7");
    until(|| client.settings().retries == 7).await;
    write("retries = 'many'");
    tokio::time::sleep(ms(100)).await;
    assert_eq!(client.settings().retries, 7, "a broken file changes nothing");
    write("retries = 3");
    until(|| client.settings().retries == 3).await;
    assert_eq!(client.get("/").send().await.unwrap().text(), "here");
    clients.close().await;
    tokio::time::timeout(LONG, watching).await.unwrap().unwrap();
    let _ = std::fs::remove_file(&path);
}
