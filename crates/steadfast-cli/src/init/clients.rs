//! The clients that are no longer to be used as they are, and what to use in their place.
//!
//! The list forbids the ways to make a client, and for clients that can also come from elsewhere (a default, another
//! crate) the ways to send with it. A type is forbidden as a whole only where nothing of Steadfast takes it: a
//! `reqwest::Client` can be a transport, a `ureq::Agent` cannot. Where a bare client is right after all, that place says
//! so with `#[expect(clippy::disallowed_methods, reason = "…")]`.
//!
//! Each path was resolved by clippy against the crate itself: reqwest 0.12 and 0.13, hyper 0.14 and 1, hyper-util 0.1,
//! ureq 2 and 3, isahc 1 and 2, surf 2, attohttpc 0.31, awc 3, curl 0.4, minreq 3. Clippy warns of a path that leads
//! nowhere in a crate that is there; what a feature or another version takes away is marked so that it does not.
//!
//! Limits: clippy sees names, not sockets. What a dependency sends inside itself, a client behind a trait of one's own,
//! and a raw `TcpStream` pass.

const REQWEST: &str = "no deadline over all attempts, no circuit breaker: use steadfast::ServiceClient (with \
                       transport::ReqwestTransport, if it must be reqwest)";
const HYPER: &str = "no deadline over all attempts, no circuit breaker: use steadfast::ServiceClient (with \
                     ClientBuilder::service, if it must be this client)";
const ASYNC: &str = "no deadline over all attempts, no circuit breaker: use steadfast::ServiceClient";
const BLOCKING: &str = "no deadline over all attempts, no circuit breaker: use steadfast::blocking::ServiceClient";

/// What is forbidden of one crate.
pub(super) struct Family {
    /// The crate, for people.
    pub(super) of: &'static str,
    /// What clippy prints.
    pub(super) reason: &'static str,
    /// Whether some version of the crate, or one without some feature, lacks it.
    pub(super) varies: bool,
    /// Functions, by their paths.
    pub(super) methods: &'static [&'static str],
    /// Types, by their paths.
    pub(super) types: &'static [&'static str],
}

/// All of it, the most used first.
pub(super) static FAMILIES: &[Family] = &[
    Family {
        of: "reqwest",
        reason: REQWEST,
        varies: false,
        methods: &[
            "reqwest::get",
            "reqwest::Client::new",
            "reqwest::Client::builder",
            "reqwest::ClientBuilder::new",
            // A client has a default too, which cannot be forbidden by its name.
            "reqwest::Client::execute",
            "reqwest::RequestBuilder::send",
        ],
        types: &[],
    },
    Family {
        of: "reqwest, feature blocking",
        reason: BLOCKING,
        varies: true,
        methods: &["reqwest::blocking::get"],
        types: &["reqwest::blocking::Client", "reqwest::blocking::ClientBuilder"],
    },
    Family {
        of: "hyper-util",
        reason: HYPER,
        varies: true,
        methods: &[
            "hyper_util::client::legacy::Client::builder",
            "hyper_util::client::legacy::Builder::new",
            "hyper_util::client::legacy::Client::get",
            "hyper_util::client::legacy::Client::request",
        ],
        types: &[],
    },
    Family {
        of: "hyper",
        reason: HYPER,
        varies: true,
        methods: &[
            "hyper::client::conn::http1::handshake",
            "hyper::client::conn::http1::Builder::handshake",
            "hyper::client::conn::http2::handshake",
            "hyper::client::conn::http2::Builder::handshake",
        ],
        types: &[],
    },
    Family {
        of: "hyper 0.14",
        reason: HYPER,
        varies: true,
        methods: &[
            "hyper::Client::new",
            "hyper::Client::builder",
            "hyper::client::conn::handshake",
            "hyper::client::conn::Builder::handshake",
        ],
        types: &[],
    },
    Family {
        of: "ureq",
        reason: BLOCKING,
        varies: false,
        methods: &["ureq::get", "ureq::post", "ureq::put", "ureq::patch", "ureq::delete", "ureq::head", "ureq::agent"],
        types: &["ureq::Agent"],
    },
    Family {
        of: "ureq, in one version or another",
        reason: BLOCKING,
        varies: true,
        methods: &[
            "ureq::run",
            "ureq::connect",
            "ureq::options",
            "ureq::trace",
            "ureq::builder",
            "ureq::request",
            "ureq::request_url",
        ],
        types: &["ureq::AgentBuilder"],
    },
    Family {
        of: "isahc",
        reason: ASYNC,
        varies: false,
        methods: &[
            "isahc::get",
            "isahc::get_async",
            "isahc::head",
            "isahc::head_async",
            "isahc::post",
            "isahc::post_async",
            "isahc::put",
            "isahc::put_async",
            "isahc::delete",
            "isahc::delete_async",
            "isahc::send",
            "isahc::send_async",
            "isahc::RequestExt::send",
            "isahc::RequestExt::send_async",
        ],
        types: &["isahc::HttpClient", "isahc::HttpClientBuilder"],
    },
    Family {
        of: "surf",
        reason: ASYNC,
        varies: true,
        methods: &[
            "surf::get",
            "surf::post",
            "surf::put",
            "surf::patch",
            "surf::delete",
            "surf::head",
            "surf::options",
            "surf::trace",
            "surf::connect",
            "surf::client",
        ],
        types: &["surf::Client", "surf::RequestBuilder"],
    },
    Family { of: "awc", reason: ASYNC, varies: false, methods: &[], types: &["awc::Client", "awc::ClientBuilder"] },
    Family {
        of: "attohttpc",
        reason: BLOCKING,
        varies: false,
        methods: &[
            "attohttpc::get",
            "attohttpc::post",
            "attohttpc::put",
            "attohttpc::patch",
            "attohttpc::delete",
            "attohttpc::head",
            "attohttpc::options",
            "attohttpc::trace",
        ],
        types: &["attohttpc::Session", "attohttpc::RequestBuilder"],
    },
    Family {
        of: "minreq",
        reason: BLOCKING,
        varies: false,
        methods: &[
            "minreq::get",
            "minreq::post",
            "minreq::put",
            "minreq::patch",
            "minreq::delete",
            "minreq::head",
            "minreq::options",
            "minreq::trace",
            "minreq::connect",
        ],
        types: &["minreq::Request"],
    },
    Family {
        of: "curl",
        reason: BLOCKING,
        varies: false,
        methods: &[],
        types: &["curl::easy::Easy", "curl::easy::Easy2", "curl::multi::Multi"],
    },
];
