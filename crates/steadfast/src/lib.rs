//! The client that a service uses to call other services.
//!
//! One client per upstream decides once what every hand-written one gets wrong: how long to wait, what to retry, when
//! to stop calling an upstream that is down, how many calls may pile up behind a slow one, and how fast it may be
//! called. Every call has a deadline; every ending has a reason.
//!
//! | to | use |
//! |---|---|
//! | call an upstream over HTTP | [`ServiceClient`], or [`Clients`] for all of a configuration |
//! | read a response as it comes, as lines or events too | [`RequestBuilder::send_streaming`] |
//! | send a body that is read as it is sent | [`transport::RequestBody`], [`multipart`] |
//! | do so from plain threads | `blocking`, behind the feature of that name |
//! | protect any other operation | [`Guard`], or [`Guards`] with one for each key |
//! | have one policy alone | [`retry`], [`timeout`](fn@timeout), [`RateLimit`], [`CircuitBreaker`], [`Bulkhead`] |
//! | let calls inherit from the request being served | [`context`], and the crate `steadfast-axum` |
//! | answer one's own caller when a call failed | [`Error::to_problem`]; in axum the errors themselves, behind the feature `axum` |
//! | know what a fallback stood in for | [`degraded`] |
//! | fit into a stack of tower's | `layer` and `transport::service`, behind the feature `tower` |
//! | send through a reqwest client, or in one's own way | `transport::reqwest`, behind the feature `reqwest`; [`transport::Exchange`] |
//! | read a configuration | [`config::Loader`] |
//! | put another one in force, or other certificates | [`Clients::reload`], [`ServiceClient::reload`]; `Clients::watch`, behind the feature `watch` |
//! | learn why a call ended as it did | [`Report`], on every [`Response`] and [`Error`] |
//! | see calls in logs and traces | [`telemetry`]; OpenTelemetry behind the feature `otel` |
//! | have them counted | `metrics`, behind the feature of that name |
//! | test without waiting | `testing`, behind the feature of that name |

mod admission;
mod alarm;
#[cfg(feature = "blocking")]
pub mod blocking;
mod call;
pub mod client;
mod clock;
pub mod config;
pub mod context;
pub mod degraded;
#[cfg(doctest)]
mod doctests;
mod edge;
mod error;
mod event;
pub mod guard;
#[cfg(feature = "tower")]
pub mod layer;
mod lent;
mod operation;
mod park;
pub mod pieces;
#[cfg(steadfast_planted)]
#[doc(hidden)]
pub mod planted;
mod policies;
pub mod report;
mod snapshot;
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
mod timer;
pub mod transport;
mod upstream;
#[cfg(feature = "watch")]
pub mod watch;

pub use client::multipart;
pub use client::stream_read::{Events, Lines, ServerSentEvent};
pub use client::{
    Assessment, ClientBuilder, Clients, RequestBuilder, Response, ServiceClient, StreamingBody, StreamingResponse,
};
pub use clock::Clock;
pub use error::{BoxError, Error, ErrorKind};
pub use event::Event;
pub use guard::{Context, ErrorClass, Guard, GuardBuilder, GuardCall, GuardError, Guards, NoGuard, Served};
pub use pieces::{Bulkhead, CircuitBreaker, RateLimit, TimedOut, retry, timeout};
pub use report::Report;
pub use snapshot::Snapshot;
pub use steadfast_http::problem::ProblemDetails;
pub use steadfast_http::{BaseUrl, CallContext, Fault, Sent, TraceContext, encode_segment};
pub use steadfast_policy as policy;
#[cfg(feature = "metrics")]
pub use telemetry::metrics;
