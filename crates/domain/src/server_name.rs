//! The name of an upstream MCP server, as the configuration gives it.

use std::{fmt, sync::Arc};

/// A checked server name: 1 to 32 of `A-Z a-z 0-9 _ -`, beginning and ending in a letter or digit, without `__`.
///
/// The rule keeps `mcp__{server}__{tool}` readable in one way only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

impl ServerName {
    /// Parses a server name.
    ///
    /// # Errors
    /// [`InvalidServerName`] when the text breaks the rule above.
    pub fn parse(text: &str) -> Result<Self, InvalidServerName> {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let good = text.len() <= 32
            && !text.contains("__")
            && edge(text.chars().next())
            && edge(text.chars().next_back())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if good { Ok(Self(text.into())) } else { Err(InvalidServerName { name: text.chars().take(80).collect() }) }
    }

    /// The name under which the tools of an embedding program stand that gave itself no other.
    pub fn program() -> Self {
        Self("program".into())
    }

    /// The name as text.
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

/// A text that is no server name.
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
    fn a_server_name_leaves_the_separator_to_the_tool_name() {
        for good in ["git", "system-info", "my_server", "A1"] {
            assert_eq!(ServerName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a__b", "a_", "-a", "a.b", "a b", "ü", &"x".repeat(33)] {
            assert!(ServerName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
