//! The keys of a scenario file: name, type and meaning of each, in one place. The reader, the schema for editors and the
//! reference in `docs/scenarios.md` are made from these tables.

use super::kind::Kind;
use crate::table::{self, key, required};

/// A key of one of the tables of a scenario file.
pub type Key = table::Key<Kind>;
/// One of the tables of a scenario file.
pub type Table = table::Table<Kind>;

/// The most calls of a step.
pub(super) const MOST_CALLS: u64 = 10_000;
/// The most of them at once.
pub(super) const MOST_AT_ONCE: u64 = 1_000;

/// The file itself.
pub(super) static FILE: Table = Table {
    place: "the file",
    keys: &[
        required("title", Kind::Text, "What is to be seen, in one sentence."),
        key("contract", Kind::Texts, "The numbers of the statements and cases that it shows."),
        required("why", Kind::Prose, "Why it is so: what a reader learns from it."),
        key("seed", Kind::Count(0, i64::MAX as u64), "Where all chance comes from; 1 unless said."),
        key(
            "virtual_only",
            Kind::Text,
            "Why it cannot be played over sockets: `--sockets` leaves it out, and says so. Not for what takes seconds.",
        ),
        key("config", Kind::Text, "The service's own configuration, beside this file or by its path from here."),
        key(
            "table",
            Kind::Text,
            "The table of that file that holds `upstreams` and `guards`; its top level unless said.",
        ),
        key("upstreams", Kind::Upstreams, "Upstreams as in `steadfast.toml`; over those of `config`, key by key."),
        key("guards", Kind::Guards, "Guards as in `steadfast.toml`; over those of `config`, key by key."),
        key(
            "script",
            Kind::Scripts,
            "What an upstream or guard of that name does, or another that plays it in a step.",
        ),
        key(
            "each",
            Kind::Variants,
            "Plays the scenario once for each of these; a value `\"{name}\"` is what it says of `name`.",
        ),
        required("step", Kind::Steps, "What is done and expected, in order."),
    ],
};

/// `[[script.NAME]]` of an upstream.
pub(super) static REPLY: Table = Table {
    place: "[[script.NAME]], of an upstream",
    keys: &[
        key("status", Kind::Status, "Answers with this status."),
        key("headers", Kind::Headers, "The answer's headers; `{date+3s}` in a value is the date so long from then."),
        key("body", Kind::Prose, "The answer's body."),
        key("cut", Kind::Count(0, 1 << 20), "Cuts the connection after so many bytes of the body."),
        key("drip", Kind::Duration, "Sends a byte of the body each so often, for ever."),
        key("hang", Kind::Yes, "Reads the request and never answers."),
        key("refuse", Kind::Yes, "Refuses the connection."),
        key(
            "reset",
            Kind::Word(&["before", "after"]),
            "Resets the connection before it has read the request, or after.",
        ),
        key("after", Kind::Duration, "Takes so long first; 0s unless said."),
        key("times", Kind::Count(1, MOST_CALLS), "For so many requests in a row; 1 unless said. The last one repeats."),
        key("route", Kind::Route, "Only for requests like this: `/x`, `/x/*` or `POST /x`."),
    ],
};

/// `[[script.NAME]]` of a guard.
pub(super) static ANSWER: Table = Table {
    place: "[[script.NAME]], of a guard",
    keys: &[
        key("value", Kind::Prose, "Brings this value."),
        key(
            "error",
            Kind::Word(&["failure", "transient", "throttled", "permanent", "refused"]),
            "Fails with an error of this class.",
        ),
        key("retry_after", Kind::Duration, "The wait that a transient or throttled error asks for."),
        key("hang", Kind::Yes, "Never ends."),
        key("after", Kind::Duration, "Takes so long first; 0s unless said."),
        key("times", Kind::Count(1, MOST_CALLS), "For so many calls in a row; 1 unless said. The last one repeats."),
    ],
};

/// `[[step]]`.
pub(super) static STEP: Table = Table {
    place: "[[step]]",
    keys: &[
        key("call", Kind::Name, "Calls this upstream or guard."),
        key("await", Kind::Name, "Waits for the calls that were made `as` this."),
        key("advance", Kind::Duration, "Lets so much time pass."),
        key("play", Kind::Name, "Has this upstream or guard play another `script`, or its own again."),
        key("force_open", Kind::Name, "Opens the breaker of this upstream or guard, until it is reset."),
        key("force_close", Kind::Name, "Closes it, until it is reset."),
        key("reset", Kind::Name, "Resets it."),
        key("close", Kind::Name, "Closes this client or guard, and waits for what is under way."),
        key("look", Kind::Name, "Does nothing, and looks at this upstream or guard."),
        key("script", Kind::Name, "With `play`: the script."),
        key(
            "times",
            Kind::Count(1, MOST_CALLS),
            "Makes so many calls; as many as `concurrent`, or else 1, unless said.",
        ),
        key("concurrent", Kind::Count(1, MOST_AT_ONCE), "So many of them at once; 1 unless said."),
        key("as", Kind::Name, "The calls go on while the next steps are played, until a step awaits them."),
        key("cancel_after", Kind::Duration, "The caller gives each call up after so long."),
        key("timeout", Kind::Duration, "The call's own timeout."),
        key("inbound", Kind::Table(&INBOUND), "The request being served, on whose behalf the call is made."),
        key("method", Kind::Method, "HTTP: the method; GET unless said."),
        key("path", Kind::Path, "HTTP: the path, with its query; `/` unless said."),
        key("headers", Kind::Headers, "HTTP: the call's own headers."),
        key("body", Kind::Prose, "HTTP: the body."),
        key("idempotency_key", Kind::Prose, "HTTP: the call's `Idempotency-Key`."),
        key("retry", Kind::Flag, "HTTP: allows or forbids to repeat the request, whatever its method."),
        key("stream", Kind::Yes, "HTTP: takes the response at its head, and reads its body as it comes."),
        key("timeout_is_evidence", Kind::Flag, "HTTP: false for a route that is known to be slow."),
        key("classify", Kind::Flag, "Guard: false tells it nothing of what errors mean; true unless said."),
        key("rate_limit_key", Kind::Text, "Guard: whose rate limit the call counts in."),
        key("fallback", Kind::Prose, "Guard: what is served instead of a value that does not come."),
        key("expect", Kind::Table(&EXPECT), "What is expected once the step is done."),
    ],
};

/// `[step.inbound]`.
pub(super) static INBOUND: Table = Table {
    place: "[step.inbound]",
    keys: &[
        key("headers", Kind::Headers, "Its headers, of which request id, bearer and trace are taken over."),
        key("time_left", Kind::Duration, "What is left of its deadline."),
    ],
};

/// How a call can end.
pub(super) const ENDINGS: &[&str] = &[
    "ok",
    "operation",
    "cancelled",
    "circuit_open",
    "bulkhead_full",
    "rate_limited",
    "timeout",
    "unreachable",
    "invalid_request",
    "closed",
];

/// `[step.expect]`.
pub(super) static EXPECT: Table = Table {
    place: "[step.expect]",
    keys: &[
        key("result", Kind::Ending, "How each call ended: a status, or a word."),
        key("results", Kind::Endings, "How many of the calls ended in which way; none in another."),
        key(
            "requests",
            Kind::Counts,
            "Requests that were read since the step before; of a guard, runs of its operation.",
        ),
        key("attempts", Kind::Counts, "How many attempts each call made."),
        key("outcomes", Kind::Texts, "How each attempt ended, in order: a status, or the word of the report."),
        key("waits", Kind::Waits, "What each call waited for, in order, and how long."),
        key("ended", Kind::Word(ENDED), "Why each call ended: the word of the report."),
        key("retry_after", Kind::Durations, "When each call was told to come back."),
        key("took", Kind::Durations, "How long each call took."),
        key("message", Kind::Prose, "The text of each call's error; `*` stands for anything."),
        key("body", Kind::Prose, "Each response's body, or operation's value; `*` stands for anything."),
        key("degraded", Kind::Flag, "Whether a fallback stood in."),
        key("breaker", Kind::Word(&["closed", "open", "half_open"]), "The state of the breaker."),
        key("in_flight", Kind::Counts, "Slots of the bulkhead that are taken."),
        key("ready", Kind::Word(&["ok", "degraded", "unavailable"]), "The status that `/ready` shows."),
        key("ready_detail", Kind::Prose, "What `/ready` says of upstreams, or of guards; `*` stands for anything."),
        key("seen", Kind::Table(&SEEN), "What each request had that was read since the step before."),
    ],
};

/// Why a call can end.
pub(super) const ENDED: &[&str] = &[
    "response",
    "not_repeatable",
    "not_retryable",
    "stale_408",
    "attempts_exhausted",
    "budget_ceiling",
    "budget_efficacy",
    "deadline",
    "retry_after_too_long",
    "circuit_open",
    "bulkhead_full",
    "rate_limited",
    "invalid_request",
    "body_failed",
    "closed",
];

/// What a call can wait for.
pub(super) const WAITS: &[&str] = &["backoff", "retry_after", "bulkhead", "rate_limit"];

/// `[step.expect.seen]`.
pub(super) static SEEN: Table = Table {
    place: "[step.expect.seen]",
    keys: &[
        key("method", Kind::Method, "Its method."),
        key("path", Kind::Text, "Its path, with its query; `*` stands for anything."),
        key("body", Kind::Prose, "Its body; `*` stands for anything."),
        key("headers", Kind::Patterns, "Headers that it had, each once; `*` stands for anything."),
        key("no_headers", Kind::HeaderNames, "Headers that it did not have."),
    ],
};

/// Every table, in the order of the reference.
pub static TABLES: &[&Table] = &[&FILE, &REPLY, &ANSWER, &STEP, &INBOUND, &EXPECT, &SEEN];

#[cfg(test)]
mod tests {
    use steadfast::ErrorKind;
    use steadfast::report::{Ended, WaitReason};

    use super::*;

    /// The words are those of reports and errors.
    #[test]
    fn no_word_is_missing() {
        let ended = [
            Ended::Response,
            Ended::NotRepeatable,
            Ended::NotRetryable,
            Ended::Stale408,
            Ended::AttemptsExhausted,
            Ended::BudgetCeiling,
            Ended::BudgetEfficacy,
            Ended::Deadline,
            Ended::RetryAfterTooLong,
            Ended::CircuitOpen,
            Ended::BodyFailed,
            Ended::BulkheadFull,
            Ended::RateLimited,
            Ended::InvalidRequest,
            Ended::Closed,
        ];
        assert_eq!(ended.len(), ENDED.len());
        assert!(ended.iter().all(|ended| ENDED.contains(&ended.name())));
        let kinds = [
            ErrorKind::CircuitOpen,
            ErrorKind::BulkheadFull,
            ErrorKind::RateLimited,
            ErrorKind::Timeout,
            ErrorKind::Unreachable,
            ErrorKind::InvalidRequest,
            ErrorKind::Closed,
        ];
        assert_eq!(kinds.len() + 3, ENDINGS.len());
        assert!(kinds.iter().all(|kind| ENDINGS.contains(&kind.name())));
        let waits = [WaitReason::Backoff, WaitReason::RetryAfter, WaitReason::Bulkhead, WaitReason::RateLimit];
        assert_eq!(waits.map(WaitReason::name), WAITS);
    }
}
