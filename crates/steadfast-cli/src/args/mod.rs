//! The arguments exactly as typed: names, help, and types, nothing derived.
//!
//! What can hold a secret (headers, bodies, URLs, settings) stays text here and is read by the plan, because the
//! parser would quote a value that it refuses.

mod help;
pub(crate) mod values;

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

/// Calls other services through Steadfast's deadline, retries, circuit breaker, bulkhead and rate limit.
#[derive(Debug, Parser)]
#[command(name = "steadfast", version, after_help = help::TOP, arg_required_else_help = true)]
#[command(max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Call an upstream, once or many times, and show what happened to each attempt
    #[command(after_help = help::call(), override_usage = help::CALL_USAGE)]
    Call(Box<CallArgs>),
    /// Check a configuration: every problem, or the effective settings and where each came from
    #[command(after_help = help::CHECK)]
    Check(CheckArgs),
    /// Play scenario files in virtual time, and show what differs from what they expect
    #[command(after_help = help::TEST)]
    Test(TestArgs),
    /// Live through outages in virtual time, under several policies beside one another
    #[command(after_help = help::SIMULATE)]
    Simulate(SimulateArgs),
    /// Print a JSON Schema of configuration, scenario or simulation files, for editors
    #[command(after_help = help::SCHEMA)]
    Schema(SchemaArgs),
    /// Write a commented steadfast.toml, and the clippy.toml that forbids clients without a deadline
    #[command(after_help = help::INIT)]
    Init(InitArgs),
    /// Watch the protection work on five embedded upstreams, beside a client with blind retries
    #[command(after_help = help::DEMO)]
    Demo(DemoArgs),
    /// Print a completion script for a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions(CompletionsArgs),
}

/// How results are printed: for people, or one JSON object per line and nothing else on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

/// Arguments of `steadfast call`.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The upstream's configured name; it can be left out with --url
    #[arg(value_name = "UPSTREAM")]
    pub(crate) first: String,
    /// The method, such as GET
    #[arg(value_name = "METHOD")]
    pub(crate) second: String,
    /// The path below the upstream's base_url, with its query if it has one
    #[arg(value_name = "PATH")]
    pub(crate) third: Option<String>,

    /// Read the upstreams from this file [default: ./steadfast.toml if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Where to")]
    pub(crate) config: Option<PathBuf>,
    /// The table of the file that holds `upstreams`, such as plugin.http [default: the root]
    #[arg(long, value_name = "PATH", help_heading = "Where to")]
    pub(crate) table: Option<String>,
    /// Prefix of the environment variables that fill in what the file leaves out
    #[arg(long, value_name = "PREFIX", default_value = values::ENV_PREFIX, help_heading = "Where to")]
    pub(crate) env_prefix: String,
    /// Call this base URL, without any configuration
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "table", "env_prefix"], help_heading = "Where to")]
    pub(crate) url: Option<String>,
    /// Set one configuration key, such as breaker_failures=3, over what is configured (repeatable)
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Where to")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Add a header, as in 'Accept: text/plain' (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "The request")]
    pub(crate) headers: Vec<String>,
    /// The body: text, @FILE, or @- for standard input
    #[arg(short, long, value_name = "DATA", allow_hyphen_values = true, help_heading = "The request")]
    pub(crate) data: Option<String>,
    /// The body is JSON: check it, and send it as application/json
    #[arg(long, requires = "data", help_heading = "The request")]
    pub(crate) json_body: bool,
    /// Send this Idempotency-Key: the request may then be repeated, whatever its method
    #[arg(long, value_name = "KEY", help_heading = "The request")]
    pub(crate) idempotency_key: Option<String>,
    /// Allow or forbid repeating the request, whatever its method
    #[arg(long, value_name = "true|false", action = ArgAction::Set, hide_possible_values = true, help_heading = "The request")]
    pub(crate) retry: Option<bool>,
    /// Deadline of each call; it can only shorten the upstream's total_timeout
    #[arg(long, value_name = "DURATION", value_parser = values::duration, help_heading = "The request")]
    pub(crate) timeout: Option<Duration>,

    /// Make this many calls; all share one client
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000_000), help_heading = "How often")]
    pub(crate) repeat: u64,
    /// Calls in flight at once [default: 1, with --rate 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "How often")]
    pub(crate) concurrency: Option<u32>,
    /// Start at most this many calls per second, evenly spaced
    #[arg(long, value_name = "PER_SECOND", value_parser = values::rate, help_heading = "How often")]
    pub(crate) rate: Option<f64>,

    /// How to print the results: json prints a line per call, and nothing else, on standard output
    #[arg(long, value_enum, default_value_t, help_heading = "The result")]
    pub(crate) output: Format,
    /// Text output: print the last response's body as well
    #[arg(long, help_heading = "The result")]
    pub(crate) body: bool,
    /// Write the response's body to standard output as it comes, of any length, and nothing else
    #[arg(long, conflicts_with_all = ["repeat", "concurrency", "rate", "output", "body"], help_heading = "The result")]
    pub(crate) stream: bool,
    /// A response of 400 or above is a failure: exit with 1
    #[arg(long, help_heading = "The result")]
    pub(crate) fail: bool,
}

/// Arguments of `steadfast call` for how to connect: each is short for a key, and wins over what is configured.
#[derive(Debug, Args)]
#[command(next_help_heading = "The connection")]
pub(crate) struct ConnectionArgs {
    /// Speak HTTP/2 and nothing else; without TLS from the first byte on
    #[arg(long)]
    pub(crate) http2: bool,
    /// Go through this proxy (http, https, socks5 or socks5h), or false: through none
    #[arg(long, value_name = "URL|false")]
    pub(crate) proxy: Option<String>,
    /// Trust the authorities in this PEM file too, in the place of those in tls_roots (repeatable)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cacert: Vec<String>,
    /// Our own certificate: a PEM file with its chain, and its key unless --key names another
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cert: Option<String>,
    /// The private key of our certificate, a PEM file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<String>,
}

/// Arguments of `steadfast check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The configuration
    pub(crate) file: PathBuf,
    /// The table of the file that holds `upstreams`, such as plugin.http [default: the root]
    #[arg(long, value_name = "PATH")]
    pub(crate) table: Option<String>,
    /// Prefix of the environment variables that fill in what the file leaves out
    #[arg(long, value_name = "PREFIX", default_value = values::ENV_PREFIX)]
    pub(crate) env_prefix: String,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Format,
}

/// How the results of scenarios are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    #[default]
    Text,
    Json,
    Junit,
}

/// Arguments of `steadfast test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Scenario files, or directories of them
    #[arg(required = true, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Only those with this text in their path, title or variant, or with this number of the contract
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Over loopback sockets and in real time; what cannot be is left out, with the reason
    #[arg(long)]
    pub(crate) sockets: bool,
    /// How to print the results: json prints a line for each scenario, junit one XML document
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: TestFormat,
}

/// How the results of simulations are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimulateFormat {
    #[default]
    Text,
    Json,
    Csv,
}

/// Arguments of `steadfast simulate`.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Simulation files, or directories of them
    #[arg(required = true, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Run each policy with so many seeds, and show the mean and the spread
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::seeds)]
    pub(crate) seeds: NonZero<u32>,
    /// The first seed [default: the file's, or 1]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Run so many simulations at once; the results are the same [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZero<usize>>,
    /// How to print the results: json prints a line for each file, csv a row for each interval
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: SimulateFormat,
}

/// What a schema describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    #[default]
    Config,
    Scenario,
    Simulation,
}

/// Arguments of `steadfast schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The files that it describes
    #[arg(value_enum, default_value_t)]
    pub(crate) of: SchemaOf,
    /// The table of the file that holds `upstreams`, such as plugin.http [default: the root]
    #[arg(long, value_name = "PATH")]
    pub(crate) table: Option<String>,
}

/// One of the files that `steadfast init` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitFile {
    // steadfast.toml
    Config,
    // clippy.toml
    Clippy,
}

/// Arguments of `steadfast init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Where the files go: the directory of the package, or of its workspace
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Only this one: steadfast.toml or clippy.toml
    #[arg(long, value_enum, value_name = "FILE")]
    pub(crate) only: Option<InitFile>,
    /// Write over files that are there already; what was in them is lost
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the files to standard output, and write nothing
    #[arg(short = 'n', long, conflicts_with_all = ["dir", "force"])]
    pub(crate) print: bool,
}

/// Arguments of `steadfast demo`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DemoArgs {
    /// How long the traffic lasts, from 5s to 10m
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = values::demo_duration)]
    pub(crate) duration: Duration,
    /// Calls per second and upstream, from 5 to 100
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(5..=100))]
    pub(crate) rate: u32,
    /// Which failures happen: the same seed, the same pattern
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How to print what happens
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Format,
}

/// Arguments of `steadfast completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}
