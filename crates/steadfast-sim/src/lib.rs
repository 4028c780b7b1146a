//! Virtual time for Steadfast: the shipped client, run through scenarios and outages before they happen.
//!
//! Nothing of a policy is written a second time here. A [`World`] is a clock that stands still until nobody can go on, and
//! the tasks that live on it; clients are built on its clock as any others are, and send through transports that models or
//! scripts stand behind. The same seed gives the same run, to the byte.

#[cfg(doctest)]
mod doctests;
pub mod outage;
pub mod scenario;
mod table;
mod world;

pub use world::{Spawner, Stalled, Task, World};
