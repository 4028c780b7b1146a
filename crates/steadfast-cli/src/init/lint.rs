//! `clippy.toml`: the clients that are no longer to be used as they are, and what to use in their place.
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

use std::fmt::Write;

const REQWEST: &str = "no deadline over all attempts, no circuit breaker: use steadfast::ServiceClient (with \
                       transport::ReqwestTransport, if it must be reqwest)";
const HYPER: &str = "no deadline over all attempts, no circuit breaker: use steadfast::ServiceClient (with \
                     ClientBuilder::service, if it must be this client)";
const ASYNC: &str = "no deadline over all attempts, no circuit breaker: use steadfast::ServiceClient";
const BLOCKING: &str = "no deadline over all attempts, no circuit breaker: use steadfast::blocking::ServiceClient";

/// What is forbidden of one crate.
struct Family {
    /// The crate, for people.
    of: &'static str,
    /// What clippy prints.
    reason: &'static str,
    /// Whether some version of the crate, or one without some feature, lacks it.
    varies: bool,
    methods: &'static [&'static str],
    types: &'static [&'static str],
}

static FAMILIES: &[Family] = &[
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

/// One of the two keys of `clippy.toml`.
#[derive(Clone, Copy)]
enum List {
    Methods,
    Types,
}

impl List {
    const BOTH: [Self; 2] = [Self::Methods, Self::Types];

    fn key(self) -> &'static str {
        match self {
            Self::Methods => "disallowed-methods",
            Self::Types => "disallowed-types",
        }
    }

    fn of(self, family: &Family) -> &'static [&'static str] {
        match self {
            Self::Methods => family.methods,
            Self::Types => family.types,
        }
    }
}

const HEAD: &str = "\
# Clients that have no deadline over all their attempts and no circuit breaker, for clippy to forbid.
# Made by `steadfast init`; `steadfast init --only clippy` says what a later version would add.
#
# Clippy reads the first clippy.toml that it finds, from a package's own directory upwards, and no other: a member of a
# workspace that has one of its own needs these lines in it.
#
# Where such a client is right, say so at the place:
#   #[expect(clippy::disallowed_methods, reason = \"the health check of the proxy itself\")]
";

/// The file as a whole.
pub(super) fn file() -> String {
    let mut text = HEAD.to_owned();
    for list in List::BOTH {
        text.push('\n');
        array(&mut text, list, |_| true);
    }
    text
}

/// What a file of this text lacks, to be added by hand; `None` if it has everything.
///
/// # Errors
/// It is not TOML; the text says where and why.
pub(super) fn missing(text: &str) -> Result<Option<Missing>, String> {
    let present: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut missing = Missing { text: String::new(), lines: 0 };
    for list in List::BOTH {
        let known = paths(present.get(list.key()));
        let lacks = |path: &str| !known.contains(&path);
        let count = FAMILIES.iter().flat_map(|family| list.of(family)).filter(|path| lacks(path)).count();
        if count == 0 {
            continue;
        }
        if present.contains_key(list.key()) {
            let _ = writeln!(missing.text, "# Into {} = [ … ]:", list.key());
            entries(&mut missing.text, list, lacks);
        } else {
            // Before anything that may be in a table.
            let _ = writeln!(missing.text, "# At the top:");
            array(&mut missing.text, list, lacks);
        }
        missing.lines += count;
    }
    Ok((missing.lines > 0).then_some(missing))
}

/// Lines to be added to a file.
pub(super) struct Missing {
    /// The lines, with a comment that says where they go.
    pub(super) text: String,
    /// How many paths they forbid.
    pub(super) lines: usize,
}

/// The paths in one of the arrays: each is a text, or a table with one.
fn paths(array: Option<&toml::Value>) -> Vec<&str> {
    let items = array.and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().or_else(|| item.get("path")?.as_str())).collect()
}

fn array(text: &mut String, list: List, wanted: impl Fn(&str) -> bool) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{} = [", list.key());
    entries(text, list, wanted);
    text.push_str("]\n");
}

fn entries(text: &mut String, list: List, wanted: impl Fn(&str) -> bool) {
    for family in FAMILIES {
        let mut paths = list.of(family).iter().filter(|path| wanted(path)).peekable();
        if paths.peek().is_some() {
            let _ = writeln!(text, "    # {}", family.of);
        }
        for path in paths {
            let varies = if family.varies { ", allow-invalid = true" } else { "" };
            let _ = writeln!(text, "    {{ path = \"{path}\", reason = \"{}\"{varies} }},", family.reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> usize {
        FAMILIES.iter().map(|family| family.methods.len() + family.types.len()).sum()
    }

    #[test]
    fn the_file_lacks_nothing() {
        assert!(missing(&file()).unwrap().is_none());
    }

    #[test]
    fn no_path_stands_twice() {
        let mut paths: Vec<_> = FAMILIES.iter().flat_map(|family| [family.methods, family.types].concat()).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), all());
    }

    #[test]
    fn an_empty_file_lacks_everything_and_what_is_missing_completes_it() {
        let lacks = missing("").unwrap().unwrap();
        assert_eq!(lacks.lines, all());
        assert!(missing(&lacks.text).unwrap().is_none());
    }

    #[test]
    fn what_is_there_is_not_asked_for_again_in_either_form() {
        let text = "too-many-lines-threshold = 60\n\
                    disallowed-methods = [\"reqwest::get\", { path = \"ureq::get\", reason = \"ours\" }]\n";
        let lacks = missing(text).unwrap().unwrap();
        assert_eq!(lacks.lines, all() - 2);
        assert!(!lacks.text.contains("\"reqwest::get\"") && !lacks.text.contains("\"ureq::get\""));
        // A second array of that name would be refused: these are entries alone.
        assert!(!lacks.text.contains("\ndisallowed-methods = [") && lacks.text.contains("\ndisallowed-types = [\n"));
    }

    #[test]
    fn a_path_in_a_comment_is_not_there() {
        let lacks = missing("# \"reqwest::get\"\n").unwrap().unwrap();
        assert!(lacks.text.contains("\"reqwest::get\""));
    }

    #[test]
    fn what_is_not_toml_is_said_with_its_line() {
        let error = missing("a = 1\nb = [\n").err().unwrap();
        assert!(error.contains("line 2") || error.contains("line 3"), "{error}");
    }
}
