//! Scenarios: what a client does in a situation, written down in a file and played through the shipped client.
//!
//! A file is read into a [`Scenario`], or into everything that is wrong with it. The interpreter, [`play`], does what its steps
//! say on a [`Stage`], and compares what is seen with what is expected; a stage says how time passes, and brings the clients
//! to their upstreams. Clients, guards, scripts and the making of calls are the same on every stage, so that a file means the
//! same on each. `docs/scenarios.md` is the page for those who write them.
//!
//! Invariants: the same file with the same seed gives the same [`Outcome`]; whatever a scenario does, it must hold nothing at
//! its end. Limits: one process, one configuration for the whole scenario, and bodies that are text.
//!
//! ```
//! use steadfast_sim::scenario::{Scenario, play_in_time};
//!
//! let text = r#"
//!     title = "A 503 is repeated"
//!     why = "Another attempt may be answered."
//!     [upstreams.billing]
//!     base_url = "http://billing.test"
//!     [[script.billing]]
//!     status = 503
//!     [[script.billing]]
//!     status = 200
//!     [[step]]
//!     call = "billing"
//!     expect = { result = 200, requests = 3 }
//! "#;
//! let scenarios = Scenario::parse("a.toml", text)?;
//! let outcome = play_in_time(&scenarios[0])?;
//! assert_eq!(outcome.differences[0].what, "requests");
//! assert_eq!(outcome.differences[0].seen, "2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | is |
//! |---|---|
//! | `model`, `range` | a scenario as data |
//! | `keys`, `kind` | the keys of a file, and their types |
//! | `read`, `fields`, `read_script`, `read_step` | from a file to the model, or to all that is wrong in it |
//! | `schema`, `reference` | the keys for editors, and for the documentation |
//! | `stage` | what it is played on, and what that has to be able to do |
//! | `cast`, `upstream`, `operation` | the clients and guards, and who plays what stands behind them |
//! | `calls` | making the calls of a step |
//! | `run`, `check` | playing the steps, and what is not as expected |
//! | `in_time` | virtual time as a stage |
//! | `sockets` | loopback and real time as a stage |
//! | `timeline`, `render` | what happened, and how it is shown |
//! | `files` | which files there are |

mod calls;
mod cast;
mod check;
mod fields;
mod files;
mod in_time;
mod keys;
mod kind;
mod model;
mod operation;
mod range;
mod read;
mod read_script;
mod read_step;
mod reference;
mod render;
mod run;
mod schema;
mod sockets;
mod stage;
mod timeline;
mod upstream;
mod words;

pub use cast::{Cast, CastError};
pub use files::files;
pub use in_time::{VirtualStage, play_in_time};
pub use keys::{Key, TABLES, Table};
pub use model::{
    Act, Action, Answer, Call, CallKind, Ending, Expect, GuardCall, HttpCall, OperationError, Reply, Respond, Route,
    Scenario, Script, SeenExpect, Settings, Step,
};
pub use range::Range;
pub use reference::reference;
pub use run::{Difference, Outcome, play};
pub use schema::schema;
pub use sockets::{LONGEST_WORK, SocketStage, play_over_sockets};
pub use stage::{CallEnd, Slack, Stage, StageError, Ticket, Work};
pub use timeline::{Moment, TimeLine};
pub use upstream::{Seen, Taken, Upstream, headers_at};
