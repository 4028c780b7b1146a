//! Input that is meant to break the reader: nothing panics, nothing takes long, nothing secret is repeated.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use steadfast::config::Loader;

use crate::{complaint, load};

/// A file with something of every kind, and secrets in it.
const VALID: &str = r#"# A comment
[upstreams.billing]
base_url = "http://billing.internal:8010/api"
read_timeout = 5.0
write_timeout = "250ms"
retries = 2
jitter = "equal"
retry_statuses = [429, 502, 503]
breaker_failure_rate = 0.5
gzip = false
tls_roots = ["/etc/ca.pem"]
rate_limit = 100

[upstreams.billing.headers]
Authorization = "Bearer SECRETsecretSECRET"
X-Api-Key = "SECRETsecretSECRET"

[upstreams]
catalog = { base_url = "https://[::1]:8443", headers = { Cookie = "a=SECRETsecretSECRET" } }
"#;

/// A path for this test alone.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("steadfast-config-{}-{name}", std::process::id()))
}

#[test]
fn values_of_every_odd_shape() {
    for toml in [
        "upstreams = 1",
        "upstreams = []",
        "upstreams = 1979-05-27T07:32:00Z",
        "[[upstreams]]\nbase_url = \"http://a\"",
        "[[upstreams.a]]\nbase_url = \"http://a\"",
        "[upstreams.a.base_url]\nx = 1",
        "[upstreams.a]\nbase_url.x.y = 1",
        "[upstreams.a]\nbase_url = 07:32:00",
        "[upstreams.a]\nbase_url = \"http://a\"\nretries = 99999999999999999999999999999999999999999999999999999",
        "[upstreams.a]\nbase_url = \"http://a\"\nretries = 0xffffffffffffffffffffffffffffffffffffffff",
        "[upstreams.a]\nbase_url = \"http://a\"\nread_timeout = 1e999999",
        "[upstreams.a]\nbase_url = \"http://a\"\nread_timeout = -inf",
        "[upstreams.a]\nbase_url = \"http://a\"\nread_timeout = \"99999999999999999999999999999999999999999h\"",
        "[upstreams.a]\nbase_url = \"http://a\"\nread_timeout = \"\"",
        "[upstreams.a]\nbase_url = \"http://a\"\nheaders = [[[[[[[1]]]]]]]",
        "[upstreams.a]\nbase_url = \"http://a\"\n[[upstreams.a.headers]]\nx = \"y\"",
        "\"\" = 1",
        "[\"\"]",
        "\u{0}",
        "\u{feff}\u{feff}",
        "[upstreams.a]\rbase_url = \"http://a\"",
        "=",
        "[",
        "]]",
        "a.b.c.d.e = {",
    ] {
        let complaint = complaint(toml);
        assert!(complaint.lines().all(|line| line.starts_with("app.toml")), "{toml}: {complaint}");
    }
}

/// Dotted keys and inline tables are only other ways to write the same.
#[test]
fn every_way_to_write_a_table() {
    let tables = load("[upstreams.a]\nbase_url = \"http://a\"\nheaders.X-A = \"b\"").unwrap();
    for toml in [
        "upstreams.a.base_url = \"http://a\"\nupstreams.a.headers = { X-A = \"b\" }",
        "upstreams = { a = { base_url = \"http://a\", headers.X-A = \"b\" } }",
        "[upstreams]\na.base_url = \"http://a\"\n[upstreams.a.headers]\nX-A = \"b\"",
        "[upstreams.\"a\"]\n'base_url' = '''http://a'''\n[upstreams.a.headers]\n\"X-A\" = \"b\"",
        "[upstreams.a.headers]\nX-A = \"b\"\n[upstreams.a]\nbase_url = \"http://a\"",
        "upstreams = {\n  a = {\n    base_url = \"http://a\", # a comment\n    headers.X-A = \"b\",\n  },\n}",
    ] {
        let config = load(toml).unwrap_or_else(|problems| panic!("{toml}: {problems}"));
        assert_eq!(config.upstream("a").unwrap().settings(), tables.upstream("a").unwrap().settings(), "{toml}");
    }
}

/// Nesting beyond what anybody writes is refused by the parser; below that it is only a value of the wrong type.
#[test]
fn deep_nesting() {
    for depth in [10, 70, 100, 20_000] {
        for (open, close) in [("[", "]"), ("{a=", "}"), ("[{a=", "}]")] {
            let toml = format!("[upstreams.a]\nretries = {}1{}", open.repeat(depth), close.repeat(depth));
            assert!(load(&toml).is_err());
            assert!(load(&format!("[upstreams.a]\nretries = {}", open.repeat(depth))).is_err());
        }
        assert!(load(&format!("[upstreams{}]", ".a".repeat(depth))).is_err());
        assert!(load(&format!("upstreams{} = 1", ".a".repeat(depth))).is_err());
        let table = format!("plugin{}", ".a".repeat(depth));
        assert!(Loader::new().text("app.toml", "a = 1").table(table).load().is_err());
    }
}

/// Large files: read in time that grows with their size, refused beyond 1 MiB, and their mistakes counted, not all kept.
#[test]
fn large_files() {
    let filled = |line: &dyn Fn(usize) -> String, bytes: usize| {
        let mut toml = "[upstreams.a]\nbase_url = \"http://a\"\n".to_owned();
        let mut count = 0;
        while toml.len() < bytes {
            toml += &line(count);
            count += 1;
        }
        (toml, count)
    };
    let (unknown, count) = filled(&|n| format!("key{n} = 1\n"), 100_000);
    let problems = load(&unknown).unwrap_err();
    assert_eq!((problems.len(), problems.iter().count()), (count, 200));
    assert!(problems.to_string().ends_with(&format!("and {} more", count - 200)));

    let (upstreams, _) = filled(&|n| format!("[upstreams.a{n}]\n"), 100_000);
    assert_eq!(load(&upstreams).unwrap_err().len(), 1);

    // One line, so that each column is far from the line's start.
    let mut inline = "upstreams = {".to_owned();
    (0..1_000).for_each(|n| inline += &format!(" a{n} = {{ base_url = \"http://é\", retries = -1 }},"));
    assert_eq!(load(&(inline + "}")).unwrap_err().len(), 2_000);

    let (long, _) = filled(&|_| "# filling\n".repeat(1_000), 10 << 20);
    assert_eq!(complaint(&long), "app.toml: larger than 1048576 bytes: is it a configuration?");
    let (fits, _) = filled(&|_| "# filling\n".repeat(1_000), 900_000);
    assert!(load(&fits).is_ok());
    assert!(load(&"=".repeat(100_000)).is_err());
    assert!(load(&format!("[upstreams.{}]", "x".repeat(1_000_000))).unwrap_err().to_string().len() < 1_000);
}

/// What is not a file, or not text.
#[test]
fn what_the_file_system_offers() {
    let said = |path: &PathBuf| {
        let folder = format!("{}/", path.parent().unwrap().display());
        Loader::new().file(path).load().unwrap_err().to_string().replace(&folder, "")
    };
    let path = temporary("missing.toml");
    assert!(said(&path).contains("missing.toml: cannot be read: "));
    assert!(said(&std::env::temp_dir()).contains("cannot be read: "));

    let path = temporary("binary.toml");
    fs::write(&path, b"# fine\n[upstreams.a]\nbase_url = \"\xff\xfe\"").unwrap();
    assert!(said(&path).ends_with("binary.toml: not UTF-8, from line 3 on"));
    fs::write(&path, b"\xff\xfe[\0u\0").unwrap();
    assert!(said(&path).ends_with("binary.toml: not UTF-8, from line 1 on"));
    fs::remove_file(&path).unwrap();

    #[cfg(unix)]
    assert!(said(&PathBuf::from("/dev/zero")).ends_with("zero: larger than 1048576 bytes: is it a configuration?"));
}

/// A file's name that writes to the terminal does not get there.
#[test]
fn hostile_names() {
    let problems = Loader::new().text("a\u{1b}[31m\n.toml", "x = 1").load().unwrap_err().to_string();
    assert_eq!(problems.lines().count(), 1);
    assert!(!problems.contains('\u{1b}'), "{problems:?}");
    let text = "[upstreams.a]\n\"k\\u001b[31m\" = 1\njitter = \"\\u001b[31m\\n\"\nbase_url = \"http://a\"";
    let problems = complaint(text);
    assert!(!problems.contains('\u{1b}') && problems.lines().count() == 2, "{problems:?}");
}

/// The valid file with a few bytes taken out, put in, or doubled.
fn mutated() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "\"",
        "'",
        "\"\"\"",
        "[",
        "]",
        "[[",
        "{",
        "}",
        "=",
        ".",
        ",",
        "\n",
        "\r",
        "#",
        "-",
        "0",
        "9e99",
        "inf",
        "nan",
        "true",
        "\u{0}",
        "é",
        "\\",
        "\\u",
        "upstreams",
        "[upstreams.billing]\n",
        "base_url",
        "__",
        " ",
        "\t",
        "1979-05-27",
    ]);
    prop::collection::vec((any::<prop::sample::Index>(), 0..3_usize, pieces), 1..6).prop_map(|edits| {
        let mut characters: Vec<char> = VALID.chars().collect();
        for (place, cut, piece) in edits {
            let at = place.index(characters.len());
            let end = (at + cut).min(characters.len());
            characters.splice(at..end, piece.chars());
        }
        characters.into_iter().collect()
    })
}

/// Loads as a file and as the table `plugin.http`, and takes everything that can be asked.
fn exercise(text: &str) -> String {
    let mut said = String::new();
    for table in ["", "plugin.http", "upstreams"] {
        match Loader::new().text("app.toml", text).table(table).load() {
            Ok(config) => {
                for (_, upstream) in config.upstreams() {
                    said.extend(upstream.entries().map(|entry| format!("{entry:?}\n")));
                }
                said.extend(config.warnings().iter().map(|warning| format!("{warning}\n")));
            }
            Err(problems) => {
                assert!(!problems.is_empty());
                said += &format!("{problems}\n");
            }
        }
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, rng_seed: RngSeed::Fixed(9), ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in "\\PC*|[\\[\\]{}=\"'.,#\n a-z0-9_-]{0,80}") {
        exercise(&text);
    }

    /// 8.6: a mistake anywhere in a file shows none of its secrets.
    #[test]
    fn c8_6_no_mistake_shows_a_secret(text in mutated()) {
        let said = exercise(&text);
        prop_assert!(!said.contains("SECRETsecretSECRET"), "{}\n---\n{}", said, text);
    }

    #[test]
    fn no_variable_panics(name in "(?i)(STEADFAST_)?UPSTREAMS?_{0,4}[a-z_.é-]{0,12}_{0,4}(RETRIES|BASE_URL|HEADERS|[A-Z_]{0,8})", value in "\\PC{0,20}") {
        let _ = Loader::new().text("app.toml", VALID).env([(name, value)]).load();
    }

    #[test]
    fn no_value_of_a_key_panics(index in any::<prop::sample::Index>(), value in "\\PC{0,20}|-?[0-9]{0,40}\\.?[0-9]{0,40}(e[0-9]{1,4})?|\\[.{0,10}\\]|\\{.{0,10}\\}") {
        let key = steadfast::config::KEYS[index.index(steadfast::config::KEYS.len())].name;
        let _ = load(&format!("[upstreams.a]\n{key} = {value}"));
        let _ = load(&format!("[upstreams.a]\n{key} = {value:?}"));
        let variable = format!("STEADFAST_UPSTREAMS__A__{}", key.to_uppercase());
        let _ = Loader::new().env([(variable, value)]).load();
    }
}
