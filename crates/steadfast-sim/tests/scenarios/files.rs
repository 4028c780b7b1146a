//! Which files are meant, and a configuration beside a scenario.

use std::path::PathBuf;

use steadfast_sim::scenario::{Scenario, files, play_in_time};

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steadfast-scenarios-{}-{name}", std::process::id()));
        std::fs::create_dir_all(path.join("below")).unwrap();
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

#[test]
fn those_of_a_directory_in_the_order_of_their_names() {
    let directory = Directory::new("order");
    for name in ["b.toml", "a.toml", "below/c.toml", "notes.md"] {
        directory.write(name, "");
    }
    let found = files(&directory.0).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.strip_prefix(&directory.0).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.toml", "b.toml", "below/c.toml"]);
    // A file is meant whatever its name.
    assert_eq!(files(&directory.0.join("notes.md")).unwrap().len(), 1);
    assert!(files(&directory.0.join("nowhere")).is_err());
}

/// A pipe would be waited for, a link upwards leads in a circle, and one that leads nowhere is told of by name.
#[cfg(unix)]
#[test]
fn odd_entries_neither_hang_nor_stop_the_others() {
    let directory = Directory::new("odd");
    directory.write("a.toml", "");
    std::os::unix::fs::symlink(&directory.0, directory.0.join("below/circle")).unwrap();
    std::os::unix::fs::symlink("nowhere", directory.0.join("dangling.toml")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(directory.0.join("pipe.toml")).status().unwrap();
    assert!(made.success());
    let found = files(&directory.0).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.strip_prefix(&directory.0).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.toml", "dangling.toml"]);
    let problems = Scenario::read(&found[1]).unwrap_err().to_string();
    assert!(problems.contains("cannot be read"), "{problems}");
}

const SCENARIO: &str = r#"
title = "a"
why = "b"
config = "service.toml"
table = "plugin.http"
[upstreams.billing]
retries = 1
base_url = "http://billing.test/v2"
[[script.billing]]
status = 503
[[step]]
call = "billing"
path = "/x"
expect = { requests = 2, seen = { path = "/v2/x", headers = { X-Api = "7" } }, waits = [{ backoff = "40ms" }] }
"#;

/// The service's own file says the rest; what the scenario says wins, key by key.
#[test]
fn the_services_own_configuration_is_read_and_laid_over() {
    let directory = Directory::new("config");
    let service = "[other]\nx = 1\n[plugin.http.upstreams.billing]\nbase_url = \"http://billing\"\nretries = 5\n\
                   backoff_base = \"40ms\"\njitter = \"none\"\nheaders = { X-Api = \"7\" }\n\
                   [plugin.http.upstreams.unused]\nbase_url = \"http://unused\"\n";
    directory.write("service.toml", service);
    let file = directory.write("a.toml", SCENARIO);
    let scenario = Scenario::read(&file).unwrap_or_else(|problems| panic!("{problems}")).remove(0);
    let outcome = play_in_time(&scenario).unwrap();
    assert!(outcome.passed(), "{outcome}");

    // A mistake in it is told with its own line.
    directory.write("service.toml", &service.replace("retries = 5", "retrys = 5"));
    let problems = Scenario::read(&file).unwrap_err().to_string();
    assert!(problems.contains("service.toml:5:1: plugin.http.upstreams.billing.retrys: unknown key"), "{problems}");
    assert_eq!(problems.lines().count(), 1, "{problems}");
}

/// For a stage with real servers: another address, and all else as it was.
#[test]
fn an_upstream_can_be_put_elsewhere() {
    let text = SCENARIO.replace("config = \"service.toml\"\ntable = \"plugin.http\"\n", "");
    let scenario = crate::read(&text);
    let at = [("billing".to_owned(), "http://127.0.0.1:4040/v2".to_owned())].into();
    let config = scenario.settings.config_at(&at).unwrap();
    let settings = config.upstream("billing").unwrap().settings();
    assert_eq!((settings.base_url.to_string().as_str(), settings.retries), ("http://127.0.0.1:4040/v2", 1));
    let wrong = [("billing".to_owned(), "nowhere".to_owned())].into();
    assert!(scenario.settings.config_at(&wrong).is_err());
}
