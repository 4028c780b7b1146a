//! `steadfast demo`: the protection at work, without anything to set up.
//!
//! Embedded upstreams misbehave in five ways while steady traffic runs against them twice: through Steadfast, and
//! through a client with three blind retries. What is shown is counted at the upstreams.

mod blind;
mod http1;
mod live;
mod machine;
mod protected;
mod scenario;
mod stage;
mod summary;
mod tally;
mod traffic;
mod transitions;
mod upstream;

use std::io;
use std::time::Duration;

use crate::args::{DemoArgs, Format};
use crate::exit::Exit;
use crate::interrupt::interrupt;
use crate::output;
use stage::Stage;

/// How often the view looks at the run.
const TICK: Duration = Duration::from_millis(200);

/// Runs the demo.
pub(crate) async fn run(args: DemoArgs) -> Exit {
    match show(args).await {
        Ok(exit) => exit,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Failed,
        Err(error) => {
            output::note(&format!("error: the demo could not go on: {error}"));
            Exit::Failed
        }
    }
}

async fn show(args: DemoArgs) -> io::Result<Exit> {
    let mut interrupt = std::pin::pin!(interrupt());
    let (stage, mut traffic) = Stage::start(args).await?;
    let mut view = View::new(args, &stage)?;
    let mut ticks = tokio::time::interval(TICK);
    let exit = loop {
        tokio::select! {
            biased;
            () = &mut interrupt => break Exit::Interrupted,
            _ = ticks.tick() => view.refresh(&stage)?,
            ended = traffic.join_next() => match ended {
                Some(Ok(())) => {}
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => break Exit::Ok,
            },
        }
    };
    view.finish(&stage)?;
    Ok(exit)
}

/// The ways to look at a run.
#[derive(Debug)]
enum View {
    Live(live::Live),
    Machine(machine::Machine),
}

impl View {
    fn new(args: DemoArgs, stage: &Stage) -> io::Result<Self> {
        Ok(match args.output {
            Format::Text => Self::Live(live::Live::new(args, stage)?),
            Format::Json => Self::Machine(machine::Machine::new(args, stage)?),
        })
    }

    fn refresh(&mut self, stage: &Stage) -> io::Result<()> {
        match self {
            Self::Live(live) => live.refresh(stage),
            Self::Machine(machine) => machine.refresh(stage),
        }
    }

    fn finish(mut self, stage: &Stage) -> io::Result<()> {
        self.refresh(stage)?;
        match self {
            Self::Live(live) => live.finish(stage),
            Self::Machine(machine) => machine.finish(stage),
        }
    }
}
