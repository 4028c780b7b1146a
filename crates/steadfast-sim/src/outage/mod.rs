//! Outages: modelled upstreams, what befalls them, and the load that many clients put on them.
//!
//! A [`Simulation`] says what happens; a [`Policy`] says how the clients are set up. Each client is a shipped
//! [`ServiceClient`](steadfast::ServiceClient) with a budget, a breaker and a bulkhead of its own, and differs from one in a
//! service only in its clock and in its transport, behind which the model stands. So nothing of a policy is written a
//! second time, and "no retries", "blind retries" and a candidate are settings like any others.
//!
//! What is modelled and what is not is in `docs/simulator.md`.

mod compare;
mod engine;
pub mod file;
mod ledger;
mod link;
mod policy;
mod recorder;
mod results;
mod run;
mod simulation;
mod trigger;
mod upstream;
mod workload;

pub use compare::Spread;
pub use ledger::{Level, ServerTally, Tally};
pub use link::Link;
pub use policy::{Member, Policy};
pub use results::{BreakerChange, Latency, PhaseFigures, Run};
pub use run::RunError;
pub use simulation::{InvalidSimulation, Phase, Simulation, SimulationProblem};
pub use trigger::{Effect, Of, Pulse, Trigger};
pub use upstream::{Balancer, Cold, DeadWork, Discipline, FAST, RateLimiter, ServiceTime, Tells, UpstreamModel};
pub use workload::Workload;
