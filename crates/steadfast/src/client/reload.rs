//! Other settings for a client in use, in two halves: what can fail, and what cannot (contract 9.5).
//!
//! What is in force is one value. Preparing makes another, with everything that can go wrong: certificates that cannot be
//! read, a proxy that cannot be used. Committing swaps the two and tells the policies; calls under way keep the value
//! that they began with. Who reloads many clients prepares all of them first, so that a mistake in one changes none.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::builder::{breaker_config, budget_config, line_config};
use super::{BuildError, Handle, ServiceClient, Shared};
use crate::config::Settings;
use crate::policies::Untold;
use crate::transport::{RenewedTls, Transport};
use crate::upstream::Upstream;

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// The upstreams whose settings, or certificates, are others now.
    pub changed: Vec<String>,
    /// Those that are new.
    pub added: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
}

impl Reloaded {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }

    pub(super) fn log(&self) {
        if !self.is_empty() {
            let Self { changed, added, removed } = self;
            tracing::info!(?changed, ?added, ?removed, "other settings are in force");
        }
    }
}

/// Other settings that are in force. Waiters and event hooks, which may want to reload themselves, are still to be told of
/// it, once no lock of ours is held.
#[must_use]
pub(super) struct Committed {
    upstream: Arc<Upstream>,
    changed: bool,
    untold: Option<Untold>,
}

/// Other settings, ready to be put in force. Dropping it changes nothing.
pub(super) struct Prepared<'a> {
    handle: &'a Handle,
    /// `None`: the same settings.
    live: Option<Shared>,
    /// Certificates that the transport is to go on with.
    tls: Option<RenewedTls>,
    /// One reload at a time.
    _reloading: MutexGuard<'a, ()>,
}

impl ServiceClient {
    /// Puts other settings in force, for the calls that begin from here on (9.5). Calls under way end as they began.
    ///
    /// Breaker, budget, slots and rate limit keep their state; a changed `breaker_*` key resets the breaker. Connections are
    /// kept unless a key that they depend on differs, or a certificate file holds something else. `true`: something
    /// differs. Settings that cannot be put in force change nothing. It reads certificate files, and waits for them.
    ///
    /// # Errors
    /// [`BuildError`]: the name is another, certificates cannot be loaded, or the proxy cannot be used.
    pub fn reload(&self, settings: Settings) -> Result<bool, BuildError> {
        let changed = self.prepare(settings)?.commit().tell();
        if changed {
            Reloaded { changed: vec![self.name().to_owned()], ..Reloaded::default() }.log();
        }
        Ok(changed)
    }

    /// The first half of [`reload`](Self::reload).
    pub(super) fn prepare(&self, settings: Settings) -> Result<Prepared<'_>, BuildError> {
        let handle = &*self.0;
        // Held over nothing that can panic.
        let reloading = handle.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = handle.live.load_full();
        if *settings.name != *before.settings.name {
            return Err(BuildError::Name { upstream: before.settings.name.clone(), found: settings.name });
        }
        let name = settings.name.clone();
        let live = match *before.settings == settings {
            true => None,
            false => Some(handle.parts.make(&handle.upstream, settings, Some(&before))?),
        };
        // A new pool has read the files just now.
        let transport = live.as_ref().map_or(&before.transport, |live| &live.transport);
        let tls = match (transport, &before.transport) {
            (Transport::Pool(pool), Transport::Pool(old)) if pool.is(old) => {
                Some(pool.renew_tls().map_err(|source| BuildError::Tls { upstream: name, source })?)
            }
            _ => None,
        };
        Ok(Prepared { handle, live, tls, _reloading: reloading })
    }
}

impl Prepared<'_> {
    /// Puts the settings in force, and lets go of the lock.
    pub(super) fn commit(self) -> Committed {
        let Handle { upstream, live, .. } = self.handle;
        let mut committed = Committed { upstream: Arc::clone(upstream), changed: false, untold: None };
        if let Some(renewed) = self.tls.filter(RenewedTls::is_some)
            && let Transport::Pool(pool) = &live.load().transport
        {
            pool.adopt_tls(renewed);
            committed.changed = true;
        }
        if let Some(shared) = self.live {
            let (settings, before) = (&shared.settings, live.load_full());
            let now = upstream.clock.now();
            upstream.allow_calls_of(settings.total_timeout);
            let ((), untold) = upstream.decide(|policies| {
                if judges_otherwise(&before.settings, settings) {
                    policies.breaker.start_anew(now);
                }
                policies.breaker.reconfigure(now, breaker_config(settings));
                policies.budget.reconfigure(now, budget_config(settings));
                policies.reconfigure_line(now, line_config(settings));
            });
            live.store(Arc::new(shared));
            (committed.changed, committed.untold) = (true, Some(untold));
        }
        committed
    }
}

impl Committed {
    /// Tells of it; `false`: nothing differs.
    pub(super) fn tell(self) -> bool {
        if let Some(untold) = self.untold {
            self.upstream.tell(untold);
        }
        self.changed
    }
}

/// Whether other attempts count as failures, which the breaker itself does not see: it has counted by the old rules.
fn judges_otherwise(before: &Settings, now: &Settings) -> bool {
    (before.breaker_statuses, before.breaker_timeout_evidence) != (now.breaker_statuses, now.breaker_timeout_evidence)
}
