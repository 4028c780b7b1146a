//! Which files are meant by a path: the file itself, or every scenario below a directory.

use std::io;
use std::path::{Path, PathBuf};

/// How deep directories are looked into.
const DEPTH: usize = 16;

/// The file, or the files that end in `.toml` in this directory and those below it, in the order of their names. Below it,
/// links to directories are not followed, so that none leads in a circle, and what is neither file nor directory (a pipe would
/// be waited for) is left out.
///
/// # Errors
/// What cannot be read.
pub fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(path, DEPTH, &mut found)?;
    Ok(found)
}

fn collect(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !std::fs::metadata(path)?.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Err(io::Error::other(format!("directories are more than {DEPTH} deep")));
    }
    let mut entries = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    for entry in entries {
        let is_link = std::fs::symlink_metadata(&entry).is_ok_and(|itself| itself.is_symlink());
        match std::fs::metadata(&entry) {
            Ok(meant) if meant.is_dir() && !is_link => collect(&entry, depth - 1, found)?,
            Ok(meant) if !meant.is_file() => {}
            // One that leads nowhere is told of where it is read, as any that cannot be.
            _ if entry.extension().is_some_and(|extension| extension == "toml") => found.push(entry),
            _ => {}
        }
    }
    Ok(())
}
