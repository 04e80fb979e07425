//! One attempt to sign in: the page that the user opens, and the checks of its redirect.
//!
//! Implements the OAuth 2.0 authorization code grant for installed applications (RFC 6749, section 4.1, and RFC 8252),
//! with PKCE by SHA-256 (RFC 7636) and the issuer's name in the redirect if it sends one (RFC 9207).

use super::{oauth_client::OAuthClient, sign_in_error::SignInError};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use std::{borrow::Cow, fmt, io};
use toolstead_domain::Secret;
use url::{Url, form_urlencoded};

/// Length of each random secret of an attempt, in bytes.
const RANDOM_BYTES: usize = 32;
/// Maximum size of the query of a redirect, in bytes.
pub(super) const MAX_ANSWER: usize = 8 << 10;
/// Maximum length of an issuer's error code to display, in characters.
const MAX_ERROR_CODE_CHARS: usize = 64;

/// Attempt in progress.
pub(crate) struct SignInAttempt {
    /// Random value that proves that a redirect belongs to this attempt.
    state: Secret,
    /// PKCE secret that proves to the issuer that the code is exchanged by its requester.
    pub(super) verifier: Secret,
    /// Redirect target of the page.
    pub(super) redirect_uri: String,
    /// Page for the user to open.
    pub(crate) page: Url,
    /// Issuer that a redirect must name if it names one. `None` if the exchange of the code checks it.
    issuer: Option<String>,
}

/// Authorization code, valid for one exchange.
pub(crate) struct AuthorizationCode {
    /// The code itself.
    pub(crate) secret: Secret,
    /// Issuer that the redirect names (RFC 9207).
    #[cfg_attr(not(feature = "upstream-auth"), expect(dead_code, reason = "for sign-in to MCP servers alone"))]
    pub(crate) issuer: Option<String>,
}

/// Reason why a redirect has no code.
#[derive(Debug)]
pub(crate) enum RedirectError {
    /// The redirect does not belong to this attempt, which continues.
    Foreign(&'static str),
    /// The redirect belongs to this attempt, which has failed.
    Over(SignInError),
}

impl SignInAttempt {
    pub(super) fn begin(client: &OAuthClient, scopes: &[&str], redirect_uri: String) -> Result<Self, SignInError> {
        let (state, verifier) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.expose().as_bytes()));
        let mut page = client.authorization_url.clone();
        page.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &client.client_id),
            ("redirect_uri", &redirect_uri),
            ("scope", &scopes.join(" ")),
            ("state", state.expose()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            // Without these two parameters Google issues no refresh token, or only the first time.
            ("access_type", "offline"),
            ("prompt", "consent"),
        ]);
        Ok(Self { state, verifier, redirect_uri, page, issuer: Some(client.issuer.clone()) })
    }

    /// Creates an attempt with a page that the OAuth library prepared. The exchange of the code checks the issuer.
    #[cfg_attr(not(feature = "upstream-auth"), expect(dead_code, reason = "for sign-in to MCP servers alone"))]
    pub(crate) fn with_page(page: Url, state: Secret, redirect_uri: String) -> Self {
        Self { state, verifier: Secret::new(""), redirect_uri, page, issuer: None }
    }

    /// Returns the random value that proves that a redirect belongs to this attempt.
    #[cfg_attr(not(feature = "upstream-auth"), expect(dead_code, reason = "for sign-in to MCP servers alone"))]
    pub(crate) fn state(&self) -> &Secret {
        &self.state
    }

    /// Parses the query of the redirect URL, and checks that it has the state of this attempt and names no other
    /// issuer.
    pub(crate) fn parse_redirect(&self, query: &str) -> Result<AuthorizationCode, RedirectError> {
        if query.len() > MAX_ANSWER {
            return Err(RedirectError::Foreign("it is too long"));
        }
        let only = |name: &str| -> Result<Option<Cow<'_, str>>, RedirectError> {
            let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(one, _)| one == name);
            match (values.next(), values.next()) {
                (first, None) => Ok(first.map(|(_, value)| value)),
                // "Request and response parameters MUST NOT be included more than once" (RFC 6749, section 3.1).
                (_, Some(_)) => Err(RedirectError::Foreign("it repeats a parameter")),
            }
        };
        let state = only("state")?.ok_or(RedirectError::Foreign("it has no state"))?;
        // Digests are compared, so that the time taken reveals nothing about the bytes.
        if digest(&SHA256, state.as_bytes()).as_ref() != digest(&SHA256, self.state.expose().as_bytes()).as_ref() {
            return Err(RedirectError::Foreign("its state belongs to another sign-in"));
        }
        let (issuer, error, code) = (only("iss")?, only("error")?, only("code")?);
        if let (Some(named), Some(own)) = (&issuer, &self.issuer)
            && named.trim_end_matches('/') != own.trim_end_matches('/')
        {
            return Err(RedirectError::Over(SignInError::OtherIssuer));
        }
        match (error, code) {
            (Some(error), _) => Err(RedirectError::Over(SignInError::Denied(word(&error)))),
            (None, Some(code)) => {
                let code = code_of(&code).map_err(RedirectError::Over)?;
                Ok(AuthorizationCode { issuer: issuer.map(Cow::into_owned), ..code })
            }
            (None, None) => Err(RedirectError::Over(SignInError::NoCode("it has neither a code nor an error"))),
        }
    }

    /// Parses a text that the user pasted: the whole redirect URL, or the code alone. Only the URL is checked against
    /// this attempt.
    pub(crate) fn pasted(&self, text: &str) -> Result<AuthorizationCode, RedirectError> {
        let text = text.trim();
        let is_address = text.contains("://") || text.contains('=');
        match text.split_once('?') {
            Some((_, query)) => self.parse_redirect(query.split('#').next().unwrap_or_default()),
            None if is_address => self.parse_redirect(text),
            // The code may be percent-encoded as in a URL, or plain as a page shows it.
            None => {
                let pair = format!("code={}", text.replace('+', "%2B").replace('&', "%26"));
                let code = form_urlencoded::parse(pair.as_bytes()).next().map(|(_, code)| code.into_owned());
                code_of(&code.unwrap_or_default()).map_err(|_| RedirectError::Foreign("it is not a valid code"))
            }
        }
    }
}

/// Shows only the redirect target, because all other parts are secret.
impl fmt::Debug for SignInAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInAttempt").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

impl fmt::Debug for AuthorizationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthorizationCode")
    }
}

fn code_of(text: &str) -> Result<AuthorizationCode, SignInError> {
    // The characters of "VSCHAR" (RFC 6749, appendix A.11) without the space, which no issuer uses.
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(AuthorizationCode { secret: Secret::new(text), issuer: None }),
        false => Err(SignInError::NoCode("it is empty, or contains invalid characters")),
    }
}

/// Returns an issuer's error code, shortened and without characters other than ASCII letters, digits, `_`, `-` and `.`.
pub(super) fn word(text: &str) -> String {
    let plain = text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    plain.take(MAX_ERROR_CODE_CHARS).collect()
}

fn random() -> Result<Secret, SignInError> {
    let mut bytes = [0; RANDOM_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| SignInError::Begin(io::Error::other("the system returned no random bytes")))?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}
