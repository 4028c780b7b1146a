//! What an error of h2's means (RFC 9113 sections 6.8, 7, and 8.7).

use std::error::Error as _;

use h2::Reason;
use steadfast_http::{Fault, Sent};

use crate::transport::TransportError;

/// The request got no response head; and whether it can have been processed.
///
/// h2 tells a stream of the upstream's GOAWAY only if the stream's number is above the last one that the upstream says
/// it may have processed.
pub(super) fn before_head(error: &h2::Error) -> (Fault, Sent) {
    if error.is_remote() && error.is_go_away() {
        return (Fault::GoAway, Sent::No);
    }
    if error.is_remote() && error.reason() == Some(Reason::REFUSED_STREAM) {
        return (Fault::RefusedStream, Sent::No);
    }
    let fault = if is_protocol(error) {
        Fault::Protocol
    } else if is_ours(error) {
        Fault::LocalProtocol
    } else {
        Fault::Reset
    };
    (fault, Sent::Unknown)
}

/// The upstream has left the request out as its connection went away in good order: it has no complaint, and whoever
/// asks on another connection is served. A GOAWAY for a reason is a failure.
pub(in super::super) fn is_left_out(error: &TransportError) -> bool {
    let wire = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    error.fault() == Fault::GoAway
        && error.sent() == Sent::No
        && wire.is_some_and(|wire| wire.reason() == Some(Reason::NO_ERROR))
}

/// The stream was not begun: its connection broke, or takes no further one, for whatever reason was given.
pub(super) fn before_stream(error: &h2::Error) -> Fault {
    match before_head(error).0 {
        Fault::Reset if !error.is_io() => Fault::GoAway,
        fault => fault,
    }
}

/// The body ended with an error.
pub(super) fn in_body(error: &h2::Error) -> Fault {
    if is_protocol(error) { Fault::Protocol } else { Fault::Incomplete }
}

/// h2 found that what came is not HTTP/2.
fn is_protocol(error: &h2::Error) -> bool {
    error.is_library()
}

/// h2 does not send it.
fn is_ours(error: &h2::Error) -> bool {
    !error.is_io() && !error.is_reset() && !error.is_go_away() && error.reason().is_none()
}
