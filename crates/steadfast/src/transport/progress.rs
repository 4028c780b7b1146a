//! How far an attempt has got.

use std::sync::Arc;

use steadfast_http::Sent;

use super::pool::meter::Meter;

/// How far an attempt has got; read after its future was dropped.
///
/// A transport of one's own calls [`hand_over`](Self::hand_over) when the upstream may have seen some of the request.
/// The pool does better: it proves that no byte was written, where that is so.
#[derive(Debug, Default)]
pub struct Progress {
    handed_over: bool,
    meter: Option<Arc<Meter>>,
}

impl Progress {
    /// From here on the upstream may have seen some of the request.
    pub fn hand_over(&mut self) {
        self.handed_over = true;
        self.meter = None;
    }

    /// Whether anything can have reached the upstream. [`Sent::No`] is final once the attempt's future was dropped.
    pub fn sent(&self) -> Sent {
        if self.handed_over {
            return Sent::Unknown;
        }
        self.meter.as_ref().map_or(Sent::No, |meter| meter.gate().sent())
    }

    /// From here on this connection knows.
    pub(crate) fn attach(&mut self, meter: &Arc<Meter>) {
        self.meter = Some(Arc::clone(meter));
    }
}
