//! Events of an agent's run for subscribers: a terminal, JSON lines, a console.

use super::budget::BudgetKind;
use crate::{
    conversation::{ConversationId, Delegation},
    error_kind::ErrorKind,
    model::usage::TokenUsage,
    tool_call::CallId,
};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Event of a running agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A run began. This is the first event.
    Started {
        /// Conversation of the run.
        conversation: ConversationId,
        /// Model, by its name in the configuration.
        model: String,
    },
    /// Further text of the model.
    Text(String),
    /// Further thinking of the model.
    Thinking(String),
    /// The request to the model is repeated.
    Retrying {
        /// Wait before the retry.
        after: Duration,
        /// Reason for the retry.
        reason: String,
    },
    /// The model is writing a call.
    CallWritten {
        /// Tool name that the model uses.
        tool: String,
    },
    /// A call begins.
    CallStarted {
        /// Id of the call from the model.
        id: String,
        /// Tool name that the model uses.
        tool: String,
        /// Arguments, as the audit log stores them.
        arguments: Value,
    },
    /// A running call reports its progress. Sent only if the caller of the run requested progress.
    CallProgress {
        /// Id of the call from the model.
        id: String,
        /// Current value. Rises with every event.
        progress: f64,
        /// Value at the end of the call, if it is known.
        total: Option<f64>,
        /// Current step or newest output, for users.
        message: Option<String>,
    },
    /// A call ended. Results arrive in the order of the calls.
    CallEnded {
        /// Id of the call from the model.
        id: String,
        /// Tool name that the model uses.
        tool: String,
        /// Id of its audit record; `None` if the call was never made.
        call: Option<CallId>,
        /// `true` if the call failed.
        is_error: bool,
        /// Text that the model receives.
        text: String,
        /// The structured content of the tool's result. Not part of the JSON form.
        structured: Option<Value>,
        /// Change by which the user can allow a refused call; the model does not receive it.
        suggestion: Option<String>,
        /// Time from the arrival of the call to its end.
        duration: Duration,
    },
    /// The model completed an answer.
    Answered {
        /// Tokens of the request and of the answer to it.
        usage: TokenUsage,
        /// Tokens of the run so far.
        total: TokenUsage,
        /// Cost of the run so far, in US dollars, if prices are known.
        cost: Option<f64>,
    },
    /// The conversation so far was shortened.
    Compacted {
        /// Method: `masked` or `summarized`.
        how: &'static str,
        /// Number of tokens before, as far as it is known.
        before: u64,
        /// Number of tokens after.
        after: u64,
    },
    /// Message of a hook or of the agent loop to the user.
    Notice(String),
    /// Event of an agent to which this run delegated work. The text of that agent is not included.
    OfSubagent {
        /// Delegation by which it received its work.
        delegation: Delegation,
        /// Conversation of that agent.
        conversation: ConversationId,
        /// Event of that agent.
        event: Box<AgentEvent>,
    },
    /// The run ended. This is the last event.
    Ended {
        /// Outcome of the run.
        outcome: AgentOutcome,
        /// Last text of the model.
        text: String,
        /// Tokens of the whole run.
        usage: TokenUsage,
        /// Cost of the whole run in US dollars, if prices are known.
        cost: Option<f64>,
        /// Number of calls that were made.
        calls: u64,
        /// Number of answers of the model.
        turns: u64,
    },
}

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentOutcome {
    /// The model was done.
    Finished,
    /// The run was cancelled.
    Cancelled,
    /// This budget is exhausted.
    BudgetExhausted(BudgetKind),
    /// A hook or the user ended the run, for this reason.
    Stopped(String),
    /// The run repeated itself, and a warning to the model did not help. Holds a sentence about it.
    Looping(String),
    /// The run asked a question with this id and resumes once it is answered.
    Waiting(String),
    /// The run could not continue.
    Failed {
        /// Kind of the error.
        kind: ErrorKind,
        /// Message of the error.
        message: String,
    },
}

impl AgentOutcome {
    /// Returns the outcome as one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::BudgetExhausted(_) => "budget_exhausted",
            Self::Stopped(_) => "stopped",
            Self::Looping(_) => "looping",
            Self::Waiting(_) => "waiting",
            Self::Failed { .. } => "failed",
        }
    }
}

impl AgentEvent {
    /// Returns the event as one flat JSON object with its `type`, without members that have no value. The type of a
    /// subagent's event has the prefix `subagent_`.
    pub fn to_json(&self) -> Value {
        let millis = |duration: &Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let members = match self {
            Self::Started { conversation, model } => {
                json!({"type": "started", "conversation": conversation.to_string(), "model": model})
            }
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Thinking(text) => json!({"type": "thinking", "text": text}),
            Self::Retrying { after, reason } => {
                json!({"type": "retrying", "after_ms": millis(after), "reason": reason})
            }
            Self::CallWritten { tool } => json!({"type": "call_written", "tool": tool}),
            Self::CallStarted { id, tool, arguments } => {
                json!({"type": "call_started", "id": id, "tool": tool, "arguments": arguments})
            }
            Self::CallProgress { id, progress, total, message } => json!({
                "type": "call_progress", "id": id, "progress": progress, "total": total, "message": message,
            }),
            Self::CallEnded { id, tool, call, is_error, text, structured: _, suggestion, duration } => {
                let mut event = json!({
                    "type": "call_ended", "id": id, "tool": tool, "call": call.map(|call| call.to_string()),
                    "is_error": is_error, "text": text, "duration_ms": millis(duration),
                });
                if let Some(suggestion) = suggestion {
                    event["suggestion"] = suggestion.as_str().into();
                }
                event
            }
            Self::Answered { usage, total, cost } => {
                json!({"type": "answered", "usage": tokens(*usage), "total": tokens(*total), "cost": cost})
            }
            Self::Compacted { how, before, after } => {
                json!({"type": "compacted", "how": how, "before_tokens": before, "after_tokens": after})
            }
            Self::Notice(text) => json!({"type": "notice", "text": text}),
            Self::OfSubagent { delegation: handed_over, conversation, event } => {
                let mut members = match event.to_json() {
                    Value::Object(members) => members,
                    _ => Map::new(),
                };
                let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
                let own = [
                    ("type", format!("subagent_{kind}")),
                    ("agent", handed_over.agent.to_string()),
                    ("agent_id", conversation.to_string()),
                    ("within", handed_over.call.to_string()),
                ];
                own.into_iter().for_each(|(name, value)| drop(members.insert(name.into(), value.into())));
                Value::Object(members)
            }
            Self::Ended { outcome, text, usage, cost, calls, turns } => {
                let (budget, kind, message) = match outcome {
                    AgentOutcome::BudgetExhausted(budget) => (Some(budget.as_str()), None, None),
                    AgentOutcome::Stopped(why) | AgentOutcome::Looping(why) | AgentOutcome::Waiting(why) => {
                        (None, None, Some(why))
                    }
                    AgentOutcome::Failed { kind, message } => (None, Some(kind.as_str()), Some(message)),
                    AgentOutcome::Finished | AgentOutcome::Cancelled => (None, None, None),
                };
                json!({
                    "type": "ended", "outcome": outcome.as_str(), "budget": budget, "error": kind, "message": message,
                    "text": text, "usage": tokens(*usage), "cost": cost, "calls": calls, "turns": turns,
                })
            }
        };
        without_nulls(members)
    }
}

fn tokens(usage: TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input_tokens, "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens, "output_tokens": usage.output_tokens,
    })
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}
