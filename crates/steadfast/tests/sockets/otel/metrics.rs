//! The histogram of the conventions: one point per attempt, told apart by few attributes.

use opentelemetry_proto::tonic::metrics::v1::HistogramDataPoint;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use tokio::runtime::Runtime;

use crate::receiver::{attributes, telemetry};
use crate::scene::{Upstream, facts};

fn labelled<'a>(points: &'a [HistogramDataPoint], status: &str) -> &'a HistogramDataPoint {
    let is_it = |point: &&HistogramDataPoint| attributes(&point.attributes)["http.response.status_code"] == status;
    points.iter().find(is_it).unwrap()
}

/// Must show 3: `http.client.request.duration` in seconds, with the bounds and attributes of the conventions.
#[test]
fn c8_5_the_duration_of_each_attempt_is_counted() {
    let telemetry = telemetry();
    let upstream = Runtime::new().unwrap().block_on(async {
        let upstream = Upstream::start(&[503, 200]).await;
        // One span for the call, and still one point for each request.
        let client = upstream.client(|builder| builder.attempt_spans(false).record_url(true));
        for _ in 0..3 {
            client.get("/orders/S3CR3T").send().await.unwrap();
        }
        upstream
    });
    let (metric, points) = telemetry.histogram("http.client.request.duration", upstream.port);
    assert_eq!(metric.unit, "s");
    assert!(matches!(&metric.data, Some(Data::Histogram(histogram)) if !histogram.data_points.is_empty()));
    assert_eq!(points.len(), 2, "{points:#?}");
    let port = upstream.port.to_string();
    let request = [
        ("http.request.method", "GET"),
        ("network.protocol.version", "1.1"),
        ("server.address", "127.0.0.1"),
        ("server.port", &port),
    ];
    let (ok, failed) = (labelled(&points, "200"), labelled(&points, "503"));
    assert_eq!(attributes(&ok.attributes), facts(&[&request[..], &[("http.response.status_code", "200")]].concat()));
    let error = [("http.response.status_code", "503"), ("error.type", "503")];
    assert_eq!(attributes(&failed.attributes), facts(&[&request[..], &error].concat()));
    assert_eq!((ok.count, failed.count), (3, 1));
    let bounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
    assert_eq!(ok.explicit_bounds, bounds);
    assert!(ok.sum.unwrap() > 0.0 && ok.sum.unwrap() < 60.0, "seconds");
}
