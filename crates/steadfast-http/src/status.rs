//! A set of HTTP status codes.

/// A set of status codes between 100 and 599, as configured by `retry_statuses` and `breaker_statuses`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StatusSet([u64; 8]);

impl StatusSet {
    /// What another attempt can fix: 429, 502, 503, 504.
    pub const RETRY: Self = Self::empty().with(429).with(502).with(503).with(504);
    /// What says that the upstream is not there: 502, 503, 504.
    pub const BREAKER: Self = Self::empty().with(502).with(503).with(504);

    /// No status at all.
    pub const fn empty() -> Self {
        Self([0; 8])
    }

    /// The set with `status` in it; a code outside 100..=599 changes nothing.
    #[must_use]
    pub const fn with(mut self, status: u16) -> Self {
        if status >= 100 && status <= 599 {
            let bit = (status - 100) as usize;
            self.0[bit / 64] |= 1 << (bit % 64);
        }
        self
    }

    /// Whether `status` is in the set.
    pub const fn contains(&self, status: u16) -> bool {
        if status < 100 || status > 599 {
            return false;
        }
        let bit = (status - 100) as usize;
        self.0[bit / 64] & (1 << (bit % 64)) != 0
    }

    /// The codes of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (100..=599).filter(|status| self.contains(*status))
    }
}

impl FromIterator<u16> for StatusSet {
    fn from_iter<T: IntoIterator<Item = u16>>(statuses: T) -> Self {
        statuses.into_iter().fold(Self::empty(), Self::with)
    }
}

impl std::fmt::Debug for StatusSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_exactly_what_was_put_in() {
        let set: StatusSet = [100, 429, 599, 99, 600, 0].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [100, 429, 599]);
        assert!(!set.contains(99) && !set.contains(600) && !set.contains(430));
        assert_eq!(StatusSet::RETRY.iter().collect::<Vec<_>>(), [429, 502, 503, 504]);
        assert_eq!(StatusSet::BREAKER.iter().collect::<Vec<_>>(), [502, 503, 504]);
    }
}
