//! The README and the pages of `docs/`, so that every example in them is compiled, and run where it can be.

macro_rules! pages {
    ($($name:ident = $path:literal;)+) => {
        $(#[doc = include_str!(concat!("../../../", $path))]
        struct $name;)+
    };
}

pages! {
    Readme = "README.md";
    Deadlines = "docs/deadlines.md";
    Retries = "docs/retries.md";
    RetryBudget = "docs/retry-budget.md";
    CircuitBreaker = "docs/circuit-breaker.md";
    BulkheadAndRateLimit = "docs/bulkhead-and-rate-limit.md";
    Streaming = "docs/streaming.md";
    Connections = "docs/connections.md";
    Pieces = "docs/pieces.md";
    Transports = "docs/transports.md";
    Guard = "docs/guard.md";
    Blocking = "docs/blocking.md";
    ErrorsAndReports = "docs/errors-and-reports.md";
    Configuration = "docs/configuration.md";
    Reload = "docs/reload.md";
    Adopting = "docs/adopting.md";
    Profiles = "docs/profiles.md";
    Telemetry = "docs/telemetry.md";
    Testing = "docs/testing.md";
}
