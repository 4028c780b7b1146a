//! No policy at all: what calling and polling the operation costs.

use super::{Kind, Stack, operate};
use crate::Failure;

/// The operation alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bare;

impl Stack for Bare {
    const NAME: &'static str = "bare";

    async fn call(&mut self, kind: Kind) -> Result<u64, Failure> {
        Ok(operate(kind).await?)
    }
}
