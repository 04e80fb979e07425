//! The tool repository in memory.

use super::{failure_switch::FailureSwitch, lock};
use crate::{
    ports::{
        clock::Timestamp,
        tool_repository::{StoreError, ToolRepository},
    },
    tool::Tool,
};
use async_trait::async_trait;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

/// Keeps catalogues and switches until it is dropped.
#[derive(Debug, Default)]
pub struct InMemoryToolRepository {
    kept: Mutex<Kept>,
    reads: FailureSwitch,
    writes: FailureSwitch,
}

#[derive(Debug, Default)]
struct Kept {
    catalogues: BTreeMap<String, BTreeMap<String, Tool>>,
    disabled: BTreeSet<String>,
}

impl InMemoryToolRepository {
    /// An empty repository.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next `catalogue` or `disabled` fail.
    pub fn fail_next_read(&self) {
        self.reads.fail_next(1);
    }

    /// Lets the next `save_catalogue` or `set_enabled` fail.
    pub fn fail_next_write(&self) {
        self.writes.fail_next(1);
    }
}

#[async_trait]
impl ToolRepository for InMemoryToolRepository {
    async fn catalogue(&self, provider: &str) -> Result<Vec<Tool>, StoreError> {
        self.reads.check(&format!("read the tools of `{provider}`"))?;
        let kept = lock(&self.kept);
        let mut tools: Vec<Tool> =
            kept.catalogues.get(provider).into_iter().flat_map(BTreeMap::values).cloned().collect();
        for tool in &mut tools {
            tool.enabled = !kept.disabled.contains(tool.name().as_str());
        }
        Ok(tools)
    }

    async fn save_catalogue(&self, provider: &str, tools: &[Tool], _now: Timestamp) -> Result<(), StoreError> {
        self.writes.check(&format!("save the tools of `{provider}`"))?;
        let without_aliases = |tool: &Tool| {
            let mut tool = tool.clone();
            tool.aliases.clear();
            (tool.name().to_string(), tool)
        };
        lock(&self.kept).catalogues.insert(provider.to_owned(), tools.iter().map(without_aliases).collect());
        Ok(())
    }

    async fn set_enabled(&self, tool: &str, enabled: bool) -> Result<(), StoreError> {
        self.writes.check(&format!("switch `{tool}`"))?;
        let disabled = &mut lock(&self.kept).disabled;
        if enabled {
            disabled.remove(tool);
        } else {
            disabled.insert(tool.to_owned());
        }
        Ok(())
    }

    async fn disabled(&self) -> Result<Vec<String>, StoreError> {
        self.reads.check("read which tools are switched off")?;
        Ok(lock(&self.kept).disabled.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, samples, tool_repository_contract::tool_repository_contract};

    #[test]
    fn the_repository_in_memory_keeps_the_contract() {
        block_on(tool_repository_contract(&InMemoryToolRepository::new()));
    }

    #[test]
    fn a_failed_write_leaves_the_catalogue_as_it_was() {
        let repository = InMemoryToolRepository::new();
        block_on(repository.save_catalogue("p", &[samples::tool("a")], samples::START)).unwrap();
        repository.fail_next_write();
        assert!(block_on(repository.save_catalogue("p", &[], samples::START)).is_err());
        repository.fail_next_read();
        assert!(block_on(repository.catalogue("p")).is_err());
        assert_eq!(block_on(repository.catalogue("p")).unwrap(), [samples::tool("a")]);
    }
}
