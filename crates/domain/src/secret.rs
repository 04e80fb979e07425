//! Texts that are never logged.

use std::fmt;

/// Secret, or a text that may contain one: values of environments and headers, tokens.
///
/// ```
/// use toolstead_domain::secret::Secret;
///
/// let token = Secret::new("s3cret");
/// assert_eq!(format!("{token:?}"), "…");
/// assert_eq!(token.expose(), "s3cret");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
