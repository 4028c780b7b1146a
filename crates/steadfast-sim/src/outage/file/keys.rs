//! The keys of a simulation file: name, type and meaning of each, in one place. The reader, the schema for editors and the
//! reference in `docs/simulate.md` are made from these tables.

use super::kind::Kind;
use crate::table::{self, key, required};

/// A key of one of the tables of a simulation file.
pub type Key = table::Key<Kind>;
/// One of the tables of a simulation file.
pub type Table = table::Table<Kind>;

const ANY: Kind = Kind::Duration { above: false };
const ABOVE: Kind = Kind::Duration { above: true };
const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const AMOUNT: Kind = Kind::Number { min: 0.0, max: 1e6 };
const STATUS: Kind = Kind::Count(200, 599);

/// The most phases that a file names.
pub(super) const MOST_PHASES: usize = 100;
/// How often all triggers together come to all replicas that they befall.
pub(super) const MOST_VISITS: u128 = 1_000_000;
/// Intervals, times models, times policies: what is kept of one seed.
pub(super) const MOST_KEPT: u128 = 100_000;
/// The most clients.
pub(super) const MOST_CLIENTS: u64 = 20_000;
/// The most upstreams of a chain.
pub(super) const MOST_MODELS: usize = 16;
/// The most callers of a closed workload, of all clients together.
pub(super) const MOST_CALLERS: f64 = 100_000.0;
/// The most times that a trigger comes and goes.
pub(super) const MOST_PULSES: u128 = 100_000;
/// The most calls of a run, so that a slip of the pen does not take the machine's memory.
pub(super) const MOST_CALLS: f64 = 20_000_000.0;

/// The file itself.
pub(super) static FILE: Table = Table {
    place: "the file",
    keys: &[
        required("title", Kind::Text, "What is to be seen, in one sentence."),
        key("why", Kind::Prose, "What a reader learns from it."),
        required("length", ABOVE, "For how long calls are made; the run ends when all of them have ended."),
        key("warm_up", ANY, "The time at the start that no phase counts; 0s unless said."),
        key("interval", ABOVE, "The length of the intervals in which everything is counted; 1s unless said."),
        key("in_time", ABOVE, "A good answer that takes longer is too late to be of use; none is unless said."),
        key("seed", Kind::Count(0, i64::MAX as u64), "The first seed; 1 unless said."),
        key("config", Kind::Text, "The service's own configuration, beside this file or by its path from here."),
        key("table", Kind::Text, "The table of that file that holds `upstreams`; its top level unless said."),
        key("upstreams", Kind::Upstreams, "Upstreams as in `steadfast.toml`; over those of `config`, key by key."),
        required(
            "model",
            Kind::Named(&MODEL),
            "The modelled upstreams by name; each has the settings of the upstream of its name.",
        ),
        required("workload", Kind::Table(&WORKLOAD), "Who calls, and how often."),
        key("trigger", Kind::Tables(&TRIGGER), "What happens, and when."),
        key(
            "holds_worker",
            Kind::Flag,
            "Whether a worker whose model `calls` another waits for it and serves nobody else; false unless said.",
        ),
        key(
            "phase",
            Kind::Tables(&PHASE),
            "Stretches of time with figures of their own, beside before, during and after the triggers, and all.",
        ),
        key(
            "policies",
            Kind::Named(&POLICY),
            "Candidates: other settings to run beside `none`, `blind` and `configured`.",
        ),
        key("compare", Kind::Names, "Which policies are run, in this order; all unless said."),
        key("expect", Kind::Tables(&EXPECT), "Bounds that make it a test."),
    ],
};

/// `[model.NAME]`.
static MODEL: Table = Table {
    place: "[model.NAME]",
    keys: &[
        required("service_time", Kind::Table(&SERVICE_TIME), "How long serving a request takes at full speed."),
        key("replicas", Kind::Count(1, 10_000), "How many replicas it has; 1 unless said."),
        key("workers", Kind::Count(1, 1_000_000), "How many requests a replica serves at once; 1 unless said."),
        key(
            "queue",
            Kind::Count(0, 1_000_000_000),
            "How many requests wait at a replica at the most, one more gets a 503; any number unless said.",
        ),
        key("discipline", Kind::Word(&["fifo", "lifo"]), "Which of those that wait is served next; fifo unless said."),
        key(
            "dead_work",
            Kind::Word(&["served", "skipped", "cancelled"]),
            "What becomes of requests whose caller has gone; served, in full, unless said.",
        ),
        key(
            "balancer",
            Kind::Word(&["random", "round_robin", "least_busy"]),
            "Which replica a request goes to; random unless said.",
        ),
        key("health_check", ANY, "After how long the balancer leaves out a replica that is down; never unless said."),
        key("cold", Kind::Table(&COLD), "How it is slower for a while after a restart; not at all unless said."),
        key(
            "rate_limit",
            Kind::Table(&RATE_LIMIT),
            "How fast it lets itself be called; as fast as anybody likes unless said.",
        ),
        key("calls", Kind::Name, "The model that it calls before it answers; none unless said."),
    ],
};

/// `service_time` of a model.
static SERVICE_TIME: Table = Table {
    place: "service_time of [model.NAME]",
    keys: &[
        key("mean", ABOVE, "Exponential, with this mean."),
        key("fixed", ABOVE, "Always the same."),
        key("median", ABOVE, "Lognormal: half of all take longer; `p99` as well."),
        key("p99", ABOVE, "Lognormal: one in a hundred takes longer."),
        key("drawn", Kind::Durations, "Each drawn from this list."),
        key("replayed", Kind::Durations, "In this order, over and over."),
    ],
};

/// `cold` of a model.
static COLD: Table = Table {
    place: "cold of [model.NAME]",
    keys: &[
        required("speed", Kind::Number { min: 0.001, max: 1e6 }, "The speed meanwhile; 1 is full speed."),
        required("for", ABOVE, "For how long."),
    ],
};

/// `rate_limit` of a model.
static RATE_LIMIT: Table = Table {
    place: "rate_limit of [model.NAME]",
    keys: &[
        required(
            "limit",
            Kind::Count(0, u32::MAX as u64),
            "So many requests a window, over all replicas; one more gets a 429.",
        ),
        key("period", ABOVE, "How long a window is; 1s unless said."),
        key("per_client", Kind::Flag, "Whether each client has a limit of its own; false unless said."),
        key(
            "tells",
            Kind::Word(&["nothing", "retry_after", "rate_limit"]),
            "How it says when to come back: `Retry-After`, or `RateLimit` fields; retry_after unless said.",
        ),
    ],
};

/// `[workload]`.
static WORKLOAD: Table = Table {
    place: "[workload]",
    keys: &[
        key(
            "clients",
            Kind::Count(1, MOST_CLIENTS),
            "How many processes call, each with a client of its own; 1 unless said.",
        ),
        key("calls", Kind::Name, "The model that they call; may be left out where no other can be meant."),
        key(
            "rate",
            Kind::Number { min: 0.001, max: 1e7 },
            "Open: so many calls a second, of all together, at random instants.",
        ),
        key("even", Kind::Flag, "With `rate`: at equal distances, from one client after the other; false unless said."),
        key(
            "callers",
            Kind::Count(1, 1_000_000),
            "Closed: so many callers in each client, each of which waits for its call to end.",
        ),
        key("think", ABOVE, "With `callers`: the mean time from the end of a call to the caller's next."),
        key("arrivals", Kind::Durations, "Recorded: calls at these instants, counted from the start."),
    ],
};

/// What `effect` can be.
pub(super) const EFFECTS: &[&str] =
    &["slow", "freeze", "down", "answer", "costly", "refuse", "unreachable", "hang", "reset", "restart", "load"];

/// `[[trigger]]`.
static TRIGGER: Table = Table {
    place: "[[trigger]]",
    keys: &[
        required("effect", Kind::Word(EFFECTS), "What happens."),
        required("at", ANY, "When it begins."),
        required("for", ABOVE, "How long it lasts."),
        key("speed", AMOUNT, "slow: work goes on at this share of full speed, also what has begun."),
        key("status", STATUS, "answer, costly: the status; 503 unless said."),
        key("after", ANY, "answer, refuse: how long that takes; 1ms unless said."),
        key("retry_after", ANY, "answer: what its `Retry-After` says, in whole seconds; none unless said."),
        key("graceful", Kind::Flag, "restart: whether it first ends what it has, or resets it; true unless said."),
        key("factor", AMOUNT, "load: the clients call so many times as often."),
        key("every", ABOVE, "It comes and goes: from one beginning to the next."),
        key("each", ABOVE, "With `every`: how long each time."),
        key("upstream", Kind::Name, "The model it befalls; the one that the clients call unless said."),
        key("replica", Kind::Count(0, 9_999), "The only replica it befalls, from 0; all unless said."),
        key("stagger", ANY, "By how much later it befalls each next replica; 0s unless said."),
        key("share_of_attempts", SHARE, "Falls on this share of attempts, each drawn by itself; all unless said."),
        key("share_of_calls", SHARE, "Falls on this share of calls, with every attempt of theirs; all unless said."),
    ],
};

/// `[[phase]]`.
static PHASE: Table = Table {
    place: "[[phase]]",
    keys: &[
        required("name", Kind::Name, "Its name in results and for `expect`."),
        required("from", ANY, "From, inclusive."),
        required("to", ABOVE, "To, exclusive."),
    ],
};

/// `[policies.NAME]`.
static POLICY: Table = Table {
    place: "[policies.NAME]",
    keys: &[
        key(
            "upstreams",
            Kind::Upstreams,
            "Upstreams as in `steadfast.toml`, over those of the simulation, key by key.",
        ),
        key("breaker", Kind::Flag, "Whether the circuit breaker works; true unless said."),
    ],
};

/// `[[expect]]`.
static EXPECT: Table = Table {
    place: "[[expect]]",
    keys: &[
        key("policy", Kind::Name, "Of which policy; `configured` unless said."),
        key("phase", Kind::Name, "In which phase; `all` unless said."),
        key("upstream", Kind::Name, "Of `requests` and `wasted`: of which model; the called one unless said."),
        key("goodput", Kind::Numbers, "The share of calls that get a good answer, 0 to 1."),
        key("in_time", Kind::Numbers, "The share of calls that get it within `in_time` of the file, 0 to 1."),
        key("amplification", Kind::Numbers, "Attempts sent for each call made."),
        key("refused", Kind::Numbers, "The share of calls that our own limits refuse, 0 to 1."),
        key("wasted", Kind::Numbers, "The share of an upstream's work that is done for nobody, 0 to 1."),
        key("requests", Kind::Counts, "Attempts that are sent to an upstream."),
        key("p50", Kind::Times, "The time that half of the good answers do not exceed."),
        key("p99", Kind::Times, "The same of 99 in a hundred."),
        key("opened", Kind::Counts, "How often breakers of the clients open."),
        key(
            "recovery",
            Kind::Times,
            "How long after the triggers it takes until the share in time is back at 95 % of what it was before, for 5 s. Without a phase.",
        ),
    ],
};

/// Every table, in the order of the reference.
pub static TABLES: &[&Table] =
    &[&FILE, &MODEL, &SERVICE_TIME, &COLD, &RATE_LIMIT, &WORKLOAD, &TRIGGER, &PHASE, &POLICY, &EXPECT];
