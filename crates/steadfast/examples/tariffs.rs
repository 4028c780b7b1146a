//! A module that asks a provider of tariffs, and what it does while the provider does not answer.
//!
//! The trace of five calls: three leave and fail, which opens the circuit breaker; two are refused before they leave. While
//! it is open the module quotes an estimate, and says so: a breaker gives control back at once, what to do with it is the
//! module's decision. After 31 seconds one call goes out as a probe, and its answer closes the circuit. Nobody re-arms
//! anything by hand.
//!
//! It is a plain program on one thread, without a runtime.
//!
//! `cargo run -p steadfast --example tariffs`

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use steadfast::policy::breaker::BreakerConfig;
use steadfast::testing::fake_clock;
use steadfast::{Guard, GuardError, Served, degraded};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// What the provider's failures look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NoAnswer;

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service does not answer")
    }
}

impl Error for NoAnswer {}

/// In cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tariff(u32);

impl fmt::Display for Tariff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

#[derive(Clone, Copy)]
struct Parcel {
    grams: u32,
}

/// Stands for the provider. It counts the calls that really reach it.
#[derive(Default)]
struct Provider {
    is_up: AtomicBool,
    reached: AtomicUsize,
}

impl Provider {
    fn tariff(&self, parcel: Parcel) -> Result<Tariff, NoAnswer> {
        self.reached.fetch_add(1, Ordering::Relaxed);
        let is_up = self.is_up.load(Ordering::Relaxed);
        if is_up { Ok(Tariff(480 + parcel.grams / 2)) } else { Err(NoAnswer) }
    }
}

/// The module. Its guard is made once, when the service starts: it remembers, and that is the point of it.
struct Tariffs {
    provider: Provider,
    guard: Guard,
}

impl Tariffs {
    /// The tariff, or why there is none.
    fn ask(&self, parcel: Parcel) -> Result<Tariff, GuardError<NoAnswer>> {
        self.guard.call_blocking(|| self.provider.tariff(parcel))
    }

    /// A tariff for the page, in any case: where the provider brings none, an estimate on the high side, marked as one.
    fn quote(&self, parcel: Parcel) -> Result<Served<Tariff>, GuardError<NoAnswer>> {
        let estimate = Tariff(600 + parcel.grams);
        // Asking for a tariff twice changes nothing, so the failure may be retried. A payment may not: see `send_mail`.
        self.guard.transient(|_: &NoAnswer| true).fallback(estimate).serve_blocking(|_| self.provider.tariff(parcel))
    }

    /// The breaker's state, and the failures in a row: those seen so far, or those that opened it.
    fn state(&self) -> (&'static str, u32) {
        let breaker = self.guard.snapshot().breaker;
        (breaker.state.name(), breaker.opened_with.map_or(breaker.streak, |opened| opened.streak))
    }
}

/// The whole program.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let clock = fake_clock().seed(7);
    let breaker = BreakerConfig { failures: 3, cool_down: Duration::from_secs(30), ..BreakerConfig::default() };
    let guard = Guard::http("provider.tariffs").breaker(breaker).build()?;
    let tariffs = Tariffs { provider: Provider::default(), guard };
    let parcel = Parcel { grams: 750 };

    // Five calls to a provider that fails each time.
    for number in 1..=5 {
        match tariffs.ask(parcel) {
            Ok(tariff) => writeln!(out, "call {number}: {tariff}")?,
            Err(GuardError::Operation { error, .. }) => {
                let (state, failures) = tariffs.state();
                writeln!(out, "call {number}: left, failed: {error} (state {state}, failures {failures})")?;
            }
            Err(refused) => writeln!(out, "call {number}: refused BEFORE it left: {refused}")?,
        }
    }
    writeln!(out, "calls that really left: {}", tariffs.provider.reached.load(Ordering::Relaxed))?;

    // A page is served meanwhile. What stood in for something else is noted on the way, wherever it happened, and the edge
    // of the service asks for it in the end.
    let (quoted, missing) = degraded::collect_blocking(|| tariffs.quote(parcel));
    let quoted = quoted?;
    let mark = if quoted.is_degraded() { " (estimated)" } else { "" };
    writeln!(out, "the page shows: {}{mark}", quoted.value())?;
    for degraded in missing {
        let wait = degraded.retry_after().unwrap_or_default().as_secs();
        writeln!(out, "the page says: without {degraded}, again in {wait} s")?;
    }

    // After the cool-down one call goes out as a probe. This one fails, and the circuit is open for another round.
    clock.advance(Duration::from_secs(31));
    let failed = tariffs.ask(parcel).is_err();
    writeln!(out, "31 s later a probe goes: failed {failed}, state {}", tariffs.state().0)?;

    // The next one is answered.
    clock.advance(Duration::from_secs(31));
    tariffs.provider.is_up.store(true, Ordering::Relaxed);
    let tariff = tariffs.ask(parcel)?;
    writeln!(out, "31 s later a probe goes: {tariff}")?;
    writeln!(out, "state after the probe that was answered: {}", tariffs.state().0)?;
    Ok(())
}
