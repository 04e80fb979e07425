//! State of a server's resources and prompts across connections, with the caller's subscriptions and log level.

use super::notice_queue::NoticeQueue;
use crate::mcp::client::routing::usage::ServerUseGuard;
use arc_swap::{ArcSwap, ArcSwapOption};
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::watch;
use toolstead_domain::{ContextCatalogue, LogLevel, Prompt, ResourceTemplate, context::Resource};

/// Maximum length of a server's instructions for models to retain, in characters.
const INSTRUCTIONS: usize = 16 << 10;

/// State of everything that a server offers apart from tools.
#[derive(Debug)]
pub(in crate::mcp::client) struct ContextState {
    offered: ArcSwap<ServerContextOffers>,
    /// Offers of each connection.
    parts: Mutex<OffersByConnectionKind>,
    /// Incremented with every change of `offered` or `instructions`, and when the first listing has ended.
    version: watch::Sender<u64>,
    /// Version returned most recently by `read_offers`.
    seen: AtomicU64,
    /// `true` once the resources and prompts were listed on the catalogue connection.
    listed: watch::Sender<bool>,
    instructions: ArcSwapOption<String>,
    log_level: watch::Sender<Option<LogLevel>>,
    /// Subscribed resources.
    pub(in crate::mcp::client) subscriptions: ResourceSubscriptions,
    /// Notifications outside of requests.
    pub(in crate::mcp::client) notices: NoticeQueue,
}

/// Connection over which something is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp::client) enum OfferConnectionKind {
    /// The catalogue connection.
    Listed,
    /// The pooled connection of callers without capabilities, if there is one.
    Plain,
}

#[derive(Debug, Default)]
struct OffersByConnectionKind {
    listed: ServerContextOffers,
    plain: ServerContextOffers,
}

/// Resources and prompts that a connection offers, or offered last.
#[derive(Debug, Default, Clone, PartialEq)]
pub(in crate::mcp::client) struct ServerContextOffers {
    pub(in crate::mcp::client) catalogue: ContextCatalogue,
    /// Names of prompts at the server, by their names in Toolstead.
    pub(in crate::mcp::client) prompts: HashMap<String, String>,
}

impl ServerContextOffers {
    /// Returns these offers and those of `other` that are not among them.
    fn and(&self, other: &Self) -> Self {
        fn add<T: Clone>(all: &mut Vec<T>, more: &[T], name: impl Fn(&T) -> &str) {
            let known: HashSet<String> = all.iter().map(|one| name(one).to_owned()).collect();
            all.extend(more.iter().filter(|one| !known.contains(name(one))).cloned());
        }
        fn uri_template(template: &ResourceTemplate) -> &str {
            template.definition().get("uriTemplate").and_then(Value::as_str).unwrap_or_default()
        }
        let mut both = self.clone();
        add(&mut both.catalogue.resources, &other.catalogue.resources, Resource::uri);
        add(&mut both.catalogue.templates, &other.catalogue.templates, uri_template);
        add(&mut both.catalogue.prompts, &other.catalogue.prompts, Prompt::name);
        for (name, own) in &other.prompts {
            both.prompts.entry(name.clone()).or_insert_with(|| own.clone());
        }
        both
    }
}

impl ContextState {
    pub(in crate::mcp::client) fn new() -> Self {
        Self {
            offered: ArcSwap::default(),
            parts: Mutex::default(),
            version: watch::Sender::new(1),
            seen: AtomicU64::new(0),
            listed: watch::Sender::new(false),
            instructions: ArcSwapOption::empty(),
            log_level: watch::Sender::new(None),
            subscriptions: ResourceSubscriptions::default(),
            notices: NoticeQueue::default(),
        }
    }

    pub(super) fn offered(&self) -> Arc<ServerContextOffers> {
        self.offered.load_full()
    }

    /// Returns the offers and remembers their version for [`changed`](Self::changed).
    pub(super) fn read_offers(&self) -> Arc<ServerContextOffers> {
        // The version is read first, so that a concurrent change is reported once more rather than missed.
        self.seen.store(*self.version.borrow(), Ordering::Release);
        self.offered()
    }

    pub(super) async fn changed(&self) {
        let seen = self.seen.load(Ordering::Acquire);
        if self.version.subscribe().wait_for(|version| *version != seen).await.is_err() {
            std::future::pending().await
        }
    }

    /// Returns the offers of one connection.
    pub(super) fn part(&self, part: OfferConnectionKind) -> ServerContextOffers {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        match part {
            OfferConnectionKind::Listed => parts.listed.clone(),
            OfferConnectionKind::Plain => parts.plain.clone(),
        }
    }

    /// Replaces the offers of one connection. Only the task that keeps this connection up to date calls it.
    pub(super) fn offer(&self, part: OfferConnectionKind, offered: ServerContextOffers) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        match part {
            OfferConnectionKind::Listed => parts.listed = offered,
            OfferConnectionKind::Plain => parts.plain = offered,
        }
        let offered = parts.listed.and(&parts.plain);
        if **self.offered.load() != offered {
            self.offered.store(Arc::new(offered));
            self.version.send_modify(|version| *version += 1);
        }
    }

    pub(super) fn listed(&self) -> watch::Receiver<bool> {
        self.listed.subscribe()
    }

    pub(super) fn all_listed(&self) {
        if !self.listed.send_replace(true) {
            self.version.send_modify(|version| *version += 1);
        }
    }

    pub(super) fn instructions(&self) -> Option<String> {
        self.instructions.load_full().map(|text| text.as_ref().clone())
    }

    pub(super) fn instruct(&self, text: Option<&str>) {
        let text = text.map(|text| Arc::new(text.chars().take(INSTRUCTIONS).collect::<String>()));
        let before = self.instructions.swap(text.clone());
        if before != text {
            self.version.send_modify(|version| *version += 1);
        }
    }

    pub(super) fn request_log_level(&self, level: Option<LogLevel>) {
        self.log_level.send_replace(level);
    }

    pub(super) fn log_level_changes(&self) -> watch::Receiver<Option<LogLevel>> {
        self.log_level.subscribe()
    }
}

/// Subscribed resources, by the server's own URIs.
#[derive(Debug, Default)]
pub(in crate::mcp::client) struct ResourceSubscriptions {
    uris: watch::Sender<(u64, BTreeSet<String>)>,
    /// Uses of the server that prevent it from being closed as idle, by the URI of the subscribed resource.
    used: Mutex<HashMap<String, ServerUseGuard>>,
    /// Version of `uris` that a modern server has acknowledged.
    acknowledged: watch::Sender<u64>,
}

impl ResourceSubscriptions {
    /// Adds a URI. Returns the version of the set that contains it.
    pub(super) fn add(&self, uri: &str) -> u64 {
        self.uris.send_modify(|(version, uris)| *version += u64::from(uris.insert(uri.to_owned())));
        self.uris.borrow().0
    }

    /// Prevents the server from being closed as idle while the URI is subscribed.
    pub(super) fn keep(&self, uri: &str, used: ServerUseGuard) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(uri.to_owned(), used);
    }

    pub(super) fn remove(&self, uri: &str) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        self.uris.send_modify(|(version, uris)| *version += u64::from(uris.remove(uri)));
    }

    /// Returns a receiver of the subscribed URIs and of the version of their set, notified when a URI is added or
    /// removed.
    pub(in crate::mcp::client) fn changes(&self) -> watch::Receiver<(u64, BTreeSet<String>)> {
        self.uris.subscribe()
    }

    pub(in crate::mcp::client) fn acknowledge(&self, version: u64) {
        self.acknowledged.send_replace(version);
    }

    pub(super) async fn acknowledged(&self, version: u64) {
        let mut acknowledged = self.acknowledged.subscribe();
        // The sender is a field of `self`, so waiting cannot fail.
        let _ = acknowledged.wait_for(|now| *now >= version).await;
    }
}
