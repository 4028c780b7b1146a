//! Methods that several types have alike: written once.

/// A method for each HTTP method in common use, over the type's own `request`, which makes a `$builder`.
macro_rules! verbs {
    ($builder:ty) => {
        /// GET `path`, which is joined to the base URL.
        pub fn get(&self, path: &str) -> $builder {
            self.request(http::Method::GET, path)
        }

        /// POST to `path`. Not repeated, unless an idempotency key or `retry(true)` allows it.
        pub fn post(&self, path: &str) -> $builder {
            self.request(http::Method::POST, path)
        }

        /// PUT to `path`.
        pub fn put(&self, path: &str) -> $builder {
            self.request(http::Method::PUT, path)
        }

        /// PATCH `path`. Not repeated, unless an idempotency key or `retry(true)` allows it.
        pub fn patch(&self, path: &str) -> $builder {
            self.request(http::Method::PATCH, path)
        }

        /// DELETE `path`.
        pub fn delete(&self, path: &str) -> $builder {
            self.request(http::Method::DELETE, path)
        }

        /// HEAD of `path`.
        pub fn head(&self, path: &str) -> $builder {
            self.request(http::Method::HEAD, path)
        }

        /// OPTIONS of `path`.
        pub fn options(&self, path: &str) -> $builder {
            self.request(http::Method::OPTIONS, path)
        }
    };
}
pub(crate) use verbs;

/// What can be read off a response's `head`.
macro_rules! of_head {
    () => {
        /// The status.
        pub fn status(&self) -> http::StatusCode {
            self.head.status
        }

        /// The HTTP version of the connection.
        pub fn version(&self) -> http::Version {
            self.head.version
        }

        /// The headers. Where a compressed body is decoded, they describe the decoded one.
        pub fn headers(&self) -> &http::HeaderMap {
            &self.head.headers
        }

        /// The first value of a header.
        pub fn header(&self, name: impl AsRef<str>) -> Option<&http::HeaderValue> {
            let name = http::HeaderName::from_bytes(name.as_ref().as_bytes()).ok()?;
            self.head.headers.get(name)
        }
    };
}
pub(crate) use of_head;
