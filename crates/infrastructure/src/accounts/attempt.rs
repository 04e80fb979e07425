//! One attempt to sign in: the page that a person opens, and what makes its answer ours.
//!
//! The authorization code grant of OAuth 2.0 for installed applications (RFC 6749, section 4.1, and RFC 8252), with PKCE
//! by SHA-256 (RFC 7636) and the issuer's name in the answer where it gives one (RFC 9207).

use super::{oauth_client::OAuthClient, sign_in_error::SignInError};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use std::{borrow::Cow, fmt, io};
use toolstead_domain::secret::Secret;
use url::{Url, form_urlencoded};

/// Bytes of the secrets that are made up for one attempt.
const RANDOM_BYTES: usize = 32;
/// Bytes that the answer of a page may have.
pub(super) const MAX_ANSWER: usize = 8 << 10;
/// Characters of an issuer's word that are told.
const TOLD: usize = 64;

/// An attempt that has begun.
pub(super) struct Attempt {
    /// Comes back with the answer, and with no other.
    state: Secret,
    /// Shows the issuer that who exchanges the code is who asked for it.
    pub(super) verifier: Secret,
    /// The place that the page leads back to.
    pub(super) redirect_uri: String,
    /// The page.
    pub(super) page: Url,
    issuer: String,
}

/// The code that a page gives for the answer of a person, good for one exchange.
pub(super) struct Code(pub(super) Secret);

/// The reason for which an answer gives no code.
#[derive(Debug)]
pub(super) enum NoCode {
    /// It is not the answer to this attempt, which goes on.
    Foreign(&'static str),
    /// It is, and the attempt is over.
    Over(SignInError),
}

impl Attempt {
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
            // Without these two Google gives no refresh token, or only the first time.
            ("access_type", "offline"),
            ("prompt", "consent"),
        ]);
        Ok(Self { state, verifier, redirect_uri, page, issuer: client.issuer.clone() })
    }

    /// Reads the query of the address that the page led back to.
    pub(super) fn answered(&self, query: &str) -> Result<Code, NoCode> {
        if query.len() > MAX_ANSWER {
            return Err(NoCode::Foreign("it is too long"));
        }
        let only = |name: &str| -> Result<Option<Cow<'_, str>>, NoCode> {
            let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(one, _)| one == name);
            match (values.next(), values.next()) {
                (first, None) => Ok(first.map(|(_, value)| value)),
                // "Request and response parameters MUST NOT be included more than once" (RFC 6749, section 3.1).
                (_, Some(_)) => Err(NoCode::Foreign("it says something twice")),
            }
        };
        let state = only("state")?.ok_or(NoCode::Foreign("it has no state"))?;
        // Compared by their digests, so that the time tells nothing of the bytes.
        if digest(&SHA256, state.as_bytes()).as_ref() != digest(&SHA256, self.state.expose().as_bytes()).as_ref() {
            return Err(NoCode::Foreign("its state is of another sign-in"));
        }
        let (issuer, error, code) = (only("iss")?, only("error")?, only("code")?);
        if issuer.is_some_and(|issuer| issuer.trim_end_matches('/') != self.issuer.trim_end_matches('/')) {
            return Err(NoCode::Over(SignInError::OtherIssuer));
        }
        match (error, code) {
            (Some(error), _) => Err(NoCode::Over(SignInError::Denied(word(&error)))),
            (None, Some(code)) => code_of(&code).map_err(NoCode::Over),
            (None, None) => Err(NoCode::Over(SignInError::NoCode("it has neither a code nor an error"))),
        }
    }

    /// Reads what a person pasted: the whole address, or the code alone.
    pub(super) fn pasted(&self, text: &str) -> Result<Code, NoCode> {
        let text = text.trim();
        let is_address = text.contains("://") || text.contains('=');
        match text.split_once('?') {
            Some((_, query)) => self.answered(query.split('#').next().unwrap_or_default()),
            None if is_address => self.answered(text),
            // As it stands in an address, or as a page shows it.
            None => {
                let pair = format!("code={}", text.replace('+', "%2B").replace('&', "%26"));
                let code = form_urlencoded::parse(pair.as_bytes()).next().map(|(_, code)| code.into_owned());
                code_of(&code.unwrap_or_default()).map_err(|_| NoCode::Foreign("it is no code"))
            }
        }
    }
}

/// No part of an attempt is fit to be shown but the place that it leads back to.
impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

fn code_of(text: &str) -> Result<Code, SignInError> {
    // "VSCHAR" (RFC 6749, appendix A.11), of which no issuer uses the blank.
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(Code(Secret::new(text))),
        false => Err(SignInError::NoCode("it is empty, or has characters that no code has")),
    }
}

/// The word of an issuer, as it may be shown.
pub(super) fn word(text: &str) -> String {
    let plain = text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    plain.take(TOLD).collect()
}

fn random() -> Result<Secret, SignInError> {
    let mut bytes = [0; RANDOM_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| SignInError::Begin(io::Error::other("the system gives no random bytes")))?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}
