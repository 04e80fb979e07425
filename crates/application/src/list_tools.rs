//! Listing of the tools that a caller may see, page by page.

use crate::{
    permission_book::PermissionBook,
    tool_deferral::{ToolDeferral, ToolListForm, is_search_tool},
    tool_registry::{SharedRegisteredTool, ToolRegistry, snapshot::ToolSnapshot},
    view_forms,
};
use arc_swap::ArcSwap;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::{hash::BuildHasher, sync::Arc};
use toolstead_domain::{Category, ClientProfile, Dialect, PermissionPolicy, RequestScope, Tool, ViewContent};

/// Requests one page of tools.
#[derive(Debug, Clone, Default)]
pub struct ListToolsQuery {
    /// Principal and view of the query.
    pub scope: RequestScope,
    /// Filter of the tools.
    pub filter: ToolFilter,
    /// Cursor from the page before; `None` for the first page.
    pub cursor: Option<String>,
    /// Limit of the page.
    pub page: PageLimit,
    /// Form of the list. Lists with a filter are always whole.
    pub form: ToolListForm,
}

/// Conditions on the listed tools; all of them must be met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ToolFilter {
    /// Category of the tools.
    pub category: Option<Category>,
    /// Tags that a tool must have, all of them.
    pub tags: Vec<String>,
    /// Text that the name, title or description must contain; case is ignored.
    pub text: Option<String>,
    /// `true` to include tools that cannot be called: disabled, unavailable or denied ones.
    pub with_uncallable: bool,
}

/// The limit of a page. A page has at least one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageLimit {
    /// Maximum number of tools.
    Tools(usize),
    /// Maximum size of the definitions, in bytes.
    Bytes(usize),
}

impl Default for PageLimit {
    fn default() -> Self {
        Self::Tools(50)
    }
}

/// One page of tools.
#[derive(Debug, Clone)]
pub struct ToolPage {
    /// The tools, sorted by name.
    pub tools: Vec<SharedRegisteredTool>,
    /// Cursor of the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

/// The reason why a cursor is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCursor {
    /// The cursor is malformed, is from another process, or was created for another filter, view, dialect or form.
    #[error("the cursor is not valid for this list: start again without a cursor")]
    Foreign,
    /// The list has changed since the cursor was created.
    #[error("the list of tools has changed since the cursor was issued: start again without a cursor")]
    Stale,
}

/// Lists tools. Advertising uses the same policy as calling.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::{
///     list_tools::{ListToolsHandler, ListToolsQuery},
///     permission_book::PermissionBook,
///     tool_registry::ToolRegistry,
/// };
/// use toolstead_domain::{
///     permission::policy::PermissionPolicy,
///     testing::{
///         fixed_clock::FixedClock,
///         in_memory_rule_store::InMemoryRuleStore,
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
/// let policy = Arc::new(PermissionPolicy::default());
/// let permissions = Arc::new(PermissionBook::new(policy, Arc::new(InMemoryRuleStore::new())));
/// let handler = ListToolsHandler::new(registry, permissions);
/// assert_eq!(handler.handle(&ListToolsQuery::default())?.tools.len(), 1);
/// # Ok(())
/// # }
/// ```
pub struct ListToolsHandler {
    registry: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
    deferral: ToolDeferral,
    /// The lists without a filter, which clients request frequently.
    advertised: ArcSwap<Vec<CachedList>>,
    /// Distinguishes the cursors of this process from those of others.
    cursor_key: u64,
}

/// One cached list, with the values that it depends on.
#[derive(Clone)]
struct CachedList {
    version: u64,
    policy: Arc<PermissionPolicy>,
    dialect: Option<Dialect>,
    /// Contents of the nested views, innermost first.
    contents: Vec<Arc<ViewContent>>,
    form: ToolListForm,
    tools: Arc<[SharedRegisteredTool]>,
}

/// Maximum number of cached lists, for the views in use at the same time.
const MAX_CACHED_LISTS: usize = 32;

impl std::fmt::Debug for ListToolsHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListToolsHandler").finish_non_exhaustive()
    }
}

/// Returns `true` if the name, title or description of the tool contains the text, which must be in lower case.
pub(crate) fn mentions(tool: &Tool, text: &str) -> bool {
    let parts = [tool.name().as_str(), tool.title().unwrap_or(""), tool.description()];
    parts.iter().any(|part| part.to_lowercase().contains(text))
}

impl ListToolsHandler {
    /// Creates a handler on the registry's tools, under the policies of the book.
    pub fn new(registry: Arc<ToolRegistry>, permissions: Arc<PermissionBook>) -> Self {
        let cursor_key = uuid::Uuid::new_v4().as_u64_pair().0;
        let deferral = ToolDeferral::never();
        Self { registry, permissions, deferral, advertised: ArcSwap::default(), cursor_key }
    }

    /// Sets the threshold above which lists are deferred.
    #[must_use]
    pub fn with_deferral(self, deferral: ToolDeferral) -> Self {
        Self { deferral, ..self }
    }

    /// Reduces the tools of the scope, in the form [`ToolListForm::WithSearchTools`], to a list in the form
    /// [`ToolListForm::Deferred`]: above the threshold the search tools and the tools that are never deferred, below it
    /// all tools except the search tools.
    pub(crate) fn apply_deferral(&self, scope: &RequestScope, tools: Vec<Arc<Tool>>) -> Vec<Arc<Tool>> {
        let policy = self.permissions.advertising(scope);
        let bytes = |tool: &Arc<Tool>| serde_json::to_string(tool.advertised()).map_or(0, |text| text.len());
        self.deferral.apply(ToolListForm::Deferred, tools, &policy, |tool| tool, bytes)
    }

    /// Returns `true` if the list of this client in this scope is deferred, so that it contains the tools that search
    /// and call the others. Returns `false` for a client that defers tools itself.
    pub(crate) fn is_deferred(&self, scope: &RequestScope, client: &ClientProfile) -> bool {
        let policy = self.permissions.advertising(scope);
        let list = || self.advertised(&self.registry.snapshot(), policy, scope, ToolListForm::Deferred);
        !client.is_self_deferring() && list().iter().any(|one| is_search_tool(&one.tool))
    }

    /// Returns one page.
    ///
    /// # Errors
    /// [`InvalidCursor`].
    pub fn handle(&self, query: &ListToolsQuery) -> Result<ToolPage, InvalidCursor> {
        let (snapshot, from) = match &query.cursor {
            None => (self.registry.snapshot(), 0),
            Some(cursor) => {
                let (version, from) = self.open(cursor, query).ok_or(InvalidCursor::Foreign)?;
                (self.registry.snapshot_at(version).ok_or(InvalidCursor::Stale)?, from)
            }
        };
        let policy = self.permissions.advertising(&query.scope);
        let fitting: Arc<[SharedRegisteredTool]> = if query.filter == ToolFilter::default() {
            self.advertised(&snapshot, policy, &query.scope, query.form)
        } else {
            self.listed(&snapshot, &query.scope, &query.filter, &policy, ToolListForm::Whole)
        };
        let rest = fitting.get(from..).ok_or(InvalidCursor::Foreign)?;
        let count = match query.page {
            PageLimit::Tools(tools) => rest.len().min(tools.max(1)),
            PageLimit::Bytes(bytes) => {
                let mut used = 0;
                let within = rest.iter().take_while(|one| {
                    used += one.wire().get().len() + 1;
                    used <= bytes
                });
                within.count().max(1).min(rest.len())
            }
        };
        let more = from + count < fitting.len();
        let next_cursor = more.then(|| self.seal(snapshot.version(), from + count, query));
        Ok(ToolPage { tools: rest[..count].to_vec(), next_cursor })
    }

    fn advertised(
        &self,
        snapshot: &ToolSnapshot,
        policy: Arc<PermissionPolicy>,
        scope: &RequestScope,
        form: ToolListForm,
    ) -> Arc<[SharedRegisteredTool]> {
        let (version, dialect) = (snapshot.version(), scope.dialect);
        let has_contents = |one: &CachedList| {
            let pairs = one.contents.iter().zip(scope.contents());
            one.contents.len() == scope.contents().count() && pairs.into_iter().all(|(a, (_, b))| Arc::ptr_eq(a, b))
        };
        let is_same = |one: &&CachedList| {
            (one.version, one.dialect, one.form) == (version, dialect, form)
                && Arc::ptr_eq(&one.policy, &policy)
                && has_contents(one)
        };
        if let Some(known) = self.advertised.load().iter().find(is_same) {
            return known.tools.clone();
        }
        let list = self.listed(snapshot, scope, &ToolFilter::default(), &policy, form);
        let contents = scope.contents().map(|(_, content)| content.clone()).collect();
        let new = CachedList { version, policy, dialect, contents, form, tools: list.clone() };
        self.advertised.rcu(|known| {
            // Lists of earlier versions are not requested any more.
            let current = known.iter().filter(|one| one.version >= version).take(MAX_CACHED_LISTS - 1);
            std::iter::once(&new).chain(current).cloned().collect::<Vec<_>>()
        });
        list
    }

    /// Returns the cursor `version:from:check`, in base64. The check binds it to this process, this view and this
    /// filter.
    fn seal(&self, version: u64, from: usize, query: &ListToolsQuery) -> String {
        URL_SAFE_NO_PAD.encode(format!("{version}:{from}:{:x}", self.check(version, from, query)))
    }

    fn open(&self, cursor: &str, query: &ListToolsQuery) -> Option<(u64, usize)> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let mut parts = text.split(':');
        let (version, from) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let genuine =
            u64::from_str_radix(parts.next()?, 16).ok()? == self.check(version, from, query) && parts.next().is_none();
        genuine.then_some((version, from))
    }

    fn check(&self, version: u64, from: usize, query: &ListToolsQuery) -> u64 {
        // Not a secret: a cursor reveals only what its owner may list anyway. The check only detects foreign cursors.
        std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().hash_one((
            self.cursor_key,
            version,
            from,
            &query.filter,
            query.scope.view.as_ref().map(ToString::to_string),
            query.scope.dialect,
            query.form,
        ))
    }

    /// Returns the tools that the policy and the filter admit, as the dialect or the view shows them, sorted by name.
    /// Rules apply to the tools themselves, not to the forms in which they are shown.
    fn listed(
        &self,
        snapshot: &ToolSnapshot,
        scope: &RequestScope,
        filter: &ToolFilter,
        policy: &PermissionPolicy,
        form: ToolListForm,
    ) -> Arc<[SharedRegisteredTool]> {
        let may_be_listed = |one: &&SharedRegisteredTool| {
            filter.with_uncallable || (one.tool.is_callable() && policy.advertises(&one.tool))
        };
        let fitting = snapshot.tools().iter().filter(may_be_listed);
        let shown =
            fitting.filter_map(|one| Some((view_forms::is_changed(scope, one), view_forms::shown(scope, one)?)));
        let shown = shown.flat_map(|(is_changed, one)| match is_changed {
            true => vec![one],
            false => snapshot.shown_in(scope.dialect, &one).cloned().collect(),
        });
        let mut listed: Vec<SharedRegisteredTool> = shown.filter(|one| fits(filter, &one.tool)).collect();
        listed.sort_by(|a, b| a.tool.name().cmp(b.tool.name()));
        self.deferral.apply(form, listed, policy, |one| &one.tool, |one| one.wire().get().len()).into()
    }
}

fn fits(filter: &ToolFilter, tool: &Tool) -> bool {
    let holds = |text: &String| mentions(tool, &text.to_lowercase());
    filter.category.is_none_or(|category| tool.category == category)
        && filter.tags.iter().all(|tag| tool.tags.contains(tag))
        && filter.text.as_ref().is_none_or(holds)
}
