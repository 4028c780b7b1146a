//! New limits for a line in use.

use super::places::Rate;
use super::{Line, LineConfig};
use crate::Time;

impl Line {
    /// Applies other limits from `now` on, and keeps who is in flight, who waits, and what has started.
    ///
    /// With fewer slots than attempts in flight nobody is stopped, and nobody admitted until enough are over. Waiters
    /// keep their positions and the limits that their waits began with; a wait for a slot that begins now has the new one.
    /// The new rate limit counts the starts that the old one still counted: a longer window begins with what is known.
    /// Everybody who waits is listed to ask again.
    pub fn reconfigure(&mut self, now: Time, config: LineConfig) {
        self.arrive(now);
        self.settle();
        let old = std::mem::replace(&mut self.rate, Rate::new(config.rate));
        self.slot_wait = config.slot_wait;
        self.slots.set_limit(config.slots);
        for index in self.keys.indices() {
            self.keys[index].places.forget(self.now, &old);
            self.reseat(index);
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
