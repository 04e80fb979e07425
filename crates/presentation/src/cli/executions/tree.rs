//! Nested calls of a call, to any depth.

use super::call_target::call_target;
use crate::cli::output::visible;
use serde_json::{Value, json};
use std::collections::VecDeque;
use toolstead_application::ListExecutionsHandler;
use toolstead_domain::{AuditedRequestKind, CallId, ExecutionFilter, StoreError, ToolExecution};

/// Maximum number of calls shown in a tree.
const MAX_CALLS: u32 = 200;

/// The calls nested in one call.
#[derive(Debug)]
pub(super) struct CallTree {
    root: CallId,
    /// Calls in chronological order.
    calls: Vec<ToolExecution>,
    is_whole: bool,
}

impl CallTree {
    /// Loads the calls nested in this call at any depth, at most [`MAX_CALLS`].
    pub(super) async fn below(root: CallId, executions: &ListExecutionsHandler) -> Result<Self, StoreError> {
        let mut tree = Self { root, calls: Vec::new(), is_whole: true };
        let mut open = VecDeque::from([root]);
        let mut left = MAX_CALLS;
        while let Some(parent) = open.pop_front() {
            let filter = ExecutionFilter { parent: Some(parent), limit: left + 1, ..ExecutionFilter::default() };
            let mut calls = executions.list(&filter).await?;
            tree.is_whole &= calls.len() <= left as usize;
            calls.truncate(left as usize);
            left -= u32::try_from(calls.len()).unwrap_or(left);
            open.extend(calls.iter().map(|call| call.id));
            tree.calls.append(&mut calls);
        }
        // Ids are ordered by time.
        tree.calls.sort_by_key(|call| call.id);
        Ok(tree)
    }

    fn calls_of(&self, parent: CallId) -> impl Iterator<Item = &ToolExecution> {
        self.calls.iter().filter(move |call| call.parent == Some(parent))
    }

    /// Returns one line per nested call, indented below its parent, and a note if not all calls were loaded.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.add_lines(self.root, 0, &mut lines);
        if !self.is_whole {
            lines.push(format!("(more than {MAX_CALLS} calls: not all are shown)"));
        }
        lines
    }

    fn add_lines(&self, parent: CallId, depth: usize, lines: &mut Vec<String>) {
        for call in self.calls_of(parent) {
            let outcome = outcome(call);
            let line = format!("{}{}  {}  {outcome}  {}", "  ".repeat(depth), call.id, call.tool, call_target(call));
            lines.push(visible(line.trim_end()).replace('\n', "\\n").replace('\t', "\\t"));
            self.add_lines(call.id, depth + 1, lines);
        }
    }

    /// Returns the tree as JSON, each call with its nested calls.
    pub(super) fn to_json(&self) -> Value {
        self.json_below(self.root)
    }

    fn json_below(&self, parent: CallId) -> Value {
        let calls = self.calls_of(parent).map(|call| {
            json!({
                "id": call.id.to_string(), "kind": call.kind.as_str(), "tool": call.tool, "outcome": call.outcome.kind().as_str(),
                "error_kind": call.outcome.error_kind().map(|kind| kind.as_str()), "calls": self.json_below(call.id),
            })
        });
        calls.collect()
    }
}

/// Returns the outcome of a call with the kind of its error, or the user's answer if the call is a question.
fn outcome(call: &ToolExecution) -> String {
    let outcome = call.outcome.kind().as_str();
    match call.metadata.get("answer").and_then(Value::as_str) {
        Some(answer) if call.kind == AuditedRequestKind::Question => answer.to_owned(),
        _ => call.outcome.error_kind().map_or(outcome.to_owned(), |kind| format!("{outcome} ({kind})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use toolstead_domain::{
        ExecutionLog, ExecutionOutcome,
        error_kind::ErrorKind,
        testing::{in_memory_execution_log::InMemoryExecutionLog, samples},
    };

    async fn tree(rows: impl IntoIterator<Item = (u32, u32)>) -> CallTree {
        let log = Arc::new(InMemoryExecutionLog::new());
        for (number, parent) in rows {
            let outcome = match number {
                3 => ExecutionOutcome::Failed(ErrorKind::Io, "no".into()),
                _ => ExecutionOutcome::Succeeded,
            };
            let parent = Some(samples::call_id(parent));
            log.record(ToolExecution { parent, outcome, ..samples::execution(number) }).await.unwrap();
        }
        CallTree::below(samples::call_id(1), &ListExecutionsHandler::new(log)).await.unwrap()
    }

    #[tokio::test]
    async fn each_call_is_listed_below_its_parent_call() {
        let tree = tree([(4, 2), (2, 1), (3, 1), (9, 8)]).await;
        let line = |blanks: &str, number: u32, outcome: &str| {
            format!("{blanks}{}  echo  {outcome}  /srv/{number}.txt", samples::call_id(number))
        };
        assert_eq!(tree.lines(), [line("", 2, "succeeded"), line("  ", 4, "succeeded"), line("", 3, "failed (io)")]);
        let json = tree.to_json();
        assert_eq!(json[0]["calls"][0]["id"], samples::call_id(4).to_string());
        assert_eq!((&json[1]["error_kind"], json[1]["calls"].as_array().unwrap().len()), (&json!("io"), 0));
    }

    #[tokio::test]
    async fn a_question_in_the_call_tree_shows_its_answer() {
        let log = Arc::new(InMemoryExecutionLog::new());
        let question = ToolExecution {
            parent: Some(samples::call_id(1)),
            kind: AuditedRequestKind::Question,
            tool: "elicitation/create".into(),
            called_as: "git".into(),
            outcome: ExecutionOutcome::Refused(ErrorKind::PermissionDenied, String::new()),
            metadata: json!({"answer": "declined"}),
            ..samples::execution(2)
        };
        log.record(question).await.unwrap();
        let tree = CallTree::below(samples::call_id(1), &ListExecutionsHandler::new(log)).await.unwrap();
        assert_eq!(tree.lines(), [format!("{}  elicitation/create  declined  git", samples::call_id(2))]);
        assert_eq!(tree.to_json()[0]["kind"], "question");
    }

    #[tokio::test]
    async fn a_call_tree_with_too_many_calls_states_that_some_are_not_shown() {
        let all = tree((2..202).map(|number| (number, 1))).await;
        assert_eq!((all.lines().len(), all.is_whole), (200, true));
        let most = tree((2..203).map(|number| (number, 1))).await;
        assert_eq!(most.lines()[200], "(more than 200 calls: not all are shown)");
    }
}
