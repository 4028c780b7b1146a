//! One call of a closure through the policies, nothing on the network: Steadfast against tower's stack.
//!
//! The baseline is tower's timeout + retry + budget + concurrency limit, which does less. "ready": the operation
//! completes at once; "pends once": timers are armed. From two threads: back-to-back calls on shared state.

use std::collections::BTreeMap;

use steadfast_benches::closure::{
    self, Backon, Bare, Failsafe, Governor, Kind, RateLimited, Stack, Steadfast, Tower, TowerResilience,
};
use steadfast_benches::options::{HELP, Options};
use steadfast_benches::rounds::{Contender, Sample, interleave};
use steadfast_benches::table::{Case, Compare};
use steadfast_benches::{Failure, machine};
use tokio::runtime::Runtime;

const COUNTER: &str = env!("CARGO_BIN_EXE_allocations");

fn main() -> Result<(), Failure> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        println!("{HELP}");
        return Ok(());
    };
    if let Some((core, _)) = options.pin {
        machine::pin(core)?;
    }
    let runtime = closure::runtime()?;
    for kind in [Kind::Ready, Kind::PendsOnce] {
        let allocations = machine::allocations(COUNTER, &["closure", kind.name()])?;
        let (one, two) = (format!("{}, one thread", kind.name()), format!("{}, two threads", kind.name()));
        if options.runs(&one) {
            run(&options, &mut one_thread(&options, &runtime, kind)?, &one, &allocations)?;
        }
        if options.runs(&two) {
            run(&options, &mut two_threads(&options, kind)?, &two, &allocations)?;
        }
    }
    Ok(())
}

fn one_thread<'a>(options: &Options, runtime: &'a Runtime, kind: Kind) -> Result<Vec<Contender<'a>>, Failure> {
    let calls = if options.quick { 5_000 } else { 200_000 };
    fn contender<'a, S: Stack>(runtime: &'a Runtime, mut stack: S, kind: Kind, calls: usize) -> Contender<'a> {
        let turn = move || machine::time(calls, || closure::calls(runtime, &mut stack, kind, calls));
        Contender { name: S::NAME, turn: Box::new(turn) }
    }
    Ok(vec![
        contender(runtime, Bare, kind, calls),
        contender(runtime, Tower::new(), kind, calls),
        Contender { name: "tower, again", ..contender(runtime, Tower::new(), kind, calls) },
        contender(runtime, Steadfast::new()?, kind, calls),
        contender(runtime, RateLimited::new()?, kind, calls),
        contender(runtime, TowerResilience::new()?, kind, calls),
        contender(runtime, Failsafe::new(), kind, calls),
        contender(runtime, Backon, kind, calls),
        contender(runtime, Governor::new(), kind, calls),
    ])
}

fn two_threads(options: &Options, kind: Kind) -> Result<Vec<Contender<'static>>, Failure> {
    let calls = if options.quick { 5_000 } else { 200_000 };
    fn contender<S: Stack>(stack: S, kind: Kind, calls: usize, cores: Option<(usize, usize)>) -> Contender<'static> {
        let turn = move || {
            let time = closure::from_two_threads(&stack, kind, calls, cores)?;
            let wall_ns = machine::per(time, calls);
            Ok(Sample { wall_ns, cpu_ns: 2.0 * wall_ns })
        };
        Contender { name: S::NAME, turn: Box::new(turn) }
    }
    Ok(vec![
        contender(Bare, kind, calls, options.pin),
        contender(Tower::new(), kind, calls, options.pin),
        Contender { name: "tower, again", ..contender(Tower::new(), kind, calls, options.pin) },
        contender(Steadfast::new()?, kind, calls, options.pin),
        contender(RateLimited::new()?, kind, calls, options.pin),
        // A twentieth of the calls will do: two threads cost it a hundred times as much as the others.
        contender(TowerResilience::new()?, kind, calls / 20, options.pin),
        contender(Failsafe::new(), kind, calls, options.pin),
        contender(Backon, kind, calls, options.pin),
        contender(Governor::new(), kind, calls, options.pin),
    ])
}

fn run(
    options: &Options,
    contenders: &mut Vec<Contender<'_>>,
    title: &str,
    allocations: &BTreeMap<String, f64>,
) -> Result<(), Failure> {
    contenders.retain(|contender| options.includes(contender.name));
    let series = interleave(contenders, options.rounds(41, 3))?;
    let case = Case {
        bench: "policies",
        title,
        compare: Compare::TimeOver(Bare::NAME),
        baseline: Tower::NAME,
        series: &series,
        allocations,
    };
    case.print(options.json);
    Ok(())
}
