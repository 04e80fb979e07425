//! This program, as an issuer of tokens knows it.

use toolstead_domain::secret::Secret;
use url::Url;

/// A client at an issuer: its name, its word, and the issuer's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthClient {
    /// The issuer, as tokens are kept under it: `https://accounts.google.com`.
    pub issuer: String,
    /// The client's name.
    pub client_id: String,
    /// Its word. Of an installed application it is no secret to its user.
    pub client_secret: Secret,
    /// The page where a person says yes (RFC 6749, section 3.1).
    pub authorization_url: Url,
    /// The place where a code or a refresh token becomes an access token (section 3.2).
    pub token_url: Url,
    /// The place where a token is revoked (RFC 7009).
    pub revocation_url: Url,
}

impl OAuthClient {
    /// The issuer, with the other origins that tokens are renewed and revoked at. Tokens are kept under all of them, so that
    /// none goes to an address that somebody names later.
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

    /// Tells whether tokens that are kept under these origins may go to where tokens are revoked now: only if that is
    /// one of them.
    pub(super) fn may_revoke(&self, issuer_and_origins: &str) -> bool {
        let origin = self.revocation_url.origin().ascii_serialization();
        issuer_and_origins.split(' ').any(|known| known == origin)
    }
}
