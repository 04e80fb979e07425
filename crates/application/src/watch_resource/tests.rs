use super::*;
use crate::{
    event_bus::EventBus,
    execute_tool::{CallSettings, ExecuteToolPorts},
    open_calls::OpenCalls,
    permission_book::PermissionBook,
    tool_registry::ToolRegistry,
};
use async_trait::async_trait;
use futures::FutureExt;
use std::{
    future::pending,
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
};
use toolstead_domain::{
    ContextCatalogue, ContextNotice, DefaultSuggestions, Effect, NoApprover, NoOutputs, PatternContext,
    PermissionPolicy, PermissionRule, Timestamp, UnavailableSchemaValidator,
    permission::rule::RuleOrigin,
    testing::{
        fixed_clock::FixedClock, in_memory_execution_log::InMemoryExecutionLog,
        in_memory_rule_store::InMemoryRuleStore, in_memory_tool_repository::InMemoryToolRepository,
        scripted_context::ScriptedContext,
    },
};

struct House {
    handler: WatchResourceHandler,
    registry: Arc<ContextRegistry>,
    provider: Arc<ScriptedContext>,
    log: Arc<InMemoryExecutionLog>,
}

async fn house(deny: &[&str]) -> House {
    let parsed = |text: &&str| {
        Arc::new(
            PermissionRule::parse(Effect::Deny, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap(),
        )
    };
    let policy = PermissionPolicy { rules: deny.iter().map(parsed).collect(), ..PermissionPolicy::default() };
    let clock = Arc::new(FixedClock::at(Timestamp(0)));
    let log = Arc::new(InMemoryExecutionLog::new());
    let ports = ExecuteToolPorts {
        approver: Arc::new(NoApprover),
        log: log.clone(),
        clock: clock.clone(),
        outputs: Arc::new(NoOutputs),
        schemas: Arc::new(UnavailableSchemaValidator),
        hooks: Vec::new(),
        events: EventBus::new(clock.clone()),
        suggestions: Arc::new(DefaultSuggestions),
    };
    let tools = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock).await.unwrap();
    let book = Arc::new(PermissionBook::new(Arc::new(policy), Arc::new(InMemoryRuleStore::new())));
    let calls = ExecuteToolHandler::new(tools, book, ports, OpenCalls::new(9), CallSettings::default());
    let provider = Arc::new(ScriptedContext::new("team").with_resource("a://x").with_template("b://{y}"));
    let registry = ContextRegistry::new();
    registry.register(provider.clone()).await.unwrap();
    House { handler: WatchResourceHandler::new(registry.clone(), calls), registry, provider, log }
}

impl House {
    async fn watched_by(&self, who: &str, uri: &str) -> Result<ResourceWatchGuard, ErrorKind> {
        let scope = RequestScope::of(Principal::new("user", who), "s");
        let command = WatchResourceCommand { uri: uri.into(), scope, client: "agent 1".into() };
        self.handler.handle(command).await.map_err(|failure| failure.kind)
    }

    /// Waits until the provider's resources that are watched are these.
    async fn provider_watches(&self, expected: &[&str]) {
        while self.provider.watched() != expected {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_provider_is_subscribed_for_the_first_watcher_and_unsubscribed_after_the_last() {
    let house = house(&[]).await;
    let one = house.watched_by("a", "a://x").await.unwrap();
    let two = house.watched_by("b", "a://x").await.unwrap();
    let other = house.watched_by("b", "b://7").await.unwrap();
    house.provider_watches(&["a://x", "b://7"]).await;
    drop(one);
    drop(other);
    house.provider_watches(&["a://x"]).await;
    drop(two);
    house.provider_watches(&[]).await;
    let _again = house.watched_by("a", "a://x").await.unwrap();
    house.provider_watches(&["a://x"]).await;
}

#[tokio::test]
async fn a_late_settle_does_not_affect_a_newer_subscription_of_the_same_resource() {
    let house = house(&[]).await;
    let watches = house.handler.watches.clone();
    let key: WatchedResourceKey = ("team".into(), "a://x".into());
    let before: Arc<tokio::sync::Mutex<SubscriptionState>> = Arc::default();
    watches.lock().by_key.insert(key.clone(), (0, before.clone()));
    let turn = before.clone().lock_owned().await;
    let mut late = pin!(watches.settle(&key, &*house.provider));
    assert!(late.as_mut().now_or_never().is_none(), "it waits for its turn");
    let anew = Arc::new(tokio::sync::Mutex::new(SubscriptionState::Subscribed));
    watches.lock().by_key.insert(key.clone(), (0, anew));
    drop(turn);
    late.await;
    assert!(watches.lock().by_key.contains_key(&key));
    house.provider.subscribe("a://x").await.unwrap();
    watches.settle(&key, &*house.provider).await;
    assert!(house.provider.watched().is_empty() && watches.lock().by_key.is_empty());
}

/// Never answers the first subscription to a resource.
#[derive(Debug)]
struct Forgetful {
    inner: ScriptedContext,
    asked: AtomicUsize,
}

#[async_trait]
impl ContextProvider for Forgetful {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn list(&self) -> Result<ContextCatalogue, ProviderListError> {
        self.inner.list().await
    }

    async fn subscribe(&self, uri: &str) -> Result<(), ToolFailure> {
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            0 => pending().await,
            _ => self.inner.subscribe(uri).await,
        }
    }

    async fn unsubscribe(&self, uri: &str) {
        self.inner.unsubscribe(uri).await;
    }

    async fn accesses(&self, request: &ContextRequest) -> Result<Vec<Access>, ToolFailure> {
        self.inner.accesses(request).await
    }

    async fn answer(
        &self,
        request: &ContextRequest,
        context: &CallContext<'_>,
    ) -> Result<serde_json::Map<String, serde_json::Value>, ToolFailure> {
        self.inner.answer(request, context).await
    }
}

#[tokio::test]
async fn a_watcher_that_disconnects_while_subscribing_does_not_affect_other_watchers() {
    let forgetful = Arc::new(Forgetful { inner: ScriptedContext::new("team"), asked: AtomicUsize::default() });
    let provider: Arc<dyn ContextProvider> = forgetful.clone();
    let watches = Arc::<Watches>::default();
    let (a, b) = (Principal::new("user", "a"), Principal::new("user", "b"));
    let mut first = Box::pin(watches.begin(&provider, "a://x", &a));
    assert!(first.as_mut().now_or_never().is_none());
    let mut second = pin!(watches.begin(&provider, "a://x", &b));
    assert!(second.as_mut().now_or_never().is_none(), "it waits for its turn");
    drop(first);
    let watched = second.await.unwrap();
    assert_eq!(forgetful.inner.watched(), ["a://x"], "the provider was asked once more");
    drop(watched);
    while !forgetful.inner.watched().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn watching_a_resource_is_checked_and_recorded_like_a_read() {
    let house = house(&["read_resource(uri:a://*)"]).await;
    assert_eq!(house.watched_by("a", "a://x").await.unwrap_err(), ErrorKind::PermissionDenied);
    assert_eq!(house.watched_by("a", "c://z").await.unwrap_err(), ErrorKind::NotFound);
    let watched = house.watched_by("a", "b://7").await.unwrap();
    assert_eq!((watched.provider(), house.provider.watched()), ("team", vec!["b://7".to_owned()]));
    let rows = house.log.rows();
    let message: Vec<_> = rows.iter().map(|row| (row.kind, &*row.called_as, row.arguments["watch"].clone())).collect();
    let row = |uri| (AuditedRequestKind::Resource, uri, json!(true));
    assert_eq!(message, [row("a://x"), row("c://z"), row("b://7")]);
    assert!(rows.iter().all(|row| row.client == "agent 1"));
}

#[tokio::test]
async fn the_number_of_watched_resources_per_principal_is_limited() {
    let house = house(&[]).await;
    let mut watched = Vec::new();
    for number in 0..MAX_WATCHED {
        watched.push(house.watched_by("a", &format!("b://{number}")).await.unwrap());
    }
    assert_eq!(house.watched_by("a", "a://x").await.unwrap_err(), ErrorKind::RateLimited);
    assert!(house.watched_by("b", "a://x").await.is_ok(), "another one is not in its way");
    watched.pop();
    assert!(house.watched_by("a", "a://x").await.is_ok());
}

#[tokio::test]
async fn update_notifications_of_a_watched_resource_reach_listeners() {
    let house = house(&[]).await;
    let mut heard = house.registry.notices();
    let _watched = house.watched_by("a", "a://x").await.unwrap();
    house.provider.send_notice(ContextNotice::ResourceUpdated { uri: "a://x".into() });
    assert_eq!(heard.recv().await.unwrap().notice, ContextNotice::ResourceUpdated { uri: "a://x".into() });
}
