//! The test kit: a clock that the test moves, and a transport that plays a script.
//!
//! Behind the feature `testing`. Nothing here sleeps for real.

mod clock;
mod transport;

pub(crate) use clock::VirtualTimer;
pub use clock::{Stalled, VirtualClock};
pub use transport::{Script, Seen, Step};
