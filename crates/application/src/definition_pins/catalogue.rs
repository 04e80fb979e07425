//! Tools, resources and prompts of a server as they are served.

use super::key_of;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolstead_domain::{
    Availability, ContextCatalogue, ItemKey, ItemKind, PendingDefinitionChange, Prompt, ResourceTemplate, Tool,
    context::Resource,
    pinning::{
        change::{ItemChangeKind, classify},
        review::{OfferedDefinitionsReview, ServedVersionDecision},
    },
};

/// Tools of a server as they are served.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ServedTools {
    /// Served tools, in the order in which they were offered.
    pub(crate) tools: Vec<Tool>,
    /// Sentences for the operator.
    pub(crate) notes: Vec<String>,
}

/// Instructions, prompts and resources of a server as they are served.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ServedContext {
    pub(crate) catalogue: ContextCatalogue,
    pub(crate) instructions: Option<String>,
}

pub(super) fn serve_tools(offered: Vec<Tool>, review: &OfferedDefinitionsReview) -> ServedTools {
    let launch = review.states.get(&ItemKey::new(ItemKind::Launch, ""));
    let launch = launch.and_then(pending_of).filter(|pending| pending.is_withheld);
    let tools = offered.into_iter().map(|tool| {
        let state = key_of(&tool).and_then(|key| review.states.get(&key));
        let mut tool = state.map_or_else(|| tool.clone(), |state| as_served(&tool, state));
        if let Some(pending) = launch.filter(|_| tool.pending.is_none()) {
            withhold(&mut tool, pending);
        }
        tool
    });
    ServedTools { tools: tools.collect(), notes: review.notes.clone() }
}

/// Returns a stored tool with this definition, and without the changes made for serving it.
pub(super) fn as_offered(tool: &Tool, definition: Map<String, Value>) -> Tool {
    let mut offered = Tool::new(tool.name().clone(), definition, tool.category, tool.source().clone());
    offered.tags.clone_from(&tool.tags);
    offered.enabled = tool.enabled;
    offered
}

fn as_served(tool: &Tool, state: &ServedVersionDecision) -> Tool {
    let (mut served, pending) = match state {
        ServedVersionDecision::Current { is_approved: false } => return tool.clone(),
        ServedVersionDecision::Current { is_approved: true } => return tool.clone().approved_by_user(),
        ServedVersionDecision::Approved { definition, is_approved_by_user, pending } => {
            let approved = with_definition(tool, definition);
            (if *is_approved_by_user { approved.approved_by_user() } else { approved }, pending.as_ref())
        }
        ServedVersionDecision::Unapproved(pending) => (tool.clone(), Some(pending)),
    };
    match pending {
        Some(pending) if pending.is_withheld => withhold(&mut served, pending),
        Some(pending) => served.pending = Some(Arc::new(pending.clone())),
        None => {}
    }
    served
}

/// Returns the tool with its approved definition. An output schema that the server may not fulfil any more is left out.
fn with_definition(tool: &Tool, approved: &Value) -> Tool {
    let Value::Object(members) = approved else { return tool.clone() };
    let offered = Value::Object(tool.definition().clone());
    let mut members = members.clone();
    if classify(ItemKind::Tool, Some(approved), Some(&offered)).contains(&ItemChangeKind::Output) {
        members.shift_remove("outputSchema");
    }
    as_offered(tool, members)
}

fn withhold(tool: &mut Tool, pending: &PendingDefinitionChange) {
    let server = tool.server().map(ToString::to_string).unwrap_or_default();
    let reason = format!(
        "{}. `servers diff {server}` shows it, and `servers approve {server}` makes the tool available",
        pending.reason
    );
    tool.availability = Availability::Unavailable(reason);
    tool.pending = Some(Arc::new(pending.clone()));
}

fn pending_of(state: &ServedVersionDecision) -> Option<&PendingDefinitionChange> {
    match state {
        ServedVersionDecision::Current { .. } => None,
        ServedVersionDecision::Approved { pending, .. } => pending.as_ref(),
        ServedVersionDecision::Unapproved(pending) => Some(pending),
    }
}

pub(super) fn serve_context(
    offered: ContextCatalogue,
    instructions: Option<String>,
    review: &OfferedDefinitionsReview,
) -> ServedContext {
    fn each<T: Clone>(
        offered: Vec<T>,
        review: &OfferedDefinitionsReview,
        key: impl Fn(&T) -> ItemKey,
        parse: impl Fn(Map<String, Value>) -> Option<T>,
    ) -> Vec<T> {
        let served = offered.into_iter().filter_map(|one| match review.states.get(&key(&one)) {
            Some(state) if pending_of(state).is_some_and(|pending| pending.is_withheld) => None,
            Some(ServedVersionDecision::Approved { definition: Value::Object(approved), .. }) => {
                parse(approved.clone())
            }
            Some(_) | None => Some(one),
        });
        served.collect()
    }
    let text = match review.states.get(&ItemKey::new(ItemKind::Instructions, "")) {
        Some(ServedVersionDecision::Approved { definition: Value::String(text), .. }) => Some(text.clone()),
        Some(ServedVersionDecision::Unapproved(_)) => None,
        Some(ServedVersionDecision::Current { .. } | ServedVersionDecision::Approved { .. }) | None => instructions,
    };
    let ContextCatalogue { resources, templates, prompts } = offered;
    let catalogue = ContextCatalogue {
        resources: each(
            resources,
            review,
            |one| ItemKey::new(ItemKind::Resource, one.uri()),
            |members| Resource::new(members).ok(),
        ),
        templates: each(
            templates,
            review,
            |one| ItemKey::new(ItemKind::Template, one.template().as_str()),
            |members| ResourceTemplate::new(members).ok(),
        ),
        prompts: each(
            prompts,
            review,
            |one| ItemKey::new(ItemKind::Prompt, one.name()),
            |members| Prompt::new(members).ok(),
        ),
    };
    ServedContext { catalogue, instructions: text.filter(|text| !text.is_empty()) }
}
