//! What an error of hyper's means.

use std::error::Error as StdError;
use std::io;

use steadfast_http::Fault;

/// The request got no whole response head.
pub(crate) fn before_head(error: &hyper::Error) -> Fault {
    if error.is_parse() {
        return Fault::Protocol;
    }
    match io_source(error) {
        Some(source) if is_tls(source) => Fault::Tls,
        // Closed, reset, or its task gone.
        _ => Fault::Reset,
    }
}

/// The body ended with an error.
pub(crate) fn in_body(error: &hyper::Error) -> Fault {
    match io_source(error) {
        // A chunk that cannot be read.
        Some(source) if is_bad_framing(source) => Fault::Protocol,
        _ => Fault::Incomplete,
    }
}

fn io_source(error: &hyper::Error) -> Option<&io::Error> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            return Some(found);
        }
        source = error.source();
    }
    None
}

/// Whether it is an error of the TLS record layer (an alert, a bad record).
fn is_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<tokio_rustls::rustls::Error>())
}

fn is_bad_framing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) && !is_tls(error)
}
