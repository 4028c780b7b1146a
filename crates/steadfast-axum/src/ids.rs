//! Ids that nobody else draws: for requests that bring none, and for traces that begin here.
//!
//! A counter behind std's keyed hash, whose key the system's randomness makes: 128 bits that look random and do not repeat
//! within the process, without a further dependency. They are not secrets, and nothing may depend on their being hard to
//! guess.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;

#[derive(Debug, Default)]
pub(crate) struct Ids {
    keys: RandomState,
    next: AtomicU64,
}

impl Ids {
    /// 64 bits.
    pub(crate) fn short(&self) -> u64 {
        self.keys.hash_one(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// 128 bits.
    pub(crate) fn long(&self) -> u128 {
        (u128::from(self.short()) << 64) | u128::from(self.short())
    }

    /// A request id: 32 digits, as a trace id has them.
    pub(crate) fn request_id(&self) -> (String, HeaderValue) {
        let id = format!("{:032x}", self.long());
        // Cannot fail: hexadecimal digits.
        let value = HeaderValue::from_str(&id).unwrap_or_else(|_| HeaderValue::from_static("0"));
        (id, value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_id_comes_twice() {
        let (one, two) = (Ids::default(), Ids::default());
        let drawn: HashSet<String> = (0..5_000).flat_map(|_| [one.request_id().0, two.request_id().0]).collect();
        assert_eq!(drawn.len(), 10_000);
        assert!(drawn.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }
}
