//! What the tests share.

use proptest::test_runner::{Config, RngSeed};

/// The same cases on every run. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` ask for others, and for more.
pub(crate) fn seeded() -> Config {
    let config = Config::default();
    let rng_seed = match config.rng_seed {
        RngSeed::Random => RngSeed::Fixed(20_260_101),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    Config { rng_seed, cases: config.cases.max(1_000), failure_persistence: None, ..config }
}
