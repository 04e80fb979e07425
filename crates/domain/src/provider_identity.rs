//! The identity of a provider from run to run.

/// Under this the catalogue of a provider is kept. Two of one name that different files configure are two, and one that
/// is started in another way is another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProviderIdentity {
    /// The place that names it, such as a file of the configuration; empty for one that a program registers.
    pub configured_in: String,
    /// Its name.
    pub name: String,
    /// A digest of how it is started or reached; empty for one that a program registers.
    pub start: String,
}

impl ProviderIdentity {
    /// A provider that a program registers under this name.
    pub fn of_program(name: &str) -> Self {
        Self { configured_in: String::new(), name: name.to_owned(), start: String::new() }
    }
}
