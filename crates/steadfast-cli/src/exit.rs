//! Exit codes: one table for every subcommand, and for the help that prints it.

use std::process::ExitCode;

/// How the command ends. The numbers from 64 on are those of `sysexits.h`; 130 is the shell's word for "interrupted".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A response came, or the work was done.
    Ok = 0,
    /// With `--fail`: the response's status was 400 or above. A scenario that differs, a bound that a
    /// simulation missed. Also what could not be printed.
    Failed = 1,
    /// The circuit breaker was open.
    CircuitOpen = 10,
    /// No slot became free.
    BulkheadFull = 11,
    /// The deadline passed.
    Timeout = 12,
    /// No attempt got a response.
    Unreachable = 13,
    /// The rate limit had no place.
    RateLimited = 14,
    /// The command or the request was put together wrongly.
    Usage = 64,
    /// A file was there already, or could not be written.
    CannotCreate = 73,
    /// The configuration, or a file of a scenario or a simulation, has a problem.
    Config = 78,
    /// Ended by an interrupt (Ctrl-C).
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table as `--help` prints it.
pub(crate) const HELP: &str = "\
Exit status, of the last call (the one with the highest number):
   0  a response came (with --fail: only one below 400)
   1  with --fail: the response was 400 or above
  10  circuit open      11  bulkhead full    12  timeout
  13  unreachable       14  rate limited
  64  usage, or a request that cannot be sent
  78  configuration    130  interrupted";
