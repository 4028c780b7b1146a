//! What `steadfast call` will do: the arguments, validated and with their defaults, before anything is opened.
//!
//! No message here quotes what may be a secret: a header's value, a body, a URL, a setting.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};

use super::flags;
use crate::args::{CallArgs, Format};
use crate::exit::Exit;
use crate::output;
use crate::settings::Setting;

/// Calls in flight at once where only a rate is given: enough not to hold the rate up, few enough to be polite.
const CONCURRENCY_WITH_RATE: u32 = 50;
/// The file that is read where none is named.
const DEFAULT_FILE: &str = "steadfast.toml";
/// The upstream's name in a call by URL.
const URL_NAME: &str = "url";

/// A validated call.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: Target,
    pub(crate) upstream: String,
    /// Keys that were typed, over those of the target.
    pub(crate) settings: Vec<Setting>,
    pub(crate) request: Request,
    pub(crate) load: Load,
    pub(crate) format: Format,
    pub(crate) body: bool,
    pub(crate) stream: bool,
    pub(crate) fail: bool,
}

/// Where the client's settings come from.
#[derive(Debug)]
pub(crate) enum Target {
    /// A file and the environment.
    Configured { file: Option<PathBuf>, table: Option<String>, env_prefix: String },
    /// A base URL; the environment is not read.
    Url { base_url: String },
}

/// The request, the same for each call.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Bytes>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) retry: Option<bool>,
    pub(crate) timeout: Option<Duration>,
}

/// How many calls, and how fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) repeat: u64,
    pub(crate) concurrency: usize,
    pub(crate) rate: Option<f64>,
}

/// Why the arguments make no call.
#[derive(Debug)]
pub(crate) struct Mistake(String);

impl Mistake {
    /// Says so on standard error.
    pub(crate) fn report(&self) -> Exit {
        output::note(&format!("error: {}\n\nFor more information, try 'steadfast call --help'.", self.0));
        Exit::Usage
    }
}

pub(super) fn mistake<T>(message: impl Into<String>) -> Result<T, Mistake> {
    Err(Mistake(message.into()))
}

impl Target {
    /// What the paths of an upstream's keys begin with, in problems.
    pub(crate) fn path(&self, upstream: &str) -> String {
        match self {
            Self::Configured { table: Some(table), .. } => format!("{table}.upstreams.{upstream}."),
            _ => format!("upstreams.{upstream}."),
        }
    }
}

impl Plan {
    /// Validates what was typed; reads the body, from standard input too.
    pub(crate) fn new(args: CallArgs) -> Result<Self, Mistake> {
        let (upstream, method, path) = positions(args.first, args.second, args.third, args.url.is_some())?;
        let mut headers = Vec::with_capacity(args.headers.len());
        for header in &args.headers {
            headers.push(parse_header(header)?);
        }
        let body = args.data.as_deref().map(read_body).transpose()?;
        if args.json_body {
            mark_as_json(body.as_ref(), &mut headers)?;
        }
        let settings = flags::read(&args.set, &args.connection, args.url.is_some())?;
        let target = match args.url {
            Some(base_url) => Target::Url { base_url },
            None => {
                let default = || Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.exists());
                Target::Configured {
                    file: args.config.or_else(default),
                    table: args.table,
                    env_prefix: args.env_prefix,
                }
            }
        };
        let concurrency = args.concurrency.unwrap_or(if args.rate.is_some() { CONCURRENCY_WITH_RATE } else { 1 });
        Ok(Self {
            target,
            upstream,
            settings,
            request: Request {
                method,
                path,
                headers,
                body,
                idempotency_key: args.idempotency_key,
                retry: args.retry,
                timeout: args.timeout,
            },
            load: Load { repeat: args.repeat, concurrency: concurrency as usize, rate: args.rate },
            format: args.output,
            body: args.body,
            stream: args.stream,
            fail: args.fail,
        })
    }
}

/// `[UPSTREAM] METHOD PATH`; only a call by URL can do without the name.
fn positions(
    first: String,
    second: String,
    third: Option<String>,
    by_url: bool,
) -> Result<(String, Method, String), Mistake> {
    let (upstream, method, path) = match third {
        Some(third) => (first, second, third),
        None if by_url => (String::from(URL_NAME), first, second),
        None => return mistake("expected UPSTREAM METHOD PATH; only with --url can the name be left out"),
    };
    // Methods are case-sensitive, but nobody who types `get` means anything but GET.
    match Method::from_bytes(method.to_ascii_uppercase().as_bytes()) {
        Ok(method) => Ok((upstream, method, path)),
        Err(_) => mistake(format!("expected a method such as GET, found '{}'", method.escape_default())),
    }
}

fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), Mistake> {
    let Some((name, value)) = text.split_once(':') else {
        return mistake("-H expects 'Name: value'; one of them has no colon");
    };
    let Ok(name) = HeaderName::from_bytes(name.trim().as_bytes()) else {
        return mistake("-H expects 'Name: value'; the name of one of them is not a header name");
    };
    match HeaderValue::from_str(value.trim()) {
        Ok(value) => Ok((name, value)),
        Err(_) => mistake(format!("the value of header '{name}' has characters that a header cannot carry")),
    }
}

fn read_body(data: &str) -> Result<Bytes, Mistake> {
    let Some(source) = data.strip_prefix('@') else {
        return Ok(Bytes::copy_from_slice(data.as_bytes()));
    };
    let read = if source == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(Path::new(source))
    };
    match read {
        Ok(bytes) => Ok(bytes.into()),
        Err(error) => mistake(format!("the body could not be read from '{}': {error}", source.escape_default())),
    }
}

/// A body that claims to be JSON is checked here, where the place of the mistake can be told; a `Content-Type` that
/// was given by hand (`application/merge-patch+json`) stays.
fn mark_as_json(body: Option<&Bytes>, headers: &mut Vec<(HeaderName, HeaderValue)>) -> Result<(), Mistake> {
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(body.map_or(&[], |body| body)) {
        return mistake(format!("the body is not JSON: line {}, column {}", error.line(), error.column()));
    }
    if !headers.iter().any(|(name, _)| *name == http::header::CONTENT_TYPE) {
        headers.push((http::header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
    }
    Ok(())
}
