//! Scenarios: what a client does in a situation, written down in a file and played through the shipped client.
//!
//! | module | is |
//! |---|---|
//! | `model`, `range` | a scenario as data |
//! | `stage` | what it is played on, and what that has to be able to do |
//! | `cast`, `upstream`, `operation` | the clients and guards, and who plays what stands behind them |
//! | `calls` | making the calls of a step |
//! | `timeline` | what happened |

mod calls;
mod cast;
mod model;
mod operation;
mod range;
mod stage;
mod timeline;
mod upstream;
mod words;

pub use cast::{Cast, CastError};
pub use model::{
    Act, Action, Answer, Call, CallKind, Ending, Expect, GuardCall, HttpCall, OperationError, Reply, Respond, Route,
    Scenario, Script, SeenExpect, Settings, Step,
};
pub use range::Range;
pub use stage::{CallEnd, Slack, Stage, StageError, Ticket, Work};
pub use timeline::{Moment, TimeLine};
pub use upstream::{Seen, Taken, Upstream, headers_at};
