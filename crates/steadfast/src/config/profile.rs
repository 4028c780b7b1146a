//! Profiles: settings for sorts of upstreams, as data.
//!
//! A profile stands between the defaults and everything that somebody sets: it is asked only for the keys that nobody set,
//! wherever it was named itself. So a key wins over it from a file, a variable, a setter, and by hand, and the order in
//! which the two are said does not matter.
//!
//! Each is a file beside this one, of keys as an upstream's table has them, with the reasons as comments. No code knows one
//! from another. It is read by the reader of files with the bounds of the table of keys, and a test holds every one of them
//! to be without a problem. What `docs/profiles.md` says of them is made from the same files.

use std::fmt;
use std::sync::LazyLock;

use super::datum::Datum;
use super::file;
use super::problem::Problem;

/// Declares the profiles: a variant each, its word in a file, and its data.
macro_rules! profiles {
    ($($(#[doc = $meaning:literal])+ $name:ident = $word:literal;)+) => {
        /// Settings for a sort of upstream, to begin from. Each key of a profile holds where nobody sets that key; the
        /// others have their defaults. Why the values are these, and whose published limits they follow, is in
        /// `docs/profiles.md`.
        ///
        /// ```
        /// use steadfast::config::{Loader, Profile};
        ///
        /// let toml = r#"
        ///     [upstreams.model]
        ///     base_url = "https://api.example.com"
        ///     profile = "ai"
        ///     retries = 1
        /// "#;
        /// let config = Loader::new().text("app.toml", toml).load()?;
        /// let model = config.upstream("model").unwrap();
        /// assert_eq!(model.settings().profile, Some(Profile::Ai));
        /// assert_eq!(model.settings().total_timeout.as_secs(), 600);
        /// assert_eq!(model.settings().retries, 1);
        /// # Ok::<(), steadfast::config::Problems>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Profile {
            $($(#[doc = $meaning])+ $name,)+
        }

        impl Profile {
            /// Every profile.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The words of the key `profile`.
            pub(super) const WORDS: [(&'static str, Self); Self::ALL.len()] = [$(($word, Self::$name)),+];

            /// Its name: the word for it in a file.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// What it sets, as TOML with the reasons as comments: lines that may stand in an upstream's table.
            pub const fn toml(self) -> &'static str {
                match self {
                    $(Self::$name => include_str!(concat!("profiles/", $word, ".toml")),)+
                }
            }

            /// Its values, by the key's index in [`KEYS`](super::KEYS).
            pub(crate) fn values(self) -> &'static [(usize, Datum)] {
                match self {
                    $(Self::$name => {
                        static VALUES: LazyLock<Vec<(usize, Datum)>> = LazyLock::new(|| read(Profile::$name).0);
                        &VALUES
                    })+
                }
            }
        }
    };
}

profiles! {
    /// A model behind an API: long calls, a late first byte, limits per minute.
    Ai = "ai";
    /// A mail relay or a mail API: slow to take a message over, and nothing may be sent twice.
    Mail = "mail";
    /// Deliveries to addresses of other people: little time for each, and a queue behind that tries again.
    Webhook = "webhook";
    /// Conversion, recognition, rendering: large bodies, long calls, few at once.
    Documents = "documents";
    /// Payments: patient, and every retry with the same idempotency key.
    Payment = "payment";
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A profile's values, and what is wrong with its file: nothing, which a test holds it to.
fn read(profile: Profile) -> (Vec<(usize, Datum)>, Vec<Problem>) {
    let (draft, problems) = file::read_keys(profile.name(), profile.toml());
    (draft.into_values().collect(), problems)
}

#[cfg(test)]
mod tests;
