//! The audit row of one call, filled in on its way.

use super::{ExecuteToolCommand, ExecuteToolError, RecordedArguments};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::io;
use toolstead_domain::{
    access::Access,
    error_kind::ErrorKind,
    permission::decision::Decision,
    ports::{clock::Clock, tool_provider::CallOutcome},
    tool::Tool,
    tool_call::CallId,
    tool_execution::{Outcome, RecordedDecision, ToolExecution},
    tool_failure::ToolFailure,
};
use uuid::Uuid;

/// Texts of arguments are kept to this length.
const KEPT_TEXT: usize = 2_000;
/// So many findings of a decision are kept.
const KEPT_FINDINGS: usize = 64;
/// All kept arguments of a call together, as JSON.
const KEPT_BYTES: usize = 16 << 10;
/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";

/// One row in the making.
#[derive(Debug)]
pub(super) struct Record(ToolExecution, RecordedArguments);

impl Record {
    pub(super) fn begin(command: &ExecuteToolCommand, keep: RecordedArguments, clock: &dyn Clock) -> Self {
        let name: String = command.tool.chars().take(128).collect();
        Self(
            ToolExecution {
                id: CallId(Uuid::now_v7()),
                tool: name.clone(),
                called_as: name,
                source: String::new(),
                principal: command.principal.id().to_owned(),
                session: command.session.to_string(),
                client: command.client.client.clone(),
                arguments: kept(&command.arguments, keep),
                arguments_digest: digest(&command.arguments).0,
                accesses: Vec::new(),
                decision: None,
                started: clock.now(),
                ended: None,
                outcome: Outcome::Running,
                result_bytes: 0,
                result_digest: None,
            },
            keep,
        )
    }

    pub(super) fn id(&self) -> CallId {
        self.0.id
    }

    pub(super) fn resolved(&mut self, tool: &Tool) {
        self.0.tool = tool.name().to_string();
        self.0.source = tool.source().label();
    }

    /// References among the arguments were replaced by what they name. The row keeps the references, and its digest
    /// stands for what the call gets.
    pub(super) fn substituted(&mut self, arguments: &Map<String, Value>) {
        self.0.arguments_digest = digest(arguments).0;
    }

    /// A hook gave the call other arguments. It saw values, so the row keeps values from now on, and no references.
    pub(super) fn rewritten(&mut self, arguments: &Map<String, Value>) {
        self.0.arguments_digest = digest(arguments).0;
        self.0.arguments = kept(&Value::Object(arguments.clone()), self.1);
    }

    pub(super) fn decided(&mut self, accesses: &[Access], decision: &Decision) {
        self.0.accesses = accesses.iter().map(ToString::to_string).collect();
        let verdict = decision.verdict.as_str().to_owned();
        let reason = decision.reason();
        self.0.decision = Some(RecordedDecision { verdict, reason, approved_by: None, trace: trace(decision) });
    }

    pub(super) fn approved_by(&mut self, by: String) {
        if let Some(decision) = &mut self.0.decision {
            decision.approved_by = Some(by);
        }
    }

    /// The row that says that the call is about to run.
    pub(super) fn started(&self) -> ToolExecution {
        self.0.clone()
    }

    /// The final row.
    pub(super) fn conclude(
        mut self,
        outcome: &Result<CallOutcome, ExecuteToolError>,
        clock: &dyn Clock,
    ) -> ToolExecution {
        let keep = self.1;
        self.0.outcome = match outcome {
            Ok(CallOutcome::Done(result)) => {
                let (digest, bytes) = digest(result.as_object());
                (self.0.result_digest, self.0.result_bytes) = (Some(digest), bytes);
                match result.is_error() {
                    true => Outcome::Failed(
                        result.error_kind().unwrap_or(ErrorKind::ExecutionFailed),
                        shortened(&result.joined_text()),
                    ),
                    false => Outcome::Succeeded,
                }
            }
            Ok(CallOutcome::InputRequired(_)) => Outcome::InputRequired,
            Err(ExecuteToolError::NotCallable(failure) | ExecuteToolError::Refused(failure)) => {
                Outcome::Refused(failure.kind, refusal(failure, keep))
            }
            Err(ExecuteToolError::Failed(failure)) => Outcome::Failed(failure.kind, shortened(&failure.message)),
            Err(ExecuteToolError::Cancelled(reason)) => Outcome::Cancelled(*reason),
            Err(ExecuteToolError::NotRecorded(error)) => Outcome::Failed(ErrorKind::Internal, error.to_string()),
        };
        self.0.ended = Some(clock.now());
        self.0
    }
}

/// What is kept of the findings on each part: as many as matter to a person, the strictest first where it is more.
fn trace(decision: &Decision) -> Value {
    let mut findings: Vec<_> = decision.trace.iter().collect();
    let more = findings.len().saturating_sub(KEPT_FINDINGS);
    if more > 0 {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        findings.truncate(KEPT_FINDINGS);
    }
    let mut kept: Vec<Value> = findings.iter().map(|finding| finding.to_json()).collect();
    for text in kept.iter_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        if let Value::String(long) = text
            && long.len() > KEPT_TEXT
        {
            *text = shortened(long).into();
        }
    }
    if more > 0 {
        kept.push(json!({"verdict": null, "part": null, "cause": format!("{more} more parts")}));
    }
    kept.into()
}

/// What is kept of arguments.
fn kept(arguments: &Value, keep: RecordedArguments) -> Value {
    match keep {
        RecordedArguments::None => Value::Null,
        RecordedArguments::Full => arguments.clone(),
        // A copy of very many values is not made for being thrown away.
        RecordedArguments::Redacted if has_more_values(arguments, KEPT_BYTES) => {
            not_kept(each_piece(arguments, |_| ()))
        }
        RecordedArguments::Redacted => capped(redacted(arguments)),
    }
}

/// Why a call was refused; without the values of arguments where those are not kept in full.
fn refusal(failure: &ToolFailure, keep: RecordedArguments) -> String {
    if keep == RecordedArguments::Full || failure.kind != ErrorKind::InvalidInput {
        return shortened(&failure.message);
    }
    let expected = failure.data.get("violations").and_then(Value::as_array);
    let expected: Vec<&str> = expected.into_iter().flatten().filter_map(Value::as_str).collect();
    match expected.is_empty() {
        true => "the arguments are malformed".into(),
        false => shortened(&expected.join("; ")),
    }
}

/// SHA-256 and length of the value as compact JSON, without writing it anywhere.
pub(super) fn digest(value: &impl serde::Serialize) -> (String, u64) {
    let mut hasher = Sha256::new();
    let bytes = each_piece(value, |piece| hasher.update(piece));
    let mut text = String::with_capacity(64);
    for byte in hasher.finalize() {
        text.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
        text.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
    }
    (text, bytes)
}

/// Hands out the value as compact JSON, piece by piece, and returns how many bytes that were.
fn each_piece(value: &impl serde::Serialize, take: impl FnMut(&[u8])) -> u64 {
    struct Sink<F>(F, u64);
    impl<F: FnMut(&[u8])> io::Write for Sink<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            (self.0)(bytes);
            self.1 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = Sink(take, 0);
    // JSON values always serialize, and the sink takes everything.
    let _ = serde_json::to_writer(&mut sink, value);
    sink.1
}

/// The value with everything hidden that bears a secret's name, and long texts shortened.
fn redacted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let hide = |(name, value): (&String, &Value)| {
                let value = if is_secret(name) { REDACTED.into() } else { redacted(value) };
                (name.clone(), value)
            };
            Value::Object(members.iter().map(hide).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(redacted).collect::<Vec<_>>().into(),
        Value::String(text) => shortened(text).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn is_secret(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "apikey",
        "api_key",
        "api-key",
        "authorization",
        "cookie",
        "credential",
        "private_key",
        "privatekey",
    ];
    let name = name.to_ascii_lowercase();
    // Counters and cursors of tokens are no secrets.
    !matches!(name.as_str(), "max_tokens" | "page_token" | "tokens") && WORDS.iter().any(|word| name.contains(word))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(KEPT_TEXT) {
        Some((at, _)) => format!("{}… ({} bytes in all)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

fn capped(value: Value) -> Value {
    let bytes = each_piece(&value, |_| ());
    if bytes > KEPT_BYTES as u64 { not_kept(bytes) } else { value }
}

fn not_kept(bytes: u64) -> Value {
    format!("[{bytes} bytes of arguments, too many to keep]").into()
}

fn has_more_values(value: &Value, most: usize) -> bool {
    fn count(value: &Value, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else { return true };
        *left = rest;
        match value {
            Value::Array(items) => items.iter().any(|item| count(item, left)),
            Value::Object(members) => members.values().any(|member| count(member, left)),
            _ => false,
        }
    }
    count(value, &mut { most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bears_a_secrets_name_is_hidden_at_any_depth() {
        let given = json!({"path": "a", "auth": {"API_KEY": "k", "x-token": ["t"]}, "max_tokens": 5});
        assert_eq!(
            redacted(&given),
            json!({"path": "a", "auth": {"API_KEY": REDACTED, "x-token": REDACTED}, "max_tokens": 5})
        );
    }

    #[test]
    fn long_arguments_are_shortened_and_never_lost_in_silence() {
        let kept = redacted(&json!({"content": "x".repeat(5000)}));
        assert!(kept["content"].as_str().unwrap().ends_with("… (5000 bytes in all)"));
        let many: Vec<Value> = (0..20).map(|_| json!("y".repeat(1900))).collect();
        assert!(capped(redacted(&json!(many))).as_str().unwrap().contains("too many to keep"));
        let values = json!({"a": vec![0; 20_000]});
        let told = format!("[{} bytes of arguments, too many to keep]", values.to_string().len());
        assert_eq!(super::kept(&values, RecordedArguments::Redacted), json!(told));
    }

    #[test]
    fn a_digest_is_that_of_the_compact_json() {
        let (hex, bytes) = digest(&json!({}));
        assert_eq!((hex.as_str(), bytes), ("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", 2));
    }
}
