//! Counts heap allocations per operation of every contender: `allocations closure KIND`, `allocations http ADDRESS`.
//!
//! A process of its own, because counting is done by the allocator, and the timed processes are to run on the plain one.
//! The counter is the thread's; everything here runs on one thread, connections included.

use std::net::SocketAddr;

use steadfast_benches::Failure;
use steadfast_benches::closure::{
    self, Backon, Bare, Failsafe, Governor, Kind, RateLimited, Stack, Tower, TowerResilience,
};
use steadfast_benches::http::{self, Client, Connection, HyperUtil, Reqwest};
use tokio::runtime::Runtime;

const WARM_UP: usize = 200;
const COUNTED: usize = 1_000;

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["closure", kind] => {
            let kind = [Kind::Ready, Kind::PendsOnce].into_iter().find(|known| known.name() == kind);
            let kind = kind.ok_or("the kinds are \"ready\" and \"pends once\"")?;
            let runtime = closure::runtime()?;
            of_calls(&runtime, Bare, kind)?;
            of_calls(&runtime, Tower::new(), kind)?;
            of_calls(&runtime, closure::Steadfast::new()?, kind)?;
            of_calls(&runtime, RateLimited::new()?, kind)?;
            of_calls(&runtime, TowerResilience::new()?, kind)?;
            of_calls(&runtime, Failsafe::new(), kind)?;
            of_calls(&runtime, Backon, kind)?;
            of_calls(&runtime, Governor::new(), kind)
        }
        ["http", address] => {
            let server = address.parse()?;
            let runtime = http::runtime()?;
            of_requests::<Connection>(&runtime, server)?;
            of_requests::<HyperUtil>(&runtime, server)?;
            of_requests::<Reqwest>(&runtime, server)?;
            of_requests::<http::Steadfast>(&runtime, server)
        }
        _ => Err("usage: allocations closure KIND | http ADDRESS".into()),
    }
}

fn of_calls<S: Stack>(runtime: &Runtime, mut stack: S, kind: Kind) -> Result<(), Failure> {
    closure::calls(runtime, &mut stack, kind, WARM_UP)?;
    print(S::NAME, || closure::calls(runtime, &mut stack, kind, COUNTED))
}

fn of_requests<C: Client>(runtime: &Runtime, server: SocketAddr) -> Result<(), Failure> {
    let mut workers = runtime.block_on(C::workers(server, 1))?;
    runtime.block_on(http::requests(&mut workers, WARM_UP))?;
    print(C::NAME, || runtime.block_on(http::requests(&mut workers, COUNTED)))
}

fn print(name: &str, work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    let mut ended = Ok(());
    let counted = allocation_counter::measure(|| ended = work());
    ended?;
    println!("{name}\t{}", counted.count_total as f64 / COUNTED as f64);
    Ok(())
}
