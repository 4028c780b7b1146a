//! New limits for a line in use.

use super::places::Rate;
use super::{Line, LineConfig};
use crate::Time;

impl Line {
    /// Applies other limits from `now` on, and keeps who is in flight, who waits, and what has started. If nothing
    /// differs in what it means (one start a second is the same in both styles), nothing happens.
    ///
    /// With fewer slots than attempts in flight nobody is stopped, and nobody admitted until enough are over. Waiters
    /// keep their positions and the limits that their waits began with; a wait for a slot that begins now has the new one.
    /// The new rate limit counts the starts that the old one still counted: a longer window begins with what is known.
    /// Who came while there was no rate limit waits, and is counted, in the line of `""`, since nothing was asked of its
    /// key. Who can start now is granted its slot; everybody who waits is listed to ask again.
    pub fn reconfigure(&mut self, now: Time, config: LineConfig) {
        let rate = Rate::new(config.rate);
        if (config.slots, config.slot_wait, rate) == (self.slots.limit(), self.slot_wait, self.rate) {
            return;
        }
        self.arrive(now);
        self.settle();
        let old = std::mem::replace(&mut self.rate, rate);
        self.slot_wait = config.slot_wait;
        self.slots.set_limit(config.slots);
        for index in self.keys.indices() {
            self.keys[index].places.forget(self.now, &old);
            self.reseat(index);
        }
        if self.rate.is_unlimited() {
            // Without a limit every start is forgotten. Should there be one again in this very instant, what was started
            // before must not take back one of the starts that it counts.
            self.slots.forget_starts();
        }
        self.settle();
        self.waiters.woken.extend(self.waiters.all.keys());
    }

    /// Finds out anew which waiters of the key have a place.
    fn reseat(&mut self, index: u32) {
        let key = &mut self.keys[index];
        while let Some(last) = key.eligible.checked_sub(1) {
            if key.places.opens(last, &self.rate).is_some_and(|at| at <= self.now) {
                break;
            }
            key.eligible = last;
            if let Some(&ticket) = key.queue.get(last) {
                self.waiters.needs_place_again(ticket);
            }
        }
        self.ripen(index, self.now);
    }
}
