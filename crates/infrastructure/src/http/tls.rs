//! TLS to servers, verified with the certificates of the system.

use crate::{egress::host::Host, http::http_error::HttpError};
use rustls::{
    ClientConfig,
    crypto::ring::default_provider,
    pki_types::{InvalidDnsNameError, ServerName},
};
use rustls_platform_verifier::BuilderVerifierExt;
use std::{
    io,
    sync::{Arc, OnceLock},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The only protocol that is offered, because each request has a connection to itself (`docs/decisions/0030`).
const ALPN: &[u8] = b"http/1.1";

/// Creates TLS connections. Sessions are resumed.
///
/// Initialized with the first connection: reading the system's certificates takes longer than the rest of the start.
#[derive(Default)]
pub(super) struct LazyTlsConnector(OnceLock<Result<TlsConnector, String>>);

impl LazyTlsConnector {
    /// Returns the connector, which the first call creates. Later calls return the same connector or error.
    ///
    /// # Errors
    /// [`HttpError::Certificates`].
    pub(super) fn connector(&self) -> Result<&TlsConnector, HttpError> {
        let made = self.0.get_or_init(|| by_the_system().map_err(|error| error.to_string()));
        made.as_ref().map_err(|reason| HttpError::Certificates(reason.clone()))
    }

    /// Trusts only servers whose certificate is verified by this one (DER).
    #[cfg(any(test, feature = "testing"))]
    #[expect(clippy::expect_used, reason = "a test kit is a test: it fails by panicking")]
    pub(super) fn trusting(certificate: &[u8]) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.to_vec().into()).expect("a certificate");
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("TLS 1.2 and 1.3");
        Self(OnceLock::from(Ok(connector(builder.with_root_certificates(roots).with_no_client_auth()))))
    }
}

/// Creates a connector that verifies servers with the certificates that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, or
/// else with those of the system.
fn by_the_system() -> Result<TlsConnector, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?.with_platform_verifier()?;
    Ok(connector(builder.with_no_client_auth()))
}

fn connector(mut config: ClientConfig) -> TlsConnector {
    config.alpn_protocols = vec![ALPN.to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Performs the handshake with the server, and verifies that it is this host.
///
/// # Errors
/// Errors of the system, or of the verification.
pub(super) async fn handshake(
    connector: &TlsConnector,
    host: &Host,
    stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let name = match host {
        Host::Name(name) => ServerName::try_from(name.to_string())
            .map_err(|error: InvalidDnsNameError| io::Error::new(io::ErrorKind::InvalidInput, error))?,
        Host::Address(address) => ServerName::IpAddress((*address).into()),
    };
    connector.connect(name, stream).await
}

impl std::fmt::Debug for LazyTlsConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LazyTlsConnector").finish_non_exhaustive()
    }
}
