//! Keys that work badly together: not refused, but said (9.3); and the one that is nothing without another.

use insta::assert_snapshot;

use crate::{complaint, load};

/// What is said about an upstream at `base_url` with these keys.
fn warnings(base_url: &str, keys: &str) -> String {
    let config = load(&format!("[upstreams.a]\nbase_url = \"{base_url}\"\n{keys}\n")).unwrap();
    config.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

const TLS: &str = r#"
tls_roots = ["ca.pem"]
tls_roots_only = true
tls_identity = "me.pem"
tls_identity_key = "me.key"
tls_server_name = "billing.internal"
"#;

/// A service that is called without TLS needs no certificates; one that is called with it does.
#[test]
fn c9_3_certificates_without_tls() {
    assert_snapshot!(warnings("http://a", TLS), @"
    upstreams.a.tls_roots: has no effect: the base_url is http, so there is no TLS
    upstreams.a.tls_roots_only: has no effect: the base_url is http, so there is no TLS
    upstreams.a.tls_identity: has no effect: the base_url is http, so there is no TLS
    upstreams.a.tls_identity_key: has no effect: the base_url is http, so there is no TLS
    upstreams.a.tls_server_name: has no effect: the base_url is http, so there is no TLS
    ");
    assert_eq!(warnings("https://a", TLS), "");
    let platform = warnings("http://a", "tls_platform_roots = true");
    assert_snapshot!(platform, @"upstreams.a.tls_platform_roots: has no effect: the base_url is http, so there is no TLS");
    // What only says the default says nothing wrong.
    assert_eq!(warnings("http://a", "tls_platform_roots = false\ntls_roots = []\ntls_roots_only = false"), "");
}

/// Nobody is trusted: the client cannot be built, and the file says so before.
#[test]
fn c9_3_only_roots_that_are_not_there() {
    let said = warnings("https://a", "tls_roots_only = true");
    assert_snapshot!(said, @"upstreams.a.tls_roots_only: no certificate can be trusted: there are no tls_roots");
    assert_eq!(warnings("https://a", "tls_roots_only = true\ntls_roots = []\ntls_platform_roots = true"), said);
    let both = warnings("https://a", "tls_roots_only = true\ntls_roots = [\"ca.pem\"]\ntls_platform_roots = true");
    assert_snapshot!(both, @"upstreams.a.tls_roots_only: contradicts tls_platform_roots: with the platform's roots, tls_roots are not alone");
}

/// Pings are a matter of HTTP/2.
#[test]
fn c9_3_pings_without_http2() {
    let pings = "http2_ping_interval = 20\nhttp2_ping_timeout = 5\n";
    assert_snapshot!(warnings("https://a", &format!("{pings}http_version = \"http1\"")), @r#"
    upstreams.a.http2_ping_interval: has no effect: http_version is "http1"
    upstreams.a.http2_ping_timeout: has no effect: http_version is "http1"
    "#);
    assert_snapshot!(warnings("http://a", pings), @r#"
    upstreams.a.http2_ping_interval: has no effect: the base_url is http, where http_version "auto" is HTTP/1.1
    upstreams.a.http2_ping_timeout: has no effect: the base_url is http, where http_version "auto" is HTTP/1.1
    "#);
    assert_snapshot!(warnings("https://a", "http2_ping_timeout = 5"), @"upstreams.a.http2_ping_timeout: has no effect: there is no http2_ping_interval");
    assert_eq!(warnings("https://a", pings), "");
    assert_eq!(warnings("http://a", &format!("{pings}http_version = \"http2\"")), "");
}

/// A private key alone proves nothing; where the certificate is only mistyped, it is not missing as well.
#[test]
fn c9_3_a_key_without_its_certificate() {
    let complaint = |keys: &str| complaint(&format!("[upstreams.a]\nbase_url = \"https://a\"\n{keys}"));
    assert_snapshot!(complaint("tls_identity_key = \"me.key\""), @"app.toml:3:20: upstreams.a.tls_identity_key: needs tls_identity, the file with the certificate that this key belongs to");
    assert_snapshot!(complaint("tls_identity_key = \"me.key\"\ntls_identity = 1"), @"app.toml:4:16: upstreams.a.tls_identity: expected a string with a file's name; found the integer 1");
    assert_snapshot!(complaint("tls_identity_key = \"me.key\"\ntls_identty = \"me.pem\""), @"app.toml:4:1: upstreams.a.tls_identty: unknown key; did you mean `tls_identity`?");
    // The same of a limit whose style is mistyped.
    assert_snapshot!(complaint("rate_limit = 20000\nrate_limit_style = \"even\""), @r#"app.toml:4:20: upstreams.a.rate_limit_style: expected one of "window", "smooth"; found the string "even""#);
}

/// Every warning goes to whoever set the key: a file of defaults makes none.
#[test]
fn c9_3_the_defaults_make_no_warning() {
    for base_url in ["http://a", "https://a"] {
        let keys = "proxy = true\nbrotli = true\nzstd = true\nhttp_version = \"auto\"";
        assert_eq!(warnings(base_url, keys), "");
        assert_eq!(warnings(base_url, ""), "");
    }
}
