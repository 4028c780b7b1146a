//! New settings for a breaker in use.
//!
//! What was counted was counted by the old rules: a streak that did not open at ten failures is no streak of five, and
//! counts in buckets of one length cannot be put into buckets of another. So other settings start with nothing, as a
//! reset does. They are no reason to lift what an operator forced.

use super::config::Rules;
use super::cool_down::CoolDown;
use super::window::Window;
use super::{Breaker, BreakerConfig, Phase, Why};
use crate::Time;

impl Breaker {
    /// Applies other settings from `now` on: [`start_anew`](Self::start_anew) under them.
    ///
    /// If none differs that decides when to open or for how long, nothing happens, and a setting that is taken as the
    /// one before (0 failures for 1) does not differ. `probe_lease` follows the calls' timeout: the next probe has the
    /// new one, and nothing starts anew for it.
    pub fn reconfigure(&mut self, now: Time, config: BreakerConfig) {
        self.probe_lease = config.probe_lease;
        let (rules, cool_down) = (Rules::new(&config), CoolDown::new(&config));
        if rules == self.rules && cool_down.has_settings_of(&self.cool_down) {
            return;
        }
        self.window = Window::new(rules.bucket_nanos());
        (self.rules, self.cool_down) = (rules, cool_down);
        self.start_anew(now);
    }

    /// Closed, with nothing counted, as after [`reset`](Self::reset): for settings that the breaker does not see, such
    /// as which answers are failures.
    ///
    /// Permits taken before are void, that of a probe too. A breaker that an operator forced stays so until it is reset,
    /// and keeps the counts that it was opened with. There is an event, [`Why::Reconfigured`], if the state changes.
    pub fn start_anew(&mut self, now: Time) {
        let now = self.tick(now);
        self.cool_down.reset();
        let phase = match self.phase {
            forced @ (Phase::ForcedOpen | Phase::ForcedClosed) => forced,
            Phase::Closed | Phase::Open { .. } | Phase::HalfOpen { .. } => {
                self.opened_with = None;
                Phase::Closed
            }
        };
        self.enter(now, phase, Why::Reconfigured);
    }
}
