//! The command `steadfast`: call an upstream, check a configuration, watch the protection work.
//!
//! An edge: it parses, prints, and translates. Every decision about a call is the library's. Each subcommand goes
//! through two phases, as typed (`args`) and validated (its own plan), and ends in one [`exit::Exit`].

mod args;
mod call;
mod check;
mod completions;
mod demo;
mod exit;
mod files;
mod init;
mod interrupt;
mod output;
mod schema;
mod settings;
mod simulate;
mod test;

use std::future::Future;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Builder;

use args::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error).into(),
    };
    match cli.command {
        Command::Call(args) => match call::Plan::new(*args) {
            // On one thread calls enter in the order of their numbers, so that a run is the same each time.
            Ok(plan) => on_runtime(Builder::new_current_thread(), call::run(plan)),
            Err(problem) => problem.report(),
        },
        Command::Check(args) => check::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Demo(args) => on_runtime(Builder::new_multi_thread(), demo::run(args)),
        Command::Completions(args) => completions::run(&args),
    }
    .into()
}

/// Prints what the parser has to say: help and version are answers, everything else is a mistake of usage.
fn not_understood(error: &clap::Error) -> Exit {
    // A closed pipe is no reason to fail: whoever asked has stopped reading.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage } else { Exit::Ok }
}

/// Runs one subcommand to its end.
fn on_runtime(mut builder: Builder, command: impl Future<Output = Exit>) -> Exit {
    match builder.enable_all().build() {
        Ok(runtime) => {
            let exit = runtime.block_on(command);
            // What is still in flight was given up by an interrupt: nobody waits for it.
            runtime.shutdown_background();
            exit
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: the runtime did not start: {error}");
            Exit::Failed
        }
    }
}

/// Whether people are watching: only then are bars drawn and screens redrawn.
fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}
