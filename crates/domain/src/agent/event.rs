//! Events of an agent's run, for those who watch: a terminal, JSON lines, a console.

use super::budget::Budget;
use crate::{
    conversation::{ConversationId, HandedOver},
    error_kind::ErrorKind,
    model::usage::Usage,
    tool_call::CallId,
};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// One thing that happens while an agent runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A run began. It is the first event.
    Started {
        /// The conversation.
        conversation: ConversationId,
        /// The model, by its name in the configuration.
        model: String,
    },
    /// More text of the model.
    Text(String),
    /// More of its thinking.
    Thinking(String),
    /// The model is asked again.
    Retrying {
        /// After so long.
        after: Duration,
        /// Because of this.
        reason: String,
    },
    /// The model is writing a call.
    CallWritten {
        /// The tool, as the model calls it.
        tool: String,
    },
    /// A call begins.
    CallStarted {
        /// The model's id of it.
        id: String,
        /// The tool, as the model calls it.
        tool: String,
        /// As the audit trail keeps them.
        arguments: Value,
    },
    /// A running call reports its progress. Sent only if the caller of the run wants progress.
    CallProgress {
        /// The model's id of the call.
        id: String,
        /// A number that rises.
        progress: f64,
        /// The number at the end, if known.
        total: Option<f64>,
        /// The current step or the newest output, for people.
        message: Option<String>,
    },
    /// A call ended. The results come in the order of the calls.
    CallEnded {
        /// The model's id of it.
        id: String,
        /// The tool, as the model calls it.
        tool: String,
        /// Its row; `None`: it was never made.
        call: Option<CallId>,
        /// It failed.
        is_error: bool,
        /// The text of what the model gets.
        text: String,
        /// The structured content of the tool's result. Not part of the JSON form.
        structured: Option<Value>,
        /// Change by which the user makes a refused call possible; the model does not get it.
        suggestion: Option<String>,
        /// From its coming to its end.
        duration: Duration,
    },
    /// An answer of the model is over.
    Answered {
        /// Its tokens.
        usage: Usage,
        /// The whole run so far.
        total: Usage,
        /// The whole run so far, in US dollars, where prices are known.
        cost: Option<f64>,
    },
    /// The conversation so far was made shorter.
    Compacted {
        /// The way: `masked` or `summarized`.
        how: &'static str,
        /// Tokens before, as far as can be told.
        before: u64,
        /// Tokens after.
        after: u64,
    },
    /// Something for the person: of a hook, or of the loop itself.
    Notice(String),
    /// Something happens to an agent that was handed work in this run. Its words do not come this way.
    OfSubagent {
        /// The way it came by its work.
        handed_over: HandedOver,
        /// Its conversation.
        conversation: ConversationId,
        /// The thing that happens.
        event: Box<AgentEvent>,
    },
    /// The run is over. It is the last event.
    Ended {
        /// The outcome.
        outcome: AgentOutcome,
        /// The last text of the model.
        text: String,
        /// The tokens of all of it.
        usage: Usage,
        /// In US dollars, where prices are known.
        cost: Option<f64>,
        /// Calls that were made.
        calls: u64,
        /// Answers of the model.
        turns: u64,
    },
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentOutcome {
    /// The model was done.
    Finished,
    /// Somebody took it back.
    Cancelled,
    /// A budget is used up.
    BudgetExhausted(Budget),
    /// A hook or a person refused to go on.
    Stopped(String),
    /// It went round in a circle, and the nudge did not help.
    Looping(String),
    /// It asked something that somebody is to answer later, under this name, and goes on then.
    Waiting(String),
    /// It could not go on.
    Failed {
        /// The kind.
        kind: ErrorKind,
        /// In words.
        message: String,
    },
}

impl AgentOutcome {
    /// The outcome as one word.
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
    /// The event as one flat object with its `type`.
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
            Self::OfSubagent { handed_over, conversation, event } => {
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

fn tokens(usage: Usage) -> Value {
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
