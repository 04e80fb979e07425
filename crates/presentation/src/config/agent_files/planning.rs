//! The tools that an agent has which only plans: those of ours that change nothing, and of these the ones it names.

use super::tool_names::Named;
use crate::config::{origin::Origin, policy::canonical_name};
use toolstead_infrastructure::builtin;

/// Of the named tools, or of all, those that only read.
pub(super) fn narrowed(only: Option<Vec<Named>>, origin: &Origin) -> Vec<Named> {
    let reads = builtin::names_that_only_read();
    match only.filter(|names| !names.iter().any(|(name, _)| name == "*")) {
        None => reads.iter().map(|name| ((*name).to_owned(), origin.clone())).collect(),
        Some(names) => names.into_iter().filter(|(name, _)| reads.contains(&canonical_name(name))).collect(),
    }
}
