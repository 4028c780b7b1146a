//! Configuration: one table of keys, from which the file's reader, the builder, the docs, and `check` are made.
//!
//! | module | is |
//! |---|---|
//! | `keys` | the table: name, type, bounds, meaning of every key |
//! | `kind`, `duration`, `headers` | the types: what each accepts, and the words for what it does not |
//! | `value`, `datum` | a value as it was given, and once it has been checked |
//! | `draft`, `pairs`, `effective` | checked values and their origins, what no single key can judge, and the settings in force |
//! | `builder` | values from code |
//! | `guard` | the keys that a guard has |
//! | `profile` | values for sorts of upstreams, as data |
//! | `document`, `file` | values from a TOML file, with their places |
//! | `env` | values from environment variables |
//! | `loader`, `merge` | the sources, and which of them wins |
//! | `reference`, `schema` | the table as Markdown, and as a JSON Schema |
//! | `reading` | what reports mistakes in files beside a configuration in the same way |
//! | `problem`, `nearest` | everything that is wrong, said at once |

mod builder;
mod datum;
mod document;
mod draft;
mod duration;
mod effective;
mod env;
mod file;
mod guard;
mod headers;
pub(crate) mod keys;
mod kind;
mod loader;
mod merge;
mod nearest;
mod pairs;
mod problem;
mod profile;
#[doc(hidden)]
pub mod reading;
mod reference;
mod schema;
mod settings;
mod value;

pub use builder::SettingsBuilder;
pub(crate) use builder::check;
pub use effective::{Config, Effective, Entry, UnknownGuard};
pub use guard::GuardSettings;
pub(crate) use keys::with_keys;
pub use keys::{KEYS, Key};
pub use loader::Loader;
pub(crate) use problem::Place;
pub use problem::{Origin, Problem, Problems, Warning};
pub use profile::Profile;
pub use reference::reference;
pub use schema::schema;
pub use settings::Settings;
