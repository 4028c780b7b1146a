//! A [`Guard`] as a layer: for services that do not speak HTTP, or not with requests of the `http` crate.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::guard::{ErrorClass, Guard, GuardError};

type Judge<E> = Arc<dyn Fn(&E) -> ErrorClass + Send + Sync>;

/// A [`Guard`] around any service whose requests can be cloned: a gRPC stub, a queue, a client of one's own. `E` is the
/// service's error.
///
/// Without [`transient`](Self::transient) every error counts against the dependency and none is retried (11.2). Each
/// attempt has a clone of the request and of the service; the service's readiness is waited for in the attempt. An error
/// of `poll_ready` is the operation's own, like one of `call`.
///
/// ```
/// use steadfast::Guard;
/// use steadfast::layer::GuardLayer;
/// use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mailer = service_fn(|to: String| async move { Ok::<_, std::io::Error>(format!("sent to {to}")) });
/// let guard = Guard::builder("mail").build()?;
/// let layer = GuardLayer::new(guard).transient(|error: &std::io::Error| error.kind() == std::io::ErrorKind::Interrupted);
/// let mut mailer = ServiceBuilder::new().layer(layer).service(mailer);
/// assert_eq!(mailer.ready().await?.call("ann".to_owned()).await?, "sent to ann");
/// # Ok(())
/// # }
/// ```
pub struct GuardLayer<E> {
    guard: Guard,
    judge: Option<Judge<E>>,
}

impl<E> GuardLayer<E> {
    /// A layer of this guard. Clones, and all services that it makes, share the guard's state.
    pub fn new(guard: Guard) -> Self {
        Self { guard, judge: None }
    }

    /// Which errors another attempt may fix. They count against the dependency and may be retried; others pass through
    /// after one attempt, and are no verdict.
    #[must_use]
    pub fn transient(self, transient: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.classify(move |error| if transient(error) { ErrorClass::TRANSIENT } else { ErrorClass::Permanent })
    }

    /// The same in full: what each error means, with the wait that it asks for.
    #[must_use]
    pub fn classify(mut self, classify: impl Fn(&E) -> ErrorClass + Send + Sync + 'static) -> Self {
        self.judge = Some(Arc::new(classify));
        self
    }
}

impl<E> Clone for GuardLayer<E> {
    fn clone(&self) -> Self {
        Self { guard: self.guard.clone(), judge: self.judge.clone() }
    }
}

impl<E> fmt::Debug for GuardLayer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardLayer").field("guard", &self.guard).finish_non_exhaustive()
    }
}

impl<S, E> Layer<S> for GuardLayer<E> {
    type Service = GuardService<S, E>;

    fn layer(&self, inner: S) -> Self::Service {
        GuardService { inner, layer: self.clone() }
    }
}

/// A service with a [`Guard`] around it. It is always ready; the guard decides in the call.
pub struct GuardService<S, E> {
    inner: S,
    layer: GuardLayer<E>,
}

impl<S: Clone, E> Clone for GuardService<S, E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S, E> fmt::Debug for GuardService<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardService").field("guard", &self.layer.guard).finish_non_exhaustive()
    }
}

impl<S, R> Service<R> for GuardService<S, S::Error>
where
    S: Service<R> + Clone + Send + 'static,
    S::Response: Send,
    S::Error: Send + 'static,
    S::Future: Send,
    R: Clone + Send + 'static,
{
    type Response = S::Response;
    type Error = GuardError<S::Error>;
    /// Cancel safe: dropping it drops the inner service's future and gives everything back.
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, GuardError<S::Error>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let GuardLayer { guard, judge } = self.layer.clone();
        let inner = self.inner.clone();
        let attempt = move || {
            let (mut service, request) = (inner.clone(), request.clone());
            async move {
                poll_fn(|cx| service.poll_ready(cx)).await?;
                service.call(request).await
            }
        };
        Box::pin(async move {
            match judge {
                Some(judge) => guard.classify(|error| judge(error)).call(attempt).await,
                None => guard.call(attempt).await,
            }
        })
    }
}
