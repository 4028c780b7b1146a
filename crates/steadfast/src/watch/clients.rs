//! Clients that follow their configuration (contract 9.5).
//!
//! A look decides in this order: have the files settled on something new; does it load; what does it name. The
//! certificates that it names are watched before they are read, so that nothing can change unseen in between. Only then
//! is it put in force. Whatever fails, everything stays as it was, and the files are looked at again.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::FileWatch;
use crate::client::{BuildError, Clients, Reloaded};
use crate::config::{Config, Loader, Problems, Settings};

/// How far two looks are apart, unless told otherwise. A change is seen after two of them.
const EVERY: Duration = Duration::from_secs(2);
/// The shortest time between two looks.
const LEAST: Duration = Duration::from_millis(10);

/// Why a change on disk was not put in force. What was in force still is.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReloadError {
    /// The configuration has problems: all of them.
    Load(Problems),
    /// It cannot be put in force.
    Build(BuildError),
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(problems) => problems.fmt(f),
            Self::Build(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReloadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Load(_) => None,
            Self::Build(error) => error.source(),
        }
    }
}

type Hook = dyn Fn(&Result<Reloaded, ReloadError>) + Send;

/// Clients, and the files that their configuration comes from.
///
/// ```no_run
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// use steadfast::Clients;
/// use steadfast::config::Loader;
///
/// let loader = Loader::new().file("steadfast.toml").process_env();
/// let clients = Clients::new(&loader.clone().load()?)?;
/// tokio::spawn(clients.watch(loader).run());
/// # Ok(())
/// # }
/// ```
#[must_use = "a watch does nothing until it is run"]
pub struct ConfigWatch {
    clients: Clients,
    loader: Loader,
    files: FileWatch,
    every: Duration,
    hook: Option<Box<Hook>>,
    /// Whether there was a look: the first one reloads in any case, as the files may have changed since they were loaded.
    has_looked: bool,
}

impl Clients {
    /// Follows the files that `loader` reads, and the certificates that they name. The loader's variables stay what they
    /// were when it was given them.
    pub fn watch(&self, loader: Loader) -> ConfigWatch {
        let files = FileWatch::new(paths(&loader, self.all().iter().map(|client| client.settings())));
        ConfigWatch { clients: self.clone(), loader, files, every: EVERY, hook: None, has_looked: false }
    }
}

impl ConfigWatch {
    /// How far two looks are apart: 2 s unless set, at least 10 ms. A change is put in force after two looks that saw the
    /// same.
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval.max(LEAST);
        self
    }

    /// Told of each change, put in force or not. Problems are in the log (WARN) in any case. Called on the thread of the
    /// look.
    pub fn on_change(mut self, hook: impl Fn(&Result<Reloaded, ReloadError>) + Send + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// One look at the files; what came of a change, if there was one. For those who have a timer of their own. It reads
    /// files, and waits for them.
    pub fn look(&mut self) -> Option<Result<Reloaded, ReloadError>> {
        let has_changed = self.files.changed();
        if self.has_looked && !has_changed {
            return None;
        }
        let is_first = !self.has_looked;
        self.has_looked = true;
        let result = self.reload();
        if is_first && matches!(&result, Ok(reloaded) if reloaded.is_empty()) {
            return None;
        }
        if let Err(error) = &result {
            tracing::warn!("the changed configuration is not put in force: {error}");
        }
        if let Some(hook) = &self.hook {
            hook(&result);
        }
        Some(result)
    }

    fn reload(&mut self) -> Result<Reloaded, ReloadError> {
        let config = self.loader.clone().load().map_err(ReloadError::Load)?;
        self.files.set_paths(paths(&self.loader, settings(&config)));
        self.clients.reload(&config).map_err(ReloadError::Build)
    }

    /// Looks again and again; it ends when the clients are closed, or the runtime is shut down, and keeps the clients alive
    /// until then. Needs a tokio runtime with time.
    ///
    /// Cancel safe: dropping the future ends the watch; a look under way ends on its own.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(self.every).await;
            if self.clients.is_closed() {
                return;
            }
            let look = tokio::task::spawn_blocking(move || {
                let _ = self.look();
                self
            });
            match look.await {
                Ok(watch) => self = watch,
                Err(error) => {
                    // A hook panicked, or the runtime is going.
                    tracing::error!(%error, "the watch of the configuration ended");
                    return;
                }
            }
        }
    }
}

impl fmt::Debug for ConfigWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigWatch").field("files", &self.files).field("every", &self.every).finish_non_exhaustive()
    }
}

fn settings(config: &Config) -> impl Iterator<Item = &Settings> {
    config.upstreams().map(|(_, upstream)| upstream.settings())
}

/// What is to be watched: the configuration's files, and those that it names.
fn paths<S: AsRef<Settings>>(loader: &Loader, upstreams: impl Iterator<Item = S>) -> BTreeSet<PathBuf> {
    let mut paths: BTreeSet<PathBuf> = loader.files().map(PathBuf::from).collect();
    for settings in upstreams {
        let settings = settings.as_ref();
        paths.extend(settings.tls_roots.iter().cloned());
        paths.extend(settings.tls_identity.iter().chain(&settings.tls_identity_key).cloned());
    }
    paths
}
