//! `steadfast init`: a commented `steadfast.toml`, and the `clippy.toml` that forbids clients without a deadline.
//!
//! | module | is |
//! |---|---|
//! | `template` | the configuration, made from the table of keys |
//! | `clients` | the list of what is forbidden |
//! | `lint` | that list for clippy, and what a file that exists lacks of it |
//!
//! What is there already is never touched unless `--force` says so. Of a configuration that is all there is to say; a
//! `clippy.toml` may hold settings of others, so what it lacks is printed, to be added by hand. Text for files goes to
//! standard output and everything else to standard error, so that either can be passed on.

mod clients;
mod lint;
mod template;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::args::{InitArgs, InitFile};
use crate::exit::Exit;
use crate::output;

/// The most bytes that are read of a file that exists. Clippy's own have a few hundred.
const MOST_BYTES: u64 = 1 << 20;

/// Writes or prints what is asked for.
pub(crate) fn run(args: &InitArgs) -> Exit {
    let files = match args.only {
        Some(file) => vec![file],
        None => vec![InitFile::Config, InitFile::Clippy],
    };
    if !args.print && !args.dir.is_dir() {
        output::note(&format!("error: {}: expected a directory that exists", args.dir.display()));
        return Exit::Usage;
    }
    let mut worst = Exit::Ok;
    for file in files {
        let exit = match text_of(file) {
            None => {
                output::note("error: the table of keys has a form that this command does not know");
                Exit::Failed
            }
            Some(text) if args.print => print(file, &text, args.only.is_some()),
            Some(text) => put(file, &text, args),
        };
        if worst == Exit::Ok {
            worst = exit;
        }
    }
    worst
}

fn text_of(file: InitFile) -> Option<String> {
    match file {
        InitFile::Config => template::file(),
        InitFile::Clippy => Some(lint::file()),
    }
}

fn print(file: InitFile, text: &str, alone: bool) -> Exit {
    let heading = if alone { String::new() } else { format!("# ======== {} ========\n", name_of(file)) };
    let end = if alone { "" } else { "\n" };
    printed(output::text(&format!("{heading}{text}{end}")))
}

fn printed(result: io::Result<()>) -> Exit {
    if result.is_ok() { Exit::Ok } else { Exit::Failed }
}

fn name_of(file: InitFile) -> &'static str {
    match file {
        InitFile::Config => "steadfast.toml",
        InitFile::Clippy => "clippy.toml",
    }
}

/// Where the file goes. Of the two names that clippy knows it takes the one with the dot, if that exists.
fn path_of(file: InitFile, dir: &Path) -> PathBuf {
    let hidden = dir.join(".clippy.toml");
    match file {
        InitFile::Clippy if hidden.exists() => hidden,
        _ => dir.join(name_of(file)),
    }
}

/// Writes the file, or says why not.
fn put(file: InitFile, text: &str, args: &InitArgs) -> Exit {
    let path = path_of(file, &args.dir);
    match write(&path, text, args.force) {
        Ok(()) => {
            output::note(&format!("{}: written; next: {}", path.display(), next(file, &path)));
            Exit::Ok
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => left_alone(file, text, &path),
        Err(error) => {
            output::note(&format!("error: {}: cannot be written: {error}", path.display()));
            Exit::CannotCreate
        }
    }
}

fn next(file: InitFile, path: &Path) -> String {
    match file {
        InitFile::Config => format!("steadfast check {}", path.display()),
        InitFile::Clippy => "cargo clippy --all-targets -- -D warnings".to_owned(),
    }
}

/// Writes the whole file or none of it; without `force` only where there is none, links that lead nowhere included.
fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    let mut file = match force {
        true => options.create(true).truncate(true).open(path)?,
        false => options.create_new(true).open(path)?,
    };
    file.write_all(text.as_bytes()).inspect_err(|_| {
        // Half a file would be taken for one that was there; that it cannot be removed either changes nothing.
        let _ = std::fs::remove_file(path);
    })
}

/// Says what a file that exists lacks.
fn left_alone(file: InitFile, text: &str, path: &Path) -> Exit {
    let shown = path.display();
    let there = match read(path) {
        Ok(there) => there,
        Err(error) => {
            output::note(&format!("error: {shown}: is there already, and cannot be read: {error}"));
            return Exit::CannotCreate;
        }
    };
    if there == text {
        output::note(&format!("{shown}: is there already, as it would be written"));
        return Exit::Ok;
    }
    match file {
        InitFile::Config => {
            output::note(&format!(
                "error: {shown}: is there already, and was left alone; --force writes over it, --print shows what"
            ));
            Exit::CannotCreate
        }
        InitFile::Clippy => add_by_hand(&there, path),
    }
}

fn add_by_hand(there: &str, path: &Path) -> Exit {
    let shown = path.display();
    match lint::missing(there) {
        Ok(None) => {
            output::note(&format!("{shown}: is there already, and forbids everything that it should"));
            Exit::Ok
        }
        Ok(Some(missing)) => {
            let n = missing.lines;
            output::note(&format!(
                "error: {shown}: is there already, and was left alone; {n} line{} to add to it:",
                if n == 1 { "" } else { "s" }
            ));
            match printed(output::text(&missing.text)) {
                Exit::Ok => Exit::CannotCreate,
                failed => failed,
            }
        }
        Err(error) => {
            output::note(&format!("error: {shown}: is there already, and is not TOML: {}", error.trim_end()));
            Exit::Config
        }
    }
}

/// The text of a file that exists.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(io::Error::other(format!("expected at most {MOST_BYTES} bytes"))),
        false => Ok(text),
    }
}
