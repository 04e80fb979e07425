//! Calls that continue as tasks of their providers. Each has an id of Toolstead, valid for its owner only.

use super::{command::ExecuteToolCommand, error::ExecuteToolError};
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::{CallOutcome, Principal, Tool, ToolName, ToolResult};
use uuid::Uuid;

/// Maximum number of known tasks per principal. A further one replaces the oldest.
const TASKS_OF_ONE: usize = 1_000;
/// Maximum number of known tasks of all principals. A further one replaces the oldest.
const TASKS: usize = 10_000;

/// Known tasks, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ProviderTaskRegistry(Mutex<VecDeque<KnownTask>>);

/// Call that continues as a task of its provider.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnownTask {
    /// Task id for clients, which cannot be guessed.
    name: String,
    owner: Principal,
    pub(crate) tool: ToolName,
    /// Task id of the provider.
    pub(crate) id: String,
}

impl ProviderTaskRegistry {
    /// Returns the outcome. If it is a task, the task is stored and its id is replaced.
    pub(super) fn register_if_task(
        &self,
        outcome: Result<CallOutcome, ExecuteToolError>,
        command: &ExecuteToolCommand,
        tool: &Tool,
    ) -> Result<CallOutcome, ExecuteToolError> {
        match outcome {
            Ok(CallOutcome::Done(task)) if task.is_task() => {
                Ok(CallOutcome::Done(self.named(task, &command.scope.principal, tool)))
            }
            outcome => outcome,
        }
    }

    fn named(&self, task: ToolResult, owner: &Principal, tool: &Tool) -> ToolResult {
        let mut members = task.into_object();
        let id = members.get("taskId").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
        let name = Uuid::new_v4().simple().to_string();
        members.insert("taskId".into(), name.as_str().into());
        let mut known = self.lock();
        if known.iter().filter(|task| task.owner == *owner).count() >= TASKS_OF_ONE
            && let Some(oldest) = known.iter().position(|task| task.owner == *owner)
        {
            known.remove(oldest);
        }
        if known.len() >= TASKS {
            known.pop_front();
        }
        known.push_back(KnownTask { name, owner: owner.clone(), tool: tool.name().clone(), id });
        ToolResult::task(members)
    }

    /// Returns the principal's task with this id.
    pub(crate) fn find(&self, name: &str, owner: &Principal) -> Option<KnownTask> {
        self.lock().iter().find(|task| task.name == name && task.owner == *owner).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<KnownTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolstead_domain::testing::samples;

    fn principal(name: &str) -> Principal {
        Principal::new("service", name)
    }

    fn keep(tasks: &ProviderTaskRegistry, owner: &Principal) -> String {
        let task = json!({"taskId": "theirs", "status": "working", "ttlMs": null});
        let task = tasks.named(ToolResult::task(task.as_object().unwrap().clone()), owner, &samples::tool("t"));
        assert!(task.is_task() && task.as_object()["status"] == "working");
        task.as_object()["taskId"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_task_is_known_to_its_owner_alone() {
        let tasks = ProviderTaskRegistry::default();
        let (one, other) = (principal("one"), principal("other"));
        let name = keep(&tasks, &one);
        assert_ne!(name, keep(&tasks, &other));
        assert_eq!(tasks.find(&name, &one).unwrap().id, "theirs");
        assert_eq!((tasks.find(&name, &other), tasks.find("theirs", &one)), (None, None));
    }

    #[test]
    fn a_principal_beyond_its_task_limit_loses_its_own_oldest_task() {
        let tasks = ProviderTaskRegistry::default();
        let (one, other) = (principal("one"), principal("other"));
        let names: Vec<String> = (0..=TASKS_OF_ONE).map(|_| keep(&tasks, &one)).collect();
        let kept = keep(&tasks, &other);
        assert_eq!(tasks.find(&names[0], &one), None);
        assert!(tasks.find(&names[1], &one).is_some() && tasks.find(&kept, &other).is_some());
    }
}
