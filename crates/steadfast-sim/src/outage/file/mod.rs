//! Simulations as files: what is simulated, the policies that live through it, and what is expected of each.
//!
//! | module | is |
//! |---|---|
//! | `keys`, `kind`, `fields` | the keys of a file, their types, and what a table is read as |
//! | `read`, `model`, `load`, `trigger` | from a file to a [`SimulationFile`], or to everything that is wrong with it |
//! | `policies` | the settings in force, under each policy |
//! | `expect` | what is expected, and whether it came about |
//! | `reference`, `schema` | the keys as Markdown, and as a JSON Schema |
//!
//! The settings of an upstream are read by the loader of configurations and nobody else, so that a key means here what it
//! means in a service.

mod expect;
mod fields;
mod keys;
mod kind;
mod load;
mod model;
mod policies;
mod read;
mod reference;
mod schema;
mod trigger;

use std::num::NonZero;

pub use self::expect::{Expectation, Expected, Measure, Missed};
pub use self::keys::{Key, TABLES, Table};
pub use self::reference::reference;
pub use self::schema::schema;
use super::policy::Policy;
use super::results::Run;
use super::run::RunError;
use super::simulation::Simulation;

/// The policy whose settings are those of the file as they stand.
pub const CONFIGURED: &str = "configured";
/// The policy without retries and without a breaker.
pub const NONE: &str = "none";
/// The policy that retries blindly: no budget, no breaker.
pub const BLIND: &str = "blind";
/// The phase that is all of the run but its warm-up.
pub const ALL: &str = "all";

/// A simulation file: a [`Simulation`], the policies that are compared in it, and what is expected of them.
#[derive(Clone, Debug)]
pub struct SimulationFile {
    /// The file, as it was named.
    pub file: String,
    /// One sentence that says what is to be seen.
    pub title: String,
    /// What a reader learns from it, in prose.
    pub why: String,
    /// The first seed, unless another is asked for.
    pub seed: u64,
    /// The names of the models in the order of the chain.
    pub models: Vec<String>,
    /// What is simulated. Its phases are those of the triggers, those of the file, and [`ALL`].
    pub simulation: Simulation,
    /// The policies that are run, in this order.
    pub policies: Vec<Policy>,
    /// What is expected of them.
    pub expectations: Vec<Expectation>,
}

/// What came of a simulation file.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seeds that were run.
    pub seeds: Vec<u64>,
    /// The runs, by policy, and then by seed.
    pub runs: Vec<Vec<Run>>,
    /// Which expectations were missed.
    pub missed: Vec<Missed>,
}

impl SimulationFile {
    /// Runs every policy with so many seeds, counted from `seed`, on up to `threads` threads. What comes out depends on
    /// neither the machine nor the number of threads.
    ///
    /// # Errors
    /// A client that cannot be built: a certificate that cannot be read, for one.
    pub fn run(&self, seed: u64, seeds: NonZero<u32>, threads: NonZero<usize>) -> Result<Outcome, RunError> {
        let seeds: Vec<u64> = (0..u64::from(seeds.get())).map(|more| seed.wrapping_add(more)).collect();
        let runs = self.simulation.run_all(&self.policies, &seeds, threads)?;
        let missed = self.expectations.iter().flat_map(|expectation| expectation.missed(&runs)).collect();
        Ok(Outcome { seeds, runs, missed })
    }
}
