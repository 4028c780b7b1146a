//! Whether files have other content than before: what a reload waits for.
//!
//! By asking, not by events of the operating system: a mounted ConfigMap changes by a symbolic link that is swapped two
//! directories up, editors and deployments replace files instead of writing them, network file systems tell nobody, and
//! a watch on a file that is replaced is a watch on nothing. A look reads what each path leads to at that moment. It
//! compares content, as times and sizes stay the same where a tool sets them, or change where nothing else does.
//!
//! **A change is told once it has settled**: when two looks in a row saw the same, for all files of the set, and it is
//! not what was told last. So a file that is missing for the moment of its replacement, one that is half written, and a
//! certificate whose key comes a moment later are not told too early, and what is undone in between is not told at all.
//! A file that stays away is a change too.
//!
//! Invariants: nothing is remembered but a length and a digest per path; a look reads at most [`MOST_READ`] of a file,
//! and only of regular files, so that no device or pipe can stop it. It never fails: what cannot be read is a state like
//! any other, and whoever loads the file then says what is wrong with it.
//!
//! Limits: a writer that pauses for longer than two looks are apart is seen half done; the load that follows finds a
//! problem, which changes nothing, and the rest of the file is the next change. A set of which some file is different at
//! every look never settles. There is no timer here; the looks are the caller's.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What is read of one file in one look: 16 MiB. Of what lies beyond only the length is compared.
pub const MOST_READ: u64 = 16 * 1024 * 1024;

/// How much is read at once.
const PIECE: usize = 16 * 1024;

/// Remembers the content of some files, and tells when it has changed.
///
/// Make it before the files are read for the first time: what changes after that is told. It does blocking I/O; in
/// asynchronous code a look belongs on a thread where that is allowed (tokio's `spawn_blocking`).
///
/// ```no_run
/// use steadfast::watch::FileWatch;
///
/// let mut watch = FileWatch::new(["service.toml", "ca.pem"]);
/// // … load them; then every few seconds:
/// if watch.changed() {
///     // … load them again.
/// }
/// ```
pub struct FileWatch {
    files: BTreeMap<PathBuf, Watched>,
    /// Keys of this process alone, so that nobody can prepare two contents that look the same.
    keys: RandomState,
}

struct Watched {
    /// What the caller has been told of, or began with.
    told: Content,
    /// What the last look saw.
    seen: Content,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Nothing.
    Missing,
    /// Something that is no file, or a file that cannot be read.
    Unreadable,
    Bytes {
        length: u64,
        digest: u64,
    },
}

impl FileWatch {
    /// Looks at the files as they are now. A path that leads nowhere yet can be among them. Relative paths start, at each
    /// look, from the directory that the process is in.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        let mut watch = Self { files: BTreeMap::new(), keys: RandomState::new() };
        watch.set_paths(paths);
        watch
    }

    /// Watches these paths from now on: of one that was watched before the last report still counts, a new one begins
    /// with its present content, and others are forgotten.
    ///
    /// To be called before a new configuration's files are read, for the same reason as [`new`](Self::new).
    pub fn set_paths<P: Into<PathBuf>>(&mut self, paths: impl IntoIterator<Item = P>) {
        let mut before = std::mem::take(&mut self.files);
        for path in paths {
            let path = path.into();
            if self.files.contains_key(&path) {
                continue;
            }
            let watched = before.remove(&path).unwrap_or_else(|| {
                let content = look(&path, &self.keys);
                Watched { told: content, seen: content }
            });
            self.files.insert(path, watched);
        }
    }

    /// The paths that are watched, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// Looks at every file. `true`, once for each change, if their content is no longer what it was when this was `true`
    /// last (or at the beginning), and is the same as at the last look.
    ///
    /// Looks should lie some time apart, a second or more: two that follow at once settle nothing.
    pub fn changed(&mut self) -> bool {
        let (mut is_settled, mut is_new) = (true, false);
        for (path, watched) in &mut self.files {
            let now = look(path, &self.keys);
            is_settled &= now == watched.seen;
            is_new |= now != watched.told;
            watched.seen = now;
        }
        if !(is_settled && is_new) {
            return false;
        }
        for watched in self.files.values_mut() {
            watched.told = watched.seen;
        }
        true
    }
}

/// The paths alone: even a digest of a private key has no place in a log.
impl fmt::Debug for FileWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWatch").field("paths", &self.files.keys()).finish_non_exhaustive()
    }
}

fn look(path: &Path, keys: &RandomState) -> Content {
    match read(path, keys) {
        Ok(content) => content,
        // A part of the path that is a file now leads nowhere too.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Content::Missing
        }
        Err(_) => Content::Unreadable,
    }
}

fn read(path: &Path, keys: &RandomState) -> io::Result<Content> {
    // Before it is opened: to open a pipe waits for its other end.
    if !fs::metadata(path)?.is_file() {
        return Ok(Content::Unreadable);
    }
    let file = File::open(path)?;
    // Of what was opened, which may be its successor by now.
    let length = file.metadata()?.len();
    let digest = digest(file.take(MOST_READ), keys.build_hasher())?;
    Ok(Content::Bytes { length, digest })
}

/// Goes through whole pieces, since a hasher may tell apart how the same bytes were handed to it, and a short read must
/// not look like a change.
fn digest(mut from: impl Read, mut hasher: impl Hasher) -> io::Result<u64> {
    let mut piece = vec![0; PIECE];
    loop {
        let mut filled = 0;
        while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match from.read(rest) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        hasher.write(piece.get(..filled).unwrap_or(&piece));
        if filled < PIECE {
            return Ok(hasher.finish());
        }
    }
}

#[cfg(test)]
mod tests;
