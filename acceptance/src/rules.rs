//! The rules that are held against each other: settings of the shipped client, and one rival that it does not contain.

use std::fmt;
use std::time::Duration;

use steadfast::config::{Problems, Settings, SettingsBuilder};
use steadfast_sim::outage::Policy;

use crate::rival;
use crate::scenario::Scenario;

/// How the clients of a run behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// No retry and no circuit breaker: what an outage is measured against.
    None,
    /// The retry budget's ceiling alone (`retry_budget_gate = false`), breaker off. For comparison: it has to fail.
    CeilingAlone,
    /// The retry budget as shipped, breaker off.
    Budget,
    /// The same with `retry_budget_ratio = 0.5`.
    BudgetHalf,
    /// Everything as shipped.
    Shipped,
    /// The retry budget as shipped, and a circuit breaker that opens at a plain count of five failures in a row. For
    /// comparison: it has to fail.
    PlainStreak,
}

impl Rule {
    /// Its name in tables. Of those with a budget alone the breaker is off.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::CeilingAlone => "ceiling alone",
            Self::Budget => "budget alone",
            Self::BudgetHalf => "budget alone, ratio .5",
            Self::Shipped => "as shipped",
            Self::PlainStreak => "budget and plain streak",
        }
    }

    /// The clients of a run of this scenario.
    ///
    /// # Errors
    /// The settings do not fit, which would be a fault of this crate.
    pub fn policy(self, scenario: Scenario) -> Result<Policy, Problems> {
        let settings = self.settings(scenario)?;
        let policy = match self {
            Self::None => return Ok(Policy::none(&settings)),
            Self::Shipped => return Ok(Policy::new(self.name(), settings)),
            Self::PlainStreak => Policy::new(self.name(), settings).built_by(rival::client),
            Self::CeilingAlone | Self::Budget | Self::BudgetHalf => Policy::new(self.name(), settings),
        };
        Ok(policy.without_breaker())
    }

    /// Everything that is not said here has its default.
    fn settings(self, scenario: Scenario) -> Result<Settings, Problems> {
        let (timeout, slots) = match scenario {
            Scenario::Slots(slots) => (Duration::from_secs(10), u32::from(slots)),
            _ => (Duration::from_millis(500), 1_000_000),
        };
        let settings = SettingsBuilder::new("http://upstream").attempt_timeout(timeout).max_concurrent(slots);
        match self {
            Self::CeilingAlone => settings.retry_budget_gate(false),
            Self::BudgetHalf => settings.retry_budget_ratio(0.5),
            _ => settings,
        }
        .build()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
