//! The same metrics through OpenTelemetry: a recorder of the facade that hands everything to a meter.
//!
//! One table, one way through the code, and no second set of handles in each client. What it costs beside: OpenTelemetry
//! has no handle for one set of attributes, so each count looks its attributes up in the SDK.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics as otel;

use super::AlreadyInstalled;
use super::names::SECONDS;
use super::registry::lock;

/// A recorder that hands what is counted through the facade to OpenTelemetry, under the same names and labels. With the
/// features `metrics` and `otel`.
///
/// Make one after the service has installed its `MeterProvider`, and before its clients are built. Gauges have the values
/// of the last [`refresh`](super::refresh): call it more often than metrics are exported. Units are those of UCUM (`s`, `By`).
pub struct OpenTelemetry {
    meter: otel::Meter,
    described: Mutex<HashMap<KeyName, (Option<Unit>, SharedString)>>,
    counters: Mutex<HashMap<KeyName, otel::Counter<u64>>>,
    gauges: Mutex<HashMap<KeyName, otel::Gauge<f64>>>,
    histograms: Mutex<HashMap<KeyName, otel::Histogram<f64>>>,
}

impl OpenTelemetry {
    /// Of the provider that is installed now.
    pub fn new() -> Self {
        Self {
            meter: opentelemetry::global::meter("steadfast"),
            described: Mutex::default(),
            counters: Mutex::default(),
            gauges: Mutex::default(),
            histograms: Mutex::default(),
        }
    }

    /// Makes it the recorder of the process: see [`install`](super::install).
    ///
    /// # Errors
    /// The process has a recorder already; it can have no second one.
    pub fn install(self) -> Result<(), AlreadyInstalled> {
        super::install(self)
    }

    fn describe(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        lock(&self.described).entry(name).or_insert((unit, help));
    }

    fn description(&self, name: &KeyName) -> (Option<Unit>, SharedString) {
        lock(&self.described).get(name).cloned().unwrap_or((None, SharedString::const_str("")))
    }
}

impl Default for OpenTelemetry {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for OpenTelemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenTelemetry").finish_non_exhaustive()
    }
}

impl Recorder for OpenTelemetry {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(name, unit, help);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(name, unit, help);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(name, unit, help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let name = key.name_shared();
        let (unit, help) = self.description(&name);
        let make = || {
            let counter = self.meter.u64_counter(name.as_str().to_owned());
            counter.with_unit(ucum(unit)).with_description(help.into_owned()).build()
        };
        let instrument = kept(&self.counters, &name, make);
        let series = Series { instrument, attributes: attributes(key), last: AtomicU64::new(0) };
        // It is there from the beginning, and zero.
        series.instrument.add(0, &series.attributes);
        Counter::from_arc(Arc::new(series))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let name = key.name_shared();
        let (unit, help) = self.description(&name);
        let make = || {
            let gauge = self.meter.f64_gauge(name.as_str().to_owned());
            gauge.with_unit(ucum(unit)).with_description(help.into_owned()).build()
        };
        let instrument = kept(&self.gauges, &name, make);
        Gauge::from_arc(Arc::new(Series { instrument, attributes: attributes(key), last: AtomicU64::new(0) }))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let name = key.name_shared();
        let (unit, help) = self.description(&name);
        let make = || {
            let histogram = self.meter.f64_histogram(name.as_str().to_owned());
            let histogram = histogram.with_unit(ucum(unit)).with_description(help.into_owned());
            // Those of OpenTelemetry are made for milliseconds.
            let histogram =
                if unit == Some(Unit::Seconds) { histogram.with_boundaries(SECONDS.to_vec()) } else { histogram };
            histogram.build()
        };
        let instrument = kept(&self.histograms, &name, make);
        Histogram::from_arc(Arc::new(Series { instrument, attributes: attributes(key), last: AtomicU64::new(0) }))
    }
}

/// The instrument of this name. It is made without the lock: an SDK asks the service's views, which are anybody's code.
fn kept<I: Clone>(all: &Mutex<HashMap<KeyName, I>>, name: &KeyName, make: impl FnOnce() -> I) -> I {
    let known = lock(all).get(name).cloned();
    known.unwrap_or_else(|| {
        let made = make();
        lock(all).entry(name.clone()).or_insert(made).clone()
    })
}

/// An instrument with the attributes of one time series.
struct Series<I> {
    instrument: I,
    attributes: Box<[KeyValue]>,
    /// Of a counter the sum, of a gauge the bits of its value: the facade may also change what it is told.
    last: AtomicU64,
}

impl CounterFn for Series<otel::Counter<u64>> {
    fn increment(&self, value: u64) {
        self.last.fetch_add(value, Ordering::Relaxed);
        self.instrument.add(value, &self.attributes);
    }

    fn absolute(&self, value: u64) {
        let before = self.last.fetch_max(value, Ordering::Relaxed);
        self.instrument.add(value.saturating_sub(before), &self.attributes);
    }
}

impl Series<otel::Gauge<f64>> {
    fn change(&self, change: impl Fn(f64) -> f64) {
        let bits = |last| Some(change(f64::from_bits(last)).to_bits());
        if let Ok(last) = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, bits) {
            self.instrument.record(change(f64::from_bits(last)), &self.attributes);
        }
    }
}

impl GaugeFn for Series<otel::Gauge<f64>> {
    fn increment(&self, value: f64) {
        self.change(|last| last + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|last| last - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Series<otel::Histogram<f64>> {
    fn record(&self, value: f64) {
        self.instrument.record(value, &self.attributes);
    }
}

fn attributes(key: &Key) -> Box<[KeyValue]> {
    key.labels().map(|label| KeyValue::new(label.key().to_owned(), label.value().to_owned())).collect()
}

/// The unit as OpenTelemetry writes it (<https://ucum.org/ucum>).
const fn ucum(unit: Option<Unit>) -> &'static str {
    match unit {
        None => "",
        Some(Unit::Count) => "1",
        Some(Unit::Percent) => "%",
        Some(Unit::Seconds) => "s",
        Some(Unit::Milliseconds) => "ms",
        Some(Unit::Microseconds) => "us",
        Some(Unit::Nanoseconds) => "ns",
        Some(Unit::Tebibytes) => "TiBy",
        Some(Unit::Gibibytes) => "GiBy",
        Some(Unit::Mebibytes) => "MiBy",
        Some(Unit::Kibibytes) => "KiBy",
        Some(Unit::Bytes) => "By",
        Some(Unit::TerabitsPerSecond) => "Tbit/s",
        Some(Unit::GigabitsPerSecond) => "Gbit/s",
        Some(Unit::MegabitsPerSecond) => "Mbit/s",
        Some(Unit::KilobitsPerSecond) => "kbit/s",
        Some(Unit::BitsPerSecond) => "bit/s",
        Some(Unit::CountPerSecond) => "1/s",
    }
}
