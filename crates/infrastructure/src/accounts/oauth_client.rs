//! Registration of this application at an issuer of tokens.

use toolstead_domain::Secret;
use url::Url;

/// OAuth client: its id, its secret and the issuer's URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthClient {
    /// Issuer under which tokens are stored, such as `https://accounts.google.com`.
    pub issuer: String,
    /// Client id.
    pub client_id: String,
    /// Client secret. The secret of an installed application is not hidden from its user.
    pub client_secret: Secret,
    /// Page on which the user grants access (RFC 6749, section 3.1).
    pub authorization_url: Url,
    /// Endpoint that exchanges a code or refresh token for an access token (section 3.2).
    pub token_url: Url,
    /// Endpoint that revokes a token (RFC 7009).
    pub revocation_url: Url,
}

impl OAuthClient {
    /// Returns the issuer with the other origins at which tokens are renewed and revoked. Tokens are stored under all
    /// of them, so that they are never sent to an origin that is configured later.
    pub(super) fn issuer_and_origins(&self) -> String {
        let mut text = self.issuer.clone();
        for url in [&self.token_url, &self.revocation_url] {
            let origin = url.origin().ascii_serialization();
            if text.split(' ').all(|known| known != origin) {
                text = format!("{text} {origin}");
            }
        }
        text
    }

    /// Returns `true` if tokens that are stored under these origins may be sent to the current revocation URL, whose
    /// origin must be one of them.
    pub(super) fn may_revoke(&self, issuer_and_origins: &str) -> bool {
        let origin = self.revocation_url.origin().ascii_serialization();
        issuer_and_origins.split(' ').any(|known| known == origin)
    }
}
