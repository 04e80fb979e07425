//! The audit row of one call, filled in on its way.

use super::{
    ExecuteToolCommand, ExecuteToolError, Nesting, RecordedArguments,
    told_decisions::{Told, ToldDecisions},
};
use crate::redaction::{LOOKED_AT, REDACTED, Redaction, is_secret_name, redacted};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::{io, sync::Arc};
use toolstead_domain::{
    access::{Access, AccessKind},
    error_kind::ErrorKind,
    labels::{LONGEST_VALUE, Labels},
    permission::{
        decision::{Cause, Decision, Finding},
        rule::RuleOrigin,
    },
    ports::{clock::Clock, tool_provider::CallOutcome},
    tool::Tool,
    tool_call::CallId,
    tool_execution::{Outcome, RecordedDecision, ToolExecution},
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// Texts of arguments are kept to this length.
const KEPT_TEXT: usize = 2_000;
/// So many findings of a decision are kept.
const KEPT_FINDINGS: usize = 64;
/// All kept arguments of a call together, as JSON.
const KEPT_BYTES: usize = 16 << 10;
/// So many bytes of a text count as a value: what is kept of it is longer than that of a small one.
const LOOKED_AT_A_VALUE: usize = 128;
/// A result of more values than so many bytes could hold is told by its size.
const TOLD_BYTES: usize = 256 << 10;
/// A longer member of structured content that is no text is not kept, in bytes of JSON.
const KEPT_MEMBER: u64 = 4 << 10;

/// So many bytes of JSON are gathered before they are hashed.
const HASHED_AT_ONCE: usize = 512;

/// What stands in place of a text that may tell of arguments, where those are not kept.
const NOT_KEPT: &str = "[not kept]";

/// One row in the making. What of the call stands in it, stands in it as `[audit] arguments` says.
#[derive(Debug, Clone)]
pub(super) struct Record {
    row: ToolExecution,
    keep: RecordedArguments,
    redaction: Arc<Redaction>,
}

impl Record {
    pub(super) fn begin(id: CallId, command: &ExecuteToolCommand, keep: RecordedArguments, clock: &dyn Clock) -> Self {
        // It may be as long as a message.
        let name: String = Redaction::default().text(&command.tool).chars().take(128).collect();
        let redaction = match keep {
            RecordedArguments::Redacted => Redaction::of(&command.arguments),
            RecordedArguments::Full | RecordedArguments::None => Redaction::default(),
        };
        let row = ToolExecution {
            id,
            parent: command.parent.as_ref().map(Nesting::parent).or(command.began_by),
            kind: command.answered_by.as_ref().map(|answerer| answerer.kind).unwrap_or_default(),
            tool: name.clone(),
            called_as: name,
            source: String::new(),
            principal: command.scope.principal.id().to_owned(),
            session: command.scope.session.to_string(),
            client: command.client.client.clone(),
            arguments: Value::Null,
            arguments_digest: digest(&command.arguments).0,
            accesses: Vec::new(),
            decision: None,
            started: clock.now(),
            ended: None,
            outcome: Outcome::Running,
            result_bytes: 0,
            result_digest: None,
            metadata: Value::Null,
            labels: Labels::default(),
        };
        let mut record = Self { row, keep, redaction: redaction.into() };
        record.row.arguments = record.kept(&command.arguments, "arguments");
        record.labelled(&command.labels);
        record
    }

    pub(super) fn id(&self) -> CallId {
        self.row.id
    }

    /// The row as it is now.
    pub(super) fn row(&self) -> &ToolExecution {
        &self.row
    }

    /// What takes the secrets of this call out of its texts; `None` where no text of the call may be told.
    pub(super) fn redaction(&self) -> Option<Arc<Redaction>> {
        (self.keep != RecordedArguments::None).then(|| self.redaction.clone())
    }

    pub(super) fn resolved(&mut self, tool: &Tool) {
        self.row.tool = tool.name().to_string();
        self.row.source = tool.source().label();
    }

    /// References among the arguments were replaced by what they name. The row keeps the references, and its digest
    /// stands for what the call gets.
    pub(super) fn substituted(&mut self, arguments: &Map<String, Value>) {
        self.row.arguments_digest = digest(arguments).0;
        self.learn(&Value::Object(arguments.clone()));
    }

    /// A hook gave the call other arguments. It saw values, so the row keeps values from now on, and no references.
    pub(super) fn rewritten(&mut self, arguments: &Map<String, Value>) {
        let arguments = Value::Object(arguments.clone());
        self.row.arguments_digest = digest(&arguments).0;
        self.learn(&arguments);
        self.row.arguments = self.kept(&arguments, "arguments");
    }

    pub(super) fn decided(&mut self, accesses: &[Access], decision: &Decision, known: &ToldDecisions) {
        // Where the arguments hold secrets, a rule may have one of them in its words.
        let told = match self.keep == RecordedArguments::Redacted && self.redaction.is_empty() {
            true => known.of(accesses, decision, || self.told(accesses, decision)),
            false => self.told(accesses, decision),
        };
        self.row.accesses = told.accesses;
        self.row.decision = Some(told.decision);
    }

    fn told(&self, accesses: &[Access], decision: &Decision) -> Told {
        let bare;
        let told = match self.keep {
            RecordedArguments::None => {
                bare = without_arguments(decision);
                &bare
            }
            RecordedArguments::Full | RecordedArguments::Redacted => decision,
        };
        Told {
            accesses: accesses.iter().map(|access| self.access(access)).collect(),
            decision: RecordedDecision {
                verdict: decision.verdict.as_str().to_owned(),
                reason: self.text(&told.reason(), LOOKED_AT),
                approved_by: None,
                trace: self.trace(decision, told),
            },
        }
    }

    pub(super) fn approved_by(&mut self, by: String) {
        if let Some(decision) = &mut self.row.decision {
            decision.approved_by = Some(by);
        }
    }

    /// More labels. Those that are there stay as they are, and what has no room is left out. Returns how many were.
    pub(super) fn labelled(&mut self, labels: &Labels) -> usize {
        let left_out = self.row.labels.add(labels);
        self.row.labels = self.clean(&self.row.labels);
        left_out
    }

    /// Labels as texts of the row are.
    fn clean(&self, labels: &Labels) -> Labels {
        labels.map(|name, value| match self.keep == RecordedArguments::Redacted && is_secret_name(name) {
            true => REDACTED.into(),
            false => self.text(value, LONGEST_VALUE),
        })
    }

    /// The row that says that the call is about to run.
    pub(super) fn started(&self) -> ToolExecution {
        self.row.clone()
    }

    /// The final row.
    pub(super) fn conclude(
        mut self,
        outcome: &Result<CallOutcome, ExecuteToolError>,
        clock: &dyn Clock,
    ) -> ToolExecution {
        self.row.outcome = match outcome {
            Ok(CallOutcome::Done(result)) => {
                let (digest, bytes) = digest(result.as_object());
                (self.row.result_digest, self.row.result_bytes) = (Some(digest), bytes);
                if result.is_task() {
                    let task = |name: &str| result.as_object().get(name).cloned().unwrap_or_default();
                    self.row.metadata = json!({"task": task("taskId"), "status": task("status")});
                    self.row.outcome = Outcome::Succeeded;
                    self.row.ended = Some(clock.now());
                    return self.row;
                }
                self.row.metadata = result.structured_content().map_or(Value::Null, |content| self.metadata(content));
                match result.is_error() {
                    true => Outcome::Failed(
                        result.error_kind().unwrap_or(ErrorKind::ExecutionFailed),
                        self.detail(&result.joined_text()),
                    ),
                    false => Outcome::Succeeded,
                }
            }
            Ok(CallOutcome::InputRequired(_)) => Outcome::InputRequired,
            // The name of a tool is no argument.
            Err(ExecuteToolError::NotCallable(failure)) if failure.kind != ErrorKind::InvalidInput => {
                Outcome::Refused(failure.kind, shortened(&redacted(&failure.message), KEPT_TEXT))
            }
            Err(ExecuteToolError::NotCallable(failure) | ExecuteToolError::Refused(failure)) => {
                Outcome::Refused(failure.kind, self.refusal(failure))
            }
            Err(ExecuteToolError::Failed(failure)) => Outcome::Failed(failure.kind, self.detail(&failure.message)),
            Err(ExecuteToolError::Cancelled(reason)) => Outcome::Cancelled(*reason),
            Err(error @ ExecuteToolError::Closed) => Outcome::Refused(ErrorKind::Cancelled, error.to_string()),
            Err(error @ ExecuteToolError::NotRecorded { .. }) => {
                Outcome::Failed(ErrorKind::Internal, error.to_string())
            }
        };
        self.row.ended = Some(clock.now());
        self.row
    }

    fn learn(&mut self, arguments: &Value) {
        if self.keep == RecordedArguments::Redacted {
            Arc::make_mut(&mut self.redaction).learn(arguments);
            self.row.labels = self.clean(&self.row.labels);
        }
    }

    /// What is kept of a text that may hold secrets: so many characters.
    fn text(&self, text: &str, at_most: usize) -> String {
        match self.keep {
            RecordedArguments::Full | RecordedArguments::None => shortened(text, at_most),
            RecordedArguments::Redacted => {
                let clean = self.redaction.text(text);
                // So few bytes are no more characters.
                if clean.len() <= at_most && text.len() <= LOOKED_AT {
                    return clean.into_owned();
                }
                match clean.char_indices().nth(at_most) {
                    Some((end, _)) => cut(&clean[..end], text),
                    None if text.len() > LOOKED_AT => cut(&clean, text),
                    None => clean.into_owned(),
                }
            }
        }
    }

    /// What is kept of what a failed call said.
    fn detail(&self, text: &str) -> String {
        match self.keep {
            RecordedArguments::None => NOT_KEPT.into(),
            RecordedArguments::Full | RecordedArguments::Redacted => self.text(text, KEPT_TEXT),
        }
    }

    /// The same of a text that may be empty.
    pub(super) fn detail_of(&self, text: &str) -> String {
        if text.is_empty() { String::new() } else { self.detail(text) }
    }

    fn access(&self, access: &Access) -> String {
        match self.keep {
            RecordedArguments::None => kind_of(access),
            RecordedArguments::Full | RecordedArguments::Redacted => self.text(&access.to_string(), LOOKED_AT),
        }
    }

    /// What is kept of arguments, or of another value.
    pub(super) fn kept(&self, value: &Value, what: &str) -> Value {
        let too_many = |bytes: u64| format!("[{bytes} bytes of {what}, too many to keep]").into();
        match self.keep {
            RecordedArguments::None => Value::Null,
            RecordedArguments::Full => value.clone(),
            // So many values are longer than what is kept, whatever they are.
            RecordedArguments::Redacted if !has_at_most(value, &mut (KEPT_BYTES / 2)) => {
                too_many(each_piece(value, |_| ()))
            }
            RecordedArguments::Redacted => {
                let kept = self.redaction.value(value, &|text| self.text(text, KEPT_TEXT));
                let bytes = each_piece(&kept, |_| ());
                if bytes > KEPT_BYTES as u64 { too_many(bytes) } else { kept }
            }
        }
    }

    /// The part of a result that may be told: texts without secrets and cut, binary content by its size; none where no
    /// text of the call may be.
    pub(super) fn response(&self, result: &ToolResult) -> Value {
        if self.keep == RecordedArguments::None {
            return Value::Null;
        }
        let mut result = Value::Object(result.as_object().clone());
        for block in result.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
            let binary = match block.get_mut("resource") {
                Some(resource) => resource.get_mut("blob"),
                None => block.get_mut("data"),
            };
            if let Some(data) = binary {
                *data = format!("[{} bytes of base64]", data.as_str().map_or(0, str::len)).into();
            }
        }
        if !has_at_most(&result, &mut (TOLD_BYTES / 2)) {
            return format!("[{} bytes, too many to tell]", each_piece(&result, |_| ())).into();
        }
        // What is kept in full of arguments says nothing of what a tool answers.
        let told = |text: &str| match self.redaction.text(text) {
            clean if text.len() <= LOOKED_AT => clean.into_owned(),
            clean => cut(&clean, text),
        };
        self.redaction.value(&result, &told)
    }

    /// What is kept of structured content: each member that is not too long.
    fn metadata(&self, content: &Value) -> Value {
        let Some(members) = content.as_object() else { return Value::Null };
        if self.keep == RecordedArguments::None {
            return Value::Null;
        }
        let mut left = KEPT_BYTES as u64;
        let mut kept = Map::new();
        for (name, value) in members.iter().take(KEPT_FINDINGS) {
            let is_long = |value: &Value| !value.is_string() && each_piece(value, |_| ()) > KEPT_MEMBER;
            let value = match (is_secret_name(name) && self.keep == RecordedArguments::Redacted, is_long(value)) {
                (true, _) => REDACTED.into(),
                (false, true) => format!("[{} bytes, too many to keep]", each_piece(value, |_| ())).into(),
                (false, false) => match value {
                    Value::String(text) => self.text(text, KEPT_TEXT).into(),
                    value => self.kept(value, "metadata"),
                },
            };
            let bytes = each_piece(&value, |_| ()) + name.len() as u64;
            let Some(rest) = left.checked_sub(bytes) else { break };
            left = rest;
            kept.insert(self.text(name, KEPT_TEXT), value);
        }
        kept.into()
    }

    /// Why a call was refused; without the values of arguments where those are not kept in full.
    fn refusal(&self, failure: &ToolFailure) -> String {
        let reason = || self.row.decision.as_ref().map(|decision| decision.reason.clone());
        match (self.keep, failure.kind) {
            (RecordedArguments::Full, _) => shortened(&failure.message, KEPT_TEXT),
            (RecordedArguments::None, ErrorKind::InvalidInput) => "the arguments do not fit".into(),
            (RecordedArguments::None, _) => reason().unwrap_or_else(|| NOT_KEPT.into()),
            (RecordedArguments::Redacted, ErrorKind::InvalidInput) => {
                let expected = failure.data.get("violations").and_then(Value::as_array);
                let expected: Vec<&str> = expected.into_iter().flatten().filter_map(Value::as_str).collect();
                match expected.is_empty() {
                    true => "the arguments are malformed".into(),
                    false => self.text(&expected.join("; "), KEPT_TEXT),
                }
            }
            (RecordedArguments::Redacted, _) => self.text(&failure.message, KEPT_TEXT),
        }
    }

    /// What is kept of the findings on each part, as they are to be told: as many as matter to a person, the strictest
    /// first where it is more.
    fn trace(&self, decision: &Decision, told: &Decision) -> Value {
        let mut findings: Vec<(&Finding, &Finding)> = decision.trace.iter().zip(&told.trace).collect();
        let more = findings.len().saturating_sub(KEPT_FINDINGS);
        if more > 0 {
            findings.sort_by_key(|(finding, _)| std::cmp::Reverse(finding.verdict));
            findings.truncate(KEPT_FINDINGS);
        }
        let mut kept: Vec<Value> = Vec::with_capacity(findings.len());
        for (finding, told) in findings {
            let mut told = told.to_json();
            for text in told.as_object_mut().into_iter().flat_map(Map::values_mut) {
                if let Value::String(long) = text {
                    *text = self.text(long, KEPT_TEXT).into();
                }
            }
            if let (RecordedArguments::None, Some(access)) = (self.keep, &finding.part) {
                told["part"] = kind_of(access).into();
            }
            kept.push(told);
        }
        if more > 0 {
            kept.push(json!({"verdict": null, "part": null, "cause": format!("{more} more parts")}));
        }
        kept.into()
    }
}

/// The kind of an access, without what it touches: that is an argument. The tool of a server is none.
fn kind_of(access: &Access) -> String {
    let kind = match access.kind() {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Run => "run",
        AccessKind::Reach => "reach",
        AccessKind::Send => "send",
        AccessKind::Resource => "resource",
        AccessKind::Prompt => "prompt",
        AccessKind::Agent => "agent",
        AccessKind::Offer => "offer",
        AccessKind::Upstream | AccessKind::Undeclared => return access.to_string(),
    };
    kind.into()
}

/// The decision without what the call would touch, and without what was made of that: a rule that a person approved in
/// the session, and what a hook says.
fn without_arguments(decision: &Decision) -> Decision {
    let bare = |finding: &Finding| {
        let cause = match &finding.cause {
            Cause::Rule(rule) if rule.origin == RuleOrigin::Session => {
                Cause::Default("a rule that was approved in this session")
            }
            Cause::Hook { by, .. } => Cause::Hook { by: by.clone(), reason: NOT_KEPT.into() },
            other => other.clone(),
        };
        Finding::new(finding.verdict, None, cause)
    };
    Decision {
        verdict: decision.verdict,
        decisive: bare(&decision.decisive),
        trace: decision.trace.iter().map(bare).collect(),
    }
}

/// SHA-256 and length of the value as compact JSON, without writing all of it anywhere.
pub(super) fn digest(value: &impl serde::Serialize) -> (String, u64) {
    let mut hasher = Sha256::new();
    // Most pieces are a few bytes, and to hash one by itself costs more than to hash these bytes.
    let mut gathered = Vec::with_capacity(HASHED_AT_ONCE);
    let bytes = each_piece(value, |piece| {
        if gathered.len() + piece.len() > HASHED_AT_ONCE {
            hasher.update(&gathered);
            gathered.clear();
        }
        match piece.len() > HASHED_AT_ONCE {
            true => hasher.update(piece),
            false => gathered.extend_from_slice(piece),
        }
    });
    hasher.update(&gathered);
    let mut text = String::with_capacity(64);
    for byte in hasher.finalize() {
        text.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
        text.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
    }
    (text, bytes)
}

/// Hands out the value as compact JSON, piece by piece, and returns how many bytes that were.
pub(super) fn each_piece(value: &impl serde::Serialize, take: impl FnMut(&[u8])) -> u64 {
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

/// Whether the value is made of no more values than those. A text counts as many by what would be looked at of it.
fn has_at_most(value: &Value, left: &mut usize) -> bool {
    let take = |left: &mut usize, count: usize| left.checked_sub(count).map(|rest| *left = rest).is_some();
    let weight = |text: &str| text.len().min(LOOKED_AT) / LOOKED_AT_A_VALUE;
    take(left, 1)
        && match value {
            Value::Object(members) => {
                members.iter().all(|(name, value)| take(left, weight(name)) && has_at_most(value, left))
            }
            Value::Array(items) => items.iter().all(|item| has_at_most(item, left)),
            Value::String(text) => take(left, weight(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
}

fn shortened(text: &str, at_most: usize) -> String {
    if text.len() <= at_most {
        return text.to_owned();
    }
    match text.char_indices().nth(at_most) {
        Some((at, _)) => cut(&text[..at], text),
        None => text.to_owned(),
    }
}

/// The beginning of a text, and how long that was.
fn cut(beginning: &str, whole: &str) -> String {
    format!("{beginning}… ({} bytes in all)", whole.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use toolstead_domain::{
        ports::clock::Timestamp,
        testing::{fixed_clock::FixedClock, samples},
    };

    fn record(arguments: Value, keep: RecordedArguments) -> Record {
        let command = ExecuteToolCommand::new("t", arguments);
        Record::begin(samples::call_id(1), &command, keep, &FixedClock::at(Timestamp(1)))
    }

    #[test]
    fn long_arguments_are_shortened_and_never_lost_in_silence() {
        let kept = |arguments| record(arguments, RecordedArguments::Redacted).row.arguments;
        for length in [5000, LOOKED_AT + 1] {
            let content = kept(json!({"content": "x".repeat(length)}))["content"].as_str().unwrap().to_owned();
            assert!(content.ends_with(&format!("… ({length} bytes in all)")) && content.len() < 2100, "{content}");
        }
        let many: Vec<Value> = (0..20).map(|_| json!("y".repeat(1900))).collect();
        assert!(kept(json!(many)).as_str().unwrap().contains("bytes of arguments, too many to keep"));
        assert!(kept(json!(vec![0; 100_000])).as_str().unwrap().contains("too many to keep"));
        // So many texts are not even looked through.
        let long = || json!("z".repeat(LOOKED_AT));
        assert!(!has_at_most(&json!(vec![long(); 64]), &mut (KEPT_BYTES / 2)));
        assert!(has_at_most(&json!(["a", long()]), &mut (KEPT_BYTES / 2)));
        assert!(!has_at_most(&json!({("n".repeat(LOOKED_AT)): 1}), &mut 100));
    }

    #[test]
    fn metadata_is_redacted_and_each_member_of_it_is_bounded() {
        let content = json!({
            "path": "a", "token": "abcdef", "url": "https://u:pw@h/", "echoed": "it is tok-1",
            "lines": vec!["x"; 4000], "content": "y".repeat(9000), "n": 3,
        });
        let metadata = |keep| record(json!({"env": {"MY_TOKEN": "tok-1"}}), keep).metadata(&content);
        let kept = metadata(RecordedArguments::Redacted);
        assert_eq!(
            (&kept["path"], &kept["token"], &kept["url"], &kept["echoed"], &kept["n"]),
            (&json!("a"), &json!(REDACTED), &json!("https://u:[redacted]@h/"), &json!("it is [redacted]"), &json!(3))
        );
        assert_eq!(kept["lines"], "[16001 bytes, too many to keep]");
        assert!(kept["content"].as_str().unwrap().ends_with("… (9000 bytes in all)"));
        assert_eq!(metadata(RecordedArguments::Full)["token"], "abcdef");
        assert_eq!(metadata(RecordedArguments::None), Value::Null);
    }

    #[test]
    fn a_digest_is_that_of_the_compact_json() {
        let (hex, bytes) = digest(&json!({}));
        assert_eq!((hex.as_str(), bytes), ("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", 2));
    }

    proptest! {
        #[test]
        fn a_digest_is_that_of_all_pieces_in_their_order(lengths in vec(0..3 * HASHED_AT_ONCE, 0..8)) {
            let texts: Vec<String> = lengths.iter().enumerate().map(|(at, length)| at.to_string().repeat(*length)).collect();
            let whole: String = Sha256::digest(json!(texts).to_string()).iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert_eq!(digest(&texts), (whole, json!(texts).to_string().len() as u64));
        }
    }
}
