//! The `clippy.toml` that `steadfast init` writes does what it is for: clippy refuses a service that calls `reqwest::get`,
//! and passes one that uses Steadfast.
//!
//! The two services are in `tests/fixtures/adoption`. They are copied into the target directory and checked in it, so that
//! what the repository's own build has compiled is used; nothing comes from the network. Clippy runs for real.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::steadfast;

/// There is one copy, and clippy's answer hangs on a file in it.
static COPY: Mutex<()> = Mutex::new(());

/// The copy, with the files that `init` wrote in it, until this is dropped.
struct Services {
    dir: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

/// What clippy came to.
struct Clippy {
    passed: bool,
    said: String,
}

fn cargo(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(dir).env("CARGO_TERM_COLOR", "never").env_remove("CLIPPY_CONF_DIR");
    // What cargo tells a test about its package is no business of another build, and ring's is made anew when it changes.
    for (name, _) in std::env::vars_os() {
        let told = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_NAME"];
        if name == "CARGO" || name.to_str().is_some_and(|name| told.iter().any(|start| name.starts_with(start))) {
            command.env_remove(name);
        }
    }
    command.output().expect("cargo runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

impl Services {
    fn new() -> Self {
        let alone = COPY.lock().unwrap_or_else(PoisonError::into_inner);
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (from, crates) = (here.join("tests/fixtures/adoption"), here.parent().expect("the directory of crates"));
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("adoption");
        let _ = fs::remove_dir_all(&dir);
        for file in ["bare/Cargo.toml", "bare/src/main.rs", "bare/src/entrances.rs"] {
            copy(&from.join(file), &dir.join(file));
        }
        for file in ["guarded/Cargo.toml", "guarded/src/main.rs"] {
            copy(&from.join(file), &dir.join(file));
        }
        let manifest = fs::read_to_string(from.join("Cargo.toml")).expect("the fixtures' manifest");
        let library = crates.join("steadfast");
        let moved = manifest.replace("\"../../../../steadfast\"", &format!("'{}'", library.display()));
        assert_ne!(manifest, moved, "the path to the library was not found");
        fs::write(dir.join("Cargo.toml"), moved).expect("a manifest");
        // The same versions as in the repository; what the services do not need falls out.
        copy(&crates.join("../Cargo.lock"), &dir.join("Cargo.lock"));
        let run = steadfast(&["init", dir.to_str().expect("UTF-8")]);
        assert_eq!(run.code, 0, "{run:?}");
        Self { dir, _alone: alone }
    }

    fn clippy(&self, package: &str) -> Clippy {
        let version = cargo(&self.dir, &["clippy", "--version"]);
        assert!(version.status.success(), "this test needs clippy, a component of Rust's: {}", text(&version));
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().and_then(Path::to_str).expect("UTF-8");
        let args =
            ["clippy", "--offline", "--target-dir", target, "--package", package, "--all-targets", "--", "-Dwarnings"];
        let output = cargo(&self.dir, &args);
        Clippy { passed: output.status.success(), said: text(&output) }
    }

    fn lines(&self) -> toml::Table {
        let text = fs::read_to_string(self.dir.join("clippy.toml")).expect("clippy.toml");
        text.parse().expect("TOML")
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a directory")).expect("a directory");
    // Not fs::copy, which would keep an old time: cargo looks at times to see what has changed.
    fs::write(to, fs::read(from).expect("a file of the fixtures")).expect("a copy");
}

/// Clippy's word for a path that leads nowhere in a crate that is there.
fn assert_every_path_leads_somewhere(said: &str) {
    assert!(!said.contains("does not refer to") && !said.contains("expected a function, found"), "{said}");
}

#[test]
fn i5_a_service_that_calls_reqwest_get_is_refused_with_the_reason() {
    let services = Services::new();
    let bare = services.clippy("bare");
    assert!(!bare.passed, "{}", bare.said);
    assert_every_path_leads_somewhere(&bare.said);
    let refusal = bare.said.find("use of a disallowed method `reqwest::get`").expect(&bare.said);
    let rest = &bare.said[refusal..];
    let line = rest.find("bare/src/main.rs:7:").expect(rest);
    let reason =
        rest.find("no deadline over all attempts, no circuit breaker: use steadfast::ServiceClient").expect(rest);
    assert!(line < reason, "{rest}");
    // Each other line too, of the crates that are here. What the list has of older hypers is not.
    let older = ["hyper::Client::new", "hyper::Client::builder", "hyper::client::conn::handshake"];
    let lines = services.lines();
    let mut seen = 0;
    for entry in lines["disallowed-methods"].as_array().expect("an array") {
        let path = entry["path"].as_str().expect("a path");
        let here = ["reqwest::", "hyper::", "hyper_util::"].iter().any(|name| path.starts_with(name));
        let optional = path.starts_with("reqwest::blocking::") || path == "hyper::client::conn::Builder::handshake";
        if here && !optional && !older.contains(&path) {
            assert!(bare.said.contains(&format!("use of a disallowed method `{path}`")), "{path}: {}", bare.said);
            seen += 1;
        }
    }
    assert_eq!(seen, 14);
}

#[test]
fn i5_a_service_that_uses_steadfast_passes() {
    let guarded = Services::new().clippy("guarded");
    assert!(guarded.passed, "{}", guarded.said);
    assert!(!guarded.said.contains("warning"), "{}", guarded.said);
}

/// Neither result is clippy's own: it is the file that brings them about.
#[test]
fn i5_with_an_empty_file_both_results_are_the_other_way_round() {
    let services = Services::new();
    fs::write(services.dir.join("clippy.toml"), "").expect("an empty file");
    let bare = services.clippy("bare");
    assert!(bare.passed, "{}", bare.said);
    let guarded = services.clippy("guarded");
    assert!(!guarded.passed, "{}", guarded.said);
    assert!(guarded.said.contains("this lint expectation is unfulfilled"), "{}", guarded.said);
}
