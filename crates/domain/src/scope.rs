//! The scope of requests: principal, session, restricted view and dialect.

pub mod view_content;

use crate::{
    alias::Dialect,
    permission::policy::PermissionPolicy,
    principal::Principal,
    tool::{Tool, overlay::ToolOverlay},
};
use std::{fmt, sync::Arc};
use view_content::{ViewCallLimits, ViewContent};

/// Scope of lists, searches and calls. The tools listed in a scope are those that may be called in it.
///
/// ```
/// use toolstead_domain::{principal::Principal, scope::RequestScope};
/// let scope = RequestScope::of(Principal::new("service", "nightly"), "run-7");
/// assert_eq!((scope.principal.id(), &*scope.session), ("service:nightly", "run-7"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestScope {
    /// Principal that makes the request.
    pub principal: Principal,
    /// Id of the session of the request.
    pub session: Arc<str>,
    /// Restricted view of the tools; `None` for all tools.
    pub view: Option<Arc<View>>,
    /// Tool system whose names take precedence; `None` for the canonical names.
    pub dialect: Option<Dialect>,
    /// Name of the agent whose delegated work makes the request; `None` for a request of the delegating agent or of a
    /// user.
    pub agent: Option<Arc<str>>,
}

/// Named restricted view of the tools: its policy also applies to every request through it. A view only narrows.
#[derive(Debug)]
#[non_exhaustive]
pub struct View {
    /// Name of the view. An approval given through a view holds only in views of that name within the same outer view.
    pub name: Arc<str>,
    /// Policy that applies in addition to the global one and to the policies of the outer views.
    pub policy: Arc<PermissionPolicy>,
    /// Outer view that this one is nested in; `None` for none.
    pub within: Option<Arc<View>>,
    /// `true` if the view exists for one run only. Its name then does not identify it: an approval given through it
    /// holds only in this very view, and ends with it.
    pub is_run: bool,
    /// Content of a configured view; `None`: the view only narrows the policy.
    pub content: Option<Arc<ViewContent>>,
}

impl RequestScope {
    /// Creates the scope of all tools with canonical names, for this principal in this session.
    pub fn of(principal: Principal, session: impl Into<Arc<str>>) -> Self {
        Self { principal, session: session.into(), view: None, dialect: None, agent: None }
    }

    /// Restricts the scope to a view.
    #[must_use]
    pub fn through(self, view: Arc<View>) -> Self {
        Self { view: Some(view), ..self }
    }

    /// Restricts the scope to a view nested in the current one: what either of the two forbids is forbidden.
    #[must_use]
    pub fn narrowed_to(self, view: Arc<View>) -> Self {
        let view = match &self.view {
            None => view,
            Some(outer) => view.inside(outer),
        };
        self.through(view)
    }

    /// Assigns the scope to the agent with this name, in a session of its own.
    #[must_use]
    pub fn for_agent(self, agent: Arc<str>, session: Arc<str>) -> Self {
        Self { session, agent: Some(agent), ..self }
    }

    /// Returns the nested views of the scope, the innermost first.
    pub fn windows(&self) -> impl Iterator<Item = &Arc<View>> {
        std::iter::successors(self.view.as_ref(), |view| view.within.as_ref())
    }

    /// Returns the contents of the nested views with their views, innermost first.
    pub fn contents(&self) -> impl Iterator<Item = (&Arc<View>, &Arc<ViewContent>)> {
        self.windows().filter_map(|view| Some((view, view.content.as_ref()?)))
    }

    /// Returns the own name of the tool that the scope shows as `name`; `name` itself if no view gives a tool this
    /// name.
    pub fn tool_named<'a>(&'a self, name: &'a str) -> &'a str {
        self.contents().find_map(|(_, content)| content.tool_named(name)).unwrap_or(name)
    }

    /// Returns the overlays of the tool with their views, innermost first.
    pub fn overlays_of<'a>(&'a self, tool: &'a Tool) -> impl Iterator<Item = (&'a Arc<View>, &'a ToolOverlay)> {
        self.contents().filter_map(|(view, content)| Some((view, content.overlay_of(tool)?)))
    }

    /// Returns the strictest value of each limit among the nested views.
    pub fn limits(&self) -> ViewCallLimits {
        self.contents().fold(ViewCallLimits::default(), |limits, (_, content)| limits.and(content.limits))
    }

    /// Sets the tool system whose names take precedence.
    #[must_use]
    pub fn in_dialect(self, dialect: Option<Dialect>) -> Self {
        Self { dialect, ..self }
    }
}

impl Default for RequestScope {
    /// Returns the scope of the local user, in the session `program`.
    fn default() -> Self {
        Self::of(Principal::local(), "program")
    }
}

impl View {
    /// Creates a view with this name and policy.
    pub fn new(name: impl Into<Arc<str>>, policy: Arc<PermissionPolicy>) -> Arc<Self> {
        Arc::new(Self { name: name.into(), policy, within: None, is_run: false, content: None })
    }

    /// Creates a configured view with this name, policy and content.
    pub fn with_content(name: impl Into<Arc<str>>, policy: Arc<PermissionPolicy>, content: ViewContent) -> Arc<Self> {
        let content = Some(Arc::new(content));
        Arc::new(Self { name: name.into(), policy, within: None, is_run: false, content })
    }

    /// Creates the view of one run with this policy. Each view is distinct, whatever its name.
    pub fn of_run(name: impl Into<Arc<str>>, policy: Arc<PermissionPolicy>) -> Arc<Self> {
        Arc::new(Self { name: name.into(), policy, within: None, is_run: true, content: None })
    }

    /// Returns a copy of the view that is nested in `outer`, and in the views in which it is nested already.
    fn inside(&self, outer: &Arc<Self>) -> Arc<Self> {
        let within = match &self.within {
            None => outer.clone(),
            Some(between) => between.inside(outer),
        };
        Arc::new(Self {
            name: self.name.clone(),
            policy: self.policy.clone(),
            within: Some(within),
            is_run: self.is_run,
            content: self.content.clone(),
        })
    }
}

impl fmt::Display for View {
    /// Writes the names of the nested views, the outermost first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(within) = &self.within {
            write!(f, "{within}/")?;
        }
        f.write_str(&self.name)
    }
}
