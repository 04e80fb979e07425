//! Lists the resources, templates and prompts that a caller may see, page by page.

use crate::{
    context_registry::{
        ContextRegistry,
        snapshot::{ContextSnapshot, NamedDefinition, PublishedContextDefinition},
    },
    permission_book::PermissionBook,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use std::sync::Arc;
use toolstead_domain::{AuditedRequestKind, PermissionPolicy, RequestScope, Verdict, ViewContent};

/// Requests one page of a list.
#[derive(Debug, Clone)]
pub struct ListContextQuery {
    /// The list.
    pub of: ContextListKind,
    /// Scope of the caller.
    pub scope: RequestScope,
    /// Cursor from the page before; `None` for the first page.
    pub cursor: Option<String>,
    /// Maximum size of the definitions of a page, in bytes. A page has at least one definition.
    pub page_bytes: usize,
}

/// Kind of a list of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextListKind {
    /// The resources.
    Resources,
    /// The templates of resources.
    Templates,
    /// The prompts.
    Prompts,
}

/// One page of definitions.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextPage {
    /// MCP definitions, in the order of URI or name.
    pub definitions: Vec<Map<String, Value>>,
    /// Names of the providers, one for each definition.
    pub providers: Vec<String>,
    /// Cursor of the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

/// Error: the cursor is malformed, or belongs to another list or to an earlier state of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not valid for the current list: start again without a cursor")]
pub struct InvalidContextCursor;

/// Lists resources, templates and prompts. A definition is omitted if rules deny every request for it.
#[derive(Debug)]
pub struct ListContextHandler {
    registry: Arc<ContextRegistry>,
    permissions: Arc<PermissionBook>,
}

impl ListContextHandler {
    /// Creates a handler on the registry's resources and prompts, under the policies of the book.
    pub fn new(registry: Arc<ContextRegistry>, permissions: Arc<PermissionBook>) -> Self {
        Self { registry, permissions }
    }

    /// Returns one page, and starts idle servers that have never listed their resources and prompts.
    ///
    /// # Errors
    /// [`InvalidContextCursor`].
    pub fn handle(&self, query: &ListContextQuery) -> Result<ContextPage, InvalidContextCursor> {
        self.registry.wake();
        let snapshot = self.registry.snapshot();
        let from = match &query.cursor {
            None => 0,
            Some(cursor) => opened(cursor, query.of, snapshot.version()).ok_or(InvalidContextCursor)?,
        };
        let shown = self.shown(&snapshot, query);
        let rest = shown.get(from..).ok_or(InvalidContextCursor)?;
        let mut used = 0;
        let within = rest.iter().take_while(|(_, definition)| {
            used += serde_json::to_string(definition).map_or(0, |text| text.len() + 1);
            used <= query.page_bytes
        });
        let count = within.count().max(1).min(rest.len());
        let more = from + count < shown.len();
        Ok(ContextPage {
            definitions: rest[..count].iter().map(|(_, definition)| (*definition).clone()).collect(),
            providers: rest[..count].iter().map(|(provider, _)| (*provider).to_owned()).collect(),
            next_cursor: more.then(|| sealed(query.of, snapshot.version(), from + count)),
        })
    }

    fn shown<'a>(
        &self,
        snapshot: &'a ContextSnapshot,
        query: &ListContextQuery,
    ) -> Vec<(&'a str, &'a Map<String, Value>)> {
        let policy = self.permissions.policy_of(&query.scope);
        let in_views = |offers: &dyn Fn(&ViewContent) -> bool| query.scope.contents().all(|(_, one)| offers(one));
        match query.of {
            ContextListKind::Resources => {
                let open = snapshot
                    .resources()
                    .iter()
                    .filter(|one| in_views(&|view| view.offers_resource(one.definition.uri())))
                    .filter(|one| {
                        is_open(&policy, one, AuditedRequestKind::Resource, &request("uri", one.definition.uri()))
                    });
                open.map(|one| (one.provider(), one.definition.definition())).collect()
            }
            ContextListKind::Templates => {
                let open = snapshot.templates().iter().filter(|one| {
                    let template = one.definition.template().as_str();
                    let request = request("uri", template);
                    in_views(&|view| view.offers_template(template))
                        && is_open(&policy, one, AuditedRequestKind::Resource, &request)
                });
                open.map(|one| (one.provider(), one.definition.definition())).collect()
            }
            ContextListKind::Prompts => {
                let open = snapshot
                    .prompts()
                    .iter()
                    .filter(|one| in_views(&|view| view.offers_prompt(one.definition.name())))
                    .filter(|one| {
                        is_open(&policy, one, AuditedRequestKind::Prompt, &request("name", one.definition.name()))
                    });
                open.map(|one| (one.provider(), one.definition.definition())).collect()
            }
        }
    }
}

fn request(member: &str, value: &str) -> Map<String, Value> {
    Map::from_iter([(member.to_owned(), value.into())])
}

/// Returns `true` unless the policy denies every request for the definition. `request` has only the URI or the name.
fn is_open<T: NamedDefinition>(
    policy: &PermissionPolicy,
    offered: &PublishedContextDefinition<T>,
    kind: AuditedRequestKind,
    request: &Map<String, Value>,
) -> bool {
    let tool = offered.judged_as(kind);
    policy.refusal_of_every_call(tool).is_none()
        && !policy.closes_request(&offered.access())
        && policy.decide(tool, request, &[]).verdict != Verdict::Deny
}

/// Returns the cursor `list:version:from`, in base64. It is not secret: it reveals only what its owner may list anyway.
fn sealed(of: ContextListKind, version: u64, from: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{of:?}:{version}:{from}"))
}

fn opened(cursor: &str, of: ContextListKind, version: u64) -> Option<usize> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let from = text.strip_prefix(&format!("{of:?}:{version}:"))?;
    from.parse().ok()
}

#[cfg(test)]
mod tests;
