//! The tools that a caller may see, page by page.

use crate::{
    permission_book::PermissionBook,
    tool_registry::{Registered, ToolRegistry, snapshot::Snapshot},
};
use arc_swap::ArcSwap;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::{hash::BuildHasher, sync::Arc};
use toolstead_domain::{
    alias::Dialect, category::Category, permission::policy::PermissionPolicy, scope::Scope, tool::Tool,
};

/// Asks for one page of tools.
#[derive(Debug, Clone, Default)]
pub struct ListToolsQuery {
    /// On whose behalf, and through which view.
    pub scope: Scope,
    /// Which tools.
    pub filter: ToolFilter,
    /// The end of the page before.
    pub cursor: Option<String>,
    /// The bound of the page.
    pub page: PageSize,
}

/// Which tools to list; every given condition must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ToolFilter {
    /// Only this category.
    pub category: Option<Category>,
    /// Only tools that bear all these tags.
    pub tags: Vec<String>,
    /// Only tools whose name, title or description holds this text; case does not count.
    pub text: Option<String>,
    /// Also those that cannot be called: switched off, unavailable, denied.
    pub with_uncallable: bool,
}

/// The bound of a page. It holds at least one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageSize {
    /// So many tools.
    Tools(usize),
    /// So many bytes of definitions.
    Bytes(usize),
}

impl Default for PageSize {
    fn default() -> Self {
        Self::Tools(50)
    }
}

/// One page.
#[derive(Debug, Clone)]
pub struct ToolPage {
    /// The tools, sorted by name.
    pub tools: Vec<Registered>,
    /// The beginning of the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

/// A cursor that leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCursor {
    /// It was not made here, or for another filter.
    #[error("the cursor was not given out for this list: start again without a cursor")]
    Foreign,
    /// The list it was given out for is gone.
    #[error("the list of tools has changed since the cursor was given out: start again without a cursor")]
    Stale,
}

/// Lists tools. Advertising uses the same policy as calling.
pub struct ListToolsHandler {
    registry: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
    /// The tools that are advertised without any filter: clients ask for them again and again.
    advertised: ArcSwap<Vec<Advertised>>,
    /// Tells this process's cursors from others'.
    cursor_key: u64,
}

/// One list, with what it was made of.
#[derive(Clone)]
struct Advertised {
    version: u64,
    policy: Arc<PermissionPolicy>,
    dialect: Option<Dialect>,
    tools: Arc<[Registered]>,
}

/// Lists that are kept: as many views as are asked for at a time.
const KEPT_LISTS: usize = 32;

impl std::fmt::Debug for ListToolsHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListToolsHandler").finish_non_exhaustive()
    }
}

/// Tells whether name, title or description of the tool hold the text, which is in lower case.
pub(crate) fn mentions(tool: &Tool, text: &str) -> bool {
    let parts = [tool.name().as_str(), tool.title().unwrap_or(""), tool.description()];
    parts.iter().any(|part| part.to_lowercase().contains(text))
}

impl ListToolsHandler {
    /// Lists the registry's tools under the policies of the book.
    pub fn new(registry: Arc<ToolRegistry>, permissions: Arc<PermissionBook>) -> Self {
        let cursor_key = uuid::Uuid::new_v4().as_u64_pair().0;
        Self { registry, permissions, advertised: ArcSwap::default(), cursor_key }
    }

    /// One page.
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
        let fitting: Arc<[Registered]> = if query.filter == ToolFilter::default() {
            self.advertised(&snapshot, policy, query.scope.dialect)
        } else {
            listed(&snapshot, query.scope.dialect, &query.filter, &policy)
        };
        let rest = fitting.get(from..).ok_or(InvalidCursor::Foreign)?;
        let count = match query.page {
            PageSize::Tools(tools) => rest.len().min(tools.max(1)),
            PageSize::Bytes(bytes) => {
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
        snapshot: &Snapshot,
        policy: Arc<PermissionPolicy>,
        dialect: Option<Dialect>,
    ) -> Arc<[Registered]> {
        let version = snapshot.version();
        let is_same =
            |one: &&Advertised| one.version == version && one.dialect == dialect && Arc::ptr_eq(&one.policy, &policy);
        if let Some(known) = self.advertised.load().iter().find(is_same) {
            return known.tools.clone();
        }
        let list = listed(snapshot, dialect, &ToolFilter::default(), &policy);
        let new = Advertised { version, policy, dialect, tools: list.clone() };
        self.advertised.rcu(|known| {
            // Those of earlier versions are asked for no more.
            let current = known.iter().filter(|one| one.version >= version).take(KEPT_LISTS - 1);
            std::iter::once(&new).chain(current).cloned().collect::<Vec<_>>()
        });
        list
    }

    /// `version:from:check`, in base64. The check binds it to this process, this view and this filter.
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
        // Not a secret: a cursor shows nothing that its bearer may not list anyway. It only tells foreign ones apart.
        std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().hash_one((
            self.cursor_key,
            version,
            from,
            &query.filter,
            query.scope.view.as_ref().map(ToString::to_string),
            query.scope.dialect,
        ))
    }
}

/// The tools that the policy and the filter let through, as the dialect shows them, sorted by name. Rules judge the
/// tools themselves, whatever they are shown as.
fn listed(
    snapshot: &Snapshot,
    dialect: Option<Dialect>,
    filter: &ToolFilter,
    policy: &PermissionPolicy,
) -> Arc<[Registered]> {
    let may_be_listed =
        |one: &&Registered| filter.with_uncallable || (one.tool.is_callable() && policy.advertises(&one.tool));
    let fitting = snapshot.tools().iter().filter(may_be_listed);
    let shown = fitting.flat_map(|one| snapshot.shown_in(dialect, one));
    let mut listed: Vec<Registered> = shown.filter(|one| fits(filter, &one.tool)).cloned().collect();
    listed.sort_by(|a, b| a.tool.name().cmp(b.tool.name()));
    listed.into()
}

fn fits(filter: &ToolFilter, tool: &Tool) -> bool {
    let holds = |text: &String| mentions(tool, &text.to_lowercase());
    filter.category.is_none_or(|category| tool.category == category)
        && filter.tags.iter().all(|tag| tool.tags.contains(tag))
        && filter.text.as_ref().is_none_or(holds)
}
