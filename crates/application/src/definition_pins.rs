//! Pinned definitions of servers: the registries serve what was approved, and record what is offered.

mod catalogue;
#[cfg(test)]
mod tests;
mod unapproved_item;

pub use self::unapproved_item::{UnapprovedItem, digest_of};
pub(crate) use catalogue::{ServedContext, ServedTools};

use catalogue::{as_offered, serve_context, serve_tools};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use toolstead_domain::{
    Clock, ContextCatalogue, DefinitionVersion, ItemKey, ItemKind, OfferedItem, PinnedDefinitionStore, PinnedServerKey,
    Prompt, ResourceTemplate, ServerPinningSettings, StoreError, Tool, ToolSource, VersionApproval,
    context::Resource,
    pinning::review::{OfferedDefinitions, OfferedDefinitionsReview, approved_version, listed_marker, review},
};

/// Maximum number of times that an offer is compared again because another process recorded versions meanwhile.
const MAX_REVIEWS: usize = 8;
/// Maximum number of unapproved items to name in the log.
const LOGGED_ITEMS: usize = 10;

/// Kinds that are listed beside tools.
const CONTEXT_KINDS: &[ItemKind] = &[ItemKind::Instructions, ItemKind::Prompt, ItemKind::Resource, ItemKind::Template];

/// Store of the versions of definitions, with the rules for serving them.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::definition_pins::DefinitionPins;
/// use toolstead_domain::{
///     PinnedServerKey,
///     testing::{fixed_clock::FixedClock, in_memory_definition_store::InMemoryDefinitionStore, samples::START},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolstead_domain::StoreError> {
/// let pins = DefinitionPins::new(Arc::new(InMemoryDefinitionStore::default()), Arc::new(FixedClock::at(START)));
/// let server = PinnedServerKey { configured_in: String::new(), name: "git".into() };
/// let shown = pins.unapproved(&server).await?;
/// pins.approve(&server, &shown, "user").await?;
/// assert!(pins.unapproved(&server).await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct DefinitionPins {
    store: Arc<dyn PinnedDefinitionStore>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for DefinitionPins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DefinitionPins").finish_non_exhaustive()
    }
}

impl DefinitionPins {
    /// Creates pins on this store.
    pub fn new(store: Arc<dyn PinnedDefinitionStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Returns all stored versions of a server, sorted by item and number.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub async fn history(&self, server: &PinnedServerKey) -> Result<Vec<DefinitionVersion>, StoreError> {
        let mut versions = self.stored_versions(server).await?;
        versions.retain(|version| version.key != listed_marker());
        Ok(versions)
    }

    /// Returns all stored versions of a server, sorted by item and number, including the marker that it listed its
    /// prompts and resources.
    async fn stored_versions(&self, server: &PinnedServerKey) -> Result<Vec<DefinitionVersion>, StoreError> {
        let mut versions = self.store.versions(server).await?;
        versions.sort_by(|a, b| (&a.key, a.number).cmp(&(&b.key, b.number)));
        Ok(versions)
    }

    /// Returns the items whose latest stored version is not approved, sorted by kind and name. Of removed items, only
    /// tools that were approved are included.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub async fn unapproved(&self, server: &PinnedServerKey) -> Result<Vec<UnapprovedItem>, StoreError> {
        let versions = self.history(server).await?;
        let mut items = Vec::new();
        for history in versions.chunk_by(|one, next| one.key == next.key) {
            let history: Vec<&DefinitionVersion> = history.iter().collect();
            if let Some(latest) = history.last().filter(|latest| latest.approval.is_none()) {
                let approved = approved_version(&history).cloned();
                // An item that was removed before its approval leaves nothing to show, and resources and prompts come
                // and go.
                let is_removed_tool = || latest.key.kind == ItemKind::Tool && approved.is_some();
                if latest.definition.is_some() || is_removed_tool() {
                    items.push(UnapprovedItem { key: latest.key.clone(), approved, latest: (*latest).clone() });
                }
            }
        }
        Ok(items)
    }

    /// Approves exactly the latest versions that these items have. A version that was recorded meanwhile remains
    /// unapproved.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails; nothing is approved then.
    pub async fn approve(
        &self,
        server: &PinnedServerKey,
        items: &[UnapprovedItem],
        by: &str,
    ) -> Result<(), StoreError> {
        let versions: Vec<_> = items.iter().map(|item| (item.key.clone(), item.latest.number)).collect();
        self.approve_versions(server, &versions, by).await
    }

    /// Approves the version of a tool that an approver was shown. Does nothing if no version of the tool waits for
    /// approval.
    pub(crate) async fn approve_tool(&self, server: &PinnedServerKey, tool: &Tool, by: &str) -> Result<(), StoreError> {
        match (&tool.pending, key_of(tool)) {
            (Some(pending), Some(key)) => self.approve_versions(server, &[(key, pending.number)], by).await,
            _ => Ok(()),
        }
    }

    async fn approve_versions(
        &self,
        server: &PinnedServerKey,
        versions: &[(ItemKey, u32)],
        by: &str,
    ) -> Result<(), StoreError> {
        let approval = VersionApproval { at: self.clock.now(), by: by.to_owned() };
        self.store.approve(server, versions, &approval).await
    }

    /// Records the tools that a server offers, and returns them as they are served: in the same order, each with its
    /// approved or offered definition, and marked if one waits for approval. `other_names` are the names of other
    /// tools, for finding look-alikes.
    pub(crate) async fn tools(
        &self,
        pinning: &ServerPinningSettings,
        offered: Vec<Tool>,
        other_names: &BTreeSet<String>,
    ) -> Result<ServedTools, StoreError> {
        let launch = OfferedItem { key: ItemKey::new(ItemKind::Launch, ""), definition: pinning.launch.clone() };
        let items: Vec<OfferedItem> = std::iter::once(launch).chain(offered.iter().filter_map(item_of)).collect();
        let kinds = [ItemKind::Launch, ItemKind::Tool];
        let review = self.record(pinning, OfferedDefinitions { kinds: &kinds, items: &items, other_names }).await?;
        Ok(serve_tools(offered, &review))
    }

    /// Returns stored tools as they are served until the server lists them; tools without a recorded definition are
    /// left out. Records nothing.
    pub(crate) async fn stored_tools(
        &self,
        pinning: &ServerPinningSettings,
        tools: Vec<Tool>,
    ) -> Result<ServedTools, StoreError> {
        let kinds = [ItemKind::Launch, ItemKind::Tool];
        let versions = self.stored_versions(&pinning.server).await?;
        let items = latest_items(&versions, &kinds);
        let offer = OfferedDefinitions { kinds: &kinds, items: &items, other_names: &BTreeSet::new() };
        let review = review(&versions, offer, pinning.on_change, self.clock.now());
        // A stored tool has the definition that was served, which may have been replaced by an approval since. One
        // without a version that its server offered last has no state, so it is not served until the server lists it.
        let mut latest: BTreeMap<ItemKey, Value> = items.into_iter().map(|item| (item.key, item.definition)).collect();
        let offered = |tool: Tool| match latest.remove(&key_of(&tool)?) {
            Some(Value::Object(members)) => Some(as_offered(&tool, members)),
            Some(_) | None => None,
        };
        Ok(serve_tools(tools.into_iter().filter_map(offered).collect(), &review))
    }

    /// Records what a server offers beside tools, and returns it as it is served. Until `is_listed`, the stored
    /// definitions take the place of the offered ones.
    pub(crate) async fn context(
        &self,
        pinning: &ServerPinningSettings,
        offered: ContextCatalogue,
        instructions: Option<String>,
        is_listed: bool,
    ) -> Result<ServedContext, StoreError> {
        let none = BTreeSet::new();
        let text = instructions.clone().unwrap_or_default();
        let mut items = vec![OfferedItem { key: ItemKey::new(ItemKind::Instructions, ""), definition: text.into() }];
        if is_listed {
            items.extend(context_items(&offered));
            let review = self
                .record(pinning, OfferedDefinitions { kinds: CONTEXT_KINDS, items: &items, other_names: &none })
                .await?;
            return Ok(serve_context(offered, instructions, &review));
        }
        let mut versions = self.stored_versions(&pinning.server).await?;
        let mut is_same_launch = true;
        if let Some(launch) = versions.iter().rev().find(|version| version.key.kind == ItemKind::Launch) {
            is_same_launch = launch.definition.as_ref() == Some(&pinning.launch);
        }
        if !is_same_launch {
            versions.clear();
        }
        let stored = self.stored_context(pinning, &versions);
        if instructions.is_none() {
            return Ok(stored);
        }
        let kinds = [ItemKind::Instructions];
        let review =
            self.record(pinning, OfferedDefinitions { kinds: &kinds, items: &items, other_names: &none }).await?;
        let now = serve_context(ContextCatalogue::default(), instructions, &review);
        Ok(ServedContext { catalogue: stored.catalogue, instructions: now.instructions })
    }

    fn stored_context(&self, pinning: &ServerPinningSettings, versions: &[DefinitionVersion]) -> ServedContext {
        let items = latest_items(versions, CONTEXT_KINDS);
        let offer = OfferedDefinitions { kinds: CONTEXT_KINDS, items: &items, other_names: &BTreeSet::new() };
        let review = review(versions, offer, pinning.on_change, self.clock.now());
        let mut catalogue = ContextCatalogue::default();
        let mut instructions = None;
        for OfferedItem { key, definition } in items {
            match (key.kind, definition) {
                (ItemKind::Instructions, Value::String(text)) => {
                    instructions = Some(text).filter(|text| !text.is_empty())
                }
                (ItemKind::Prompt, Value::Object(one)) => catalogue.prompts.extend(Prompt::new(one)),
                (ItemKind::Resource, Value::Object(one)) => catalogue.resources.extend(Resource::new(one)),
                (ItemKind::Template, Value::Object(one)) => catalogue.templates.extend(ResourceTemplate::new(one)),
                _ => {}
            }
        }
        serve_context(catalogue, instructions, &review)
    }

    async fn record(
        &self,
        pinning: &ServerPinningSettings,
        offer: OfferedDefinitions<'_>,
    ) -> Result<OfferedDefinitionsReview, StoreError> {
        // Reviewed again after each addition: another process may have taken the number of a version meanwhile.
        for _ in 0..MAX_REVIEWS {
            let versions = self.stored_versions(&pinning.server).await?;
            let review = review(&versions, offer, pinning.on_change, self.clock.now());
            if review.added.is_empty() {
                return Ok(review);
            }
            self.store.add(&pinning.server, &review.added).await?;
            log_unapproved(&pinning.server, &review.added);
        }
        Err(StoreError {
            operation: format!("record the definitions of `{}`", pinning.server.name),
            source: "other processes kept recording versions; try again".into(),
        })
    }
}

fn log_unapproved(server: &PinnedServerKey, added: &[DefinitionVersion]) {
    let unapproved = added.iter().filter(|added| added.approval.is_none() && added.definition.is_some());
    let number = unapproved.clone().count();
    if number > 0 {
        let first: Vec<String> = unapproved.take(LOGGED_ITEMS).map(|added| added.key.to_string()).collect();
        let (server, first) = (&server.name, first.join(", "));
        tracing::warn!(server, number, first, "definitions are not approved: `toolstead servers diff` shows them");
    }
}

/// Returns the latest definitions of the items that were not removed. `versions` are sorted.
fn latest_items(versions: &[DefinitionVersion], kinds: &[ItemKind]) -> Vec<OfferedItem> {
    let histories = versions.chunk_by(|one, next| one.key == next.key);
    let latest = histories.filter_map(|history| history.last()).filter(|latest| kinds.contains(&latest.key.kind));
    latest
        .filter_map(|version| Some(OfferedItem { key: version.key.clone(), definition: version.definition.clone()? }))
        .collect()
}

/// Returns the key of a server's tool.
fn key_of(tool: &Tool) -> Option<ItemKey> {
    match tool.source() {
        ToolSource::McpServer { tool, .. } => Some(ItemKey::new(ItemKind::Tool, &**tool)),
        ToolSource::BuiltIn | ToolSource::Embedded(_) => None,
    }
}

fn item_of(tool: &Tool) -> Option<OfferedItem> {
    Some(OfferedItem { key: key_of(tool)?, definition: Value::Object(tool.definition().clone()) })
}

fn context_items(catalogue: &ContextCatalogue) -> impl Iterator<Item = OfferedItem> {
    let item = |kind, name: &str, definition: &Map<String, Value>| OfferedItem {
        key: ItemKey::new(kind, name),
        definition: Value::Object(definition.clone()),
    };
    let resources = catalogue.resources.iter();
    let resources = resources.map(move |one| item(ItemKind::Resource, one.uri(), one.definition()));
    let templates = catalogue.templates.iter();
    let templates = templates.map(move |one| item(ItemKind::Template, one.template().as_str(), one.definition()));
    let prompts = catalogue.prompts.iter().map(move |one| item(ItemKind::Prompt, one.name(), one.definition()));
    resources.chain(templates).chain(prompts)
}
