//! Configuration: one table of keys, from which the file's reader, the builder, the docs, and `check` are made.

mod settings;

pub use settings::Settings;
