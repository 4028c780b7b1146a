//! The pieces on plain threads: no runtime, and nothing has to be `Send`. In an async task these hold up its thread.

use std::convert::Infallible;
use std::pin::pin;

use super::bulkhead::Stay;
use super::rate_limit::limit_of;
use super::{Bulkhead, BulkheadPermit, CircuitBreaker, RateLimit};
use crate::call::{Call, Options};
use crate::error::Error;
use crate::event;
use crate::guard::GuardError;
use crate::park::{self, Bell, Then};

impl RateLimit {
    /// [`acquire`](Self::acquire) on this thread, which waits.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); in an event hook `InvalidRequest`.
    pub fn acquire_blocking(&self, key: &str) -> Result<(), Error> {
        self.as_guard().key(key).call_blocking(|| Ok::<(), Infallible>(())).map_err(limit_of)
    }

    /// [`call`](Self::call) on this thread.
    ///
    /// # Errors
    /// The operation's own error, or the limit's as for [`acquire_blocking`](Self::acquire_blocking).
    pub fn call_blocking<T, E, F>(&self, key: &str, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut() -> Result<T, E>,
    {
        self.as_guard().key(key).call_blocking(operation)
    }
}

impl CircuitBreaker {
    /// [`call`](Self::call) on this thread. After [`transient`](Self::transient) there is a `call_blocking` as well.
    ///
    /// # Errors
    /// As [`call`](Self::call); in an event hook `InvalidRequest`.
    pub fn call_blocking<T, E, F>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut() -> Result<T, E>,
    {
        self.as_guard().call_blocking(operation)
    }
}

impl Bulkhead {
    /// [`acquire`](Self::acquire) on this thread, which waits.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); in an event hook `InvalidRequest`.
    pub fn acquire_blocking(&self) -> Result<BulkheadPermit, Error> {
        let (upstream, rules) = self.as_guard().parts();
        if event::is_in_hook() {
            return Err(Error::invalid_request(
                &upstream.name,
                "an event hook waited for a slot, and must return soon",
            ));
        }
        let (bell, mut stay) = (Bell::new(), Stay);
        let options = Options { bell: Some(&bell), ..Stay::OPTIONS };
        let mut call = Call::begin(upstream, rules, &options);
        let finished = park::drive(&upstream.clock, &bell, pin!(call.run(&mut stay)), || Then::Wait);
        Self::permit(call, finished)
    }

    /// [`call`](Self::call) on this thread.
    ///
    /// # Errors
    /// The operation's own error, or the bulkhead's as for [`acquire_blocking`](Self::acquire_blocking).
    pub fn call_blocking<T, E, F>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut() -> Result<T, E>,
    {
        self.as_guard().call_blocking(operation)
    }
}
