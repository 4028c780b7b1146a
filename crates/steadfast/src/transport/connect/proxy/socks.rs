//! A connection through a SOCKS5 proxy (RFC 1928, RFC 1929), with `tokio-socks` on our own stream.

use tokio_socks::tcp::Socks5Stream;
use tokio_socks::{Error, IntoTargetAddr};

use super::url::Credentials;
use crate::transport::connect::Stream;

/// Has the proxy connect to the target. Then the stream is the connection to it.
pub(super) async fn open(
    stream: Stream,
    target: impl IntoTargetAddr<'_>,
    credentials: Option<&Credentials>,
) -> Result<Stream, Error> {
    let opened = match credentials {
        None => Socks5Stream::connect_with_socket(stream, target).await?,
        Some(Credentials { user, password }) => {
            Socks5Stream::connect_with_password_and_socket(stream, target, user, password).await?
        }
    };
    Ok(opened.into_inner())
}

/// Whether the proxy wants other credentials. Then it will want them a moment later too.
pub(super) fn is_about_credentials(error: &Error) -> bool {
    matches!(error, Error::NoAcceptableAuthMethods | Error::AuthorizationRequired | Error::PasswordAuthFailure(_))
}
