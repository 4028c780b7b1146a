//! When an attempt may start: one line for the bulkhead's slot and the rate limit's place.

/// How a rate limit spreads its places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RateStyle {
    /// Never more than the limit in any window, and a rested key may use a whole window at once.
    #[default]
    Window,
    /// Evenly: one place every `period / limit`.
    Smooth,
}
