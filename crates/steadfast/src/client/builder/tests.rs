use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

/// What decides how connections are made reaches the pool.
#[test]
fn the_pool_is_set_up_as_configured() {
    let settings = SettingsBuilder::new("https://billing.internal:8443/api")
        .connect_timeout(Duration::from_secs(1))
        .max_concurrent(7)
        .http_version(HttpVersion::Http2)
        .http2_ping_interval(Duration::from_secs(20))
        .http2_ping_timeout(Duration::from_secs(3))
        .proxy(Proxy::Off)
        .tls_platform_roots(true)
        .tls_roots(&[PathBuf::from("ca.pem")])
        .tls_roots_only(true)
        .tls_identity(Path::new("me.pem"))
        .tls_identity_key(Path::new("me.key"))
        .tls_server_name("billing.example")
        .build()
        .unwrap();
    let config = pool_config(&settings);
    assert_eq!((config.https, config.host.as_str(), config.port), (true, "billing.internal", 8443));
    assert_eq!((config.connect_timeout, config.max_connections), (Duration::from_secs(1), 7));
    assert_eq!((config.http_version, config.proxy), (HttpVersion::Http2, Proxy::Off));
    assert_eq!((config.ping_interval, config.ping_timeout), (Some(Duration::from_secs(20)), Duration::from_secs(3)));
    let tls = config.tls;
    assert!(tls.platform_roots && tls.only_extra_roots);
    assert_eq!(tls.extra_roots, [PathBuf::from("ca.pem")]);
    assert_eq!((tls.identity, tls.identity_key), (Some("me.pem".into()), Some("me.key".into())));
    assert_eq!(tls.server_name.as_deref(), Some("billing.example"));
}
