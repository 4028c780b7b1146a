use proptest::prelude::*;

use super::*;

fn join(base: &str, path: &str, query: Option<&str>) -> Result<String, TargetError> {
    BaseUrl::parse(base).unwrap().join(path, query).map(|uri| uri.to_string())
}

/// 8.4, A122, S73
#[test]
fn a122_the_prefix_is_kept_however_the_slashes_stand() {
    for base in ["http://h/api", "http://h/api/"] {
        for path in ["x", "/x"] {
            assert_eq!(join(base, path, None).unwrap(), "http://h/api/x");
        }
        assert_eq!(join(base, "/", None).unwrap(), "http://h/api/");
        assert_eq!(join(base, "x/", None).unwrap(), "http://h/api/x/");
        assert_eq!(join(base, "", None).unwrap(), base);
        assert_eq!(join(base, "?a=1", None).unwrap(), format!("{base}?a=1"));
    }
    for base in ["http://h", "http://h/"] {
        for (path, expected) in [("", "http://h/"), ("/", "http://h/"), ("x", "http://h/x"), ("/x", "http://h/x")] {
            assert_eq!(join(base, path, None).unwrap(), expected);
        }
    }
}

/// 8.4, A123, and what else is a path though it looks like something else.
#[test]
fn a123_paths_that_look_like_urls() {
    for (path, expected) in [
        ("/sub:path", "/some/path/sub:path"),
        ("sub:path", "/some/path/sub:path"),
        ("mailto:x@y", "/some/path/mailto:x@y"),
        ("/http://evil.test/", "/some/path/http://evil.test/"),
        ("fetch/https://x", "/some/path/fetch/https://x"),
        ("@evil.test", "/some/path/@evil.test"),
        (":80/x", "/some/path/:80/x"),
        ("x//y", "/some/path/x//y"),
        ("*", "/some/path/*"),
        ("...", "/some/path/..."),
        ("a..b/.c/d.", "/some/path/a..b/.c/d."),
    ] {
        assert_eq!(join("https://h/some/path", path, None).unwrap(), format!("https://h{expected}"));
    }
}

/// 8.4, A124, A126, B11, S73: nothing leads out of the upstream or of its prefix.
#[test]
fn c8_4_what_leaves_the_upstream_is_refused() {
    use TargetError as E;
    for (path, expected) in [
        ("https://evil.test/", E::Absolute),
        ("HTTP://evil.test", E::Absolute),
        ("ftp://evil.test", E::Absolute),
        ("http:evil.test", E::Absolute),
        ("https:/evil.test", E::Absolute),
        ("//evil.test/x", E::OtherHost),
        ("///evil.test/x", E::OtherHost),
        ("//", E::OtherHost),
        ("\\\\evil.test", E::Backslash),
        ("/\\evil.test", E::Backslash),
        ("a\\..\\b", E::Backslash),
        ("..", E::DotSegment),
        ("/../x", E::DotSegment),
        ("a/../../x", E::DotSegment),
        ("a/../b", E::DotSegment),
        ("./a", E::DotSegment),
        ("a/.", E::DotSegment),
        ("%2e%2e/x", E::DotSegment),
        ("%2E./x", E::DotSegment),
        (".%2e", E::DotSegment),
        ("%2e", E::DotSegment),
        ("a%2f..%2f..%2fb", E::DotSegment),
        ("..%5Cx", E::DotSegment),
        ("%2e%2e%2fx", E::DotSegment),
        ("..;/x", E::DotSegment),
        ("..;a=b/x", E::DotSegment),
        ("%2e%2e%3b/x", E::DotSegment),
        ("..?a=1", E::DotSegment),
        ("a b", E::Space),
        (" /x", E::Space),
        (" https://evil.test", E::Space),
        ("a\tb", E::Control),
        ("a\r\nHost: evil.test", E::Control),
        ("a\0", E::Control),
        ("\u{7f}", E::Control),
        ("a#b", E::Fragment),
        ("a?b#c", E::Fragment),
        ("100%", E::BadPercent),
        ("%4", E::BadPercent),
        ("%zz", E::BadPercent),
        ("%\u{e4}1", E::BadPercent),
        ("a?q=100%", E::BadPercent),
        ("a?q=a b", E::Space),
        ("a?q=a\nb", E::Control),
    ] {
        assert_eq!(join("http://h/api", path, None), Err(expected), "{path:?}");
        assert_eq!(join("http://h", path, None), Err(expected), "{path:?}");
    }
    for (query, expected) in [("a b", E::Space), ("a#b", E::Fragment), ("%", E::BadPercent), ("a\r\n", E::Control)] {
        assert_eq!(join("http://h", "x", Some(query)), Err(expected), "{query:?}");
    }
}

/// 8.4: what is encoded stays encoded, once; what may not stand in a URL is encoded.
#[test]
fn c8_4_percent_encoding_is_kept() {
    for (path, expected) in [
        ("a%2Fb", "/a%2Fb"),
        ("a%2fb", "/a%2fb"),
        ("%20", "/%20"),
        ("%2520", "/%2520"),
        ("%252e%252e/x", "/%252e%252e/x"),
        ("%5C", "/%5C"),
        ("b\u{e4}r/\u{1f980}", "/b%C3%A4r/%F0%9F%A6%80"),
        ("\u{85}\u{a0}\u{2028}", "/%C2%85%C2%A0%E2%80%A8"),
        ("{id}|^\"<>`[0]", "/%7Bid%7D%7C%5E%22%3C%3E%60%5B0%5D"),
        ("-._~!$&'()*+,;=:@", "/-._~!$&'()*+,;=:@"),
        ("x?f[a]=1&u=http://y/?z&b=\u{e4}", "/x?f[a]=1&u=http://y/?z&b=%C3%A4"),
        ("x?a=\\\"{|}", "/x?a=%5C%22%7B%7C%7D"),
        ("x?p=/../..", "/x?p=/../.."),
    ] {
        assert_eq!(join("http://h", path, None).unwrap(), format!("http://h{expected}"), "{path}");
    }
}

/// A125, A128
#[test]
fn a125_both_queries_are_kept_in_order() {
    for (path, query, expected) in [
        ("/g?a=1", Some("b=2"), "/g?a=1&b=2"),
        ("/g?page=1&s=list", Some("page=2"), "/g?page=1&s=list&page=2"),
        ("/g", Some("b=2"), "/g?b=2"),
        ("/g", Some(""), "/g"),
        ("/g", None, "/g"),
        ("/g?", None, "/g?"),
        ("/g?", Some("b=2"), "/g?b=2"),
        ("/g?", Some(""), "/g?"),
        ("/g?a?", Some("b=2"), "/g?a?&b=2"),
        ("?a=1", Some("b=?"), "/?a=1&b=?"),
        ("/g?a=1&", Some("b"), "/g?a=1&&b"),
    ] {
        assert_eq!(join("http://h", path, query).unwrap(), format!("http://h{expected}"), "{path} {query:?}");
    }
}

/// A127
#[test]
fn a127_an_ipv6_host_keeps_its_brackets() {
    let uri = BaseUrl::parse("http://[::1]:8080/").unwrap().join("/x", None).unwrap();
    assert_eq!(uri.authority().unwrap(), "[::1]:8080");
    assert_eq!(uri.to_string(), "http://[::1]:8080/x");
}

/// A126
#[test]
fn a126_data_as_a_segment() {
    for (data, expected) in [
        ("a b", Ok("a%20b")),
        ("a/b", Ok("a%2Fb")),
        ("a%2Fb", Ok("a%252Fb")),
        ("a+b", Ok("a%2Bb")),
        ("x?y#z", Ok("x%3Fy%23z")),
        ("\u{e4}\n\0", Ok("%C3%A4%0A%00")),
        ("-._~", Ok("-._~")),
        ("...", Ok("...")),
        ("%2e%2e", Ok("%252e%252e")),
        ("", Err(TargetError::EmptySegment)),
        (".", Err(TargetError::DotSegment)),
        ("..", Err(TargetError::DotSegment)),
        ("../x", Err(TargetError::DotSegment)),
        ("a\\..", Err(TargetError::DotSegment)),
        ("..;x", Err(TargetError::DotSegment)),
    ] {
        assert_eq!(encode_segment(data), expected.map(str::to_owned), "{data:?}");
    }
}

#[test]
fn too_long_is_an_error() {
    let path = "x".repeat(MAX_LEN - 1);
    assert!(join("http://h", &path, None).is_ok());
    assert_eq!(join("http://h", &format!("{path}x"), None), Err(TargetError::TooLong));
    assert_eq!(join("http://h", &path, Some("a")), Err(TargetError::TooLong));
    assert_eq!(join("http://h", &"\u{e4}".repeat(20_000), None), Err(TargetError::TooLong));
}

/// 8.6, A130
#[test]
fn c8_6_errors_repeat_nothing() {
    for path in ["http://u:s3cret@h", "x?s3cret=%", "../s3cret", "s3cret#", "//s3cret"] {
        let error = join("http://h", path, None).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"));
    }
}

/// Text made of what matters to a URL.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = vec![
        "/",
        "//",
        ".",
        "..",
        "%2e",
        "%2E",
        "%2f",
        "%5c",
        "%25",
        "%",
        ";",
        ":",
        "@",
        "?",
        "#",
        "&",
        "=",
        "\\",
        "a",
        "http",
        "evil.test",
        "[",
        "]",
        " ",
        "\t",
        "\r\n",
        "\0",
        "\u{e4}",
        "\u{ff0f}",
        "\u{2024}",
        "*",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..9).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(crate::testing::seeded())]

    /// 8.4: whatever is asked for, the request goes to this host and below this prefix.
    #[test]
    fn c8_4_no_text_leaves_the_prefix(path in prop_oneof![hostile(), ".{0,24}"], query in prop::option::of(hostile())) {
        for base in ["http://h:1/api", "http://h:1/api/", "http://h:1"] {
            let base = BaseUrl::parse(base).unwrap();
            let Ok(uri) = base.join(&path, query.as_deref()) else { continue };
            prop_assert_eq!(uri.authority().unwrap().as_str(), "h:1");
            prop_assert_eq!(uri.scheme_str(), Some("http"));
            let sent = uri.path();
            prop_assert!(sent == base.prefix() || sent.starts_with(&format!("{}/", base.prefix())), "{}", sent);
            prop_assert!(!sent.starts_with("//"));
            // A careless server: decodes, reads backslashes as slashes, drops parameters, then climbs.
            let decoded = percent_encoding::percent_decode_str(sent).decode_utf8_lossy().replace('\\', "/");
            let climbs = decoded.split('/').any(|part| matches!(part.split(';').next(), Some("." | "..")));
            prop_assert!(!climbs, "{}", sent);
            // And the text that is sent is a URL that reads back to itself.
            prop_assert_eq!(uri.to_string().parse::<Uri>().unwrap(), uri);
        }
    }

    /// A126: a segment decodes to its data, and is one segment.
    #[test]
    fn a126_a_segment_decodes_to_its_data(data in prop_oneof![hostile(), ".{0,24}"]) {
        if let Ok(segment) = encode_segment(&data) {
            prop_assert!(!segment.contains(['/', '?', '#', '\\']));
            prop_assert_eq!(percent_encoding::percent_decode_str(&segment).decode_utf8().unwrap(), data.as_str());
            let sent = join("http://h/api", &segment, None).unwrap();
            prop_assert_eq!(sent, format!("http://h/api/{segment}"));
        }
    }
}
