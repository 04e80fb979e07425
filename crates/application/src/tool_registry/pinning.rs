//! Definitions of servers as they are served, and their approval.

use super::{SharedRegisteredTool, ToolRegistry};
use crate::definition_pins::{DefinitionPins, ServedTools};
use std::{collections::BTreeSet, error::Error, sync::Arc};
use toolstead_domain::{StoreError, Tool, ToolProvider, ToolSource};

impl ToolRegistry {
    /// Returns the pinned definitions, if this registry pins them.
    pub fn pins(&self) -> Option<&Arc<DefinitionPins>> {
        self.pins.as_ref()
    }

    /// Records the tools that a provider offers, and returns them with the definitions that may be served, and notes
    /// for the operator. Returns them unchanged if their definitions are not pinned.
    pub(super) async fn serve(
        &self,
        provider: &Arc<dyn ToolProvider>,
        offered: Vec<Tool>,
    ) -> Result<ServedTools, StoreError> {
        match (&self.pins, provider.pinning()) {
            (Some(pins), Some(pinning)) => pins.tools(&pinning, offered, &self.names_of_others(provider.name())).await,
            _ => Ok(ServedTools { tools: offered, notes: Vec::new() }),
        }
    }

    /// Returns the stored tools of a provider that has not listed its own yet, with the definitions that may be served.
    /// Returns them unchanged if their definitions are not pinned.
    pub(super) async fn serve_stored(
        &self,
        provider: &Arc<dyn ToolProvider>,
        stored: Vec<Tool>,
    ) -> Result<ServedTools, StoreError> {
        match (&self.pins, provider.pinning()) {
            (Some(pins), Some(pinning)) => pins.stored_tools(&pinning, stored).await,
            _ => Ok(ServedTools { tools: stored, notes: Vec::new() }),
        }
    }

    /// Stores the approval of the definition that the approver of a call was shown, and serves that definition from now
    /// on. Does nothing if the definitions of its provider are not pinned.
    pub(crate) async fn approve_definition(&self, registered: &SharedRegisteredTool) {
        let (Some(pins), Some(pinning)) = (&self.pins, registered.provider.pinning()) else { return };
        match pins.approve_tool(&pinning.server, &registered.own, "the approver of a call").await {
            Ok(()) => self.renew_pins(registered).await,
            Err(error) => {
                let (tool, error) = (registered.own.name().as_str(), &error as &dyn Error);
                tracing::warn!(tool, error, "the approval of its definition could not be stored");
            }
        }
    }

    /// Reads the approvals of the tool's provider again, because another process may have added some, and serves its
    /// definitions accordingly. A failure to read them is only logged.
    pub(crate) async fn renew_pins(&self, registered: &SharedRegisteredTool) {
        let provider = &registered.provider;
        if provider.list().await.is_ok() {
            return self.take_list(provider).await;
        }
        let known = {
            let inner = self.lock();
            let entry = inner.entries.iter().find(|entry| Arc::ptr_eq(&entry.provider, provider));
            entry.map(|entry| entry.catalogue.tools.clone())
        };
        let Some(known) = known else { return };
        let served = match self.serve_stored(provider, known).await {
            Ok(served) => served,
            Err(error) => {
                let error = &error as &dyn Error;
                return tracing::warn!(provider = provider.name(), error, "the approved definitions cannot be read");
            }
        };
        let mut inner = self.lock();
        if let Some(entry) = inner.entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.provider, provider))
            && entry.catalogue.tools != served.tools
        {
            (entry.catalogue.tools, entry.notes) = (served.tools, served.notes);
            self.publish(&mut inner);
        }
    }

    /// Returns the tool names of all other providers, as their servers name them.
    fn names_of_others(&self, provider: &str) -> BTreeSet<String> {
        let snapshot = self.snapshot();
        let others = snapshot.tools().iter().filter(|one| one.provider.name() != provider);
        let name = |tool: &Tool| match tool.source() {
            ToolSource::McpServer { tool, .. } => tool.to_string(),
            ToolSource::BuiltIn | ToolSource::Embedded(_) => tool.name().to_string(),
        };
        others.map(|one| name(&one.own)).collect()
    }
}
