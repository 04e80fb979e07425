//! `[tools]` and `[dialect]`: the tools that are offered, and the form in which they appear.

use crate::config::{
    layers::{ResolvedSettings, environment::EnvironmentVariables},
    sections::{tool_block, tool_choice, tool_search},
    tree::{problem::Problem, value::TextItem},
};
use std::{collections::BTreeMap, time::Duration};
use toolstead_domain::{Dialect, ToolSelection};
use toolstead_infrastructure::{dialects, models::EmbeddingsSettings};

/// `[tools]` and `[dialect]`.
#[derive(Debug, Clone)]
pub struct ToolOfferSettings {
    /// Selection of the tools that are offered.
    pub selection: ToolSelection,
    /// Tool system whose names and wording the tools use; `None`: Toolstead's own.
    pub dialect: Option<Dialect>,
    /// `true` if results are wrapped in tags, for dialects that define such tags.
    pub answers_in_tags: bool,
    /// Embeddings that rank tools; `None`: words rank them.
    pub embeddings: Option<EmbeddingsSettings>,
    /// Names in the effective selections of tools, for checks: those of `tools.select` and of other sections.
    pub(in crate::config) selected: Vec<TextItem>,
    pub(in crate::config) timeouts: BTreeMap<String, Duration>,
}

impl ToolOfferSettings {
    /// Returns the settings. `selected` are the names in the selections of other sections.
    pub(in crate::config) fn of(
        resolved: &mut ResolvedSettings,
        environment: &EnvironmentVariables,
        selected: Vec<TextItem>,
        problems: &mut Vec<Problem>,
        notes: &mut Vec<Problem>,
    ) -> Self {
        let (selection, mut names) = tool_choice::choice(resolved);
        names.extend(selected);
        Self {
            selection,
            dialect: resolved.value("dialect.name").and_then(|name| dialects::named(name.as_text()?)),
            answers_in_tags: resolved.is_true("dialect.tags"),
            embeddings: tool_search::embeddings(resolved, environment, problems, notes),
            selected: names,
            timeouts: tool_block::timeouts(resolved),
        }
    }
}
