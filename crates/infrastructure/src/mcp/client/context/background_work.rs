//! Background work for one connection while it lasts: refreshes the lists, subscribes to resources, sets the server's
//! log level and forwards its notifications.

use super::{
    lists::ListMethod,
    state::{ContextState, OfferConnectionKind, ServerContextOffers},
};
use crate::mcp::client::{
    catalogue::{ToolCatalogue, pooled_tools::PooledTools},
    config::{ToolNaming, UpstreamConfig},
    connection::{Connection, request_error::RequestError},
};
use serde_json::{Map, Value};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout},
};
use toolstead_domain::{
    ContextNotice, LogLevel, Principal, Prompt, ProtocolGeneration, ResourceTemplate, ToolName, context::Resource,
};

/// Minimum time between two listings that the server's notifications cause.
const LISTING_INTERVAL: Duration = Duration::from_millis(200);

/// Shared state for the background work of pooled connections.
#[derive(Debug)]
pub(in crate::mcp::client) struct PooledWorkDeps {
    pub(in crate::mcp::client) config: UpstreamConfig,
    pub(in crate::mcp::client) context_state: Arc<ContextState>,
    pub(in crate::mcp::client) pooled_tools: Arc<PooledTools>,
}

/// Runs the background work of the catalogue connection. Never returns.
pub(in crate::mcp::client) async fn run_catalogue_work(
    beside: &ContextState,
    config: &UpstreamConfig,
    connection: &Connection,
) {
    beside.instruct(connection.card.instructions.as_deref());
    let keeping = OfferUpdater { beside, config, connection, part: OfferConnectionKind::Listed, list_changed: None };
    tokio::join!(
        keeping.lists(),
        keeping.subscriptions(),
        sync_log_level(beside, connection),
        pass_on(beside, connection)
    );
}

/// Runs the background work of a pooled connection, which belongs to the principal `of` or is shared. Log messages
/// outside of calls go to that principal only, or are dropped. For a `plain` connection, shared by callers without
/// capabilities, also lists tools, resources and prompts and subscribes to resources. Never returns.
pub(in crate::mcp::client) async fn run_pooled_work(
    company: &PooledWorkDeps,
    connection: &Connection,
    of: Option<&Principal>,
    plain: bool,
) {
    let beside = &*company.context_state;
    let passing = async {
        loop {
            match (connection.transport.peer().notices.next().await, of) {
                (ContextNotice::Log { message, principal: None }, Some(of)) => {
                    beside.notices.push(ContextNotice::Log { message, principal: Some(of.clone()) });
                }
                (ContextNotice::Log { principal: None, .. }, None) => {}
                (notice, _) => beside.notices.push(notice),
            }
        }
    };
    let lists = async {
        match plain {
            true => run_plain_work(company, connection).await,
            false => forward_list_changes(&company.pooled_tools.list_changed, connection).await,
        }
    };
    tokio::join!(sync_log_level(beside, connection), passing, lists);
}

/// Notifies `news` of every list change that the server reports on the connection. Never returns.
async fn forward_list_changes(news: &Notify, connection: &Connection) {
    let peer = connection.transport.peer();
    loop {
        tokio::select! {
            () = peer.list_changed.notified() => {}
            () = peer.context_changed.notified() => {}
        }
        news.notify_one();
    }
}

/// Offers the tools, resources and prompts of a pooled connection until dropped, and subscribes to resources on it.
async fn run_plain_work(company: &PooledWorkDeps, connection: &Connection) {
    let PooledWorkDeps { config, context_state: beside, pooled_tools: elsewhere } = company;
    let offer = PooledOfferGuard { company, by: elsewhere.begin() };
    let keeping = OfferUpdater {
        beside,
        config,
        connection,
        part: OfferConnectionKind::Plain,
        list_changed: Some(&elsewhere.list_changed),
    };
    tokio::join!(keeping.tools(&offer), keeping.lists(), keeping.watch());
}

/// Offer of tools, resources and prompts by one pooled connection. Dropping it withdraws the offer, unless another
/// connection has replaced it.
struct PooledOfferGuard<'a> {
    company: &'a PooledWorkDeps,
    by: u64,
}

impl Drop for PooledOfferGuard<'_> {
    fn drop(&mut self) {
        if self.company.pooled_tools.end(self.by) {
            self.company.context_state.offer(OfferConnectionKind::Plain, ServerContextOffers::default());
        }
    }
}

/// Sets the log level of a legacy server to the one that clients request, and again after every change. Returns at once
/// if the server is modern or declares no logging.
async fn sync_log_level(beside: &ContextState, connection: &Connection) {
    let is_old = connection.writer.version.generation() == ProtocolGeneration::Legacy;
    if !is_old || !connection.card.capabilities.contains_key("logging") {
        return;
    }
    let (mut wanted, mut set) = (beside.log_level_changes(), None);
    loop {
        let level = *wanted.borrow_and_update();
        if level != set {
            // A level cannot be unset; the highest severity comes closest.
            let requested = level.unwrap_or(LogLevel::Emergency);
            let params = Map::from_iter([("level".to_owned(), requested.as_str().into())]);
            let request = connection.transport.request(&connection.writer, "logging/setLevel", &params);
            if let Ok(Err(error)) = timeout(Duration::from_secs(10), request).await {
                tracing::debug!(server = %connection.transport.peer().server, %error, "the log level was not set");
            }
            set = level;
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

/// Forwards notifications of the server that belong to no request.
async fn pass_on(beside: &ContextState, connection: &Connection) {
    loop {
        beside.notices.push(connection.transport.peer().notices.next().await);
    }
}

struct OfferUpdater<'a> {
    beside: &'a ContextState,
    config: &'a UpstreamConfig,
    connection: &'a Connection,
    part: OfferConnectionKind,
    /// Notified of changed lists. `None` on the catalogue connection.
    list_changed: Option<&'a Notify>,
}

impl OfferUpdater<'_> {
    /// Lists the tools as those of the offer, and again whenever the server reports a change. Never returns.
    async fn tools(&self, offer: &PooledOfferGuard<'_>) {
        let UpstreamConfig { name, timeouts, .. } = self.config;
        loop {
            let fetching = ToolCatalogue::fetch(self.connection, self.config);
            match timeout(timeouts.connect, fetching).await {
                Ok(Ok(catalogue)) => offer.company.pooled_tools.offer(offer.by, catalogue.tools),
                Ok(Err(error)) => tracing::debug!(server = %name, %error, "listing failed; old list remains"),
                Err(_) => tracing::debug!(server = %name, "its tools could not be listed in time"),
            }
            let next_list = Instant::now() + LISTING_INTERVAL;
            self.connection.transport.peer().list_changed.notified().await;
            self.notify_list_changed();
            sleep_until(next_list).await;
        }
    }

    fn notify_list_changed(&self) {
        if let Some(news) = self.list_changed {
            news.notify_one();
        }
    }

    /// Lists and offers resources and prompts, and each again whenever the server reports a change. Never returns.
    async fn lists(&self) {
        let peer = self.connection.transport.peer();
        let declares = |what: &str| self.connection.card.capabilities.contains_key(what);
        let (mut resources, mut prompts) = (true, true);
        loop {
            let mut offered = self.beside.part(self.part);
            if resources {
                if declares("resources") {
                    let (listed, templates) = tokio::join!(
                        self.list(ListMethod::RESOURCES, Resource::new),
                        self.list(ListMethod::TEMPLATES, ResourceTemplate::new)
                    );
                    offered.catalogue.resources = listed.unwrap_or(offered.catalogue.resources);
                    offered.catalogue.templates = templates.unwrap_or(offered.catalogue.templates);
                } else {
                    offered.catalogue.resources.clear();
                    offered.catalogue.templates.clear();
                }
            }
            if prompts {
                if !declares("prompts") {
                    self.name_prompts(&mut offered, Vec::new());
                } else if let Some(listed) = self.list(ListMethod::PROMPTS, Prompt::new).await {
                    self.name_prompts(&mut offered, listed);
                }
            }
            self.beside.offer(self.part, offered);
            if self.part == OfferConnectionKind::Listed {
                self.beside.all_listed();
            }
            let next_list = Instant::now() + LISTING_INTERVAL;
            peer.context_changed.notified().await;
            self.notify_list_changed();
            // Several notifications within the interval cause one listing.
            sleep_until(next_list).await;
            (resources, prompts) = peer.take_context_changes();
        }
    }

    /// Fetches one list. Returns `None` if that fails, so that the known entries remain.
    async fn list<T>(
        &self,
        list: ListMethod,
        parse: impl Fn(Map<String, Value>) -> Result<T, toolstead_domain::context::InvalidContextDefinition>,
    ) -> Option<Vec<T>> {
        let fetching = list.fetch(self.connection, &self.config.limits, parse);
        let fetched = timeout(self.config.timeouts.connect, fetching).await;
        let fetched = fetched.unwrap_or(Err(RequestError::Late(self.config.timeouts.connect)));
        fetched
            .inspect_err(
                |error| tracing::warn!(server = %self.config.name, ?list, %error, "listing failed; old list remains"),
            )
            .ok()
    }

    fn name_prompts(&self, offered: &mut ServerContextOffers, listed: Vec<Prompt>) {
        let (mut prompts, mut names) = (Vec::new(), HashMap::new());
        for prompt in listed {
            let own = prompt.name().to_owned();
            match self.config.names {
                ToolNaming::Plain => prompts.push(prompt),
                ToolNaming::Qualified => {
                    let name = ToolName::for_upstream(&self.config.name, &own).as_str().to_owned();
                    prompts.push(prompt.named(&name));
                    names.insert(name, own);
                }
            }
        }
        offered.catalogue.prompts = prompts;
        offered.prompts = names;
    }

    /// Reports every subscribed resource as changed, and subscribes to them on this connection of a legacy server. A
    /// modern server receives them with its event stream request instead.
    async fn subscriptions(&self) {
        let watched = self.beside.subscriptions.changes().borrow().1.clone();
        for uri in &watched {
            // Servers do not repeat changes from the time between the connections.
            self.beside.notices.push(ContextNotice::ResourceUpdated { uri: uri.clone() });
        }
        if self.connection.writer.version.generation() == ProtocolGeneration::Legacy {
            self.watch().await;
        }
    }

    /// Subscribes at a legacy server to the resources that clients have subscribed to. Does nothing if the server does
    /// not declare subscriptions. Refusals are only logged.
    async fn watch(&self) {
        if !self.connection.card.can("resources", "subscribe") {
            return;
        }
        let watched = self.beside.subscriptions.changes().borrow().1.clone();
        for uri in watched {
            let params = Map::from_iter([("uri".to_owned(), uri.clone().into())]);
            let request = self.connection.transport.request(&self.connection.writer, "resources/subscribe", &params);
            if let Ok(Err(error)) = timeout(Duration::from_secs(10), request).await {
                tracing::warn!(server = %self.config.name, uri, %error, "a resource is not watched any more");
            }
        }
    }
}
