//! Lookup of one tool by its name, with its visibility under the policy.

use crate::{
    permission_book::PermissionBook,
    tool_registry::{SharedRegisteredTool, ToolRegistry, snapshot::ResolveError},
    view_forms,
};
use std::sync::Arc;
use toolstead_domain::{Availability, Cause, RequestScope};

/// Requests one tool, by canonical name or alias.
#[derive(Debug, Clone)]
pub struct GetToolQuery {
    /// Principal and view of the query.
    pub scope: RequestScope,
    /// Canonical name or alias of the tool.
    pub name: String,
}

/// A tool and its visibility.
#[derive(Debug, Clone)]
pub struct ToolView {
    /// The tool with its provider.
    pub registered: SharedRegisteredTool,
    /// `true` if the tool is advertised to callers.
    pub advertised: bool,
    /// The reason why it is not advertised, as a text for people.
    pub hidden_because: Option<String>,
}

/// Handles a [`GetToolQuery`].
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::{
///     get_tool::{GetToolHandler, GetToolQuery},
///     permission_book::PermissionBook,
///     tool_registry::ToolRegistry,
/// };
/// use toolstead_domain::{
///     NoRuleStore, PermissionPolicy, RequestScope,
///     testing::{
///         fixed_clock::FixedClock,
///         in_memory_tool_repository::InMemoryToolRepository,
///         samples::START,
///         scripted_provider::{ScriptedProvider, scripted_tool::ScriptedTool},
///     },
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Arc::new(FixedClock::at(START));
/// let registry = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock).await?;
/// registry.register(Arc::new(ScriptedProvider::new("team").with(ScriptedTool::named("greet")))).await?;
///
/// let permissions = Arc::new(PermissionBook::new(Arc::new(PermissionPolicy::default()), Arc::new(NoRuleStore)));
/// let handler = GetToolHandler::new(registry, permissions);
/// let found = handler.handle(&GetToolQuery { scope: RequestScope::default(), name: "greet".into() });
/// assert!(found.is_ok_and(|greet| greet.advertised));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct GetToolHandler {
    registry: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
}

impl GetToolHandler {
    /// Creates a handler that uses this registry, and the policies in `permissions`.
    pub fn new(registry: Arc<ToolRegistry>, permissions: Arc<PermissionBook>) -> Self {
        Self { registry, permissions }
    }

    /// Returns the tool in the form in which the scope shows it, even if it is hidden from callers.
    ///
    /// # Errors
    /// [`ResolveError`] with the nearest names.
    pub fn handle(&self, query: &GetToolQuery) -> Result<ToolView, ResolveError> {
        let (dialect, name) = (query.scope.dialect, &query.name);
        let registered = self.registry.resolve_in(dialect, query.scope.tool_named(name))?;
        if view_forms::is_changed(&query.scope, &registered) {
            return Ok(self.view(&registered, &query.scope));
        }
        let snapshot = self.registry.snapshot();
        let shown: Vec<&SharedRegisteredTool> = snapshot.shown_in(dialect, &registered).collect();
        let named = shown.iter().find(|one| one.tool.name().as_str() == name).or(shown.first());
        Ok(self.view(named.copied().unwrap_or(&registered), &query.scope))
    }

    /// Returns a tool in the form in which the views of the scope show it, with the reason if the lists of the scope do
    /// not contain it.
    pub fn view(&self, registered: &SharedRegisteredTool, scope: &RequestScope) -> ToolView {
        let form = view_forms::form(scope, registered);
        let is_replaced = || Some("its name leads to another tool of the view".to_owned());
        let (registered, unfit) = match &form {
            Ok(Some(form)) => (form, None),
            Ok(None) => (registered, is_replaced()),
            Err(error) => (registered, Some(error.to_string())),
        };
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
        let hidden_because = hidden_because.or(unfit);
        ToolView { registered: registered.clone(), advertised: hidden_because.is_none(), hidden_because }
    }
}
