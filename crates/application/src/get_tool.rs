//! One tool by its name, with what the policy says of it.

use crate::{
    permission_book::PermissionBook,
    tool_registry::{Registered, ToolRegistry, snapshot::Unresolved},
};
use std::sync::Arc;
use toolstead_domain::{permission::decision::Cause, scope::Scope, tool::Availability};

/// Asks for one tool, by canonical name or alias.
#[derive(Debug, Clone)]
pub struct GetToolQuery {
    /// On whose behalf, and through which view.
    pub scope: Scope,
    /// The name.
    pub name: String,
}

/// A tool and whether it can be called.
#[derive(Debug, Clone)]
pub struct ToolView {
    /// The tool.
    pub registered: Registered,
    /// Callers see it.
    pub advertised: bool,
    /// The reason why they do not, for people.
    pub hidden_because: Option<String>,
}

/// Answers [`GetToolQuery`].
#[derive(Debug)]
pub struct GetToolHandler {
    registry: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
}

impl GetToolHandler {
    /// Looks in the registry, under the policies of the book.
    pub fn new(registry: Arc<ToolRegistry>, permissions: Arc<PermissionBook>) -> Self {
        Self { registry, permissions }
    }

    /// The tool.
    ///
    /// # Errors
    /// [`Unresolved`] with the nearest names.
    pub fn handle(&self, query: &GetToolQuery) -> Result<ToolView, Unresolved> {
        let (dialect, name) = (query.scope.dialect, &query.name);
        let registered = self.registry.resolve_in(dialect, name)?;
        let snapshot = self.registry.snapshot();
        let shown: Vec<&Registered> = snapshot.shown_in(dialect, &registered).collect();
        let named = shown.iter().find(|one| one.tool.name().as_str() == name).or(shown.first());
        Ok(self.view(named.copied().unwrap_or(&registered), &query.scope))
    }

    /// The view on a tool in the scope.
    pub fn view(&self, registered: &Registered, scope: &Scope) -> ToolView {
        let (tool, policy) = (&registered.own, self.permissions.advertising(scope));
        let hidden_because = match &tool.availability {
            _ if !tool.enabled => Some("it is switched off".to_owned()),
            Availability::Unavailable(reason) => Some(format!("it is unavailable: {reason}")),
            Availability::Available => {
                policy.refusal_of_every_call(tool).map(|decision| match decision.decisive.cause {
                    Cause::NotSelected | Cause::OutsideWindow => "it is not among the selected tools".into(),
                    _ => "a rule denies every call of it".into(),
                })
            }
        };
        ToolView { registered: registered.clone(), advertised: hidden_because.is_none(), hidden_because }
    }
}
