//! Ctrl-C: ends a run early, with what is known so far.

use std::future::Future;

/// Completes at the first interrupt after this call. Listens from the call on, not only once it is awaited, so that an
/// interrupt during the preparations is not lost.
#[cfg(unix)]
pub(crate) fn interrupt() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signal = signal(SignalKind::interrupt());
    async {
        match signal {
            Ok(mut signal) => {
                signal.recv().await;
            }
            // No handler: the interrupt ends the process as it would any other.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Completes at the first interrupt while it is awaited.
#[cfg(not(unix))]
pub(crate) fn interrupt() -> impl Future<Output = ()> {
    async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
