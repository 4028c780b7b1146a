//! `orders [--alone]`: the service on 127.0.0.1:8000, with stand-ins for billing (8010) and catalog (8020) unless it is to be
//! alone. Its configuration is `steadfast.toml` beside its sources; addresses may come from the environment
//! (`STEADFAST_UPSTREAMS__BILLING__BASE_URL`).

use std::error::Error;

use axum::Router;
use orders::upstreams::{Upstream, billing, catalog};
use steadfast::Clients;
use steadfast::config::Loader;
use tokio::net::TcpListener;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/steadfast.toml");

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument != "--alone") {
        return Err(format!("unknown arguments {arguments:?}: expected [--alone]").into());
    }
    if arguments.is_empty() {
        serve("127.0.0.1:8010", billing(&Upstream::new())).await?;
        serve("127.0.0.1:8020", catalog(&Upstream::new())).await?;
    }
    let config = Loader::new().file(CONFIG).process_env().load()?;
    let clients = Clients::new(&config)?;
    let service = orders::service(&clients)?;
    let listener = TcpListener::bind("127.0.0.1:8000").await?;
    println!("http://{}/orders/7", listener.local_addr()?);
    axum::serve(listener, service).await?;
    Ok(())
}

async fn serve(address: &str, upstream: Router) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("{address}: {error}"))?;
    tokio::spawn(async move { axum::serve(listener, upstream).await });
    Ok(())
}
