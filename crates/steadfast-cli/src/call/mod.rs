//! `steadfast call`: one request, once or many times, through one client.
//!
//! ```text
//! args -> plan -> client -> runner -> record -> json line, or table
//! ```
//!
//! With `--stream` the body goes through as it comes instead: `args -> plan -> client -> stream`.
//!
//! With `--output json` nothing but lines of JSON goes to standard output. Everything else that is said goes to standard
//! error.

mod client;
mod flags;
mod plan;
mod record;
mod runner;
mod stream;
mod summary;
mod text;

pub(crate) use plan::Plan;

use std::collections::BTreeSet;
use std::io;

use bytes::Bytes;

use crate::args::Format;
use crate::exit::Exit;
use crate::interrupt::interrupt;
use crate::output;
use client::Caller;
use record::Record;
use runner::Finish;
use summary::Totals;
use text::{Progress, Report};

/// So many different errors are told in words; the rest is in the lines.
const TOLD: usize = 5;

/// Makes the calls and prints what came of them.
pub(crate) async fn run(plan: Plan) -> Exit {
    let interrupt = interrupt();
    let caller = match Caller::new(&plan) {
        Ok(caller) => caller,
        Err(exit) => return exit,
    };
    if plan.stream {
        return stream::run(caller, interrupt).await;
    }
    let mut printer = Printer::new(&plan);
    let mut last = Last::default();
    let finish = runner::run(
        plan.load,
        interrupt,
        |call| caller.clone().call(call),
        |record: Record| {
            printer.call(&record)?;
            last.see(record);
            Ok(())
        },
    )
    .await;
    let (finish, interrupted) = match finish {
        Finish::Unwritable(error) => (Err(error), false),
        Finish::Complete => (Ok(()), false),
        Finish::Interrupted => (Ok(()), true),
    };
    match finish.and_then(|()| printer.finish(&last, plan.body)) {
        Ok(()) if interrupted => Exit::Interrupted,
        Ok(()) => {
            caller.close().await;
            last.exit
        }
        Err(error) => unwritable(&error),
    }
}

/// Whoever read the output has gone, or it could not be written: neither is the upstream's doing.
fn unwritable(error: &io::Error) -> Exit {
    if error.kind() != io::ErrorKind::BrokenPipe {
        output::note(&format!("error: {error}"));
    }
    Exit::Failed
}

/// The call with the highest number so far: it decides the exit status.
#[derive(Debug)]
struct Last {
    call: u64,
    exit: Exit,
    body: Option<Bytes>,
}

impl Default for Last {
    fn default() -> Self {
        Self { call: 0, exit: Exit::Ok, body: None }
    }
}

impl Last {
    fn see(&mut self, record: Record) {
        if record.line.call > self.call {
            *self = Self { call: record.line.call, exit: record.exit, body: record.body };
        }
    }
}

/// Prints calls as they end, and at the end what they come to.
#[derive(Debug)]
struct Printer {
    totals: Totals,
    told: BTreeSet<String>,
    text: Option<(Report, Progress)>,
}

impl Printer {
    fn new(plan: &Plan) -> Self {
        let repeat = plan.load.repeat;
        let text = (plan.format == Format::Text).then(|| (Report::new(repeat), Progress::new(repeat)));
        Self { totals: Totals::new(), told: BTreeSet::new(), text }
    }

    fn call(&mut self, record: &Record) -> io::Result<()> {
        self.totals.add(record);
        if let Some(message) = &record.message {
            self.tell(message);
        }
        match &mut self.text {
            Some((report, progress)) => {
                report.add(record);
                progress.add();
                Ok(())
            }
            None => output::json_line(&record.line),
        }
    }

    /// Says an error in words, each only once.
    fn tell(&mut self, message: &str) {
        if self.told.len() < TOLD && self.told.insert(message.to_owned()) {
            let line = format!("error: {message}");
            match &self.text {
                Some((_, progress)) => progress.note(&line),
                None => output::note(&line),
            }
        }
    }

    fn finish(self, last: &Last, show_body: bool) -> io::Result<()> {
        let Some((report, progress)) = self.text else {
            return output::json_line(&self.totals.line());
        };
        progress.clear();
        output::text(&format!("{}\n{}\n", report.table(), self.totals.sentence()))?;
        match &last.body {
            Some(body) if show_body => output::text(&format!("\n{}\n", String::from_utf8_lossy(body))),
            _ => Ok(()),
        }
    }
}
