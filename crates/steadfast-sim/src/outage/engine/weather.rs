//! Which triggers are there right now, for which replica.

use steadfast::policy::Time;

use super::Works;
use super::agenda::{Agenda, What};
use crate::outage::trigger::{Effect, Of, Trigger};
use crate::outage::workload::ROUTES;

/// The triggers of one upstream.
pub(super) struct Weather {
    triggers: Vec<Trigger>,
    /// By replica: the numbers of the triggers that are there, in the order of the list.
    active: Vec<Vec<usize>>,
}

impl Weather {
    pub(super) fn new(triggers: Vec<Trigger>, replicas: usize, agenda: &mut Agenda) -> Self {
        let this = Self { triggers, active: vec![Vec::new(); replicas] };
        for trigger in 0..this.triggers.len() {
            for replica in 0..replicas {
                this.announce(trigger, replica, 0, agenda);
            }
        }
        this
    }

    /// Puts the nth time of a trigger on the agenda.
    fn announce(&self, trigger: usize, replica: usize, n: u32, agenda: &mut Agenda) {
        let found = self.triggers.get(trigger).filter(|found| found.falls_on(replica));
        let Some((from, to)) = found.and_then(|found| found.window(replica, n)) else { return };
        agenda.put(from, |_| What::Edge { trigger, replica, n, begins: true });
        if to < Time::MAX {
            agenda.put(to, |_| What::Edge { trigger, replica, n, begins: false });
        }
    }

    /// The first of the effects there are that falls on a request for this route.
    pub(super) fn meets(&self, replica: usize, route: u16, random: &mut fastrand::Rng) -> Option<Effect> {
        let active = self.active.get(replica)?;
        let mut there = active.iter().filter_map(|trigger| self.triggers.get(*trigger));
        let hit = there.find(|trigger| {
            trigger.effect.meets_requests()
                && match trigger.of {
                    Of::All => true,
                    Of::Attempts(share) => random.f64() < share,
                    Of::Calls(share) => f64::from(route) + 0.5 < share * f64::from(ROUTES),
                }
        });
        hit.map(|trigger| trigger.effect)
    }

    /// The speed of this replica, by what slows it.
    pub(super) fn speed(&self, replica: usize) -> f64 {
        let active = self.active.get(replica).into_iter().flatten();
        let effects = active.filter_map(|trigger| self.triggers.get(*trigger)).map(|trigger| trigger.effect);
        effects.map(|effect| if let Effect::Slow { speed } = effect { speed } else { 1.0 }).product()
    }
}

impl Works {
    /// A trigger comes or goes.
    pub(super) fn edge(&mut self, trigger: usize, replica: usize, n: u32, begins: bool) {
        let Some(active) = self.weather.active.get_mut(replica) else { return };
        if begins {
            let place = active.partition_point(|known| *known < trigger);
            active.insert(place, trigger);
        } else {
            active.retain(|known| *known != trigger);
        }
        // The next time is known when this one is over, so that the agenda stays short; one without an end has no next.
        if !begins {
            self.weather.announce(trigger, replica, n.saturating_add(1), &mut self.agenda);
        }
        let Some(effect) = self.weather.triggers.get(trigger).map(|trigger| trigger.effect) else { return };
        match effect {
            Effect::Slow { .. } => self.set_speed(replica),
            Effect::Reset if begins => self.reset(replica),
            Effect::Restart { graceful } if begins => self.go_down(replica, graceful),
            Effect::Restart { .. } => self.come_up(replica),
            _ => {}
        }
    }
}
