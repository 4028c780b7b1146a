//! Where the service's log, traces and metrics go. To be set up before the clients are built, and outside of a runtime: the
//! exporter has threads of its own.

use std::error::Error;

use opentelemetry::global;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use steadfast_axum::Prometheus;
use tracing::level_filters::LevelFilter;

/// What has to be there while the service runs.
pub struct Telemetry {
    /// Answers `/metrics`.
    pub prometheus: Prometheus,
    traces: Option<SdkTracerProvider>,
}

/// The log to the standard error, metrics to be asked for, and traces to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT`
/// names; without it nothing is traced.
///
/// # Errors
/// Another log or recorder is installed, or the endpoint is none.
pub fn set_up() -> Result<Telemetry, Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(LevelFilter::INFO)
        .try_init()
        .map_err(|error| error.to_string())?;
    let prometheus = Prometheus::new().install()?;
    let traces = match std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT") {
        None => None,
        Some(_) => {
            let provider = SdkTracerProvider::builder()
                .with_resource(Resource::builder().with_service_name("orders").build())
                .with_batch_exporter(SpanExporter::builder().with_http().build()?)
                .build();
            global::set_tracer_provider(provider.clone());
            Some(provider)
        }
    };
    Ok(Telemetry { prometheus, traces })
}

impl Telemetry {
    /// Sends what has not been sent yet.
    ///
    /// # Errors
    /// The collector could not be reached.
    pub fn shut_down(self) -> Result<(), Box<dyn Error>> {
        self.traces.map_or(Ok(()), |traces| Ok(traces.shutdown()?))
    }
}
