//! Which of several scripts a request gets.

use std::collections::VecDeque;

use http::{Method, Uri};

use super::step::Step;

/// Which requests: of a method, to a host, to a path. What it does not name may be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    method: Option<String>,
    /// In lower case; with a port, if that is to be looked at.
    host: Option<String>,
    path: Option<Path>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Path {
    Is(String),
    BeginsWith(String),
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        let (method, place) = match text.trim().split_once(' ') {
            Some((method, place)) => (Some(method.to_ascii_uppercase()), place.trim_start()),
            None => (None, text.trim()),
        };
        let (host, path) = match place.find('/') {
            Some(slash) => (&place[..slash], Some(&place[slash..])),
            None => (place, None),
        };
        let path = path.map(|path| match path.strip_suffix('*') {
            Some(begin) => Path::BeginsWith(begin.to_owned()),
            None => Path::Is(path.to_owned()),
        });
        Self { method, host: (!host.is_empty()).then(|| host.to_ascii_lowercase()), path }
    }

    pub(super) fn fits(&self, method: &Method, uri: &Uri) -> bool {
        self.method.as_deref().is_none_or(|name| name == method.as_str())
            && self.host.as_deref().is_none_or(|host| is_host(host, uri))
            && self.path.as_ref().is_none_or(|path| match path {
                Path::Is(path) => uri.path() == path,
                Path::BeginsWith(begin) => uri.path().starts_with(begin.as_str()),
            })
    }
}

fn is_host(host: &str, uri: &Uri) -> bool {
    [uri.host(), uri.authority().map(|authority| authority.as_str())]
        .into_iter()
        .flatten()
        .any(|ours| ours.eq_ignore_ascii_case(host))
}

/// The steps of each pattern; the last that fits counts.
#[derive(Debug, Default)]
pub(super) struct Routes(Vec<(Pattern, VecDeque<Step>)>);

impl Routes {
    pub(super) fn set(&mut self, pattern: Pattern, steps: VecDeque<Step>) {
        self.0.retain(|(known, _)| *known != pattern);
        self.0.push((pattern, steps));
    }

    pub(super) fn find(&mut self, method: &Method, uri: &Uri) -> Option<&mut VecDeque<Step>> {
        self.0.iter_mut().rev().find(|(pattern, _)| pattern.fits(method, uri)).map(|(_, steps)| steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_what_it_names_and_nothing_else() {
        let fits = |pattern: &str, method: Method, uri: &'static str| {
            Pattern::new(pattern).fits(&method, &Uri::from_static(uri))
        };
        let invoice = "http://Api.test:8010/invoices/7?full=1";
        for pattern in ["", "api.test", "API.TEST:8010", "/invoices/7", "/invoices/*", "/*", "api.test/invoices/7"] {
            assert!(fits(pattern, Method::GET, invoice), "{pattern}");
        }
        assert!(fits("get  api.test:8010/invoices/*", Method::GET, invoice));
        for pattern in ["other.test", "api.test:80", "/invoices", "/invoices/", "/invoices/70", "other.test/invoices/7"]
        {
            assert!(!fits(pattern, Method::GET, invoice), "{pattern}");
        }
        assert!(!fits("POST /invoices/7", Method::GET, invoice));
        assert!(!fits("api.test", Method::GET, "/relative"));
    }
}
