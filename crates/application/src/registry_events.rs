//! Events about changes of the set of tools and of the states of providers.

use crate::{event_bus::EventBus, tool_registry::ToolRegistry};
use std::{collections::BTreeMap, sync::Arc};
use toolstead_domain::{EventKind, EventOrigin, EventSink};

/// Returns a future that publishes the changes of the tools and of the providers' states until the registry is dropped.
pub fn publish_changes(registry: &Arc<ToolRegistry>, bus: Arc<EventBus>) -> impl Future<Output = ()> + Send + use<> {
    let mut news = registry.notices();
    let mut version = registry.snapshot().version();
    let mut states = states(registry);
    let registry = Arc::downgrade(registry);
    async move {
        while news.changed().await.is_ok() {
            let Some(registry) = registry.upgrade() else { return };
            let now = self::states(&registry);
            for (server, state) in now.iter().filter(|(server, state)| states.get(*server) != Some(*state)) {
                let kind = EventKind::McpServerState { server: server.clone(), state };
                bus.send(EventOrigin::default(), kind);
            }
            states = now;
            let snapshot = registry.snapshot();
            if snapshot.version() != version {
                version = snapshot.version();
                let kind = EventKind::RegistryChanged { version, tools: snapshot.tools().len() };
                bus.send(EventOrigin::default(), kind);
            }
        }
    }
}

fn states(registry: &ToolRegistry) -> BTreeMap<String, &'static str> {
    registry.providers().into_iter().map(|status| (status.name, status.state.label())).collect()
}
