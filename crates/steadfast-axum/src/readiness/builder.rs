//! Setting readiness up.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use steadfast::{Clients, Clock, Guard, ServiceClient};

use super::{Check, Inner, Readiness};

/// The longest that the checks may take together.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The checks that are the layer's own.
const RESERVED: [&str; 2] = ["http", "guards"];

/// Sets a [`Readiness`] up. Without a word it lists nothing and is always ready.
#[must_use = "a builder does nothing until it is built"]
pub struct ReadinessBuilder(Inner);

impl ReadinessBuilder {
    pub(super) fn new() -> Self {
        Self(Inner {
            clients: Vec::new(),
            single: Vec::new(),
            guards: Vec::new(),
            checks: Vec::new(),
            timeout: Duration::from_secs(2),
            clock: Clock::system(),
        })
    }

    /// Lists the breakers of these clients, as they are at the time (a reload can bring some and take some), in the check
    /// `http`.
    pub fn clients(mut self, clients: &Clients) -> Self {
        self.0.clients.push(clients.clone());
        self
    }

    /// Lists the breaker of this client in the check `http`.
    pub fn client(mut self, client: &ServiceClient) -> Self {
        self.0.single.push(client.clone());
        self
    }

    /// Lists the breaker of this guard in the check `guards`.
    pub fn guard(mut self, guard: &Guard) -> Self {
        self.0.guards.push(guard.clone());
        self
    }

    /// A check of the service's own: one that it cannot serve anything without. While it fails the service is
    /// `unavailable`. The error's text goes to the log, and not into the answer.
    pub fn check<F, Fut, E>(self, name: &str, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.add(name, true, check)
    }

    /// The same for something that the service can do without: while it fails the service is `degraded`.
    pub fn optional_check<F, Fut, E>(self, name: &str, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.add(name, false, check)
    }

    fn add<F, Fut, E>(mut self, name: &str, critical: bool, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let run = move || {
            let check = check();
            let told = async move { check.await.map_err(|error| error.to_string()) };
            Box::pin(told) as super::CheckFuture
        };
        self.0.checks.push(Check { name: name.to_owned(), critical, run: Box::new(run) });
        self
    }

    /// How long all checks may take together; those that have not ended by then fail. 2 s; above zero and at most a day.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.0.timeout = timeout;
        self
    }

    /// Another clock than the system's.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.0.clock = clock.into();
        self
    }

    /// The readiness.
    ///
    /// # Errors
    /// [`ReadinessError`]: two checks of one name, a name that is taken, a timeout outside its bounds.
    pub fn build(self) -> Result<Readiness, ReadinessError> {
        let Inner { checks, timeout, .. } = &self.0;
        for (index, check) in checks.iter().enumerate() {
            let name = check.name.as_str();
            if RESERVED.contains(&name) || checks[..index].iter().any(|other| other.name == name) {
                return Err(ReadinessError::NameTaken(check.name.clone()));
            }
        }
        if timeout.is_zero() || *timeout > DAY {
            return Err(ReadinessError::Timeout(*timeout));
        }
        Ok(Readiness(Arc::new(self.0)))
    }
}

impl fmt::Debug for ReadinessBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadinessBuilder").finish_non_exhaustive()
    }
}

/// Why a [`Readiness`] cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadinessError {
    /// Two checks have this name, or one has the name of a check that is always there.
    NameTaken(String),
    /// A timeout of zero, or of more than a day.
    Timeout(Duration),
}

impl fmt::Display for ReadinessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(name) => write!(
                f,
                "readiness check '{name}': the name is taken; expected one that no other check has, and neither `http` nor \
                 `guards`"
            ),
            Self::Timeout(timeout) => {
                write!(f, "readiness timeout {timeout:?}: expected a duration above zero and at most 24 h")
            }
        }
    }
}

impl std::error::Error for ReadinessError {}
