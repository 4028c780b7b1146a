//! The same metrics through OpenTelemetry's SDK. A process of its own: provider and recorder are the process's.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use steadfast::ServiceClient;
use steadfast::metrics::{OpenTelemetry, SECONDS, TABLE, refresh};
use steadfast::testing::{Script, Step, VirtualClock};

/// Keeps the last export as lines: name, unit, attributes, value.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl PushMetricExporter for Lines {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let all = metrics.scope_metrics().filter(|scope| scope.scope().name() == "steadfast");
        // What OpenTelemetry's own conventions ask for is none of the table's.
        let ours = all.flat_map(|scope| scope.metrics()).filter(|metric| !metric.name().starts_with("http.client."));
        *self.0.lock().unwrap() = ours.flat_map(lines).collect();
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

fn lines(metric: &Metric) -> Vec<String> {
    assert!(TABLE.iter().any(|known| known.name == metric.name() && known.help == metric.description()));
    let line = |attributes: Vec<String>, value: String| {
        format!("{} [{}] {} = {value}", metric.name(), metric.unit(), attributes.join(" "))
    };
    macro_rules! attributes {
        ($point:expr) => {{
            let mut all: Vec<_> = $point.attributes().map(|pair| format!("{}={}", pair.key, pair.value)).collect();
            all.sort_unstable();
            all
        }};
    }
    match metric.data() {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            assert!(sum.is_monotonic());
            sum.data_points().map(|point| line(attributes!(point), point.value().to_string())).collect()
        }
        AggregatedMetrics::F64(MetricData::Gauge(gauge)) => {
            gauge.data_points().map(|point| line(attributes!(point), point.value().to_string())).collect()
        }
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
            let value = |point: &opentelemetry_sdk::metrics::data::HistogramDataPoint<f64>| {
                assert!(point.bounds().eq(SECONDS.iter().copied()));
                format!("{} in {}", point.sum(), point.count())
            };
            histogram.data_points().map(|point| line(attributes!(point), value(point))).collect()
        }
        other => vec![format!("{} is {other:?}", metric.name())],
    }
}

#[test]
fn the_table_goes_through_opentelemetry_too() {
    let exported = Lines::default();
    let provider = SdkMeterProvider::builder().with_periodic_exporter(exported.clone()).build();
    opentelemetry::global::set_meter_provider(provider.clone());
    OpenTelemetry::new().install().unwrap();

    let clock = VirtualClock::new();
    let steps = [Step::status(503).after(Duration::from_millis(30)), Step::status(200)];
    let builder = ServiceClient::builder("http://billing.test").name("billing").seed(7).clock(clock.clone());
    let client = builder.transport(Script::new(clock.clone(), steps)).build().unwrap();
    clock.run(client.get("/x").send()).unwrap().unwrap();
    client.force_open();
    refresh();
    provider.force_flush().unwrap();

    let lines = exported.0.lock().unwrap().clone();
    for expected in [
        "steadfast.calls [1] ended=response upstream=billing = 1",
        "steadfast.calls [1] ended=deadline upstream=billing = 0",
        "steadfast.attempts [1] outcome=5xx upstream=billing = 1",
        "steadfast.attempt.duration [s] upstream=billing = 0.03 in 2",
        "steadfast.circuit_breaker.transitions [1] to=open upstream=billing why=forced = 1",
        "steadfast.circuit_breaker.state [1] state=open upstream=billing = 1",
        "steadfast.circuit_breaker.state [1] state=closed upstream=billing = 0",
        "steadfast.bulkhead.limit [1] upstream=billing = 50",
        "steadfast.call.timeout [s] upstream=billing = 30",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} in\n{}", lines.join("\n"));
    }
}
