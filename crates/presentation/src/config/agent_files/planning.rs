//! Tools of an agent that only plans: the built-in tools that only read, limited to the ones that the agent names.

use super::tool_names::TextWithOrigin;
use crate::config::{sections::policy::canonical_name, tree::origin::Origin};
use toolstead_infrastructure::builtin;

/// Returns the read-only tools among `only`, or all read-only tools if `only` is `None` or contains `*`.
pub(super) fn narrowed(only: Option<Vec<TextWithOrigin>>, origin: &Origin) -> Vec<TextWithOrigin> {
    let reads = builtin::names_that_only_read();
    match only.filter(|names| !names.iter().any(|(name, _)| name == "*")) {
        None => reads.iter().map(|name| ((*name).to_owned(), origin.clone())).collect(),
        Some(names) => names.into_iter().filter(|(name, _)| reads.contains(&canonical_name(name))).collect(),
    }
}
