//! `steadfast init`: what it writes, what it leaves alone, and what it says of it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Run, steadfast};

/// An empty directory that lives as long as the value does.
struct Dir(PathBuf);

impl Dir {
    /// `name` must be unique among the tests.
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steadfast-init-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("a file")
    }

    fn put(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).expect("a file");
    }

    fn init(&self, args: &[&str]) -> Run {
        steadfast(&[&["init", as_text(&self.0)], args].concat())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn as_text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn i5_both_files_are_written_and_the_configuration_is_valid_as_it_stands() {
    let dir = Dir::new("both");
    let run = dir.init(&[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    for file in ["steadfast.toml", "clippy.toml"] {
        assert!(run.stderr.contains(&format!("{}: written", dir.path(file).display())), "{run:?}");
    }
    let check = steadfast(&["check", as_text(&dir.path("steadfast.toml"))]);
    assert_eq!((check.code, check.stderr.as_str()), (0, ""), "{check:?}");
    assert!(check.stdout.contains("upstream example"), "{check:?}");
    // Again: nothing has to be done, and nothing is.
    let run = dir.init(&[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    assert_eq!(run.stderr.matches("as it would be written").count(), 2, "{run:?}");
}

#[test]
fn i5_one_of_the_two() {
    let dir = Dir::new("one");
    assert_eq!(dir.init(&["--only", "clippy"]).code, 0);
    assert!(dir.path("clippy.toml").exists() && !dir.path("steadfast.toml").exists());
    assert_eq!(dir.init(&["--only", "config"]).code, 0);
    assert!(dir.path("steadfast.toml").exists());
}

#[test]
fn i5_printed_and_not_written() {
    let dir = Dir::new("print");
    dir.init(&[]);
    for (only, file) in [("config", "steadfast.toml"), ("clippy", "clippy.toml")] {
        let run = steadfast(&["init", "-n", "--only", only]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
        assert_eq!(run.stdout, dir.text(file));
    }
    let run = steadfast(&["init", "--print"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    for file in ["steadfast.toml", "clippy.toml"] {
        assert!(run.stdout.contains(&dir.text(file)), "{file}: {run:?}");
    }
}

#[test]
fn i5_a_configuration_that_exists_is_left_alone_unless_forced() {
    let dir = Dir::new("config-there");
    dir.put("steadfast.toml", "# mine\n");
    let run = dir.init(&[]);
    assert_eq!((run.code, run.stdout.as_str()), (73, ""), "{run:?}");
    assert!(run.stderr.contains("steadfast.toml: is there already, and was left alone"), "{run:?}");
    assert_eq!(dir.text("steadfast.toml"), "# mine\n");
    // The other was written all the same.
    assert!(dir.path("clippy.toml").exists());
    let run = dir.init(&["--force"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(dir.text("steadfast.toml").contains("[upstreams.example]"));
}

#[test]
fn i5_a_clippy_file_that_exists_is_left_alone_and_what_it_lacks_is_printed() {
    let dir = Dir::new("clippy-there");
    let mine = "allow-unwrap-in-tests = true\ndisallowed-types = []\n";
    dir.put("clippy.toml", mine);
    let run = dir.init(&["--only", "clippy"]);
    assert_eq!(run.code, 73, "{run:?}");
    let lines = run.stdout.matches("{ path = ").count();
    assert!(run.stderr.contains(&format!("was left alone; {lines} lines to add to it:")), "{run:?}");
    assert_eq!(dir.text("clippy.toml"), mine);
    assert!(run.stdout.contains("\ndisallowed-methods = [\n") && !run.stdout.contains("\ndisallowed-types = ["));
    // Added by hand, as it was said, it is complete.
    let (methods, types) = run.stdout.split_once("# Into disallowed-types = [ … ]:\n").expect("two parts");
    dir.put("clippy.toml", &format!("{methods}allow-unwrap-in-tests = true\ndisallowed-types = [\n{types}]\n"));
    let run = dir.init(&["--only", "clippy"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    assert!(run.stderr.contains("forbids everything that it should"), "{run:?}");
}

#[test]
fn i5_of_clippys_two_names_the_one_that_it_reads_first_counts() {
    let dir = Dir::new("hidden");
    dir.put(".clippy.toml", "");
    let run = dir.init(&["--only", "clippy"]);
    assert_eq!(run.code, 73, "{run:?}");
    assert!(run.stderr.contains(".clippy.toml: is there already") && !dir.path("clippy.toml").exists(), "{run:?}");
}

#[test]
fn i5_a_clippy_file_that_is_not_toml_is_a_problem_with_its_line() {
    let dir = Dir::new("broken");
    dir.put("clippy.toml", "a = 1\nb = [[\n");
    let run = dir.init(&["--only", "clippy"]);
    assert_eq!((run.code, run.stdout.as_str()), (78, ""), "{run:?}");
    assert!(run.stderr.contains("clippy.toml: is there already, and is not TOML") && run.stderr.contains("line"));
}

#[test]
fn i5_what_cannot_be_read_or_written_is_said() {
    let dir = Dir::new("unreadable");
    let run = steadfast(&["init", as_text(&dir.path("nowhere"))]);
    assert_eq!((run.code, run.stdout.as_str()), (64, ""), "{run:?}");
    assert!(run.stderr.contains("nowhere: expected a directory that exists"), "{run:?}");
    // A directory in the place of the file, one that is no text, and one that is far too long.
    fs::create_dir(dir.path("steadfast.toml")).expect("a directory");
    for text in [vec![0xff; 8], vec![b'#'; (1 << 20) + 1]] {
        fs::write(dir.path("clippy.toml"), &text).expect("a file");
        let run = dir.init(&[]);
        assert_eq!((run.code, run.stdout.as_str()), (73, ""), "{run:?}");
        assert_eq!(run.stderr.matches("is there already, and cannot be read").count(), 2, "{run:?}");
        assert_eq!(fs::read(dir.path("clippy.toml")).expect("a file"), text);
    }
}

#[cfg(unix)]
#[test]
fn i5_a_link_that_leads_nowhere_is_not_followed() {
    let dir = Dir::new("link");
    std::os::unix::fs::symlink(dir.path("elsewhere.toml"), dir.path("steadfast.toml")).expect("a link");
    let run = dir.init(&["--only", "config"]);
    assert_eq!(run.code, 73, "{run:?}");
    assert!(!dir.path("elsewhere.toml").exists());
}
