//! `trace-context-adapter [LISTEN] [HARNESS] [--retry]`: 127.0.0.1:5000 and http://127.0.0.1:7777 unless given.

use std::error::Error;

use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with('-'));
    if let Some(unknown) = flags.iter().find(|flag| *flag != "--retry") {
        return Err(format!("unknown option {unknown}: expected [LISTEN] [HARNESS] [--retry]").into());
    }
    let listen = words.first().map_or("127.0.0.1:5000", String::as_str);
    let harness = words.get(1).map_or("http://127.0.0.1:7777", String::as_str);
    let service = trace_context_adapter::service(harness, !flags.is_empty())?;
    let listener = TcpListener::bind(listen).await?;
    eprintln!("http://{}/test calls back {harness}", listener.local_addr()?);
    axum::serve(listener, service).await?;
    Ok(())
}
