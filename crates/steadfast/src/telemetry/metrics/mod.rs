//! Metrics through the facade of the crate [`metrics`](https://docs.rs/metrics), which any recorder can be behind: the
//! endpoint of `steadfast-axum` (feature `prometheus`), OpenTelemetry (`OpenTelemetry`, with the feature `otel`), or an
//! exporter of one's own.
//!
//! Counters and histograms are written while calls run. Their handles are asked for once, when a client or guard is built,
//! so that a call looks nothing up and allocates nothing. Gauges are read off the snapshots when [`refresh`] is called:
//! once for each scrape, or every few seconds where metrics are pushed.
//!
//! Install the recorder before clients are built, with [`install`] or in its own way. Whatever was built before it counts
//! from the next [`refresh`] on ([`install`] does one), and nothing of the time before. A recorder is asked once: one that drops time series that were idle for a while forgets
//! those of a handle, too, so leave them out of that.
//!
//! The label `upstream` is the name of a client or a guard; several of one name count as one. The guards of a
//! [`Guards`](crate::Guards) count as one whatever their keys, as those come from outside. At most [`MOST_NAMES`] names are
//! told apart. [`retry`](fn@crate::retry) and [`timeout`](fn@crate::timeout), which are built for each call, are not counted.
//!
//! ```
//! use steadfast::metrics::{Kind, TABLE};
//!
//! // A recorder is installed here; then the service's clients are built, and calls are made.
//! for metric in TABLE.iter().filter(|metric| metric.kind == Kind::Counter) {
//!     println!("{} {}", metric.prometheus_name(), metric.help);
//! }
//! // For each scrape:
//! steadfast::metrics::refresh();
//! ```

mod gauges;
mod handles;
mod names;
#[cfg(feature = "otel")]
mod otel;
mod registry;

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Weak};

pub use names::{Kind, Label, Metric, SECONDS, TABLE};
#[cfg(feature = "otel")]
pub use otel::OpenTelemetry;
pub use registry::{MOST_NAMES, OTHER};

use gauges::Gauges;
pub(crate) use handles::{Handles, Meter};
use metrics::Recorder;
pub(crate) use registry::Observed;
use registry::{REGISTRY, lock};

/// A meter for one upstream.
pub(crate) fn meter(name: &Arc<str>) -> Arc<Meter> {
    REGISTRY.meter(name)
}

/// The meter for all that are to count as one.
pub(crate) fn shared_meter(name: &Arc<str>) -> Arc<Meter> {
    REGISTRY.shared_meter(name)
}

/// From now on, for as long as it lives, it has gauges.
pub(crate) fn observe<T: Observed + 'static>(observed: &Arc<T>) {
    let observed: Weak<T> = Arc::downgrade(observed);
    REGISTRY.observe(observed);
}

/// Makes this the recorder of the process: from here on whatever is counted through the facade goes to it. Clients and
/// guards that were built before count from now on.
///
/// # Errors
/// The process has a recorder already; it can have no second one.
pub fn install(recorder: impl Recorder + Sync + 'static) -> Result<(), AlreadyInstalled> {
    metrics::set_global_recorder(recorder).map_err(|_| AlreadyInstalled(()))?;
    refresh();
    Ok(())
}

/// The process has a recorder for its metrics already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyInstalled(());

impl fmt::Display for AlreadyInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this process has a recorder for its metrics already, and can have no second one")
    }
}

impl StdError for AlreadyInstalled {}

/// Sets every gauge to what is the case now, at the recorder that is installed; and has those clients and guards counted
/// that were built before it was.
///
/// Takes each upstream's lock once, for as long as a snapshot takes: a microsecond or so. Without a recorder nothing
/// happens. One that is a type without fields is taken for none: put it into a `Box`.
pub fn refresh() {
    metrics::with_recorder(|recorder| {
        if !handles::is_one(recorder) {
            return;
        }
        handles::describe(recorder);
        let mut now: BTreeMap<Arc<str>, Gauges> =
            lock(&REGISTRY.shown).iter().map(|(name, gauges)| (Arc::clone(name), gauges.of_none())).collect();
        for observed in REGISTRY.observed() {
            let Some(observed) = observed.upgrade() else { continue };
            let Some(meter) = observed.meter() else { continue };
            meter.listen_to(recorder);
            now.entry(Arc::clone(meter.name())).or_default().add(&*observed);
        }
        for (name, gauges) in &now {
            gauges.show(recorder, name);
        }
        // Added to and not replaced: another thread may have shown more in the meantime.
        lock(&REGISTRY.shown).extend(now);
    });
}
