//! Scenarios: what a client does in a situation, written down in a file and played through the shipped client.
//!
//! | module | is |
//! |---|---|
//! | `model`, `range` | a scenario as data |
//! | `keys`, `kind` | the keys of a file, and their types |
//! | `read`, `source`, `fields`, `read_script`, `read_step` | from a file to the model, or to all that is wrong in it |
//! | `schema`, `reference` | the keys for editors, and for the documentation |
//! | `stage` | what it is played on, and what that has to be able to do |
//! | `cast`, `upstream`, `operation` | the clients and guards, and who plays what stands behind them |
//! | `calls` | making the calls of a step |
//! | `run`, `check` | playing the steps, and what is not as expected |
//! | `in_time` | virtual time as a stage |
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
mod source;
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
pub use stage::{CallEnd, Slack, Stage, StageError, Ticket, Work};
pub use timeline::{Moment, TimeLine};
pub use upstream::{Seen, Taken, Upstream, headers_at};
