//! The bodies that requests in a tower stack usually have, as bodies that can be sent again.

use bytes::Bytes;
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{Empty, Full};

use crate::error::BoxError;
use crate::transport::RequestBody;

impl From<Empty<Bytes>> for RequestBody {
    fn from(_: Empty<Bytes>) -> Self {
        Self::empty()
    }
}

impl From<Full<Bytes>> for RequestBody {
    /// Kept whole, as its bytes are there already.
    fn from(body: Full<Bytes>) -> Self {
        Self::pieces(body).keep(u64::MAX)
    }
}

impl<E: Into<BoxError> + 'static> From<BoxBody<Bytes, E>> for RequestBody {
    fn from(body: BoxBody<Bytes, E>) -> Self {
        Self::pieces(body)
    }
}

impl<E: Into<BoxError> + 'static> From<UnsyncBoxBody<Bytes, E>> for RequestBody {
    fn from(body: UnsyncBoxBody<Bytes, E>) -> Self {
        Self::pieces(body)
    }
}

impl From<hyper::body::Incoming> for RequestBody {
    /// For proxies: the body of the request being served.
    fn from(body: hyper::body::Incoming) -> Self {
        Self::pieces(body)
    }
}
