//! The name of an upstream MCP server in the configuration.

use std::{fmt, sync::Arc};

/// Valid server name: 1 to 32 of `A-Z a-z 0-9 _ -`, beginning and ending in a letter or digit, without `__`.
///
/// The rule makes `mcp__{server}__{tool}` unambiguous.
///
/// ```
/// use toolstead_domain::server_name::ServerName;
///
/// assert_eq!(ServerName::parse("git-hub").unwrap().as_str(), "git-hub");
/// assert!(ServerName::parse("git__hub").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

impl ServerName {
    /// Parses a server name.
    ///
    /// # Errors
    /// [`InvalidServerName`] if the text violates the rule of [`ServerName`].
    pub fn parse(text: &str) -> Result<Self, InvalidServerName> {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let good = text.len() <= 32
            && !text.contains("__")
            && edge(text.chars().next())
            && edge(text.chars().next_back())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if good { Ok(Self(text.into())) } else { Err(InvalidServerName { name: text.chars().take(80).collect() }) }
    }

    /// Returns the provider name for tools of an embedding application that sets no other.
    pub fn program() -> Self {
        Self("program".into())
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Returns the name in a form in which names that differ only in easily confused characters are equal: upper and lower
/// case, `_` and `-`, `0` and `o`, `1` and `l`.
///
/// ```
/// use toolstead_domain::server_name::folded_name;
///
/// assert_eq!(folded_name("Git-Tool1"), folded_name("git_t00ll"));
/// assert_ne!(folded_name("git"), folded_name("gist"));
/// ```
pub fn folded_name(name: &str) -> String {
    let folded = |character: char| match character {
        '-' => '_',
        '0' => 'o',
        '1' => 'l',
        other => other,
    };
    name.chars().flat_map(char::to_lowercase).map(folded).collect()
}

/// Text that is not a valid server name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not a server name: use 1 to 32 letters, digits, `-` and `_`, begin and end with a letter or digit, and do not use `__`"
)]
pub struct InvalidServerName {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_server_names_with_a_separator_or_invalid_characters() {
        for good in ["git", "system-info", "my_server", "A1"] {
            assert_eq!(ServerName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a__b", "a_", "-a", "a.b", "a b", "ü", &"x".repeat(33)] {
            assert!(ServerName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
