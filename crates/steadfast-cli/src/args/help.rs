//! The part of `--help` that teaches: examples to copy, and what the results mean.

use crate::exit;

/// After the list of subcommands.
pub(crate) const TOP: &str = r#"Start here:
  steadfast demo                                      watch it work, about 20 s
  steadfast call --url http://127.0.0.1:8080 GET /    one call, no configuration
  steadfast init                                      a steadfast.toml with every key explained
  steadfast check steadfast.toml                      what is wrong, or what applies
  steadfast call billing GET /invoices/7              a call to [upstreams.billing]
  steadfast test scenarios/                           does it behave as these files expect
  steadfast simulate simulations/                     what an outage does under these settings

A configuration names each upstream once:
  [upstreams.billing]
  base_url = "https://billing.internal/api"
  total_timeout = "5s""#;

/// The two forms of a call.
pub(crate) const CALL_USAGE: &str = "\
steadfast call [OPTIONS] <UPSTREAM> <METHOD> <PATH>
       steadfast call [OPTIONS] --url <URL> [UPSTREAM] <METHOD> <PATH>";

/// After the options of `call`.
pub(crate) fn call() -> String {
    format!("{CALL}\n\n{}", exit::HELP)
}

const CALL: &str = r#"Examples:
  One call, without a configuration:
    steadfast call --url http://127.0.0.1:8080/api GET '/items?page=2'
  The same with other settings, any key of a configuration:
    steadfast call --url http://127.0.0.1:8080 --set retries=0 --set read_timeout=250ms GET /
  A POST that may be repeated, because the upstream knows its key:
    steadfast call billing POST /invoices -d @invoice.json --json-body --idempotency-key 7f3a
  A hundred calls, ten at a time, through one client: one breaker, one budget, one bulkhead:
    steadfast call billing GET /health --repeat 100 --concurrency 10 --output json
  Twenty calls a second until the hundredth:
    steadfast call billing GET /health --repeat 100 --rate 20
  A long response, or one without an end, written out as it comes:
    steadfast call billing GET /export.csv --stream > export.csv
  As configured, but directly and with another certificate:
    steadfast call billing GET /health --proxy false --cert me.pem --key me.key

With --output json each call is one line, in order of completion: its status or error, each attempt
(outcome, and whether anything was sent), each wait and why, and why it ended. Then one summary.
In the summary `requests` are all attempts, those that could not connect among them."#;

/// After the options of `check`.
pub(crate) const CHECK: &str = r#"Examples:
  steadfast check steadfast.toml
  steadfast check app.toml --table plugin.http
  STEADFAST_UPSTREAMS__BILLING__BASE_URL=http://127.0.0.1:8010 steadfast check steadfast.toml

The environment of this process is read as a service would read it: for base_url it wins over the
file, for every other key it fills in what the file leaves out. Secrets are masked.

Exit status: 0 a usable configuration, 78 one with problems. Warnings change nothing; they go to
standard error, and with --output json into the object as well."#;

/// After the options of `test`.
pub(crate) const TEST: &str = r#"Examples:
  steadfast test scenarios/
  steadfast test scenarios/retries --filter C2
  steadfast test scenarios/ --output junit > results.xml

A scenario says what an upstream does, step by step, what is called, and what is to be seen then:
the result, requests, waits, why the call ended, the breaker. It is played through the client
itself, on a clock that does not wait. docs/scenarios.md has the keys.

Exit status: 0 all passed, 1 something differs, 64 usage, 78 a file with problems."#;

/// After the options of `simulate`.
pub(crate) const SIMULATE: &str = r#"Examples:
  steadfast simulate simulations/slow.toml
  steadfast simulate simulations/ --seeds 5
  steadfast simulate simulations/slow.toml --output csv > slow.csv

A file models an upstream, what befalls it, and who calls it how often. It is lived through by the
client itself, on a clock that does not wait: without retries, with blind ones, with the settings
as they are, and with the candidates of the file, all with the same arrivals. Bounds in the file
make it a test. The same seed gives the same output, to the byte. docs/simulate.md has the keys.

Exit status: 0 all as expected, 1 something missed, 64 usage, 78 a file with problems."#;

/// After the options of `schema`.
pub(crate) const SCHEMA: &str = r#"Examples:
  steadfast schema > steadfast.schema.json
  steadfast schema scenario > scenario.schema.json
  steadfast schema simulation > simulation.schema.json
  steadfast schema --table plugin.http > app.schema.json

An editor with taplo (Even Better TOML, for one) then completes keys, shows what they mean, and
marks mistakes, in a file whose first line is
  #:schema ./steadfast.schema.json

The schema is made from the table that the reader reads by (JSON Schema, draft 2020-12). It passes
everything that the reader accepts; `steadfast check` finds more than a schema can say."#;

/// After the options of `init`.
pub(crate) const INIT: &str = r#"Examples:
  steadfast init
  steadfast init --only clippy services/orders
  steadfast init --print --only config > steadfast.toml

steadfast.toml has one upstream to begin with, and every key as a comment, with its default and what
it means. clippy.toml makes `cargo clippy -- -D warnings` refuse reqwest::get, hyper's clients and
the like, and say what to use in their place.

A file that is there already is left alone. What a clippy.toml lacks is printed, to be added to it.

Exit status: 0 the files are as they should be, 64 DIR is no directory, 73 a file was there already
and was left alone, or could not be written, 78 a clippy.toml that is not TOML."#;

/// After the options of `demo`.
pub(crate) const DEMO: &str = r#"Five upstreams on loopback, each twice: one instance is called through Steadfast, the other gets the
same calls from a client with three blind retries.
  healthy   always answers
  flaky     every fifth request: a 503, or the connection is reset
  slow      every tenth answer comes long after the read timeout
  down      answers 503 for a third of the time, then is back
  limited   every fifth second it takes few requests, the rest get 429 with Retry-After: 1

Examples:
  steadfast demo
  steadfast demo --duration 60s --rate 50
  steadfast demo --output json | jq -c 'select(.event == "upstream")'

With --output json: a line per breaker transition as it happens, then one per upstream (requests are
counted there; the blind client's figures are in `blind`), then a summary.

It ends by itself; Ctrl-C ends it sooner, with the summary so far (exit status 130)."#;

/// After the options of `completions`.
pub(crate) const COMPLETIONS: &str = r#"Examples:
  steadfast completions bash > ~/.local/share/bash-completion/completions/steadfast
  steadfast completions zsh > ~/.zfunc/_steadfast
  steadfast completions fish > ~/.config/fish/completions/steadfast.fish"#;
