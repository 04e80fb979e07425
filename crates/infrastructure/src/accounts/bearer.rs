//! Access tokens in the header of a request (RFC 6750, section 2.1).

use toolstead_domain::{CredentialHeaders, Secret};

/// Prefix of the token in its header.
const PREFIX: &str = "Bearer ";

/// Returns the headers that carry this token.
pub(crate) fn bearer_headers(token: &Secret) -> CredentialHeaders {
    vec![("authorization".to_owned(), Secret::new(format!("{PREFIX}{}", token.expose())))]
}

/// Returns the token that the headers carry.
pub(crate) fn bearer_token(headers: &CredentialHeaders) -> Option<Secret> {
    headers.iter().find_map(|(_, value)| value.expose().strip_prefix(PREFIX)).map(Secret::new)
}
