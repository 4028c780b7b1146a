//! `orders [--alone]`: the service on 127.0.0.1:8000, with stand-ins for billing (8010) and catalog (8020) unless it is to be
//! alone. Its configuration is `steadfast.toml` beside its sources; addresses may come from the environment
//! (`STEADFAST_UPSTREAMS__BILLING__BASE_URL`), and so may the collector of traces (`OTEL_EXPORTER_OTLP_ENDPOINT`). Ctrl-C ends
//! it.

use std::error::Error;

use axum::Router;
use orders::telemetry;
use orders::upstreams::{Upstream, billing, catalog};
use steadfast::Clients;
use steadfast::config::Loader;
use steadfast_axum::Prometheus;
use tokio::net::TcpListener;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/steadfast.toml");

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument != "--alone") {
        return Err(format!("unknown arguments {arguments:?}: expected [--alone]").into());
    }
    let telemetry = telemetry::set_up()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(run(arguments.is_empty(), telemetry.prometheus.clone()));
    drop(runtime);
    // What was traced is sent, also where serving failed.
    let sent = telemetry.shut_down();
    served.and(sent)
}

async fn run(with_upstreams: bool, prometheus: Prometheus) -> Result<(), Box<dyn Error>> {
    if with_upstreams {
        serve("127.0.0.1:8010", billing(&Upstream::new())).await?;
        serve("127.0.0.1:8020", catalog(&Upstream::new())).await?;
    }
    let config = Loader::new().file(CONFIG).process_env().load()?;
    let clients = Clients::new(&config)?;
    let service = orders::service(&clients, prometheus)?;
    let listener = TcpListener::bind("127.0.0.1:8000").await.map_err(|error| format!("127.0.0.1:8000: {error}"))?;
    println!("http://{}/orders/7", listener.local_addr()?);
    let interrupted = async {
        // If the signal cannot be waited for, whoever wants to end it has to do it the hard way.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    axum::serve(listener, service).with_graceful_shutdown(interrupted).await?;
    Ok(())
}

async fn serve(address: &str, upstream: Router) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("{address}: {error}"))?;
    tokio::spawn(async move { axum::serve(listener, upstream).await });
    Ok(())
}
