//! On whose behalf, through which window and in which spelling something is asked for.

use crate::{alias::Dialect, permission::policy::PermissionPolicy, principal::Principal};
use std::{fmt, sync::Arc};

/// The scope of lists, searches and calls: what is shown in a scope and what may be called in it are the same.
///
/// ```
/// use toolstead_domain::{principal::Principal, scope::Scope};
/// let scope = Scope::of(Principal::new("service", "nightly"), "run-7");
/// assert_eq!((scope.principal.id(), &*scope.session), ("service:nightly", "run-7"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Scope {
    /// The one who asks.
    pub principal: Principal,
    /// The id of the session in which it is asked.
    pub session: Arc<str>,
    /// The window through which the tools are seen; `None`: all of them.
    pub view: Option<Arc<View>>,
    /// The tool system whose spellings come first; `None`: our own.
    pub dialect: Option<Dialect>,
    /// The agent that was handed the work which asks, by name; `None`: whoever handed it over, or a person.
    pub agent: Option<Arc<str>>,
}

/// A named window on the tools: whatever is asked for through it is judged by its policy as well. It only ever narrows.
#[derive(Debug)]
#[non_exhaustive]
pub struct View {
    /// Tells it apart: what was approved through a view holds in views of that name, in the same window, alone.
    pub name: Arc<str>,
    /// The policy that holds beside the one in force, and beside the policies of the windows around it.
    pub policy: Arc<PermissionPolicy>,
    /// The window that this one is in; `None`: none.
    pub within: Option<Arc<View>>,
    /// True where it is there for one run alone. Then its name tells nothing apart: what was approved through it holds in this
    /// very window, and is forgotten with it.
    pub is_run: bool,
}

impl Scope {
    /// All tools in our own spelling, for this principal in this session.
    pub fn of(principal: Principal, session: impl Into<Arc<str>>) -> Self {
        Self { principal, session: session.into(), view: None, dialect: None, agent: None }
    }

    /// The same through a view.
    #[must_use]
    pub fn through(self, view: Arc<View>) -> Self {
        Self { view: Some(view), ..self }
    }

    /// The same through a window in the one that there is: what either of the two forbids is forbidden.
    #[must_use]
    pub fn narrowed_to(self, view: Arc<View>) -> Self {
        let view = match &self.view {
            None => view,
            Some(outer) => view.inside(outer),
        };
        self.through(view)
    }

    /// The same for an agent of this name, which has a session of its own.
    #[must_use]
    pub fn for_agent(self, agent: Arc<str>, session: Arc<str>) -> Self {
        Self { session, agent: Some(agent), ..self }
    }

    /// The windows that it is seen through, the innermost first.
    pub fn windows(&self) -> impl Iterator<Item = &Arc<View>> {
        std::iter::successors(self.view.as_ref(), |view| view.within.as_ref())
    }

    /// The same in the spelling of another tool system.
    #[must_use]
    pub fn in_dialect(self, dialect: Option<Dialect>) -> Self {
        Self { dialect, ..self }
    }
}

impl Default for Scope {
    /// The person at this machine, in the session `program`.
    fn default() -> Self {
        Self::of(Principal::local(), "program")
    }
}

impl View {
    /// A view of that name under the policy.
    pub fn new(name: impl Into<Arc<str>>, policy: Arc<PermissionPolicy>) -> Arc<Self> {
        Arc::new(Self { name: name.into(), policy, within: None, is_run: false })
    }

    /// The window of one run under the policy. Each one that is made is another window, whatever its name.
    pub fn of_run(name: impl Into<Arc<str>>, policy: Arc<PermissionPolicy>) -> Arc<Self> {
        Arc::new(Self { name: name.into(), policy, within: None, is_run: true })
    }

    /// The same window in another one.
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
        })
    }
}

impl fmt::Display for View {
    /// The names of all windows, the outermost first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(within) = &self.within {
            write!(f, "{within}/")?;
        }
        f.write_str(&self.name)
    }
}
