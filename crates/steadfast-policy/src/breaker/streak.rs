//! The streak rule: at least so many failures in a row, and a streak that neither noise nor a blip explains.
//!
//! A plain count misleads a busy client: where one attempt in five fails by chance, five in a row come every few
//! seconds, and each time every call is refused for a whole cool-down. Two questions tell an outage from that.
//!
//! 1. Noise: would chance have made this streak too? The longest streak of the last window that a success ended says
//!    what chance makes here; an outage must be three times as long. No independence is assumed, so that a failing
//!    call's own retries, or a route that always fails, teach the breaker as well. The bar never lies above three times
//!    `failures`, so that an upstream which fails nine times in ten still opens.
//! 2. Blip: is more gone than a moment? The pressure (failures, less three for each success) must reach a quarter
//!    second of the window's good traffic. A busy client sees five failures in five milliseconds when a replica drops
//!    its connections, and that is no reason to refuse every call for a cool-down. Timeouts are slow evidence, and few
//!    of them can be in flight: twice `failures` of them in the streak are enough.
//!
//! With no success in the window both questions fall away, and the streak opens at exactly `failures`.

use std::time::Duration;

use super::config::Rules;

/// How many times the longest recovered streak an outage is.
const NOISE: u64 = 3;
/// The bar set by noise is never above so many times `failures`.
const NOISE_CAP: u64 = 3;
/// So many times `failures` timeouts are an outage, however busy the client is.
const TIMEOUTS: u64 = 2;
/// What one success takes off the pressure.
const DRAIN: u64 = 3;
/// A failure that lasts less of the window's good traffic is a blip.
const BLIP: Duration = Duration::from_millis(250);

/// The failures since the last success, and what led up to them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Streak {
    length: u32,
    timeouts: u32,
    pressure: u64,
}

impl Streak {
    /// Failures in a row.
    #[inline]
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    pub(super) fn failed(&mut self, timeout: bool) {
        self.length = self.length.saturating_add(1);
        self.pressure = self.pressure.saturating_add(1);
        if timeout {
            self.timeouts = self.timeouts.saturating_add(1);
        }
    }

    #[inline]
    pub(super) fn succeeded(&mut self, n: u64) {
        self.length = 0;
        self.timeouts = 0;
        self.pressure = self.pressure.saturating_sub(n.saturating_mul(DRAIN));
    }

    /// Whether the streak is long enough to be asked about.
    pub(super) fn is_due(&self, rules: &Rules) -> bool {
        u64::from(self.length) >= rules.failures
    }

    /// Whether a streak that is due is an outage. `longest_recovered`: the longest streak in the window that a success
    /// ended. `successes`: how many there were in the window.
    pub(super) fn is_outage(&self, rules: &Rules, longest_recovered: u32, successes: u64) -> bool {
        let noise = (NOISE * u64::from(longest_recovered)).min(NOISE_CAP.saturating_mul(rules.failures));
        if u64::from(self.length) < noise {
            return false;
        }
        if u64::from(self.timeouts) >= TIMEOUTS.saturating_mul(rules.failures) {
            return true;
        }
        // pressure >= a quarter second of the successes per window, without the division.
        let pressure = u128::from(self.pressure) * u128::from(rules.window_nanos());
        pressure >= u128::from(successes).saturating_mul(BLIP.as_nanos())
    }
}
