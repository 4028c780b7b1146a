//! A recorder that keeps everything, for tests to ask.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use steadfast::metrics::Kind;

/// Kind, unit, and words.
type Description = (Kind, Option<Unit>, SharedString);

#[derive(Default)]
pub(crate) struct Kept {
    counters: Mutex<HashMap<Key, Arc<AtomicU64>>>,
    gauges: Mutex<HashMap<Key, Arc<AtomicU64>>>,
    histograms: Mutex<HashMap<Key, Arc<Values>>>,
    described: Mutex<HashMap<KeyName, Description>>,
}

#[derive(Default)]
struct Values(Mutex<Vec<f64>>);

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
    let labels = labels.iter().map(|(label, value)| metrics::Label::new(*label, (*value).to_owned()));
    Key::from_parts(name, labels.collect::<Vec<_>>())
}

impl Kept {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn count(&self, name: &'static str, labels: &[(&'static str, &str)]) -> u64 {
        let counters = self.counters.lock().unwrap();
        counters.get(&key(name, labels)).expect("it is registered").load(Ordering::SeqCst)
    }

    /// Over all time series of an upstream.
    pub(crate) fn sum(&self, name: &str, upstream: &str) -> u64 {
        let counters = self.counters.lock().unwrap();
        let of = |key: &Key| key.name() == name && key.labels().any(|label| label.value() == upstream);
        counters.iter().filter(|(key, _)| of(key)).map(|(_, count)| count.load(Ordering::SeqCst)).sum()
    }

    pub(crate) fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)]) -> f64 {
        let gauges = self.gauges.lock().unwrap();
        f64::from_bits(gauges.get(&key(name, labels)).expect("it is registered").load(Ordering::SeqCst))
    }

    pub(crate) fn values(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Vec<f64> {
        let histograms = self.histograms.lock().unwrap();
        histograms.get(&key(name, labels)).expect("it is registered").0.lock().unwrap().clone()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.counters.lock().unwrap().keys().cloned().collect();
        keys.extend(self.gauges.lock().unwrap().keys().cloned());
        keys.extend(self.histograms.lock().unwrap().keys().cloned());
        keys
    }

    pub(crate) fn description(&self, name: &'static str) -> Option<Description> {
        self.described.lock().unwrap().get(&KeyName::from(name)).cloned()
    }

    pub(crate) fn is_histogram(&self, key: &Key) -> bool {
        self.histograms.lock().unwrap().contains_key(key)
    }

    fn describe(&self, key: KeyName, kind: Kind, unit: Option<Unit>, help: SharedString) {
        self.described.lock().unwrap().insert(key, (kind, unit, help));
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(key, Kind::Counter, unit, help);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(key, Kind::Gauge, unit, help);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(key, Kind::Histogram, unit, help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::clone(self.counters.lock().unwrap().entry(key.clone()).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::clone(self.gauges.lock().unwrap().entry(key.clone()).or_default()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::clone(self.histograms.lock().unwrap().entry(key.clone()).or_default()))
    }
}
