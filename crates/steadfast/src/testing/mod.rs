//! The test kit: a clock that the test moves, and a transport that plays a script.
//!
//! Behind the feature `testing`. Nothing here sleeps for real.

pub(crate) mod ambient;
mod clock;
mod fake;
mod limits;
mod transport;

pub(crate) use clock::VirtualTimer;
pub use clock::{Stalled, VirtualClock};
pub(crate) use fake::FastClock;
pub use fake::{FakeClock, FastMode, fake_clock, fast_mode};
pub use limits::RateLimitsOff;
pub(crate) use limits::{LimitSwitch, LineSetting};
pub use transport::{Script, Seen, Step};
