//! With the feature `otel` on, an SDK of OpenTelemetry may be there or not, come later, and go. A process of its own: there
//! is one for all of a process.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry::{Context, global};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, HistogramDataPoint, MetricData, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanProcessor};
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{CallContext, Guard, ServiceClient, TraceContext, context};

const SERVED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Keeps the spans that have ended.
#[derive(Clone, Debug, Default)]
struct Ended(Arc<Mutex<Vec<SpanData>>>);

impl Ended {
    /// Installs an SDK that ends up here.
    fn install(&self) -> SdkTracerProvider {
        let provider = SdkTracerProvider::builder().with_span_processor(self.clone()).build();
        global::set_tracer_provider(provider.clone());
        provider
    }

    /// The names of the spans since it was last asked, in the order in which they ended, and the id of the first.
    fn take(&self) -> (Vec<String>, Option<String>) {
        let spans = std::mem::take(&mut *self.0.lock().unwrap());
        let first = spans.first().map(|span| span.span_context.span_id().to_string());
        (spans.into_iter().map(|span| span.name.into_owned()).collect(), first)
    }
}

impl SpanProcessor for Ended {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.lock().unwrap().push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Keeps how often each histogram was told something, as of the last export.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<Mutex<Vec<(String, u64)>>>);

impl PushMetricExporter for Counted {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let metrics = metrics.scope_metrics().flat_map(ScopeMetrics::metrics);
        let counts = metrics.map(|metric| match metric.data() {
            AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                (metric.name().to_owned(), histogram.data_points().map(HistogramDataPoint::count).sum())
            }
            other => panic!("{other:?}"),
        });
        *self.0.lock().unwrap() = counts.collect();
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

struct World {
    clock: VirtualClock,
    upstream: Script,
    client: ServiceClient,
    guard: Guard,
}

impl World {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let upstream = Script::new(clock.clone(), [Step::status(200)]);
        let builder = ServiceClient::builder("http://billing.test").name("billing").clock(clock.clone());
        let client = builder.transport(upstream.clone()).build().unwrap();
        let guard = Guard::builder("ledger").clock(clock.clone()).build().unwrap();
        Self { clock, upstream, client, guard }
    }

    /// Makes a call of each kind for a request that is served, and returns the span that the upstream was told of.
    fn call(&self) -> String {
        let served = TraceContext::parse([SERVED.as_bytes()], []).unwrap();
        let work = async {
            self.client.get("/").send().await.unwrap();
            self.guard.call(|| std::future::ready(Ok::<_, io::Error>(()))).await.unwrap();
        };
        self.clock.run(context::scope(CallContext::new().with_trace(served), work)).unwrap();
        let seen = self.upstream.seen();
        let sent = seen.last().unwrap().headers["traceparent"].to_str().unwrap();
        // The same trace, and not the caller's own span.
        assert!(sent.starts_with(&SERVED[..36]) && sent.ends_with("-01") && sent[..52] != SERVED[..52], "{sent}");
        sent[36..52].to_owned()
    }
}

const NAMES: [&str; 4] = ["GET", "GET billing", "attempt", "ledger"];

/// 8.5: without an SDK everything is as without the feature. One that is installed later is noticed within a second of the
/// client's clock, one that was shut down makes no spans, another takes its place.
#[test]
fn c8_5_an_sdk_is_noticed_whenever_it_comes_and_goes() {
    let (world, ended) = (World::new(), Ended::default());
    let first = world.call();
    assert_ne!(world.call(), first, "each attempt has an id of its own");

    // Metrics without traces: requests are counted, and no trace is begun.
    let counted = Counted::default();
    let meters = SdkMeterProvider::builder().with_periodic_exporter(counted.clone()).build();
    global::set_meter_provider(meters.clone());
    world.clock.advance(Duration::from_secs(1));
    world.call();
    meters.force_flush().unwrap();
    assert_eq!(*counted.0.lock().unwrap(), [("http.client.request.duration".to_owned(), 1)]);

    let sdk = ended.install();
    world.clock.advance(Duration::from_millis(999));
    world.call();
    assert_eq!(ended.take().0, [""; 0], "it was looked for less than a second ago");
    world.clock.advance(Duration::from_millis(1));
    let told = world.call();
    let (names, attempt) = ended.take();
    assert_eq!(names, NAMES);
    assert_eq!(attempt, Some(told), "what the upstream is told is the attempt's span");

    sdk.shutdown().unwrap();
    world.call();
    world.clock.advance(Duration::from_secs(1));
    world.call();
    assert_eq!(ended.take().0, [""; 0]);

    let _sdk = ended.install();
    world.clock.advance(Duration::from_secs(1));
    let told = world.call();
    assert_eq!(ended.take(), (NAMES.map(str::to_owned).to_vec(), Some(told)));
    meters.force_flush().unwrap();
    assert_eq!(counted.0.lock().unwrap()[0].1, 6, "every request since, with and without spans");
}
