//! The circuit breaker alone.

use std::fmt;
use std::time::Duration;

use steadfast_policy::breaker::{BreakerConfig, BreakerSnapshot, State};

use super::{nothing_but, without_deadline};
use crate::clock::Clock;
use crate::config::{Origin, Place, Problem, Problems};
use crate::event::Event;
use crate::guard::{Classified, ErrorClass, Guard, GuardBuilder, GuardCall, GuardError, Transient};

/// Stops calling a dependency that is down, and finds out with one call when it is back (section 4). Built once for each
/// dependency; clones share the state.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use steadfast::CircuitBreaker;
/// use steadfast::policy::breaker::State;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tariffs = CircuitBreaker::builder("tariffs").failures(3).cool_down(Duration::from_secs(30)).build()?;
/// for count in 1..=3 {
///     let down = || async { Err::<(), _>(io::Error::other("no answer")) };
///     tariffs.call(down).await.unwrap_err();
///     assert_eq!(tariffs.failures(), count);
/// }
/// assert_eq!(tariffs.state(), State::Open);
/// let refused = tariffs.call(|| async { Ok::<_, io::Error>(()) }).await.unwrap_err();
/// assert_eq!(refused.to_string(), "circuit breaker 'tariffs' is open");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CircuitBreaker(Guard);

impl CircuitBreaker {
    /// A closed breaker with the defaults of the configuration: from a fresh start five failures in a row open it, for 15 s.
    pub fn new(name: &str) -> Self {
        Self(Self::builder(name).assemble())
    }

    /// Sets a breaker up. `name` is what errors and events call it.
    pub fn builder(name: &str) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder { guard: nothing_but(name), breaker: BreakerConfig::default() }
    }

    /// Runs the operation, once, if the breaker lets it through; every error is a failure (11.2).
    ///
    /// Cancel safe: dropping the future drops the operation, is no verdict, and frees a probe's place.
    ///
    /// # Errors
    /// The operation's own error as it is, that of the call which opens the breaker too; or
    /// [`CircuitOpen`](crate::ErrorKind::CircuitOpen), with the operation not run.
    pub async fn call<T, E, F, Fut>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        self.0.call(operation).await
    }

    /// A call in which only errors that `transient` says yes to are failures; another one is no verdict. None is retried
    /// here.
    pub fn transient<E, P: Fn(&E) -> bool>(&self, transient: P) -> GuardCall<'_, Transient<P>> {
        self.0.transient(transient)
    }

    /// The same in full: what each error means.
    pub fn classify<E, C: Fn(&E) -> ErrorClass>(&self, classify: C) -> GuardCall<'_, Classified<C>> {
        self.0.classify(classify)
    }

    /// Whether calls go through. `Open` until a call takes the probe, even if the cool-down is over.
    pub fn state(&self) -> State {
        self.snapshot().state
    }

    /// When a refused call should come back; `None` if it would not be refused, or if the breaker is forced open.
    pub fn retry_after(&self) -> Option<Duration> {
        self.snapshot().retry_after
    }

    /// Failures in a row: while it is closed those so far, else those that opened it.
    pub fn failures(&self) -> u32 {
        let snapshot = self.snapshot();
        snapshot.opened_with.map_or(snapshot.streak, |opened| opened.streak)
    }

    /// Everything that it counts. Taking it changes nothing.
    pub fn snapshot(&self) -> BreakerSnapshot {
        self.0.snapshot().breaker
    }

    /// Opens it until [`reset`](Self::reset): for an operator who knows better.
    pub fn force_open(&self) {
        self.0.force_open();
    }

    /// Closes it, and lets it ignore every verdict, until [`reset`](Self::reset).
    pub fn force_close(&self) {
        self.0.force_close();
    }

    /// Closed, and as if it had seen nothing.
    pub fn reset(&self) {
        self.0.reset_breaker();
    }

    /// The guard that it is: for a call with a timeout or a fallback of its own, and for
    /// `layer::GuardLayer`.
    pub fn as_guard(&self) -> &Guard {
        &self.0
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker").field("name", &self.0.name()).field("state", &self.state()).finish()
    }
}

/// Sets a [`CircuitBreaker`] up. What is not said keeps its default.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct CircuitBreakerBuilder {
    guard: GuardBuilder,
    breaker: BreakerConfig,
}

impl CircuitBreakerBuilder {
    /// The shortest streak of failures that opens it, and exactly the one that does so from a fresh start. 5; at least 1.
    pub fn failures(mut self, failures: u32) -> Self {
        self.breaker.failures = failures;
        self
    }

    /// How long it stays open before one call may try. 15 s; above zero and at most a day.
    pub fn cool_down(mut self, cool_down: Duration) -> Self {
        self.breaker.cool_down = cool_down;
        self
    }

    /// How long a call that tries may take before its place goes to the next; a success that comes later does not close
    /// the breaker. 30 s; above zero, and longer than the longest call, if there is no timeout inside.
    pub fn probe_lease(mut self, lease: Duration) -> Self {
        self.breaker.probe_lease = lease;
        self
    }

    /// All of it at once.
    pub fn config(mut self, config: BreakerConfig) -> Self {
        self.breaker = config;
        self
    }

    /// Another clock than the system's.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.guard = self.guard.clock(clock);
        self
    }

    /// Tells of every transition, call and refusal; as [`ClientBuilder::on_event`](crate::ClientBuilder::on_event).
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.guard = self.guard.on_event(hook);
        self
    }

    /// The breaker.
    ///
    /// # Errors
    /// Every value outside the bounds that the key of the same name has in a configuration, all at once.
    pub fn build(self) -> Result<CircuitBreaker, Problems> {
        let lease = self.breaker.probe_lease;
        let guard = self.guard.breaker(self.breaker);
        if lease.is_zero() {
            // Every probe would come too late, and the breaker never close again.
            let problem = Problem::new(Place::At(Origin::Builder), "probe_lease", "expected a time above zero");
            return Err(guard.problems().into_iter().chain([problem]).collect());
        }
        without_deadline(guard, |setup| setup.breaker.probe_lease = lease).map(CircuitBreaker)
    }

    fn assemble(self) -> Guard {
        let lease = self.breaker.probe_lease;
        let guard = self.guard.breaker(self.breaker).total_timeout(Duration::MAX);
        guard.assemble_with(|setup| setup.breaker.probe_lease = lease)
    }
}
