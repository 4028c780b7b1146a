use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<BaseUrl, BaseUrlError> {
    BaseUrl::parse(text)
}

/// 9.3, 8.3, A134, B12, B16: one clear error for each mistake.
#[test]
fn c9_3_what_is_no_base_url() {
    use BaseUrlError as E;
    for (text, expected) in [
        ("", E::Empty),
        ("billing", E::NoScheme),
        ("billing.internal:8010", E::NoScheme),
        ("localhost:8010/api", E::NoScheme),
        ("/api", E::NoScheme),
        ("//billing/api", E::NoScheme),
        ("://billing", E::NoScheme),
        ("http:/billing", E::NoScheme),
        ("http:billing", E::NoScheme),
        (" http://billing", E::NoScheme),
        ("h\u{e4}ttp://billing", E::NoScheme),
        ("ftp://billing", E::OtherScheme),
        ("ws://billing", E::OtherScheme),
        ("unix://run/x.sock", E::OtherScheme),
        ("httpss://billing", E::OtherScheme),
        ("http://", E::NoHost),
        ("http:///api", E::NoHost),
        ("http://:8010", E::NoHost),
        ("https://?x", E::Query),
        ("http://user@billing", E::UserInfo),
        ("http://user:pass@billing/api?x#y", E::UserInfo),
        ("http://:@billing", E::UserInfo),
        ("http://@billing", E::UserInfo),
        ("http://good.test:@evil.test/", E::UserInfo),
        ("http://billing?", E::Query),
        ("http://billing/api?key=s3cret", E::Query),
        ("http://billing?a@b", E::Query),
        ("http://billing/#", E::Fragment),
        ("http://billing#top", E::Fragment),
        ("http://billing:", E::BadPort),
        ("http://billing:/", E::BadPort),
        ("http://billing:0", E::BadPort),
        ("http://billing:65536", E::BadPort),
        ("http://billing:+80", E::BadPort),
        ("http://billing:-1", E::BadPort),
        ("http://billing:80a", E::BadPort),
        ("http://billing:80:90", E::BadHost),
        ("http://billing: 80", E::BadPort),
        ("http://::1", E::BadHost),
        ("http://::1:80", E::BadHost),
        ("http://fe80::1", E::BadHost),
        ("http://[::1", E::BadHost),
        ("http://[::1:8010", E::BadHost),
        ("http://[]", E::BadHost),
        ("http://[::1]x", E::BadHost),
        ("http://[::1]]", E::BadHost),
        ("http://[[::1]]", E::BadHost),
        ("http://[127.0.0.1]", E::BadHost),
        ("http://[fe80::1%25eth0]", E::BadHost),
        ("http://[v1.x]", E::BadHost),
        ("http://[::1]:", E::BadPort),
        ("http://[::1]:99999", E::BadPort),
        ("http://billing:080", E::BadPort),
        ("http://billing:00", E::BadPort),
        ("http://127.1", E::BadHost),
        ("http://1", E::BadHost),
        ("http://256.0.0.1", E::BadHost),
        ("http://010.0.0.1", E::BadHost),
        ("http://1.2.3.4.5", E::BadHost),
        ("http://a.1", E::BadHost),
        ("http://bill ing", E::BadHost),
        ("http://billing ", E::BadHost),
        ("http://billing\n", E::BadHost),
        ("http://bill%69ng", E::BadHost),
        ("http://b\u{e4}r", E::BadHost),
        ("http://billing\\api", E::BadHost),
        ("http://..", E::BadHost),
        ("http://.", E::BadHost),
        ("http://a..b", E::BadHost),
        ("http://.a", E::BadHost),
        ("http://a!b", E::BadHost),
        ("http://billing//api", E::EmptySegment),
        ("http://billing/api//", E::EmptySegment),
        ("http://billing//", E::EmptySegment),
        ("http://billing/a b", E::BadPath(TargetError::Space)),
        ("http://billing/a\tb", E::BadPath(TargetError::Control)),
        ("http://billing/a\u{7f}b", E::BadPath(TargetError::Control)),
        ("http://billing/a\\b", E::BadPath(TargetError::Backslash)),
        ("http://billing/..", E::BadPath(TargetError::DotSegment)),
        ("http://billing/a/../b", E::BadPath(TargetError::DotSegment)),
        ("http://billing/a/%2E/b", E::BadPath(TargetError::DotSegment)),
        ("http://billing/100%", E::BadPath(TargetError::BadPercent)),
    ] {
        assert_eq!(parse(text), Err(expected), "{text:?}");
    }
    let long = |label: &str, times: usize| parse(&format!("http://{}x", label.repeat(times)));
    assert_eq!(long("a", 63), Err(E::BadHost));
    assert!(long("a", 62).is_ok());
    assert_eq!(long("a.", 127), Err(E::BadHost));
    assert!(long("a.", 126).is_ok());
    assert!(long(&format!("{}.", "a".repeat(62)), 4).is_ok());
    assert_eq!(long(&format!("{}.", "a".repeat(62)), 4).unwrap().host().len(), 253);
    assert_eq!(parse(&format!("http://{}xy", format!("{}.", "a".repeat(62)).repeat(4))), Err(E::BadHost));
    let path = |len: usize| parse(&format!("http://h/{}", "a".repeat(len)));
    assert_eq!(path(70_000), Err(E::BadPath(TargetError::TooLong)));
    assert!(path(60_000).is_ok());
}

/// 8.6, A131: no error repeats any of a secret.
#[test]
fn c8_6_errors_repeat_nothing() {
    for text in [
        "http://tom:s3cret@billing",
        "s3cret://billing",
        "http://billing?s3cret",
        "http://billing/s3cret/..",
        "http://s3cret!",
    ] {
        let error = parse(text).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        assert!(error.to_string().starts_with("expected "), "{error}");
    }
}

/// 9.3, 8.4, A127, A129
#[test]
fn c9_3_what_is_a_base_url() {
    for (text, shown, https, host, port, authority, prefix) in [
        ("http://billing", "http://billing", false, "billing", 80, "billing", ""),
        ("http://billing/", "http://billing", false, "billing", 80, "billing", ""),
        ("HTTPS://Billing.Internal", "https://billing.internal", true, "billing.internal", 443, "billing.internal", ""),
        ("http://h/api", "http://h/api", false, "h", 80, "h", "/api"),
        ("http://h/api/", "http://h/api/", false, "h", 80, "h", "/api"),
        ("http://h:8010/a/B%2fc", "http://h:8010/a/B%2fc", false, "h", 8010, "h:8010", "/a/B%2fc"),
        ("https://h:80", "https://h:80", true, "h", 80, "h:80", ""),
        ("http://h:65535", "http://h:65535", false, "h", 65535, "h:65535", ""),
        ("http://[::1]:8080/", "http://[::1]:8080", false, "::1", 8080, "[::1]:8080", ""),
        ("https://[2001:DB8::1]", "https://[2001:db8::1]", true, "2001:db8::1", 443, "[2001:db8::1]", ""),
        (
            "http://[::ffff:127.0.0.1]:1",
            "http://[::ffff:127.0.0.1]:1",
            false,
            "::ffff:127.0.0.1",
            1,
            "[::ffff:127.0.0.1]:1",
            "",
        ),
        ("http://127.0.0.1:8010", "http://127.0.0.1:8010", false, "127.0.0.1", 8010, "127.0.0.1:8010", ""),
        ("http://my_service:80", "http://my_service:80", false, "my_service", 80, "my_service:80", ""),
        ("http://example.com.", "http://example.com.", false, "example.com.", 80, "example.com.", ""),
        ("http://xn--br-via.test", "http://xn--br-via.test", false, "xn--br-via.test", 80, "xn--br-via.test", ""),
        ("http://h/b\u{e4}r", "http://h/b%C3%A4r", false, "h", 80, "h", "/b%C3%A4r"),
        ("http://h/a@b:c", "http://h/a@b:c", false, "h", 80, "h", "/a@b:c"),
    ] {
        let base = parse(text).unwrap();
        assert_eq!(base.to_string(), shown);
        assert_eq!(base.is_https(), https, "{text}");
        assert_eq!(base.host(), host);
        assert_eq!(base.port(), port, "{text}");
        assert_eq!(base.authority().as_str(), authority);
        assert_eq!(base.prefix(), prefix);
        assert_eq!(text.parse(), Ok(base.clone()));
        assert_eq!(parse(shown), Ok(base), "{text}");
    }
}

/// 8.3
#[test]
fn c8_3_loopback() {
    for (host, expected) in [
        ("localhost", true),
        ("LOCALHOST", true),
        ("localhost.", true),
        ("api.localhost", true),
        ("127.0.0.1", true),
        ("127.255.0.9", true),
        ("[::1]", true),
        ("[::ffff:127.0.0.1]", true),
        ("notlocalhost", false),
        ("localhost.test", false),
        ("128.0.0.1", false),
        ("0.0.0.0", false),
        ("127.0.0.1.test", false),
        ("[::2]", false),
        ("[::ffff:10.0.0.1]", false),
    ] {
        assert_eq!(parse(&format!("http://{host}:80/x")).unwrap().is_loopback(), expected, "{host}");
    }
}

proptest! {
    #![proptest_config(crate::testing::seeded())]

    #[test]
    fn no_text_panics_and_what_is_taken_is_read_back(text in ".{0,40}") {
        let _ = parse(&text);
        for text in [format!("http://{text}"), format!("https://h/{text}"), format!("http://[{text}]/")] {
            if let Ok(base) = parse(&text) {
                prop_assert_eq!(parse(&base.to_string()), Ok(base.clone()));
                prop_assert!(base.join("x", None).is_ok());
            }
        }
    }
}
