//! Does so many calls, for a tool that counts the processor's instructions: see `instructions.sh` beside this crate's README.
//!
//! `instructions guard|http COUNT [counted]`: with `counted` (feature `metrics`) a recorder is installed first. A thread of
//! the same process would be counted too, so the server of `http` is another process, which this starts.

use steadfast_benches::Failure;
use steadfast_benches::closure::{self, Kind};
use steadfast_benches::http::{self, Client, Server};

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (work, count) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--serve"] => return http::serve(None),
        [work, count] => (work, count),
        [work, count, "counted"] => {
            install_recorder()?;
            (work, count)
        }
        _ => return Err("usage: instructions guard|http COUNT [counted]".into()),
    };
    let count = count.parse()?;
    match work {
        "guard" => closure::calls(&closure::runtime()?, &mut closure::Steadfast::new()?, Kind::Ready, count),
        "http" => {
            let server = Server::start(None)?;
            let runtime = http::runtime()?;
            let mut workers = runtime.block_on(http::Steadfast::workers(server.address(), 1))?;
            runtime.block_on(http::requests(&mut workers, count))
        }
        other => Err(format!("expected guard or http; found {other}").into()),
    }
}

#[cfg(feature = "metrics")]
fn install_recorder() -> Result<(), Failure> {
    steadfast_axum::Prometheus::new().install()?;
    Ok(())
}

#[cfg(not(feature = "metrics"))]
fn install_recorder() -> Result<(), Failure> {
    Err("built without the feature `metrics`: there is nothing to install".into())
}
