//! One tool by its name, with what the policy says of it.

use crate::tool_registry::{Registered, ToolRegistry, snapshot::Unresolved};
use std::sync::Arc;
use toolstead_domain::{permission::policy::PermissionPolicy, tool::Availability};

/// Asks for one tool, by canonical name or alias.
#[derive(Debug, Clone)]
pub struct GetToolQuery {
    /// The name.
    pub name: String,
}

/// A tool and whether it can be called.
#[derive(Debug, Clone)]
pub struct ToolView {
    /// The tool.
    pub registered: Registered,
    /// Whether callers see it.
    pub advertised: bool,
    /// Why they do not, for people.
    pub hidden_because: Option<String>,
}

/// Answers [`GetToolQuery`].
#[derive(Debug)]
pub struct GetToolHandler {
    registry: Arc<ToolRegistry>,
    policy: Arc<PermissionPolicy>,
}

impl GetToolHandler {
    /// Looks in the registry, under the policy.
    pub fn new(registry: Arc<ToolRegistry>, policy: Arc<PermissionPolicy>) -> Self {
        Self { registry, policy }
    }

    /// The tool.
    ///
    /// # Errors
    /// [`Unresolved`] with the nearest names.
    pub fn handle(&self, query: &GetToolQuery) -> Result<ToolView, Unresolved> {
        Ok(self.view(&self.registry.resolve(&query.name)?))
    }

    /// What is to be said of a tool.
    pub fn view(&self, registered: &Registered) -> ToolView {
        let tool = &registered.tool;
        let hidden_because = match &tool.availability {
            _ if !tool.enabled => Some("it is switched off".to_owned()),
            Availability::Unavailable(reason) => Some(format!("it is unavailable: {reason}")),
            Availability::Available if !self.policy.selection.includes(tool) => {
                Some("it is not among the selected tools".into())
            }
            Availability::Available if !self.policy.advertises(tool) => Some("a rule denies every call of it".into()),
            Availability::Available => None,
        };
        ToolView { registered: registered.clone(), advertised: hidden_because.is_none(), hidden_because }
    }
}
