//! The table of keys: each key is declared once, here. From it come the reader of files and variables, the setters of
//! the builder, the reference page, and `check`.
//!
//! A row reads: meaning, name, what the builder's setter takes, type and bounds. The name is the key in the file, the
//! field in [`Settings`], the setter in the builder, and, in capitals, the last part of the variable. The default is
//! what [`Settings::new`] holds.

use std::sync::LazyLock;
use std::time::Duration;

use steadfast_http::BaseUrl;
use steadfast_policy::backoff::Jitter;
use steadfast_policy::line::RateStyle;

use super::datum::{Datum, Field};
use super::duration::DAY;
use super::kind::{Bounds, Kind};
use super::{Profile, Settings, guard};
use crate::transport::HttpVersion;

/// A timeout cannot be turned off (1.3).
const TIMEOUT: Kind = Kind::Duration(Bounds { min: Duration::ZERO, above: true, max: DAY });
/// A wait may be zero.
const WAIT: Kind = Kind::Duration(Bounds { min: Duration::ZERO, above: false, max: DAY });
/// How many of something that is at least one.
const COUNT: Kind = count(1, 1_000_000);

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count(Bounds { min, above: false, max })
}

const fn number(min: f64, max: f64) -> Kind {
    Kind::Number(Bounds { min, above: false, max })
}

/// The words of `jitter`.
pub(crate) const JITTERS: [(&str, Jitter); 4] =
    [("full", Jitter::Full), ("equal", Jitter::Equal), ("additive", Jitter::Additive), ("none", Jitter::None)];
/// The words of `rate_limit_style`.
pub(crate) const STYLES: [(&str, RateStyle); 2] = [("window", RateStyle::Window), ("smooth", RateStyle::Smooth)];
/// The words of `http_version`.
pub(crate) const HTTP_VERSIONS: [(&str, HttpVersion); 3] =
    [("auto", HttpVersion::Auto), ("http1", HttpVersion::Http1), ("http2", HttpVersion::Http2)];
/// The words of `profile`.
pub(crate) const PROFILES: [(&str, Profile); Profile::ALL.len()] = Profile::WORDS;
static JITTER_WORDS: [&str; 4] = words(&JITTERS);
static STYLE_WORDS: [&str; 2] = words(&STYLES);
static HTTP_VERSION_WORDS: [&str; 3] = words(&HTTP_VERSIONS);
static PROFILE_WORDS: [&str; PROFILES.len()] = words(&PROFILES);

const fn words<T, const N: usize>(pairs: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut index = 0;
    while index < N {
        words[index] = pairs[index].0;
        index += 1;
    }
    words
}

/// The largest `rate_limit` of the window style, which remembers every start in the window.
pub(crate) const MOST_IN_A_WINDOW: u32 = 10_000;

/// Hands every row to the macro `$rows`, which makes of them what it needs: the table itself, or a setter per key, as
/// `builder.rs` does and as any builder around it can. Who uses it imports the types that the setters take.
macro_rules! with_keys {
    ($rows:ident) => {
        $rows! {
            /// Where the upstream is: an absolute http(s) URL, whose path is a prefix of every request's path.
            base_url: &str = Kind::Url;
            /// The sort of upstream, whose settings hold for each key that nobody sets; unset: the defaults hold.
            profile: Profile = Kind::Word(&PROFILE_WORDS);
            /// Opening TCP and TLS (and CONNECT in front).
            connect_timeout: Duration = TIMEOUT;
            /// Each wait for the next piece of the response.
            read_timeout: Duration = TIMEOUT;
            /// Each wait to write the next piece of the request.
            write_timeout: Duration = TIMEOUT;
            /// The wait for a connection that the pool may open.
            pool_timeout: Duration = TIMEOUT;
            /// The whole call: queueing, every attempt, every wait, the body.
            total_timeout: Duration = TIMEOUT;
            /// One attempt as a whole; unset: bounded by the others.
            attempt_timeout: Duration = TIMEOUT;
            /// Tries after the first.
            retries: u32 = count(0, 1_000);
            /// Backoff before the first retry.
            backoff_base: Duration = WAIT;
            /// Growth of the backoff per retry.
            backoff_factor: f64 = number(1.0, 1_000.0);
            /// Cap of the backoff.
            backoff_max: Duration = WAIT;
            /// Form of the random part of the backoff.
            jitter: Jitter = Kind::Word(&JITTER_WORDS);
            /// The random part of additive jitter.
            jitter_max: Duration = WAIT;
            /// The longest `Retry-After` that is waited for; for more, the response is returned.
            max_retry_after: Duration = WAIT;
            /// Random extra on top of a `Retry-After` wait, for large fleets.
            retry_after_jitter: Duration = WAIT;
            /// Statuses that another attempt can fix.
            retry_statuses: &[u16] = Kind::Statuses;
            /// Retries per call, counted over the last ten seconds.
            retry_budget_ratio: f64 = number(0.0, 1_000.0);
            /// Retries per second that a quiet client may always spend.
            retry_budget_min_per_second: f64 = number(0.0, 1_000_000.0);
            /// Whether retries that do not help stop being paid for.
            retry_budget_gate: bool = Kind::Flag;
            /// The shortest streak of failures that opens the breaker.
            breaker_failures: u32 = COUNT;
            /// The share of failures in the window that opens the breaker.
            breaker_failure_rate: f64 = Kind::Number(Bounds { min: 0.0, above: true, max: 1.0 });
            /// Attempts in the window before the share counts.
            breaker_minimum_calls: u32 = COUNT;
            /// The window over which the share is taken.
            breaker_window: Duration = TIMEOUT;
            /// How long the breaker stays open.
            breaker_cool_down: Duration = TIMEOUT;
            /// How long the first opening lasts, doubling with each failed probe; unset: `breaker_cool_down`.
            breaker_cool_down_start: Duration = TIMEOUT;
            /// Statuses that are failures for the breaker.
            breaker_statuses: &[u16] = Kind::Statuses;
            /// How long an attempt must have run for the call's deadline to count against the upstream.
            breaker_timeout_evidence: Duration = WAIT;
            /// Attempts in flight at once.
            max_concurrent: u32 = COUNT;
            /// The longest wait for a slot; 0 refuses at once.
            bulkhead_wait: Duration = WAIT;
            /// Attempts per `rate_limit_period` and key; unset: no limit. With the style `window` at most 10000.
            rate_limit: u32 = count(1, 1_000_000_000);
            /// The window of the rate limit.
            rate_limit_period: Duration = TIMEOUT;
            /// The longest wait for a place; 0 refuses at once; unset: the deadline.
            rate_limit_wait: Duration = WAIT;
            /// Bursts of a whole window, or evenly spread.
            rate_limit_style: RateStyle = Kind::Word(&STYLE_WORDS);
            /// The largest response body in bytes, decoded.
            max_response_bytes: u64 = count(1, 1 << 40);
            /// The bytes of a streamed request body that are kept, so that it can be sent again; 0: none.
            replay_buffer_bytes: u64 = count(0, 1 << 30);
            /// Whether the bearer token of the request being served travels.
            forward_authorization: bool = Kind::Flag;
            /// Headers on every request; the weakest of all.
            headers: &[(&str, &str)] = Kind::Headers;
            /// `User-Agent` where nothing else sets one.
            user_agent: &str = Kind::Text;
            /// How long an idle connection is kept.
            idle_timeout: Duration = TIMEOUT;
            /// How long a connection is used at most, so that a changed address is noticed.
            max_connection_age: Duration = TIMEOUT;
            /// Which HTTP is spoken; auto: over TLS what the upstream chooses, else HTTP/1.1.
            http_version: HttpVersion = Kind::Word(&HTTP_VERSION_WORDS);
            /// How often an HTTP/2 connection in use is asked for a sign of life; unset: never.
            http2_ping_interval: Duration = TIMEOUT;
            /// How long that sign may take before the connection is given up.
            http2_ping_timeout: Duration = TIMEOUT;
            /// The proxy in front: true for what `HTTPS_PROXY` and the like name, false for none, or its URL.
            proxy: Proxy = Kind::Proxy;
            /// Whether gzip is asked for and decoded.
            gzip: bool = Kind::Flag;
            /// Whether br is asked for and decoded, where the feature `brotli` is compiled in.
            brotli: bool = Kind::Flag;
            /// Whether zstd is asked for and decoded, where the feature `zstd` is compiled in.
            zstd: bool = Kind::Flag;
            /// Whether a certificate may lead to the platform's roots too, beside Mozilla's, which are built in.
            tls_platform_roots: bool = Kind::Flag;
            /// PEM files of further roots.
            tls_roots: &[PathBuf] = Kind::Paths;
            /// Whether only `tls_roots` count, not Mozilla's or the platform's.
            tls_roots_only: bool = Kind::Flag;
            /// A PEM file with our own certificate and its chain, for an upstream that asks for one.
            tls_identity: &Path = Kind::Path;
            /// A PEM file with the private key of `tls_identity`; unset: it is in that file too.
            tls_identity_key: &Path = Kind::Path;
            /// The name that the upstream's certificate must be for, also sent as SNI; unset: the host of `base_url`.
            tls_server_name: &str = Kind::HostName;
            /// The header that carries the remaining deadline upstream; unset: none.
            deadline_header: &str = Kind::HeaderName;
            /// Whether each attempt is a span of its own, or one span stands for the call (feature `otel`).
            attempt_spans: bool = Kind::Flag;
            /// Whether spans say the URL, without user-info and the query's values (feature `otel`).
            record_url: bool = Kind::Flag;
        }
    };
}
pub(crate) use with_keys;

/// One key of an upstream's table.
#[derive(Debug)]
#[non_exhaustive]
pub struct Key {
    /// Its name: in the file, in [`Settings`], and of the builder's setter.
    pub name: &'static str,
    /// Type and bounds.
    pub(crate) kind: Kind,
    meaning: &'static str,
    put: fn(&mut Settings, Datum) -> bool,
    datum: fn(&Settings) -> Option<Datum>,
}

macro_rules! rows {
    ($($(#[doc = $meaning:literal])+ $name:ident: $input:ty = $kind:expr;)+) => {
        /// Every key, in the order of the reference page.
        pub static KEYS: &[Key] = &[$(Key {
            name: stringify!($name),
            kind: $kind,
            meaning: concat!($($meaning),+),
            put: |settings, datum| Field::put(&mut settings.$name, datum),
            datum: |settings| Field::datum(&settings.$name),
        }),+];
    };
}
with_keys!(rows);

/// What is in force where nobody sets anything; the address stands for any.
static DEFAULTS: LazyLock<Option<Settings>> =
    LazyLock::new(|| BaseUrl::parse("http://localhost").ok().map(|base_url| Settings::new("default", base_url)));

impl Key {
    /// The key's type, such as `duration`.
    pub fn type_name(&self) -> &'static str {
        self.kind.name()
    }

    /// What the type allows, such as `above 0s, at most 24h`.
    pub fn bounds(&self) -> String {
        self.kind.bounds()
    }

    /// The default as text; `required` or `unset` where there is none.
    pub fn default_text(&self) -> String {
        match &*DEFAULTS {
            _ if self.is_required() => "required".to_owned(),
            Some(settings) => self.show(settings),
            None => String::new(),
        }
    }

    /// The default, where there is one.
    pub(crate) fn default(&self) -> Option<Datum> {
        if self.is_required() { None } else { (self.datum)(DEFAULTS.as_ref()?) }
    }

    /// One line on what the key does.
    pub fn meaning(&self) -> &'static str {
        self.meaning.trim_start()
    }

    /// Whether every upstream must have it.
    pub fn is_required(&self) -> bool {
        matches!(self.kind, Kind::Url)
    }

    /// Whether the environment wins over a file (9.4): an address depends on where the service runs, all else is the
    /// service's shape.
    pub(crate) fn env_wins(&self) -> bool {
        matches!(self.kind, Kind::Url)
    }

    /// The key's value in `settings` as text, secrets masked; `unset` where it has none.
    pub(crate) fn show(&self, settings: &Settings) -> String {
        (self.datum)(settings).map_or_else(|| "unset".to_owned(), |datum| datum.show())
    }

    /// The key's value in `settings`, where it has one.
    #[cfg(test)]
    pub(crate) fn datum_of(&self, settings: &Settings) -> Option<Datum> {
        (self.datum)(settings)
    }

    /// Whether it means something to a [`Guard`](crate::Guard), and may stand in `[guards.<name>]`.
    pub fn is_of_guards(&self) -> bool {
        find(self.name).is_some_and(guard::takes)
    }

    /// Puts a value in its place. False only if the table is wrong: the kind does not fit the field.
    pub(crate) fn put(&self, settings: &mut Settings, datum: Datum) -> bool {
        (self.put)(settings, datum)
    }
}

/// The index in [`KEYS`] of the key `name`.
pub(crate) fn find(name: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.name == name)
}

/// The word for `value`.
pub(crate) fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

#[cfg(test)]
mod tests;
