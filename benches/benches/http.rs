//! One HTTP request over loopback: Steadfast, with every policy on, against clients that have none.
//!
//! HTTP/1.1 with keep-alive, a JSON body of 100 bytes, 1, 16 and 64 requests in flight. The baseline is hyper-util's
//! client. CPU time is that of the client's process; the server is another one.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use steadfast_benches::http::{self, Client, Connection, HyperUtil, Reqwest, Server, Steadfast};
use steadfast_benches::options::{HELP, Options};
use steadfast_benches::rounds::{Contender, interleave};
use steadfast_benches::table::{Case, Compare};
use steadfast_benches::{Failure, machine};
use tokio::runtime::Runtime;

const COUNTER: &str = env!("CARGO_BIN_EXE_allocations");

fn main() -> Result<(), Failure> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        println!("{HELP}");
        return Ok(());
    };
    if options.serve {
        return http::serve(options.pin.map(|cores| cores.1));
    }
    if let Some((core, _)) = options.pin {
        machine::pin(core)?;
    }
    let server = Server::start(options.pin)?;
    let address = server.address();
    let allocations = machine::allocations(COUNTER, &["http", &address.to_string()])?;
    let runtime = http::runtime()?;
    for in_flight in [1, 16, 64].into_iter().filter(|count| options.runs(&title(*count))) {
        case(&options, &runtime, address, in_flight, &allocations)?;
    }
    Ok(())
}

fn title(in_flight: usize) -> String {
    format!("{in_flight} in flight")
}

fn case(
    options: &Options,
    runtime: &Runtime,
    server: SocketAddr,
    in_flight: usize,
    allocations: &BTreeMap<String, f64>,
) -> Result<(), Failure> {
    let requests = if options.quick { 640 } else { 12_800 };
    let mut contenders = vec![
        contender::<Connection>(runtime, server, in_flight, requests)?,
        contender::<HyperUtil>(runtime, server, in_flight, requests)?,
        Contender { name: "hyper-util, again", ..contender::<HyperUtil>(runtime, server, in_flight, requests)? },
        contender::<Reqwest>(runtime, server, in_flight, requests)?,
        contender::<Steadfast>(runtime, server, in_flight, requests)?,
    ];
    contenders.retain(|contender| options.includes(contender.name));
    let series = interleave(&mut contenders, options.rounds(21, 3))?;
    let case = Case {
        bench: "http",
        title: &title(in_flight),
        compare: Compare::CpuAndRate,
        baseline: HyperUtil::NAME,
        series: &series,
        allocations,
    };
    case.print(options.json);
    Ok(())
}

fn contender<C: Client>(
    runtime: &Runtime,
    server: SocketAddr,
    in_flight: usize,
    requests: usize,
) -> Result<Contender<'_>, Failure> {
    let mut workers = runtime.block_on(C::workers(server, in_flight))?;
    let turn = move || machine::time(requests, || runtime.block_on(http::requests(&mut workers, requests)));
    Ok(Contender { name: C::NAME, turn: Box::new(turn) })
}
