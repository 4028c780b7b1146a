//! The time series that there are: a few atomics each, shared with the handles that write them.
//!
//! Invariants: a family has one kind, that of its first use; what comes with another kind, or beyond the bound, gets a
//! handle that counts nothing. Registering takes the lock; writing does not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{HistogramFn, Key, Unit};

use super::text;

/// How many time series are kept; a histogram is one. Labels that somebody else makes up must not fill the memory.
pub const MOST_SERIES: usize = 100_000;

/// How many names can be described.
const MOST_FAMILIES: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// All time series of one name.
pub(super) struct Family {
    pub(super) kind: Kind,
    pub(super) unit: Option<Unit>,
    pub(super) help: String,
    pub(super) series: BTreeMap<Labels, Series>,
}

/// In the order of their names, which are taken and escaped as Prometheus wants them: what stands between the braces.
pub(super) type Labels = String;

#[derive(Clone)]
pub(super) enum Series {
    Counter(Arc<AtomicU64>),
    Gauge(Arc<AtomicU64>),
    Histogram(Arc<Buckets>),
}

#[derive(Default)]
pub(super) struct Registry {
    all: Mutex<All>,
    /// Whether the log has said that there is no room.
    full: AtomicBool,
    /// Whether it has said that a metric has two kinds.
    mixed: AtomicBool,
}

#[derive(Default)]
pub(super) struct All {
    /// By name without unit and `_total`.
    pub(super) families: BTreeMap<String, Family>,
    bounds: BTreeMap<String, Arc<[f64]>>,
    /// Of all families.
    series: usize,
}

impl Registry {
    pub(super) fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().series
    }

    pub(super) fn set_bounds(&self, name: &str, bounds: &[f64]) {
        let mut bounds: Vec<f64> = bounds.iter().copied().filter(|bound| bound.is_finite()).collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        self.lock().bounds.insert(text::base_name(Kind::Histogram, name), bounds.into());
    }

    pub(super) fn describe(&self, kind: Kind, name: &str, unit: Option<Unit>, help: &str) {
        let mut all = self.lock();
        if let Some(family) = all.family(kind, name)
            && family.help.is_empty()
        {
            (family.unit, family.help) = (unit, help.to_owned());
        }
    }

    pub(super) fn counter(&self, key: &Key) -> Option<Arc<AtomicU64>> {
        match self.series(Kind::Counter, key, |_| Series::Counter(Arc::default()))? {
            Series::Counter(counter) => Some(counter),
            Series::Gauge(_) | Series::Histogram(_) => None,
        }
    }

    pub(super) fn gauge(&self, key: &Key) -> Option<Arc<AtomicU64>> {
        match self.series(Kind::Gauge, key, |_| Series::Gauge(Arc::default()))? {
            Series::Gauge(gauge) => Some(gauge),
            Series::Counter(_) | Series::Histogram(_) => None,
        }
    }

    pub(super) fn histogram(&self, key: &Key) -> Option<Arc<Buckets>> {
        let make = |bounds: Arc<[f64]>| Series::Histogram(Arc::new(Buckets::new(bounds)));
        match self.series(Kind::Histogram, key, make)? {
            Series::Histogram(buckets) => Some(buckets),
            Series::Counter(_) | Series::Gauge(_) => None,
        }
    }

    fn series(&self, kind: Kind, key: &Key, make: impl FnOnce(Arc<[f64]>) -> Series) -> Option<Series> {
        let labels = text::labels(kind, key);
        let mut all = self.lock();
        let has_room = all.series < MOST_SERIES;
        let bounds = match kind {
            Kind::Histogram => all.bounds.get(&text::base_name(kind, key.name())).cloned(),
            Kind::Counter | Kind::Gauge => None,
        };
        let family = all.family(kind, key.name());
        let is_mixed = family.as_ref().is_some_and(|family| family.kind != kind);
        let family = family.filter(|family| family.kind == kind);
        let known = family.and_then(|family| match family.series.get(&labels) {
            Some(series) => Some((series.clone(), false)),
            None if !has_room => None,
            None => {
                let series = make(bounds.unwrap_or_else(|| steadfast::metrics::SECONDS.into()));
                family.series.insert(labels, series.clone());
                Some((series, true))
            }
        });
        if let Some((_, true)) = known {
            all.series += 1;
        }
        drop(all);
        let name = key.name();
        if known.is_none() && is_mixed && !self.mixed.swap(true, Ordering::Relaxed) {
            tracing::warn!(name, "a metric is not counted: there is one of another kind with its name");
        } else if known.is_none() && !is_mixed && !self.full.swap(true, Ordering::Relaxed) {
            tracing::warn!(name, "a metric is not counted: there are too many");
        }
        known.map(|(series, _)| series)
    }
}

impl All {
    fn family(&mut self, kind: Kind, name: &str) -> Option<&mut Family> {
        let name = text::base_name(kind, name);
        if !self.families.contains_key(&name) && self.families.len() >= MOST_FAMILIES {
            return None;
        }
        let new = || Family { kind, unit: None, help: String::new(), series: BTreeMap::new() };
        Some(self.families.entry(name).or_insert_with(new))
    }
}

/// A histogram: how many values lie up to each bound, and beyond the last.
pub(super) struct Buckets {
    bounds: Arc<[f64]>,
    /// One more than there are bounds; each value is counted in one.
    counts: Box<[AtomicU64]>,
    /// The bits of a float.
    sum: AtomicU64,
}

impl Buckets {
    fn new(bounds: Arc<[f64]>) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Each bound with the number of values up to it.
    pub(super) fn up_to(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(&self.counts).scan(0_u64, |sum, (bound, count)| {
            *sum = sum.saturating_add(count.load(Ordering::Relaxed));
            Some((bound, *sum))
        })
    }

    pub(super) fn sum(&self) -> f64 {
        f64::from_bits(self.sum.load(Ordering::Relaxed))
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        // What is no number is in no bucket, and would spoil the sum for ever.
        if value.is_nan() {
            return;
        }
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let add = |sum| Some((f64::from_bits(sum) + value).to_bits());
        // The closure never says no.
        let _ = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}
