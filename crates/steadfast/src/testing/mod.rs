//! The test kit: time that costs nothing, upstreams and operations that play a script, and counts of what was called.
//!
//! Behind the feature `testing`, for the tests of an application as for our own; a dependency for tests switches it on:
//! `steadfast = { version = "0.1", features = ["testing"] }` under `[dev-dependencies]`. A page with examples is
//! `docs/testing.md`.
//!
//! | to | use |
//! |---|---|
//! | have waits end at once, and see them | [`fake_clock`] |
//! | skip waits, and leave all other time as it is | [`fast_mode`] |
//! | move every instant by hand | [`VirtualClock`] |
//! | let calls pass the rate limit | [`FakeClock::disable_rate_limits`] |
//! | answer HTTP requests | [`Script`] of [`Step`]s |
//! | answer a guard's calls | [`ScriptedOperation`] of [`Reply`]s |
//! | count calls | [`spy`] |

pub(crate) mod ambient;
mod clock;
mod fake;
mod limits;
mod operation;
mod reply;
mod routes;
mod spy;
mod step;
mod transport;

pub(crate) use clock::VirtualTimer;
pub use clock::{Stalled, VirtualClock};
pub(crate) use fake::FastClock;
pub use fake::{FakeClock, FastMode, fake_clock, fast_mode};
pub use limits::RateLimitsOff;
pub(crate) use limits::{LimitSwitch, LineSetting};
pub use operation::{ScriptedOperation, SeenCall};
pub use reply::Reply;
pub use spy::{Spy, spy};
pub use step::Step;
pub use transport::{Script, Seen};
