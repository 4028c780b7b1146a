//! Completions for the shell, made from the very definition that parses the arguments.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::Exit;

/// Prints the completion script to standard output.
pub(crate) fn run(args: &CompletionsArgs) -> Exit {
    // Into memory first: the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "steadfast", &mut script);
    match std::io::stdout().write_all(&script) {
        Ok(()) => Exit::Ok,
        Err(_) => Exit::Failed,
    }
}
