//! Pinned definitions of servers: the registries serve what was approved, and record what is offered.

use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc};
use toolstead_domain::{
    Availability, Clock, ContextCatalogue, DefinitionStore, DefinitionVersion, ItemKey, ItemKind, OfferedItem,
    PendingDefinition, PinnedServer, Pinning, Prompt, ResourceTemplate, StoreError, Tool, ToolSource, VersionApproval,
    context::Resource,
    pinning::{
        change::{ChangeClass, classify},
        review::{ItemState, OfferedDefinitions, Review, approved_version, review},
    },
};

/// Maximum number of times that an offer is compared again because another process recorded versions meanwhile.
const MAX_REVIEWS: usize = 8;
/// Maximum number of resources of a server whose definitions are pinned.
const PINNED_RESOURCES: usize = 512;

/// Kinds that are listed beside tools.
const CONTEXT_KINDS: &[ItemKind] = &[ItemKind::Instructions, ItemKind::Prompt, ItemKind::Resource, ItemKind::Template];

/// Store of the versions of definitions, with the rules for serving them.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::definition_pins::DefinitionPins;
/// use toolstead_domain::{
///     PinnedServer,
///     testing::{fixed_clock::FixedClock, in_memory_definition_store::InMemoryDefinitionStore, samples::START},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolstead_domain::StoreError> {
/// let pins = DefinitionPins::new(Arc::new(InMemoryDefinitionStore::default()), Arc::new(FixedClock::at(START)));
/// let server = PinnedServer { configured_in: String::new(), name: "git".into() };
/// assert!(pins.approve(&server, &[], "user").await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct DefinitionPins {
    store: Arc<dyn DefinitionStore>,
    clock: Arc<dyn Clock>,
}

/// Tools of a server as they are served.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PinnedTools {
    /// Served tools, in the order in which they were offered.
    pub(crate) tools: Vec<Tool>,
    /// Sentences for the operator.
    pub(crate) notes: Vec<String>,
}

/// Instructions, prompts and resources of a server as they are served.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PinnedContext {
    pub(crate) catalogue: ContextCatalogue,
    pub(crate) instructions: Option<String>,
}

/// Item whose latest version is not the approved one.
#[derive(Debug, Clone, PartialEq)]
pub struct UnapprovedItem {
    /// Kind and name.
    pub key: ItemKey,
    /// Approved version with a definition, if there is one.
    pub approved: Option<DefinitionVersion>,
    /// Latest version.
    pub latest: DefinitionVersion,
}

impl UnapprovedItem {
    /// Returns the classes of the change.
    pub fn classes(&self) -> BTreeSet<ChangeClass> {
        let old = self.approved.as_ref().and_then(|version| version.definition.as_ref());
        classify(self.key.kind, old, self.latest.definition.as_ref())
    }
}

impl std::fmt::Debug for DefinitionPins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DefinitionPins").finish_non_exhaustive()
    }
}

impl DefinitionPins {
    /// Creates pins on this store.
    pub fn new(store: Arc<dyn DefinitionStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Returns all stored versions of a server, sorted by item and number.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub async fn history(&self, server: &PinnedServer) -> Result<Vec<DefinitionVersion>, StoreError> {
        let mut versions = self.store.versions(server).await?;
        versions.sort_by(|a, b| (&a.key, a.number).cmp(&(&b.key, b.number)));
        Ok(versions)
    }

    /// Returns the items that are not served as they are offered, sorted.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub async fn unapproved(&self, server: &PinnedServer) -> Result<Vec<UnapprovedItem>, StoreError> {
        let versions = self.history(server).await?;
        let mut items = Vec::new();
        for history in versions.chunk_by(|one, next| one.key == next.key) {
            let history: Vec<&DefinitionVersion> = history.iter().collect();
            if let Some(latest) = history.last().filter(|latest| latest.approval.is_none()) {
                let approved = approved_version(&history).cloned();
                // An item that was removed before its approval leaves nothing to show.
                if latest.definition.is_some() || approved.is_some() {
                    items.push(UnapprovedItem { key: latest.key.clone(), approved, latest: (*latest).clone() });
                }
            }
        }
        Ok(items)
    }

    /// Approves the latest versions of the items with these names, or of all items if `names` is empty. The name of
    /// instructions and of the launch is their kind. Returns the approved items.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails; nothing is approved then.
    pub async fn approve(
        &self,
        server: &PinnedServer,
        names: &[String],
        by: &str,
    ) -> Result<Vec<UnapprovedItem>, StoreError> {
        let mut chosen = self.unapproved(server).await?;
        chosen.retain(|item| {
            let name = if item.key.name.is_empty() { item.key.kind.as_str() } else { &item.key.name };
            item.latest.definition.is_some() && (names.is_empty() || names.iter().any(|one| one == name))
        });
        let versions: Vec<_> = chosen.iter().map(|item| (item.key.clone(), item.latest.number)).collect();
        self.approve_versions(server, &versions, by).await?;
        Ok(chosen)
    }

    /// Approves the version of a tool that an approver was shown.
    pub(crate) async fn approve_tool(&self, server: &PinnedServer, tool: &Tool, by: &str) -> Result<(), StoreError> {
        match (&tool.pending, key_of(tool)) {
            (Some(pending), Some(key)) => self.approve_versions(server, &[(key, pending.number)], by).await,
            _ => Ok(()),
        }
    }

    async fn approve_versions(
        &self,
        server: &PinnedServer,
        versions: &[(ItemKey, u32)],
        by: &str,
    ) -> Result<(), StoreError> {
        let approval = VersionApproval { at: self.clock.now(), by: by.to_owned() };
        self.store.approve(server, versions, &approval).await
    }

    /// Records the tools that a server offers, and returns them as they are served: in the same order, and each with
    /// its approved definition.
    pub(crate) async fn tools(
        &self,
        pinning: &Pinning,
        offered: Vec<Tool>,
        other_names: &BTreeSet<String>,
    ) -> Result<PinnedTools, StoreError> {
        let launch = OfferedItem { key: ItemKey::new(ItemKind::Launch, ""), definition: pinning.launch.clone() };
        let items: Vec<OfferedItem> = std::iter::once(launch).chain(offered.iter().filter_map(item_of)).collect();
        let kinds = [ItemKind::Launch, ItemKind::Tool];
        let review = self.record(pinning, OfferedDefinitions { kinds: &kinds, items: &items, other_names }).await?;
        Ok(serve_tools(offered, &review))
    }

    /// Returns stored tools as they are served until the server lists them. Records nothing.
    pub(crate) async fn stored_tools(&self, pinning: &Pinning, tools: Vec<Tool>) -> Result<PinnedTools, StoreError> {
        let kinds = [ItemKind::Launch, ItemKind::Tool];
        let review = self.review_stored(pinning, &kinds).await?;
        Ok(serve_tools(tools.into_iter().map(without_marks).collect(), &review))
    }

    /// Records what a server offers beside tools, and returns it as it is served. Until `is_listed`, the stored
    /// definitions take the place of the offered ones.
    pub(crate) async fn context(
        &self,
        pinning: &Pinning,
        offered: ContextCatalogue,
        instructions: Option<String>,
        is_listed: bool,
    ) -> Result<PinnedContext, StoreError> {
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
        let mut versions = self.history(&pinning.server).await?;
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
        Ok(PinnedContext { catalogue: stored.catalogue, instructions: now.instructions })
    }

    fn stored_context(&self, pinning: &Pinning, versions: &[DefinitionVersion]) -> PinnedContext {
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

    async fn record(&self, pinning: &Pinning, offer: OfferedDefinitions<'_>) -> Result<Review, StoreError> {
        // Reviewed again after each addition: another process may have taken the number of a version meanwhile.
        for _ in 0..MAX_REVIEWS {
            let versions = self.history(&pinning.server).await?;
            let review = review(&versions, offer, pinning.on_change, self.clock.now());
            if review.added.is_empty() {
                return Ok(review);
            }
            self.store.add(&pinning.server, &review.added).await?;
            for added in review.added.iter().filter(|added| added.approval.is_none()) {
                let (server, item) = (&pinning.server.name, added.key.to_string());
                tracing::warn!(
                    server,
                    item,
                    "the definition is not approved; the differences are shown with the servers"
                );
            }
        }
        Err(StoreError {
            operation: format!("record the definitions of `{}`", pinning.server.name),
            source: "other processes record versions at the same time".into(),
        })
    }

    async fn review_stored(&self, pinning: &Pinning, kinds: &[ItemKind]) -> Result<Review, StoreError> {
        let versions = self.history(&pinning.server).await?;
        let items = latest_items(&versions, kinds);
        let offer = OfferedDefinitions { kinds, items: &items, other_names: &BTreeSet::new() };
        Ok(review(&versions, offer, pinning.on_change, self.clock.now()))
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
    let resources = catalogue.resources.iter().take(PINNED_RESOURCES);
    let resources = resources.map(move |one| item(ItemKind::Resource, one.uri(), one.definition()));
    let templates = catalogue.templates.iter().take(PINNED_RESOURCES);
    let templates = templates.map(move |one| item(ItemKind::Template, one.template().as_str(), one.definition()));
    let prompts = catalogue.prompts.iter().map(move |one| item(ItemKind::Prompt, one.name(), one.definition()));
    resources.chain(templates).chain(prompts)
}

fn serve_tools(offered: Vec<Tool>, review: &Review) -> PinnedTools {
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
    PinnedTools { tools: tools.collect(), notes: review.notes.clone() }
}

/// Returns a stored tool without what was added to it when it was served.
fn without_marks(tool: Tool) -> Tool {
    if key_of(&tool).is_none() {
        return tool;
    }
    let definition = tool.definition().clone();
    let mut unmarked = Tool::new(tool.name().clone(), definition, tool.category, tool.source().clone());
    unmarked.tags.clone_from(&tool.tags);
    unmarked.enabled = tool.enabled;
    unmarked
}

fn as_served(tool: &Tool, state: &ItemState) -> Tool {
    let (mut served, pending) = match state {
        ItemState::Current { is_approved: false } => return tool.clone(),
        ItemState::Current { is_approved: true } => return tool.clone().approved_by_user(),
        ItemState::Approved { definition, pending } => (with_definition(tool, definition), pending.as_ref()),
        ItemState::Unapproved(pending) => (tool.clone(), Some(pending)),
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
    if classify(ItemKind::Tool, Some(approved), Some(&offered)).contains(&ChangeClass::Output) {
        members.shift_remove("outputSchema");
    }
    let mut served = Tool::new(tool.name().clone(), members, tool.category, tool.source().clone()).approved_by_user();
    served.tags.clone_from(&tool.tags);
    served.enabled = tool.enabled;
    served
}

fn withhold(tool: &mut Tool, pending: &PendingDefinition) {
    let server = tool.server().map(ToString::to_string).unwrap_or_default();
    let reason = format!(
        "{}. `servers diff {server}` shows it, and `servers approve {server}` makes the tool available",
        pending.reason
    );
    tool.set_availability(Availability::Unavailable(reason));
    tool.pending = Some(Arc::new(pending.clone()));
}

fn pending_of(state: &ItemState) -> Option<&PendingDefinition> {
    match state {
        ItemState::Current { .. } => None,
        ItemState::Approved { pending, .. } => pending.as_ref(),
        ItemState::Unapproved(pending) => Some(pending),
    }
}

fn serve_context(offered: ContextCatalogue, instructions: Option<String>, review: &Review) -> PinnedContext {
    fn each<T: Clone>(
        offered: Vec<T>,
        review: &Review,
        key: impl Fn(&T) -> ItemKey,
        parse: impl Fn(Map<String, Value>) -> Option<T>,
    ) -> Vec<T> {
        let served = offered.into_iter().filter_map(|one| match review.states.get(&key(&one)) {
            Some(state) if pending_of(state).is_some_and(|pending| pending.is_withheld) => None,
            Some(ItemState::Approved { definition: Value::Object(approved), .. }) => parse(approved.clone()),
            Some(_) | None => Some(one),
        });
        served.collect()
    }
    let text = match review.states.get(&ItemKey::new(ItemKind::Instructions, "")) {
        Some(ItemState::Approved { definition: Value::String(text), .. }) => Some(text.clone()),
        Some(ItemState::Unapproved(_)) => None,
        Some(ItemState::Current { .. } | ItemState::Approved { .. }) | None => instructions,
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
    PinnedContext { catalogue, instructions: text.filter(|text| !text.is_empty()) }
}
