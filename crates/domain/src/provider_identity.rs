//! The identity of a provider between runs.

/// Key of the stored catalogue of a provider. Providers of one name that are configured in different files are
/// different, and so are providers that are started in different ways.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProviderIdentity {
    /// Source of its configuration, such as a file; empty for a provider that the embedding application registers.
    pub configured_in: String,
    /// Name of the provider.
    pub name: String,
    /// Digest of the way it is started or reached; empty for a provider that the embedding application registers.
    pub start: String,
}

impl ProviderIdentity {
    /// Returns the identity of a provider that the embedding application registers under this name.
    pub fn of_program(name: &str) -> Self {
        Self { configured_in: String::new(), name: name.to_owned(), start: String::new() }
    }
}
