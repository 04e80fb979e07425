//! Settings of the credentials for one server.

use super::upstream_auth_error::UpstreamAuthError;
use crate::accounts::{
    private_file::{self, PrivateFileError},
    sign_in_error::SignInError,
};
use rustix::fs::CWD;
use std::{fmt, io, path::PathBuf};
use toolstead_domain::{Principal, Secret};
use url::Url;

/// Placeholder of the principal in the path of a subject token.
pub const PRINCIPAL: &str = "{principal}";

/// Maximum size of a file with a token, in bytes.
const MAX_TOKEN_BYTES: u64 = 64 << 10;

/// Source of the credentials for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamAuth {
    /// Each principal signs in on a page of the authorization server.
    OAuth(SignInSettings),
    /// This program has its own credentials (RFC 6749, section 4.4).
    ClientCredentials(ClientCredentialsSettings),
    /// A token of each principal is exchanged at a token endpoint (RFC 8693).
    Exchange(ExchangeSettings),
    /// An identity token of each principal is exchanged through its identity provider (enterprise-managed
    /// authorization).
    IdJag(IdJagSettings),
}

/// Settings of a sign-in. Without a client id, the client registers itself at the authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignInSettings {
    /// Scopes to request. If empty, those that the server names are requested.
    pub scopes: Vec<String>,
    /// Id of a registered client.
    pub client_id: Option<String>,
    /// Secret of the registered client.
    pub client_secret: Option<Secret>,
    /// Address of a client ID metadata document, for authorization servers that support them.
    pub client_metadata_url: Option<Url>,
    /// The only accepted authorization server.
    pub issuer: Option<String>,
}

/// Registration of this program at an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCredentialsSettings {
    /// Client id.
    pub client_id: String,
    /// Client secret.
    pub client_secret: Secret,
    /// Scopes to request.
    pub scopes: Vec<String>,
    /// The only accepted authorization server.
    pub issuer: Option<String>,
}

/// Settings of a token exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeSettings {
    /// Token endpoint. `None`: that of the authorization server that the MCP server names.
    pub token_url: Option<Url>,
    /// Id of this client at the token endpoint.
    pub client_id: String,
    /// Secret of this client.
    pub client_secret: Option<Secret>,
    /// File with the token of a principal.
    pub subject_token: SubjectTokenFile,
    /// Type of the token, such as `urn:ietf:params:oauth:token-type:access_token`.
    pub subject_token_type: String,
    /// Logical name of the target service, if the token endpoint requires one.
    pub audience: Option<String>,
    /// Scopes to request.
    pub scopes: Vec<String>,
}

/// Settings of enterprise-managed authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdJagSettings {
    /// Issuer of the identity tokens.
    pub idp_issuer: String,
    /// Token endpoint of the identity provider.
    pub idp_token_url: Url,
    /// Id of this client at the identity provider.
    pub idp_client_id: String,
    /// Secret of this client at the identity provider.
    pub idp_client_secret: Option<Secret>,
    /// File with the identity token of a principal.
    pub id_token: SubjectTokenFile,
    /// Registration at the authorization server of the MCP server.
    pub client: ClientCredentialsSettings,
}

/// File with a token of a principal, read for each exchange. `{principal}` in the path is replaced by the principal.
#[derive(Clone, PartialEq, Eq)]
pub struct SubjectTokenFile(PathBuf);

impl UpstreamAuth {
    /// Returns `true` if principals obtain the credentials by signing in.
    pub fn is_sign_in(&self) -> bool {
        matches!(self, Self::OAuth(_))
    }

    /// Returns `true` if all principals share the credentials.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::ClientCredentials(_))
    }

    /// Returns the configured scopes.
    pub(super) fn scopes(&self) -> &[String] {
        match self {
            Self::OAuth(settings) => &settings.scopes,
            Self::ClientCredentials(settings) => &settings.scopes,
            Self::Exchange(settings) => &settings.scopes,
            Self::IdJag(settings) => &settings.client.scopes,
        }
    }

    /// Returns the endpoints that the configuration names. They may be at private addresses.
    pub(super) fn named_urls(&self) -> Vec<Url> {
        let issuer = |issuer: &Option<String>| issuer.as_deref().and_then(|issuer| Url::parse(issuer).ok());
        match self {
            Self::OAuth(settings) => issuer(&settings.issuer).into_iter().collect(),
            Self::ClientCredentials(settings) => issuer(&settings.issuer).into_iter().collect(),
            Self::Exchange(settings) => settings.token_url.iter().cloned().collect(),
            Self::IdJag(settings) => {
                issuer(&settings.client.issuer).into_iter().chain([settings.idp_token_url.clone()]).collect()
            }
        }
    }
}

impl SubjectTokenFile {
    /// Refers to a file whose path may contain [`PRINCIPAL`].
    pub fn in_file(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the path for a principal.
    ///
    /// # Errors
    /// Returns the reason why the principal cannot be part of a path.
    pub fn path_for(&self, principal: &str) -> Result<PathBuf, String> {
        let Some(text) = self.0.to_str().filter(|text| text.contains(PRINCIPAL)) else { return Ok(self.0.clone()) };
        let is_name = !principal.is_empty()
            && !principal.starts_with('.')
            && principal.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '@'));
        match is_name {
            true => Ok(text.replace(PRINCIPAL, principal).into()),
            false => Err(format!("the principal `{principal}` cannot be part of a file name")),
        }
    }
}

impl SubjectTokenFile {
    /// Reads the token of a principal.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError::Unavailable`] if there is none.
    pub(super) async fn read(&self, principal: &Principal) -> Result<Secret, UpstreamAuthError> {
        let path = self.path_for(principal.id()).map_err(UpstreamAuthError::Unavailable)?;
        let name = path.display().to_string();
        let failed = |reason: &str| UpstreamAuthError::Unavailable(format!("the token in `{name}`: {reason}"));
        let reading = tokio::task::spawn_blocking(move || {
            private_file::read(CWD, &path, MAX_TOKEN_BYTES)?
                .ok_or_else(|| PrivateFileError::Io(io::ErrorKind::NotFound.into()))
        });
        let read = reading.await.map_err(|error| SignInError::Begin(error.into()))?;
        let bytes = read.map_err(|error| failed(&error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| failed("it is not text"))?;
        match text.trim() {
            "" => Err(failed("it is empty")),
            token if !token.bytes().all(|byte| byte.is_ascii_graphic()) => Err(failed("it has invalid bytes")),
            token => Ok(Secret::new(token)),
        }
    }
}

impl fmt::Debug for SubjectTokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SubjectTokenFile({})", self.0.display())
    }
}
