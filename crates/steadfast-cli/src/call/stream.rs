//! `call --stream`: the body goes to standard output as it comes, byte for byte, and nothing else does.
//!
//! What happened is told on standard error at the end. Pieces are written on a thread where that may take its time, so that
//! a reader that has stopped does not stop the deadline.

use std::future::Future;
use std::io::{self, Write};
use std::time::Instant;

use bytes::Bytes;
use steadfast::{Error, StreamingResponse};

use super::client::{Caller, exit_of, in_words};
use crate::exit::Exit;
use crate::output;

/// Makes the call and passes its body on.
pub(crate) async fn run(caller: Caller, interrupt: impl Future<Output = ()>) -> Exit {
    tokio::select! {
        biased;
        () = interrupt => Exit::Interrupted,
        exit = pass_on(&caller) => {
            caller.close().await;
            exit
        }
    }
}

async fn pass_on(caller: &Caller) -> Exit {
    let began = Instant::now();
    let mut response = match caller.stream().await {
        Ok(response) => response,
        Err(error) => return complain(&error),
    };
    let status = response.status();
    let head = response.report().to_string();
    let received = match copy(&mut response).await {
        Ok(received) => received,
        Err(Stopped::Upstream(error)) => return complain(&error),
        Err(Stopped::Output(error)) => return super::unwritable(&error),
    };
    output::note(&format!("{status}, {received} bytes in {:.1?}; {head}", began.elapsed()));
    caller.exit_of_status(status.as_u16())
}

/// Why the body was not passed on to its end.
enum Stopped {
    Upstream(Error),
    Output(io::Error),
}

async fn copy(response: &mut StreamingResponse) -> Result<u64, Stopped> {
    let mut received = 0;
    while let Some(piece) = response.chunk().await.map_err(Stopped::Upstream)? {
        received += piece.len() as u64;
        let written = tokio::task::spawn_blocking(move || write(&piece)).await;
        written.map_err(io::Error::other).and_then(|written| written).map_err(Stopped::Output)?;
    }
    Ok(received)
}

fn write(piece: &Bytes) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(piece)?;
    out.flush()
}

/// The error in words, and what happened to each attempt.
fn complain(error: &Error) -> Exit {
    output::note(&format!("error: {}\n{}", in_words(error), error.report()));
    exit_of(error.kind())
}
