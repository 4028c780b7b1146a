//! What the upstream speaks, as far as that is known, and what it is offered.

use crate::transport::version::{HttpVersion, Offer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speech {
    offer: Offer,
    known: Known,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Http1,
    /// And how many streams the last connection was allowed, where that is known.
    Http2(Option<usize>),
}

impl Speech {
    pub(crate) fn new(version: HttpVersion, https: bool) -> Self {
        let offer = match version {
            HttpVersion::Auto if https => Offer::Both,
            HttpVersion::Auto | HttpVersion::Http1 => Offer::Http1,
            HttpVersion::Http2 => Offer::Http2,
        };
        Self { offer, known: Known::Nothing }
    }

    pub(super) fn offer(self) -> Offer {
        self.offer
    }

    /// Whether the next connection may carry more than one exchange.
    pub(super) fn may_multiplex(self) -> bool {
        self.offer != Offer::Http1
    }

    /// How many streams the next connection will carry, as far as that is known; `None`: one exchange at a time.
    pub(super) fn streams_per_connection(self) -> Option<usize> {
        match (self.offer, self.known) {
            (Offer::Http1, _) | (_, Known::Http1) => None,
            (_, Known::Nothing | Known::Http2(None)) => Some(usize::MAX),
            (_, Known::Http2(Some(streams))) => Some(streams),
        }
    }

    pub(super) fn on_http1(&mut self) {
        self.known = Known::Http1;
    }

    pub(super) fn on_http2(&mut self) {
        if !matches!(self.known, Known::Http2(_)) {
            self.known = Known::Http2(None);
        }
    }

    pub(super) fn on_limit(&mut self, streams: usize) {
        self.known = Known::Http2(Some(streams));
    }

    /// The upstream asked for HTTP/1.1 (RFC 9113 section 7): nothing else is offered from now on, unless the
    /// configuration allows nothing else.
    pub(super) fn on_http1_required(&mut self) {
        if self.offer == Offer::Both {
            self.offer = Offer::Http1;
        }
    }
}
