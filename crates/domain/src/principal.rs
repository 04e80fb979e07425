//! Principals, on whose behalf calls are made.

use std::{fmt, sync::Arc};

/// Owner of calls. Sessions, handles and approvals belong to a principal.
///
/// ```
/// use toolstead_domain::principal::Principal;
///
/// assert_eq!(Principal::local().id(), "local");
/// assert_eq!(Principal::new("user", "alice").to_string(), "user:alice");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Principal {
    id: Arc<str>,
}

impl Principal {
    /// Returns the local user: CLI and stdio.
    pub fn local() -> Self {
        Self { id: "local".into() }
    }

    /// Returns the holder of a server token; `name` distinguishes tokens and is not a secret.
    pub fn token(name: &str) -> Self {
        Self::new("token", name)
    }

    /// Returns a principal of the embedding application: the kind states how it was identified (`token`, `user`,
    /// `service`), the name distinguishes principals of a kind and is not a secret.
    pub fn new(kind: &str, name: &str) -> Self {
        Self { id: format!("{kind}:{name}").into() }
    }

    /// Returns the id, as in the audit log.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}
