//! Keys that are typed with a call: over a configured upstream as over a URL, and in the words that were typed.

use crate::support::{File, Run, steadfast};

const FILE: &str = r#"
[plugin.http.upstreams.billing]
base_url = "https://127.0.0.1:9"
retries = 0
tls_identity = "/does/not/exist.pem"
"#;

/// A call to the configured upstream with these further arguments.
fn call(name: &str, args: &[&str]) -> Run {
    let file = File::new(name, FILE);
    steadfast(&[&["call", "--config", file.path(), "--table", "plugin.http", "billing", "GET", "/x"], args].concat())
}

/// Every mistake at once, each under the flag it was typed with.
#[test]
fn c9_2_mistakes_are_told_in_the_words_that_were_typed() {
    let run = call(
        "mistakes.toml",
        &[
            "--set",
            "Retrys=1",
            "--set",
            "max-concurrent=0",
            "--set",
            "headers={\"Host\": \"secret\"}",
            "--set",
            "tls_server_name=a b",
        ],
    );
    assert_eq!((run.code, run.stdout.as_str()), (78, ""), "{run:?}");
    let expected = "\
error: --set retrys: unknown key; did you mean `retries`?
error: --set max_concurrent: expected an integer from 1 to 1000000; found the integer 0
error: --set headers: `Host` follows from base_url and cannot be set
error: --set tls_server_name: expected a string with a DNS name or an IP address; found the string \"a b\"
";
    assert_eq!(run.stderr, expected);
    let run = steadfast(&["call", "--url", "https://127.0.0.1:9", "GET", "/x", "--key", "me.key"]);
    assert_eq!(run.code, 78, "{run:?}");
    assert_eq!(
        run.stderr,
        "error: --key: needs tls_identity, the file with the certificate that this key belongs to\n"
    );
}

/// A file that cannot be used is a problem of the flag, or of the place in the file, that named it.
#[test]
fn files_that_cannot_be_used() {
    for args in [&["--url", "https://127.0.0.1:9"][..], &["--url", "https://127.0.0.1:9", "--set", "tls_roots=/x.pem"]]
    {
        let run = steadfast(&[&["call"], args, &["GET", "/x", "--cacert", "/does/not/exist.pem"]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (78, ""), "{run:?}");
        assert!(run.stderr.starts_with("error: --cacert: ") && run.stderr.contains("/does/not/exist.pem"), "{run:?}");
    }
    let run =
        steadfast(&["call", "--url", "https://127.0.0.1:9", "GET", "/x", "--set", "tls-roots=/does/not/exist.pem"]);
    assert!(run.code == 78 && run.stderr.starts_with("error: --set tls_roots: "), "{run:?}");
}

/// An address of its own is one more key to set; a name that nobody knows is still a mistake of usage.
#[test]
fn an_unknown_upstream_is_told_the_known_ones() {
    let file = File::new("unknown-set.toml", "[upstreams.billing]\nbase_url = \"http://127.0.0.1:9\"\n");
    let run = steadfast(&["call", "--config", file.path(), "biling", "GET", "/x", "--set", "retries=0"]);
    assert_eq!(run.code, 64, "{run:?}");
    assert!(run.stderr.contains("'biling'") && run.stderr.contains("billing"), "{run:?}");
    let args = ["billing", "GET", "/x", "--set", "retries=0", "--set", "base_url=http://user:secret@127.0.0.1:9"];
    let run = steadfast(&[&["call", "--config", file.path()][..], &args].concat());
    assert_eq!(run.code, 78, "{run:?}");
    assert!(run.stderr.starts_with("error: --set base_url: expected ") && !run.stderr.contains("secret"), "{run:?}");
}

/// What is typed wins: without it this upstream would be tried again.
#[test]
fn c9_4_what_is_typed_wins_over_the_file() {
    let file = File::new(
        "wins.toml",
        "[upstreams.billing]\nbase_url = \"http://127.0.0.1:9\"\nbackoff_base = 0\nproxy = false\n",
    );
    let attempts = |args: &[&str]| {
        let all = [&["call", "--config", file.path(), "billing", "GET", "/x", "--output", "json"], args].concat();
        steadfast(&all).lines()[0]["attempts"].as_array().expect("attempts").len()
    };
    assert_eq!((attempts(&[]), attempts(&["--set", "retries=0"])), (3, 1));
}
