//! Notifications for a client that do not belong to a request: limited to what it subscribed to, and in frequency.

use super::{
    McpServer,
    call_tool::ClientContext,
    server_notification::{ListKind, ServerNotification},
    watches::ResourceWatches,
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
use toolstead_application::{ContextEvent, ContextListVersions, LogListenerRegistration};
use toolstead_domain::{ContextNotice, LogLevel};

/// Minimum time between two batches of change notifications. The first one is sent immediately.
const BETWEEN_TWO: Duration = Duration::from_millis(250);

/// Notifications that a client subscribed to.
#[derive(Debug, Clone)]
pub(super) struct Interests {
    /// The client.
    pub(super) client: ClientContext,
    /// Lists whose changes are reported.
    pub(super) lists: BTreeSet<ListKind>,
    /// Resources that the client watches.
    pub(super) watches: Arc<ResourceWatches>,
    /// Minimum level of logs that do not belong to a call, and its changes; `None` if the client receives none.
    pub(super) logs: Option<watch::Receiver<Option<LogLevel>>>,
}

impl Interests {
    /// Returns the interests of a client with a session: every list, and the resources and log level that it sets
    /// during the session.
    pub(super) fn of_session(
        client: ClientContext,
        watches: Arc<ResourceWatches>,
        level: watch::Receiver<Option<LogLevel>>,
    ) -> Self {
        Self { client, lists: ListKind::ALL.into(), watches, logs: Some(level) }
    }

    /// Returns the interests with the client's scope narrowed to the view that the server serves, if it serves one.
    pub(super) fn in_view_of(&self, server: &McpServer) -> Self {
        Self { client: self.client.clone().in_view_of(server), ..self.clone() }
    }
}

/// Notifications of one application for one client. Frequent changes are combined.
#[derive(Debug)]
pub(super) struct NotificationFeed {
    sources: NotificationSources,
    wanted: BTreeSet<ListKind>,
    watches: Arc<ResourceWatches>,
    logs: Option<(LogListenerRegistration, watch::Receiver<Option<LogLevel>>)>,
    /// Changed lists that were not reported yet.
    changed: BTreeSet<ListKind>,
    updated: BTreeSet<String>,
    not_before: Option<Instant>,
    /// Notifications that are ready to be sent.
    ready: VecDeque<ServerNotification>,
}

/// Sources of notifications.
#[derive(Debug)]
struct NotificationSources {
    tools: watch::Receiver<u64>,
    context: watch::Receiver<ContextListVersions>,
    known: ContextListVersions,
    notices: Option<broadcast::Receiver<Arc<ContextEvent>>>,
}

/// An event of a source.
enum NotificationSourceEvent {
    Tools,
    Context,
    Notice(Arc<ContextEvent>),
    /// Some events were lost.
    Missed,
}

impl NotificationSources {
    fn new(
        mut tools: watch::Receiver<u64>,
        mut context: watch::Receiver<ContextListVersions>,
        heard: broadcast::Receiver<Arc<ContextEvent>>,
    ) -> Self {
        tools.mark_unchanged();
        let known = *context.borrow_and_update();
        Self { tools, context, known, notices: Some(heard) }
    }

    /// Returns the next event. Never returns if there cannot be another one. Cancel-safe.
    async fn next(&mut self) -> NotificationSourceEvent {
        tokio::select! {
            () = changed(&mut self.tools) => NotificationSourceEvent::Tools,
            () = changed(&mut self.context) => NotificationSourceEvent::Context,
            event = next_notice(&mut self.notices) => event,
        }
    }
}

impl NotificationFeed {
    /// Subscribes to all further notifications.
    pub(super) fn new(app: &App, interests: &Interests) -> Self {
        let sources = NotificationSources::new(app.registry.changes(), app.context.changes(), app.context.notices());
        let mut feed = Self::of(sources, interests);
        feed.logs = interests.logs.clone().map(|mut level| {
            let mut listener = app.provider_notifications.listen(interests.client.scope.clone());
            listener.set_level(*level.borrow_and_update());
            (listener, level)
        });
        feed
    }

    fn of(sources: NotificationSources, interests: &Interests) -> Self {
        Self {
            sources,
            wanted: interests.lists.clone(),
            watches: interests.watches.clone(),
            logs: None,
            changed: BTreeSet::new(),
            updated: BTreeSet::new(),
            not_before: None,
            ready: VecDeque::new(),
        }
    }

    /// Reports first that all lists and watched resources changed, because the client knows those of a previous
    /// application.
    pub(super) fn beginning_anew(mut self) -> Self {
        self.changed = self.wanted.clone();
        self.updated = self.watches.uris().into_iter().collect();
        self
    }

    /// Returns the next notification. Never returns if there cannot be another one. Cancel-safe.
    pub(super) async fn next(&mut self) -> ServerNotification {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return news;
            }
            let is_due = !self.changed.is_empty() || !self.updated.is_empty();
            tokio::select! {
                biased;
                () = until(self.not_before), if is_due => self.flush_changes(),
                () = follow(&mut self.logs) => {}
                event = self.sources.next() => self.take(event),
            }
        }
    }

    /// Moves the pending changes to the notifications that are ready to be sent.
    fn flush_changes(&mut self) {
        let (changed, updated) = (std::mem::take(&mut self.changed), std::mem::take(&mut self.updated));
        self.ready.extend(changed.into_iter().map(ServerNotification::ListChanged));
        self.ready.extend(updated.into_iter().map(ServerNotification::Updated));
        self.not_before = Some(Instant::now() + BETWEEN_TWO);
    }

    fn take(&mut self, event: NotificationSourceEvent) {
        match event {
            NotificationSourceEvent::Tools => self.note(ListKind::Tools),
            NotificationSourceEvent::Context => {
                let now = *self.sources.context.borrow();
                let before = std::mem::replace(&mut self.sources.known, now);
                if now.resources != before.resources {
                    self.note(ListKind::Resources);
                }
                if now.prompts != before.prompts {
                    self.note(ListKind::Prompts);
                }
            }
            NotificationSourceEvent::Notice(heard) => match &heard.notice {
                ContextNotice::ResourceUpdated { uri } => {
                    self.updated.extend(self.watches.changed_with(&heard.provider, uri))
                }
                ContextNotice::Log { .. } => {
                    let said = self.logs.as_ref().and_then(|(listener, _)| listener.matching_log(&heard));
                    self.ready.extend(said.cloned().map(ServerNotification::Log));
                }
            },
            NotificationSourceEvent::Missed => self.updated.extend(self.watches.uris()),
        }
    }

    fn note(&mut self, list: ListKind) {
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

async fn next_notice(source: &mut Option<broadcast::Receiver<Arc<ContextEvent>>>) -> NotificationSourceEvent {
    if let Some(receiver) = source {
        match receiver.recv().await {
            Ok(heard) => return NotificationSourceEvent::Notice(heard),
            Err(RecvError::Lagged(_)) => return NotificationSourceEvent::Missed,
            Err(RecvError::Closed) => *source = None,
        }
    }
    pending().await
}

/// Applies the level that the client sets. Returns after each change.
async fn follow(logs: &mut Option<(LogListenerRegistration, watch::Receiver<Option<LogLevel>>)>) {
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
    use toolstead_domain::{ClientProfile, RequestScope};

    struct Registries {
        tools: watch::Sender<u64>,
        context: watch::Sender<ContextListVersions>,
        heard: broadcast::Sender<Arc<ContextEvent>>,
    }

    fn feed(lists: &[ListKind]) -> (Registries, NotificationFeed) {
        let registries = Registries {
            tools: watch::Sender::new(0),
            context: watch::Sender::new(ContextListVersions::default()),
            heard: broadcast::Sender::new(8),
        };
        let sources = NotificationSources::new(
            registries.tools.subscribe(),
            registries.context.subscribe(),
            registries.heard.subscribe(),
        );
        let lists = lists.iter().copied().collect();
        let profile = Arc::new(ClientProfile::without_protocol("test"));
        let client = ClientContext { scope: RequestScope::default(), profile };
        let interests = Interests { client, lists, watches: Arc::default(), logs: None };
        (registries, NotificationFeed::of(sources, &interests))
    }

    #[tokio::test]
    async fn a_single_change_is_reported_at_once_and_a_burst_once_more_at_its_end() {
        let (registries, mut feed) = feed(&ListKind::ALL);
        assert_eq!(feed.next().now_or_never(), None);
        registries.tools.send_replace(1);
        assert_eq!(feed.next().now_or_never(), Some(ServerNotification::ListChanged(ListKind::Tools)));
        for version in 2..1000 {
            registries.tools.send_replace(version);
            registries.context.send_modify(|changes| changes.prompts += 1);
            assert_eq!(feed.next().now_or_never(), None);
        }
        assert_eq!(feed.next().await, ServerNotification::ListChanged(ListKind::Tools));
        assert_eq!(feed.next().now_or_never(), Some(ServerNotification::ListChanged(ListKind::Prompts)));
        assert_eq!(feed.next().now_or_never(), None);
        drop(registries);
        assert_eq!(feed.next().now_or_never(), None);
    }

    #[tokio::test]
    async fn reports_only_the_changes_that_were_subscribed_to() {
        let (registries, mut feed) = feed(&[ListKind::Resources]);
        registries.tools.send_replace(1);
        registries.context.send_modify(|changes| changes.prompts += 1);
        let notice = ContextNotice::ResourceUpdated { uri: "a://b".into() };
        registries.heard.send(Arc::new(ContextEvent { provider: "x".into(), notice })).unwrap();
        assert_eq!(feed.next().now_or_never(), None);
        registries.context.send_modify(|changes| changes.resources += 1);
        assert_eq!(feed.next().now_or_never(), Some(ServerNotification::ListChanged(ListKind::Resources)));
    }
}
