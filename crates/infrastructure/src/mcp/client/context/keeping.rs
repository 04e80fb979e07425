//! What goes on beside the calls of one connection for as long as it lasts: its lists are kept, what is watched is watched
//! on it, its server logs as much as is wanted, and what it says is passed on.

use super::{
    lists::List,
    state::{Beside, Offered},
};
use crate::mcp::client::{
    config::{McpServerConfig, ToolNames},
    connection::Connection,
    request_error::RequestError,
};
use serde_json::{Map, Value};
use std::{collections::HashMap, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};
use toolstead_domain::{
    client_profile::{Generation, LogLevel},
    context::{Prompt, Resource, ResourceTemplate, notice::ContextNotice},
    principal::Principal,
    tool_name::ToolName,
};

/// The least time between two lists that a server's own news cause.
const LISTING_INTERVAL: Duration = Duration::from_millis(200);

/// Keeps the connection company. Never ends by itself.
pub(in crate::mcp::client) async fn keep(beside: &Beside, config: &McpServerConfig, connection: &Connection) {
    beside.instruct(connection.card.instructions.as_deref());
    let keeping = Keeping { beside, config, connection };
    tokio::join!(
        keeping.lists(),
        keeping.subscriptions(),
        log_as_wanted(beside, connection),
        pass_on(beside, connection)
    );
}

/// Keeps a connection company that is beside the one of the lists; of this principal alone, or of whoever calls. What is
/// said there while nobody calls is for that principal or nobody. Never ends by itself.
pub(in crate::mcp::client) async fn keep_beside(beside: &Beside, connection: &Connection, of: Option<&Principal>) {
    let passing = async {
        loop {
            match (connection.transport.peer().said.next().await, of) {
                (ContextNotice::Log { message, principal: None }, Some(of)) => {
                    beside.said.push(ContextNotice::Log { message, principal: Some(of.clone()) });
                }
                (ContextNotice::Log { principal: None, .. }, None) => {}
                (notice, _) => beside.said.push(notice),
            }
        }
    };
    tokio::join!(log_as_wanted(beside, connection), passing);
}

/// Has an old server log what somebody wants to hear.
async fn log_as_wanted(beside: &Beside, connection: &Connection) {
    let is_old = connection.writer.version.generation() == Generation::Legacy;
    if !is_old || !connection.card.capabilities.contains_key("logging") {
        return;
    }
    let (mut wanted, mut set) = (beside.logs_wanted(), None);
    loop {
        let level = *wanted.borrow_and_update();
        if level != set {
            // Nothing takes a level back; the least talkative one comes next to it.
            let told = level.unwrap_or(LogLevel::Emergency);
            let params = Map::from_iter([("level".to_owned(), told.as_str().into())]);
            let request = connection.transport.request(&connection.writer, "logging/setLevel", &params);
            if let Ok(Err(error)) = timeout(Duration::from_secs(10), request).await {
                tracing::debug!(server = %connection.transport.peer().server, %error, "the level of logs was not set");
            }
            set = level;
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

/// Passes on what the server says outside of requests.
async fn pass_on(beside: &Beside, connection: &Connection) {
    loop {
        beside.said.push(connection.transport.peer().said.next().await);
    }
}

struct Keeping<'a> {
    beside: &'a Beside,
    config: &'a McpServerConfig,
    connection: &'a Connection,
}

impl Keeping<'_> {
    /// Takes the lists, and each anew when the server says that it changed.
    async fn lists(&self) {
        let peer = self.connection.transport.peer();
        let declares = |what: &str| self.connection.card.capabilities.contains_key(what);
        let (mut resources, mut prompts) = (true, true);
        loop {
            let mut offered = Offered::clone(&self.beside.offered());
            if resources {
                if declares("resources") {
                    let (listed, templates) = tokio::join!(
                        self.list(List::RESOURCES, Resource::new),
                        self.list(List::TEMPLATES, ResourceTemplate::new)
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
                } else if let Some(listed) = self.list(List::PROMPTS, Prompt::new).await {
                    self.name_prompts(&mut offered, listed);
                }
            }
            self.beside.offer(offered);
            self.beside.all_listed();
            let next_list = Instant::now() + LISTING_INTERVAL;
            peer.context_changed.notified().await;
            // A storm of news is one piece of news.
            sleep_until(next_list).await;
            (resources, prompts) = peer.take_context_changes();
        }
    }

    /// One list; `None` where it cannot be had, so that what was known stays.
    async fn list<T>(
        &self,
        list: List,
        parse: impl Fn(Map<String, Value>) -> Result<T, toolstead_domain::context::InvalidDefinition>,
    ) -> Option<Vec<T>> {
        let fetching = list.fetch(self.connection, &self.config.limits, parse);
        let fetched = timeout(self.config.timeouts.connect, fetching).await;
        let fetched = fetched.unwrap_or(Err(RequestError::Late(self.config.timeouts.connect)));
        fetched
            .inspect_err(
                |error| tracing::warn!(server = %self.config.name, ?list, %error, "what was listed before stays"),
            )
            .ok()
    }

    fn name_prompts(&self, offered: &mut Offered, listed: Vec<Prompt>) {
        let (mut prompts, mut names) = (Vec::new(), HashMap::new());
        for prompt in listed {
            let own = prompt.name().to_owned();
            match self.config.names {
                ToolNames::Plain => prompts.push(prompt),
                ToolNames::Qualified => {
                    let name = ToolName::for_upstream(&self.config.name, &own).as_str().to_owned();
                    prompts.push(prompt.named(&name));
                    names.insert(name, own);
                }
            }
        }
        offered.catalogue.prompts = prompts;
        offered.prompts = names;
    }

    /// Watches on this connection what was watched on the one before. A new server hears of it with the stream that it is
    /// listened to on.
    async fn subscriptions(&self) {
        let watched = self.beside.watched.changes().borrow().1.clone();
        for uri in &watched {
            // Nobody repeats what changed in the meantime.
            self.beside.said.push(ContextNotice::ResourceUpdated { uri: uri.clone() });
        }
        if self.connection.writer.version.generation() == Generation::Modern {
            return;
        }
        for uri in watched {
            let params = Map::from_iter([("uri".to_owned(), uri.clone().into())]);
            let request = self.connection.transport.request(&self.connection.writer, "resources/subscribe", &params);
            if let Ok(Err(error)) = timeout(Duration::from_secs(10), request).await {
                tracing::warn!(server = %self.config.name, uri, %error, "a resource is not watched any more");
            }
        }
    }
}
