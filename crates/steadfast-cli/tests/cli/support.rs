//! Runs the built binary, and reads what it printed.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run of the command came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The command with these arguments, in an empty environment, so that no variable of the machine takes part.
pub(crate) fn command<S: AsRef<str>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    command.args(args.iter().map(AsRef::as_ref)).env_clear().stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn steadfast<S: AsRef<str>>(args: &[S]) -> Run {
    finish(command(args))
}

/// Runs it with this text as its standard input.
pub(crate) fn steadfast_reading(args: &[&str], input: &str) -> Run {
    let mut command = command(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads its input");
    Run::of(child.wait_with_output().expect("the binary ends"))
}

/// Runs a prepared command to its end.
pub(crate) fn finish(mut command: Command) -> Run {
    Run::of(command.output().expect("the binary runs"))
}

impl Run {
    fn of(output: std::process::Output) -> Self {
        Self {
            code: output.status.code().expect("no signal"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Every line of standard output, which must all be JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{self:?}"));
        self.stdout.lines().map(parse).collect()
    }
}

/// A file of this text that lives as long as the value does.
#[derive(Debug)]
pub(crate) struct File(PathBuf);

impl File {
    /// `name` must be unique among the tests.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steadfast-cli-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a temporary file");
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
