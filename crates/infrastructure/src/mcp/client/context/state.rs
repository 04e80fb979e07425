//! What is known of a server's resources and prompts, and what is wanted of it: lasts over its connections.

use super::said::Said;
use crate::mcp::client::usage::InUse;
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
use toolstead_domain::{
    client_profile::LogLevel,
    context::{ContextCatalogue, Prompt, Resource, ResourceTemplate},
};

/// As much of a server's guidance for models is kept, in characters.
const INSTRUCTIONS: usize = 16 << 10;

/// Everything beside the tools.
#[derive(Debug)]
pub(in crate::mcp::client) struct Beside {
    offered: ArcSwap<Offered>,
    /// What each of its parts offers.
    parts: Mutex<Parts>,
    /// Rises with every change of `offered`.
    version: watch::Sender<u64>,
    /// The version that was taken last.
    seen: AtomicU64,
    /// Whether it has listed everything once.
    listed: watch::Sender<bool>,
    instructions: ArcSwapOption<String>,
    log_level: watch::Sender<Option<LogLevel>>,
    /// The resources that are watched.
    pub(in crate::mcp::client) watched: Watched,
    /// What it said outside of requests.
    pub(in crate::mcp::client) said: Said,
}

/// The connection that something is offered over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp::client) enum Part {
    /// That of the lists.
    Listed,
    /// The one that calls share which cannot be asked, where it is another.
    Plain,
}

#[derive(Debug, Default)]
struct Parts {
    listed: Offered,
    plain: Offered,
}

/// What it offers, or offered when it was heard of last.
#[derive(Debug, Default, Clone, PartialEq)]
pub(in crate::mcp::client) struct Offered {
    pub(in crate::mcp::client) catalogue: ContextCatalogue,
    /// What prompts are called over there, by their names here.
    pub(in crate::mcp::client) prompts: HashMap<String, String>,
}

impl Offered {
    /// This, and of the other what it has not.
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

impl Beside {
    pub(in crate::mcp::client) fn new() -> Self {
        Self {
            offered: ArcSwap::default(),
            parts: Mutex::default(),
            version: watch::Sender::new(1),
            seen: AtomicU64::new(0),
            listed: watch::Sender::new(false),
            instructions: ArcSwapOption::empty(),
            log_level: watch::Sender::new(None),
            watched: Watched::default(),
            said: Said::default(),
        }
    }

    pub(super) fn offered(&self) -> Arc<Offered> {
        self.offered.load_full()
    }

    /// The same, as what [`changed`](Self::changed) compares with.
    pub(super) fn taken(&self) -> Arc<Offered> {
        // The version first: what changes in between is told once more.
        self.seen.store(*self.version.borrow(), Ordering::Release);
        self.offered()
    }

    pub(super) async fn changed(&self) {
        let seen = self.seen.load(Ordering::Acquire);
        if self.version.subscribe().wait_for(|version| *version != seen).await.is_err() {
            std::future::pending().await
        }
    }

    /// What is offered over this connection.
    pub(super) fn part(&self, part: Part) -> Offered {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        match part {
            Part::Listed => parts.listed.clone(),
            Part::Plain => parts.plain.clone(),
        }
    }

    /// Changes what is offered over one connection. Only the one who keeps it does so.
    pub(super) fn offer(&self, part: Part, offered: Offered) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        match part {
            Part::Listed => parts.listed = offered,
            Part::Plain => parts.plain = offered,
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
        self.listed.send_replace(true);
    }

    pub(super) fn instructions(&self) -> Option<String> {
        self.instructions.load_full().map(|text| text.as_ref().clone())
    }

    pub(super) fn instruct(&self, text: Option<&str>) {
        let text = text.map(|text| Arc::new(text.chars().take(INSTRUCTIONS).collect::<String>()));
        self.instructions.store(text);
    }

    pub(super) fn want_logs(&self, level: Option<LogLevel>) {
        self.log_level.send_replace(level);
    }

    pub(super) fn logs_wanted(&self) -> watch::Receiver<Option<LogLevel>> {
        self.log_level.subscribe()
    }
}

/// The resources that somebody watches, by their URIs over there.
#[derive(Debug, Default)]
pub(in crate::mcp::client) struct Watched {
    uris: watch::Sender<(u64, BTreeSet<String>)>,
    /// Keeps the server from its rest while there are any.
    used: Mutex<HashMap<String, InUse>>,
    /// The version of the set that a new server has said it tells of.
    acknowledged: watch::Sender<u64>,
}

impl Watched {
    /// Adds a URI; the version of the set that holds it.
    pub(super) fn add(&self, uri: &str) -> u64 {
        self.uris.send_modify(|(version, uris)| *version += u64::from(uris.insert(uri.to_owned())));
        self.uris.borrow().0
    }

    /// Keeps the server at work as long as the URI is watched.
    pub(super) fn keep(&self, uri: &str, used: InUse) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(uri.to_owned(), used);
    }

    pub(super) fn remove(&self, uri: &str) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        self.uris.send_modify(|(version, uris)| *version += u64::from(uris.remove(uri)));
    }

    /// The URIs, and every change of them.
    pub(in crate::mcp::client) fn changes(&self) -> watch::Receiver<(u64, BTreeSet<String>)> {
        self.uris.subscribe()
    }

    pub(in crate::mcp::client) fn acknowledge(&self, version: u64) {
        self.acknowledged.send_replace(version);
    }

    pub(super) async fn acknowledged(&self, version: u64) {
        let mut acknowledged = self.acknowledged.subscribe();
        // The sender lives in `self`, so that waiting cannot fail.
        let _ = acknowledged.wait_for(|now| *now >= version).await;
    }
}
