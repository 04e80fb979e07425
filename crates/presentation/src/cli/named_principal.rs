//! Parses the id of a principal.

use super::exit::CommandError;
use toolstead_domain::Principal;

/// Returns the principal with this id; without an id or for `local`, the local user.
///
/// # Errors
/// [`CommandError::Usage`] if the id is invalid.
pub(super) fn principal(id: Option<&str>) -> Result<Principal, CommandError> {
    let Some(id) = id.filter(|id| *id != "local") else { return Ok(Principal::local()) };
    let named = id.split_once(':').filter(|(kind, name)| !kind.is_empty() && !name.is_empty());
    let wrong = || CommandError::Usage(format!("`{id}` is not a principal; write `token:NAME`, or `local`"));
    named.map(|(kind, name)| Principal::new(kind, name)).ok_or_else(wrong)
}
