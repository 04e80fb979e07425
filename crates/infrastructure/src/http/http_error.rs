//! Failures of requests and of responses.

use crate::{egress::connector::ConnectError, http::sse::EventTooLong};
use std::{error::Error, io};

/// A request without a complete response.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The URL is not an `http` or `https` address with a host, or it does not belong to the endpoint. Nothing was
    /// sent.
    #[error("`{0}` is not an http or https address")]
    Address(String),
    /// There was no connection, so nothing was sent.
    #[error("it cannot be reached")]
    Unreachable(#[source] io::Error),
    /// The host has an address that is not public, and that is not permitted for it. Nothing was sent.
    #[error("it is not contacted: {0}")]
    NotPublic(ConnectError),
    /// The system has no certificates to verify a server with. Nothing was sent.
    #[error("no certificate can be verified: {0}; set `SSL_CERT_FILE` to a file of certificates")]
    Certificates(String),
    /// The connection broke; the request may have had an effect.
    #[error("the connection failed")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// The body is longer than the limit of the reader.
    #[error("the body has more than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// An event of a stream is longer than the limit of the reader.
    #[error(transparent)]
    Event(#[from] EventTooLong),
}

impl HttpError {
    /// Creates the error for a connection that broke.
    pub(super) fn broken(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Broken(Box::new(error))
    }

    /// Returns `true` if the request was never sent, so that sending it again cannot repeat an effect.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Address(_) | Self::Unreachable(_) | Self::NotPublic(_) | Self::Certificates(_) => true,
            Self::Broken(_) | Self::TooLong { .. } | Self::Event(_) => false,
        }
    }

    /// Returns `true` if the failure may be temporary: there was no connection, or it broke. An unknown host name, an
    /// invalid certificate and a response that is not HTTP are permanent.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(error) => is_of_the_connection(error),
            Self::Broken(error) => match (error.downcast_ref::<hyper::Error>(), error.downcast_ref::<io::Error>()) {
                (Some(error), _) => !error.is_parse(),
                (None, Some(error)) => is_of_the_connection(error),
                (None, None) => false,
            },
            Self::Address(_) | Self::NotPublic(_) | Self::Certificates(_) | Self::TooLong { .. } | Self::Event(_) => {
                false
            }
        }
    }
}

fn is_of_the_connection(error: &io::Error) -> bool {
    // A decompression error may contain an error of the connection.
    if let Some(within) = error.get_ref().and_then(|error| error.downcast_ref::<HttpError>()) {
        return within.may_pass();
    }
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable,
        TimedOut, UnexpectedEof,
    };
    matches!(
        error.kind(),
        BrokenPipe
            | ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | NetworkUnreachable
            | TimedOut
            | UnexpectedEof
    )
}

impl From<ConnectError> for HttpError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NotGlobal { .. } => Self::NotPublic(error),
            ConnectError::Resolve { source, .. } | ConnectError::Connect { source, .. } => Self::Unreachable(source),
        }
    }
}
