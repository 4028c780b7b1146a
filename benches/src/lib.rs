//! Interleaved rounds, an A/A control, and counters for the benchmarks.
