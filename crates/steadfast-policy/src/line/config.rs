//! What the user asks of the line.

use std::time::Duration;

/// The largest limit that the window style keeps exactly: every start of a window is remembered.
pub const MAX_WINDOW_LIMIT: u32 = 10_000;

/// How a rate limit spreads its places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RateStyle {
    /// Never more than the limit in any window, and a rested key may use a whole window at once.
    #[default]
    Window,
    /// Evenly: one place every `period / limit`.
    Smooth,
}

/// A limit on how many attempts of one key may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateConfig {
    /// Starts per period and key. Zero counts as 1, and in the window style more than [`MAX_WINDOW_LIMIT`] as that.
    pub limit: u32,
    /// The length of the window. Zero is no limit.
    pub period: Duration,
    /// The longest wait for a place; zero refuses at once, `None` waits as long as the deadline allows.
    pub wait: Option<Duration>,
    /// A burst of a whole window, or evenly spread.
    pub style: RateStyle,
    /// How many keys beside `""` are kept at once; zero counts as 1. A key is kept while it has waiters, and for one
    /// period after its last start. While all are in use, a call with a further key is refused.
    pub max_keys: usize,
}

/// What an attempt needs before it may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineConfig {
    /// Attempts in flight. Default 50. With zero nothing is ever admitted.
    pub slots: u32,
    /// The longest wait for a slot, once there is a place; zero refuses at once. Default 0.5 s.
    pub slot_wait: Duration,
    /// The limit on starts. Default: none.
    pub rate: Option<RateConfig>,
}

impl Default for LineConfig {
    fn default() -> Self {
        Self { slots: 50, slot_wait: Duration::from_millis(500), rate: None }
    }
}
