//! Configuration: one table of keys, from which the file's reader, the builder, the docs, and `check` are made.
//!
//! | module | is |
//! |---|---|
//! | `keys` | the table: name, type, bounds, meaning of every key |
//! | `kind`, `duration`, `headers` | the types: what each accepts, and the words for what it does not |
//! | `value`, `datum` | a value as it was given, and once it has been checked |
//! | `draft`, `effective` | checked values and their origins, up to the settings that are in force |
//! | `builder` | values from code |
//! | `problem`, `nearest` | everything that is wrong, said at once |

mod builder;
mod datum;
mod draft;
mod duration;
mod effective;
mod headers;
pub(crate) mod keys;
mod kind;
mod nearest;
mod problem;
mod settings;
mod value;

pub use builder::SettingsBuilder;
pub use effective::{Config, Effective, Entry};
pub use keys::{KEYS, Key};
pub use problem::{Origin, Problem, Problems, Warning};
pub use settings::Settings;
