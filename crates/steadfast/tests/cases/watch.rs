//! Clients that follow their configuration on disk (contract 9.5). The looks are made by hand: nothing sleeps here.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use steadfast::Clients;
use steadfast::config::Loader;
use steadfast::watch::{ConfigWatch, ReloadError};

/// A directory of its own for each test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let name = format!("watch-{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn billing(keys: &str) -> String {
    format!("[upstreams.billing]\nbase_url = 'http://billing.test'\nproxy = false\n{keys}\n")
}

fn start(directory: &Directory, keys: &str) -> (Clients, ConfigWatch) {
    let loader = Loader::new().file(directory.write("app.toml", &billing(keys)));
    let clients = Clients::new(&loader.clone().load().unwrap()).unwrap();
    let watch = clients.watch(loader);
    (clients, watch)
}

fn retries(clients: &Clients) -> u32 {
    clients.client("billing").unwrap().settings().retries
}

#[test]
fn c9_5_a_changed_file_is_put_in_force_once_it_has_settled() {
    let directory = Directory::new();
    let (clients, mut watch) = start(&directory, "retries = 1");
    assert!(watch.look().is_none(), "nothing has changed");
    directory.write("app.toml", &billing("retries = 5"));
    assert!(watch.look().is_none(), "seen once");
    assert_eq!(watch.look().unwrap().unwrap().changed, ["billing"]);
    assert_eq!(retries(&clients), 5);
    assert!(watch.look().is_none());
}

#[test]
fn c9_5_a_broken_file_changes_nothing_and_says_so_once() {
    let directory = Directory::new();
    let (clients, watch) = start(&directory, "retries = 1");
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let mut watch = watch.on_change(move |result| {
        sink.lock().unwrap().push(result.as_ref().map_err(ToString::to_string).cloned());
    });
    assert!(watch.look().is_none());
    directory.write("app.toml", &billing("retrys = 5"));
    let _ = watch.look();
    let error = watch.look().unwrap().unwrap_err();
    assert!(matches!(&error, ReloadError::Load(_)));
    assert!(error.to_string().contains("retrys") && error.to_string().contains("app.toml:4"), "{error}");
    assert_eq!(retries(&clients), 1);
    assert!(watch.look().is_none() && watch.look().is_none(), "once is enough");
    directory.write("app.toml", &billing("retries = 3"));
    assert!(watch.look().is_none());
    assert!(watch.look().unwrap().is_ok());
    assert_eq!(retries(&clients), 3);
    let told = told.lock().unwrap();
    assert_eq!(told.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
}

/// What changes between the load and the first look is not missed.
#[test]
fn c9_5_the_first_look_reloads_in_any_case() {
    let directory = Directory::new();
    let loader = Loader::new().file(directory.write("app.toml", &billing("retries = 1")));
    let clients = Clients::new(&loader.clone().load().unwrap()).unwrap();
    directory.write("app.toml", &billing("retries = 4"));
    let mut watch = clients.watch(loader);
    assert_eq!(watch.look().unwrap().unwrap().changed, ["billing"]);
    assert_eq!(retries(&clients), 4);
}

/// The certificates that a new configuration names are watched from then on.
#[test]
fn c9_5_certificates_are_watched_too() {
    let certificate = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap().cert.pem();
    let directory = Directory::new();
    let (clients, mut watch) = start(&directory, "");
    let root = directory.write("ca.pem", &certificate("one.test"));
    assert!(watch.look().is_none());
    let secure = format!(
        "[upstreams.billing]\nbase_url = 'https://billing.test'\nproxy = false\ntls_roots = ['{}']\n",
        root.display()
    );
    directory.write("app.toml", &secure);
    assert!(watch.look().is_none());
    assert!(watch.look().unwrap().is_ok());
    directory.write("ca.pem", &certificate("two.test"));
    assert!(watch.look().is_none());
    assert_eq!(watch.look().unwrap().unwrap().changed, ["billing"]);
    // One that cannot be used changes nothing.
    directory.write("ca.pem", "no certificate");
    assert!(watch.look().is_none());
    let error = watch.look().unwrap().unwrap_err();
    assert!(matches!(&error, ReloadError::Build(_)) && error.to_string().contains("ca.pem"), "{error}");
    assert!(clients.client("billing").unwrap().settings().base_url.is_https());
}

#[test]
fn a_file_that_goes_away_is_a_problem_and_changes_nothing() {
    let directory = Directory::new();
    let (clients, mut watch) = start(&directory, "retries = 1");
    assert!(watch.look().is_none());
    std::fs::remove_file(directory.0.join("app.toml")).unwrap();
    assert!(watch.look().is_none());
    assert!(watch.look().unwrap().is_err());
    assert_eq!(retries(&clients), 1);
}

/// 8.6: the watch shows paths, and nothing that is in the files.
#[test]
fn c8_6_debug_shows_paths_alone() {
    let directory = Directory::new();
    let (_, watch) = start(&directory, "headers = { authorization = 'S3CR3T' }");
    let shown = format!("{watch:?}");
    assert!(shown.contains("app.toml") && !shown.contains("S3CR3T"), "{shown}");
}
