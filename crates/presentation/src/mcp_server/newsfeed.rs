//! What a client hears outside of its requests: as much as it asked for, and not too often.

use super::{
    call_tool::Client,
    news::{List, News},
    watches::Watches,
};
use crate::app::App;
use std::{
    collections::{BTreeSet, VecDeque},
    future::pending,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        watch,
    },
    time::Instant,
};
use toolstead_application::{
    context_registry::{ContextChanges, Heard},
    provider_voices::LogListener,
};
use toolstead_domain::{client_profile::LogLevel, context::notice::ContextNotice};

/// No client hears of changes more often than this. One that comes alone is told at once.
const BETWEEN_TWO: Duration = Duration::from_millis(250);

/// What a client wants to hear.
#[derive(Debug, Clone)]
pub(super) struct Interests {
    /// Who it is.
    pub(super) client: Client,
    /// Of which lists it wants to hear that they changed.
    pub(super) lists: BTreeSet<List>,
    /// The resources that it watches.
    pub(super) watches: Arc<Watches>,
    /// From which level on it wants logs that belong to no call, as that changes; `None`: it takes none.
    pub(super) logs: Option<watch::Receiver<Option<LogLevel>>>,
}

impl Interests {
    /// Those of a client with a session: every list, and what it asks for while the session lasts.
    pub(super) fn of_session(client: Client, watches: Arc<Watches>, level: watch::Receiver<Option<LogLevel>>) -> Self {
        Self { client, lists: List::ALL.into(), watches, logs: Some(level) }
    }
}

/// The news of one application for one client. Many changes in a row become few.
#[derive(Debug)]
pub(super) struct Newsfeed {
    sources: Sources,
    wanted: BTreeSet<List>,
    watches: Arc<Watches>,
    logs: Option<(LogListener, watch::Receiver<Option<LogLevel>>)>,
    /// What changed and waits to be told.
    changed: BTreeSet<List>,
    updated: BTreeSet<String>,
    not_before: Option<Instant>,
    /// What is being told.
    telling: VecDeque<News>,
}

/// Where news come from.
#[derive(Debug)]
struct Sources {
    tools: watch::Receiver<u64>,
    context: watch::Receiver<ContextChanges>,
    known: ContextChanges,
    heard: Option<broadcast::Receiver<Arc<Heard>>>,
}

/// What a source said.
enum Event {
    Tools,
    Context,
    Heard(Arc<Heard>),
    /// Some of it was lost.
    Missed,
}

impl Sources {
    fn new(
        mut tools: watch::Receiver<u64>,
        mut context: watch::Receiver<ContextChanges>,
        heard: broadcast::Receiver<Arc<Heard>>,
    ) -> Self {
        tools.mark_unchanged();
        let known = *context.borrow_and_update();
        Self { tools, context, known, heard: Some(heard) }
    }

    /// The next event; never, once none can come. Cancel-safe.
    async fn next(&mut self) -> Event {
        tokio::select! {
            () = changed(&mut self.tools) => Event::Tools,
            () = changed(&mut self.context) => Event::Context,
            event = heard(&mut self.heard) => event,
        }
    }
}

impl Newsfeed {
    /// The news from now on.
    pub(super) fn new(app: &App, interests: &Interests) -> Self {
        let sources = Sources::new(app.registry.changes(), app.context.changes(), app.context.heard());
        let mut feed = Self::of(sources, interests);
        feed.logs = interests.logs.clone().map(|mut level| {
            let mut listener = app.voices.listen(interests.client.scope.clone());
            listener.set_level(*level.borrow_and_update());
            (listener, level)
        });
        feed
    }

    fn of(sources: Sources, interests: &Interests) -> Self {
        Self {
            sources,
            wanted: interests.lists.clone(),
            watches: interests.watches.clone(),
            logs: None,
            changed: BTreeSet::new(),
            updated: BTreeSet::new(),
            not_before: None,
            telling: VecDeque::new(),
        }
    }

    /// Tells first that all lists and watched resources are others: the client knows those of another application.
    pub(super) fn beginning_anew(mut self) -> Self {
        self.changed = self.wanted.clone();
        self.updated = self.watches.uris().into_iter().collect();
        self
    }

    /// The next news; never, once there can be none. Cancel-safe.
    pub(super) async fn next(&mut self) -> News {
        loop {
            if let Some(news) = self.telling.pop_front() {
                return news;
            }
            let is_due = !self.changed.is_empty() || !self.updated.is_empty();
            tokio::select! {
                biased;
                () = until(self.not_before), if is_due => self.tell(),
                () = follow(&mut self.logs) => {}
                event = self.sources.next() => self.take(event),
            }
        }
    }

    /// Begins to tell what waits.
    fn tell(&mut self) {
        let (changed, updated) = (std::mem::take(&mut self.changed), std::mem::take(&mut self.updated));
        self.telling.extend(changed.into_iter().map(News::ListChanged));
        self.telling.extend(updated.into_iter().map(News::Updated));
        self.not_before = Some(Instant::now() + BETWEEN_TWO);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Tools => self.note(List::Tools),
            Event::Context => {
                let now = *self.sources.context.borrow();
                let before = std::mem::replace(&mut self.sources.known, now);
                if now.resources != before.resources {
                    self.note(List::Resources);
                }
                if now.prompts != before.prompts {
                    self.note(List::Prompts);
                }
            }
            Event::Heard(heard) => match &heard.notice {
                ContextNotice::ResourceUpdated { uri } => {
                    self.updated.extend(self.watches.changed_with(&heard.provider, uri))
                }
                ContextNotice::Log { .. } => {
                    let said = self.logs.as_ref().and_then(|(listener, _)| listener.hears(&heard));
                    self.telling.extend(said.cloned().map(News::Said));
                }
            },
            Event::Missed => self.updated.extend(self.watches.uris()),
        }
    }

    fn note(&mut self, list: List) {
        if self.wanted.contains(&list) {
            self.changed.insert(list);
        }
    }
}

async fn changed<T>(source: &mut watch::Receiver<T>) {
    if source.changed().await.is_err() {
        pending().await
    }
}

async fn heard(source: &mut Option<broadcast::Receiver<Arc<Heard>>>) -> Event {
    if let Some(receiver) = source {
        match receiver.recv().await {
            Ok(heard) => return Event::Heard(heard),
            Err(RecvError::Lagged(_)) => return Event::Missed,
            Err(RecvError::Closed) => *source = None,
        }
    }
    pending().await
}

/// Keeps to the level that the client chooses; returns after each change.
async fn follow(logs: &mut Option<(LogListener, watch::Receiver<Option<LogLevel>>)>) {
    match logs {
        Some((listener, level)) => {
            changed(level).await;
            listener.set_level(*level.borrow_and_update());
        }
        None => pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    if let Some(moment) = moment {
        tokio::time::sleep_until(moment).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use toolstead_domain::{client_profile::ClientProfile, scope::Scope};

    struct Registries {
        tools: watch::Sender<u64>,
        context: watch::Sender<ContextChanges>,
        heard: broadcast::Sender<Arc<Heard>>,
    }

    fn feed(lists: &[List]) -> (Registries, Newsfeed) {
        let registries = Registries {
            tools: watch::Sender::new(0),
            context: watch::Sender::new(ContextChanges::default()),
            heard: broadcast::Sender::new(8),
        };
        let sources =
            Sources::new(registries.tools.subscribe(), registries.context.subscribe(), registries.heard.subscribe());
        let lists = lists.iter().copied().collect();
        let profile = Arc::new(ClientProfile::without_protocol("test"));
        let client = Client { scope: Scope::default(), profile };
        let interests = Interests { client, lists, watches: Arc::default(), logs: None };
        (registries, Newsfeed::of(sources, &interests))
    }

    #[tokio::test]
    async fn a_single_change_is_told_at_once_and_a_storm_once_more_at_its_end() {
        let (registries, mut feed) = feed(&List::ALL);
        assert_eq!(feed.next().now_or_never(), None);
        registries.tools.send_replace(1);
        assert_eq!(feed.next().now_or_never(), Some(News::ListChanged(List::Tools)));
        for version in 2..1000 {
            registries.tools.send_replace(version);
            registries.context.send_modify(|changes| changes.prompts += 1);
            assert_eq!(feed.next().now_or_never(), None);
        }
        assert_eq!(feed.next().await, News::ListChanged(List::Tools));
        assert_eq!(feed.next().now_or_never(), Some(News::ListChanged(List::Prompts)));
        assert_eq!(feed.next().now_or_never(), None);
        drop(registries);
        assert_eq!(feed.next().now_or_never(), None);
    }

    #[tokio::test]
    async fn nothing_is_told_that_was_not_asked_for() {
        let (registries, mut feed) = feed(&[List::Resources]);
        registries.tools.send_replace(1);
        registries.context.send_modify(|changes| changes.prompts += 1);
        let notice = ContextNotice::ResourceUpdated { uri: "a://b".into() };
        registries.heard.send(Arc::new(Heard { provider: "x".into(), notice })).unwrap();
        assert_eq!(feed.next().now_or_never(), None);
        registries.context.send_modify(|changes| changes.resources += 1);
        assert_eq!(feed.next().now_or_never(), Some(News::ListChanged(List::Resources)));
    }
}
