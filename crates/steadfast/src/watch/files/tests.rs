use std::time::SystemTime;

use super::*;

/// A directory for one test, which goes with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steadfast-watch-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the next looks say.
fn looks<const N: usize>(watch: &mut FileWatch) -> [bool; N] {
    std::array::from_fn(|_| watch.changed())
}

#[test]
fn c9_5_files_that_stay_as_they_are_are_no_change() {
    let directory = Directory::new("stay");
    let there = directory.write("there", "a");
    let mut watch = FileWatch::new([there, directory.path("not there"), directory.0.clone()]);
    assert_eq!(looks(&mut watch), [false; 5]);
    assert_eq!(looks(&mut FileWatch::new([""; 0])), [false; 3]);
}

#[test]
fn c9_5_a_change_is_told_once_at_the_second_look_that_sees_it() {
    let directory = Directory::new("once");
    let path = directory.write("file", "a");
    let mut watch = FileWatch::new([path]);
    for content in ["b", "", "bb", "a"] {
        directory.write("file", content);
        assert_eq!(looks(&mut watch), [false, true, false, false], "{content:?}");
    }
}

#[test]
fn c9_5_a_file_that_is_missing_while_it_is_replaced_is_not_broken() {
    let directory = Directory::new("replaced");
    let path = directory.write("file", "a");
    let mut watch = FileWatch::new([&path]);
    fs::remove_file(&path).unwrap();
    assert!(!watch.changed());
    directory.write("file", "b");
    assert_eq!(looks(&mut watch), [false, true, false]);

    // Gone and back as it was: nothing has happened.
    fs::remove_file(&path).unwrap();
    assert!(!watch.changed());
    directory.write("file", "b");
    assert_eq!(looks(&mut watch), [false; 3]);
}

#[test]
fn c9_5_a_file_that_stays_away_or_appears_is_a_change() {
    let directory = Directory::new("away");
    let path = directory.write("file", "a");
    let mut watch = FileWatch::new([&path]);
    fs::remove_file(&path).unwrap();
    assert_eq!(looks(&mut watch), [false, true, false]);
    directory.write("file", "a");
    assert_eq!(looks(&mut watch), [false, true, false]);
    // An empty file is not a missing one, and a directory is neither.
    directory.write("file", "");
    assert_eq!(looks(&mut watch), [false, true, false]);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(looks(&mut watch), [false, true, false]);
}

#[test]
fn c9_5_what_is_still_being_written_is_not_told() {
    let directory = Directory::new("written");
    let path = directory.write("file", "a = 1");
    let mut watch = FileWatch::new([&path]);
    for content in ["a", "a = 2", "a = 2\nb"] {
        directory.write("file", content);
        assert!(!watch.changed());
    }
    directory.write("file", "a = 2\nb = 3");
    assert_eq!(looks(&mut watch), [false, true, false]);
    // Undone before it settled.
    directory.write("file", "a = 7");
    assert!(!watch.changed());
    directory.write("file", "a = 2\nb = 3");
    assert_eq!(looks(&mut watch), [false; 3]);
}

/// A certificate without its key would be a reload too many, and one that fails.
#[test]
fn c9_5_files_that_change_together_are_one_change() {
    let directory = Directory::new("together");
    let mut watch = FileWatch::new(["certificate", "key"].map(|name| directory.write(name, "old")));
    directory.write("certificate", "new");
    assert!(!watch.changed());
    directory.write("key", "new");
    assert_eq!(looks(&mut watch), [false, true, false]);
}

#[test]
fn c9_5_content_counts_and_not_times_or_sizes() {
    let directory = Directory::new("times");
    let path = directory.write("file", "a = 1");
    let file = || File::options().write(true).open(&path).unwrap();
    let then = SystemTime::UNIX_EPOCH;
    file().set_modified(then).unwrap();
    let mut watch = FileWatch::new([&path]);
    file().set_modified(SystemTime::now()).unwrap();
    assert_eq!(looks(&mut watch), [false; 3]);
    directory.write("file", "a = 2");
    file().set_modified(then).unwrap();
    assert_eq!(looks(&mut watch), [false, true, false]);
}

/// How a ConfigMap is mounted: what is watched is a link to a file behind a link that is swapped.
#[cfg(unix)]
#[test]
fn c9_5_a_link_that_is_swapped_above_the_file_is_a_change() {
    use std::os::unix::fs::symlink;

    let directory = Directory::new("mount");
    for (version, content) in [("..one", "a"), ("..two", "b"), ("..three", "b")] {
        fs::create_dir(directory.path(version)).unwrap();
        directory.write(&format!("{version}/file"), content);
    }
    let point_to = |version: &str| {
        symlink(version, directory.path("..data_tmp")).unwrap();
        fs::rename(directory.path("..data_tmp"), directory.path("..data")).unwrap();
    };
    point_to("..one");
    symlink("..data/file", directory.path("file")).unwrap();
    let mut watch = FileWatch::new([directory.path("file")]);
    assert_eq!(looks(&mut watch), [false; 2]);
    point_to("..two");
    fs::remove_dir_all(directory.path("..one")).unwrap();
    assert_eq!(looks(&mut watch), [false, true, false]);
    // Another version of the whole, in which this file is as before.
    point_to("..three");
    assert_eq!(looks(&mut watch), [false; 3]);
    // A link that leads nowhere.
    fs::remove_dir_all(directory.path("..three")).unwrap();
    assert_eq!(looks(&mut watch), [false, true, false]);
}

#[test]
fn c9_5_large_files_are_read_in_pieces_up_to_a_limit() {
    let directory = Directory::new("large");
    for length in [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7] {
        let mut content = vec![b'x'; length];
        let path = directory.write("file", &content);
        let mut watch = FileWatch::new([path]);
        *content.last_mut().unwrap() = b'y';
        directory.write("file", &content);
        assert_eq!(looks(&mut watch), [false, true, false], "{length}");
    }

    // A file with a hole takes no room on the disk.
    let path = directory.path("hole");
    let resize = |length| File::options().write(true).create(true).truncate(false).open(&path)?.set_len(length);
    resize(u64::from(u32::MAX)).unwrap();
    let mut watch = FileWatch::new([&path]);
    assert_eq!(looks(&mut watch), [false; 1]);
    resize(u64::from(u32::MAX) + 1).unwrap();
    assert_eq!(looks(&mut watch), [false, true, false]);
}

/// The same bytes, however few the file system hands over at a time, and however often a signal comes in between.
#[test]
fn c9_5_short_reads_are_no_change() {
    struct Slow<'a>(&'a [u8], usize);
    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let most = into.len().min(self.1 % 977 + 1);
            self.0.read(into.get_mut(..most).unwrap())
        }
    }

    let content: Vec<u8> = (0..3 * PIECE + 5).map(|n| n as u8).collect();
    let keys = RandomState::new();
    let slow = digest(Slow(&content, 0), keys.build_hasher()).unwrap();
    assert_eq!(slow, digest(&*content, keys.build_hasher()).unwrap());
    assert_ne!(slow, digest(&content[..3 * PIECE], keys.build_hasher()).unwrap());
}

/// Reading a device may never end, and opening a pipe may never begin.
#[cfg(unix)]
#[test]
fn c9_5_what_is_no_file_is_not_read() {
    let directory = Directory::new("devices");
    let socket = directory.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let keys = RandomState::new();
    for path in [Path::new("/dev/zero"), &socket, &directory.0] {
        assert_eq!(look(path, &keys), Content::Unreadable, "{}", path.display());
    }
    let file = directory.write("file", "");
    assert_eq!(look(&file.join("below"), &keys), Content::Missing);
}

#[test]
fn c9_5_the_set_of_paths_can_change() {
    let directory = Directory::new("set");
    let [a, b, c] = ["a", "b", "c"].map(|name| directory.write(name, "old"));
    let mut watch = FileWatch::new([&b, &a, &b]);
    assert!(watch.paths().eq([&a, &b]));
    for name in ["a", "b", "c"] {
        directory.write(name, "new");
    }
    watch.set_paths([&c, &b]);
    assert!(watch.paths().eq([&b, &c]));
    assert_eq!(looks(&mut watch), [false, true, false], "b was watched all the time");
    directory.write("a", "newer");
    assert_eq!(looks(&mut watch), [false; 3], "a is no longer");
    directory.write("c", "newer");
    assert_eq!(looks(&mut watch), [false, true, false]);
}

#[test]
fn c8_6_debug_shows_paths_alone() {
    let directory = Directory::new("debug");
    let path = directory.write("file", "secret");
    let shown = format!("{:?}", FileWatch::new([&path]));
    assert_eq!(shown, format!("FileWatch {{ paths: [{path:?}], .. }}"));
}
