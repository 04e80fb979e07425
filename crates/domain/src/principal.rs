//! Principals: those who call.

use std::{fmt, sync::Arc};

/// The one on whose behalf a call is made. Sessions, handles and approvals belong to a principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Principal {
    id: Arc<str>,
}

impl Principal {
    /// The person at this machine: CLI and stdio.
    pub fn local() -> Self {
        Self { id: "local".into() }
    }

    /// The holder of a server token; `name` tells tokens apart and is no secret.
    pub fn token(name: &str) -> Self {
        Self::new("token", name)
    }

    /// Somebody whom a program knows: the kind says how (`token`, `user`, `service`), the name tells those of a kind
    /// apart and is no secret.
    pub fn new(kind: &str, name: &str) -> Self {
        Self { id: format!("{kind}:{name}").into() }
    }

    /// The id, as the audit trail shows it.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}
