//! `/metrics` of a service that has made a few calls: good ones, ones that needed a retry, ones that were refused.
//!
//! Prints what Prometheus reads, which `promtool check metrics` can then judge; with `serve` it goes on serving it.
//!
//! ```sh
//! cargo run -p steadfast-axum --features prometheus --example metrics | promtool check metrics
//! cargo run -p steadfast-axum --features prometheus --example metrics -- serve
//! ```

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use steadfast::{Guard, Guards, ServiceClient};
use steadfast_axum::Prometheus;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // First of all, so that nothing is missed.
    let prometheus = Prometheus::new().install()?;
    let upstream = upstream().await?;
    let clients = call(upstream).await?;

    let service = Router::new().route_service("/metrics", prometheus);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(async move { axum::serve(listener, service).await });
    if std::env::args().nth(1).as_deref() == Some("serve") {
        eprintln!("http://{address}/metrics");
        return Ok(serving.await??);
    }
    // Through the very route that Prometheus would ask.
    let scraper = ServiceClient::builder(&format!("http://{address}")).name("self").build()?;
    print!("{}", scraper.get("/metrics").send().await?.error_for_status()?.text());
    drop(clients);
    Ok(())
}

/// Something to call: every third answer of `/flaky` is a 503, `/slow` takes its time, `/down` is down.
async fn upstream() -> Result<SocketAddr, Box<dyn Error>> {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let flaky = || async {
        let is_down = ASKED.fetch_add(1, Ordering::Relaxed) % 3 == 2;
        if is_down { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
    };
    let slow = || async { tokio::time::sleep(Duration::from_millis(50)).await };
    let service = Router::new()
        .route("/flaky", get(flaky))
        .route("/slow", get(slow))
        .route("/down", get(|| async { StatusCode::SERVICE_UNAVAILABLE }));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ok(address)
}

/// Makes the calls, and returns who made them: gauges are of what is alive.
async fn call(upstream: SocketAddr) -> Result<impl Sized, Box<dyn Error>> {
    let url = format!("http://{upstream}");
    let client = |name: &str| ServiceClient::builder(&url).name(name).backoff_base(Duration::from_millis(1));

    let billing = client("billing").build()?;
    for _ in 0..20 {
        // Some need a retry, a few get none: the answer is there all the same.
        let _: StatusCode = billing.get("/flaky").send().await?.status();
    }
    let reports = client("reports").max_concurrent(1).bulkhead_wait(Duration::ZERO).build()?;
    let (one, other) = tokio::join!(reports.get("/slow").send(), reports.get("/slow").send());
    assert!(one.is_ok() && other.is_err(), "there is one slot");
    let search = client("search").retries(0).build()?;
    for _ in 0..6 {
        // The sixth call is refused: the breaker is open.
        let _ = search.get("/down").send().await;
    }
    let mut stream = reports.get("/flaky").send_streaming().await?;
    while stream.chunk().await?.is_some() {}

    let partners = Guards::new(Guard::http("partners"))?;
    for host in ["shop.example", "blog.example"] {
        let served = partners.get(host)?.fallback("no news").call(|| async { Err::<&str, &str>("unreachable") }).await;
        assert!(served.is_ok(), "a fallback stands in");
        partners.get(host)?.call(|| async { Ok::<_, Infallible>(()) }).await?;
    }
    Ok((billing, reports, search, partners))
}
