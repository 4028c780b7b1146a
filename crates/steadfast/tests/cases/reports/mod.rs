//! Faults that users of other clients have reported in public, played against this one. A number (A1, A2, …) is one
//! report; the machines' own tests beside them name more.

mod breaker;
mod limits;
mod repeats;
mod retry_after;
mod secrets;
mod time;
