//! How long to wait before a retry.

/// The form of the random part of a backoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Uniform between zero and the cap.
    #[default]
    Full,
    /// Half the cap, and uniform between zero and the other half.
    Equal,
    /// The cap, and uniform between zero and `jitter_max` on top.
    Additive,
    /// Exactly the cap.
    None,
}
