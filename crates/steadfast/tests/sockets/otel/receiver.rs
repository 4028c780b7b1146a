//! A receiver of OTLP over HTTP, and the SDK that sends to it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use opentelemetry::global;
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{HistogramDataPoint, Metric};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prost::Message;

/// The SDK of this process, and what has come out of it.
pub(crate) struct Telemetry {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
    received: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    spans: Vec<(InstrumentationScope, Span)>,
    /// Each export of a metric replaces what was there.
    metrics: Vec<Metric>,
}

/// Installs the SDK, once.
pub(crate) fn telemetry() -> &'static Telemetry {
    static TELEMETRY: LazyLock<Telemetry> = LazyLock::new(Telemetry::install);
    &TELEMETRY
}

impl Telemetry {
    fn install() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Received>>::default();
        let sink = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let sink = Arc::clone(&sink);
                thread::spawn(move || serve(stream.unwrap(), &sink));
            }
        });
        let spans = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let spans = spans.with_endpoint(format!("{endpoint}/v1/traces")).build().unwrap();
        let tracers = SdkTracerProvider::builder().with_batch_exporter(spans).build();
        let metrics = MetricExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let metrics = metrics.with_endpoint(format!("{endpoint}/v1/metrics")).build().unwrap();
        let meters = SdkMeterProvider::builder().with_periodic_exporter(metrics).build();
        global::set_tracer_provider(tracers.clone());
        global::set_meter_provider(meters.clone());
        Self { tracers, meters, received }
    }

    /// The spans of a trace, in the order in which they began. Not to be called on a task: the export is waited for.
    pub(crate) fn spans(&self, trace: u128) -> Vec<Span> {
        self.tracers.force_flush().unwrap();
        let received = self.received.lock().unwrap();
        let mut spans: Vec<_> = (received.spans.iter())
            .filter(|(_, span)| span.trace_id == trace.to_be_bytes())
            .map(|(scope, span)| {
                if span.name != "own" {
                    assert_eq!((scope.name.as_str(), scope.version.as_str()), ("steadfast", env!("CARGO_PKG_VERSION")));
                }
                span.clone()
            })
            .collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        for span in &spans {
            assert!(span.end_time_unix_nano >= span.start_time_unix_nano && span.start_time_unix_nano > 0);
        }
        spans
    }

    /// The metric of this name, and its points for a server's port.
    pub(crate) fn histogram(&self, name: &str, port: u16) -> (Metric, Vec<HistogramDataPoint>) {
        self.meters.force_flush().unwrap();
        let received = self.received.lock().unwrap();
        let mut named = received.metrics.iter().filter(|metric| metric.name == name);
        let metric = named.next_back().unwrap().clone();
        let Some(Data::Histogram(histogram)) = &metric.data else { panic!("{metric:?}") };
        let points = histogram.data_points.iter();
        let points = points.filter(|point| attributes(&point.attributes)["server.port"] == port.to_string());
        let points = points.cloned().collect();
        (metric, points)
    }
}

fn serve(mut stream: TcpStream, received: &Mutex<Received>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some((path, body)) = request(&mut reader) {
        match path.as_str() {
            "/v1/traces" => {
                let export = ExportTraceServiceRequest::decode(&body[..]).unwrap();
                let scopes = export.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
                let spans = scopes.flat_map(|scope| {
                    let of = scope.scope.unwrap_or_default();
                    scope.spans.into_iter().map(move |span| (of.clone(), span))
                });
                received.lock().unwrap().spans.extend(spans);
            }
            "/v1/metrics" => {
                let export = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
                let scopes = export.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
                let metrics = scopes.flat_map(|scope| scope.metrics).collect();
                received.lock().unwrap().metrics = metrics;
            }
            other => panic!("an export to {other}"),
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
    }
}

/// One POST with a length, as exporters send it; `None` at the end of the connection.
fn request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let path = line.split(' ').nth(1).unwrap().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, body))
}

/// Attributes as text, by name.
pub(crate) fn attributes(attributes: &[KeyValue]) -> BTreeMap<&str, String> {
    let text = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{}: {other:?}", pair.key),
    };
    let map: BTreeMap<_, _> = attributes.iter().map(|pair| (pair.key.as_str(), text(pair))).collect();
    assert_eq!(map.len(), attributes.len(), "none twice: {attributes:?}");
    map
}
