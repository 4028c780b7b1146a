//! Reloading when configuration or certificates change on disk.
//!
//! [`Clients::watch`](crate::Clients::watch) is the whole of it: it looks at the files that the configuration comes from,
//! and at the certificates that it names, and reloads what has changed. [`FileWatch`] is its eye, for files of one's own.

mod clients;
mod files;

pub use clients::{ConfigWatch, ReloadError};
pub use files::{FileWatch, MOST_READ};
