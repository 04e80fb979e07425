//! The audit record of one call, filled in by its steps.

use super::{
    command::ExecuteToolCommand,
    decision_text_cache::{DecisionTextCache, RenderedDecision},
    error::ExecuteToolError,
    nesting::NestedCallPosition,
    settings::RecordedArguments,
};
use crate::redaction::{CallRedactor, LOOKED_AT, REDACTED, is_plain_value, is_secret_name, redacted};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    io,
    sync::{Arc, LazyLock},
};
use toolstead_domain::{
    Access, AccessKind, AuditedRequestKind, BorrowedToolExecution, CallId, CallLabels, CallOutcome, Cause,
    ClientProfile, Clock, Decision, ExecutionOutcome, Finding, ParsedOrRawJsonRef, Principal, RecordedDecisionRef,
    Timestamp, Tool, ToolFailure, ToolName, ToolResult, ToolSource, error_kind::ErrorKind, labels::LONGEST_VALUE,
    permission::rule::RuleOrigin, tool::BUILT_IN,
};

/// Maximum number of characters of a recorded text.
const KEPT_TEXT: usize = 2_000;
/// Maximum number of recorded findings of a decision, and of recorded members of structured content.
const KEPT_FINDINGS: usize = 64;
/// Maximum number of bytes of a call's recorded arguments, as JSON.
const KEPT_BYTES: usize = 16 << 10;
/// Number of bytes of a text that count as one value: a long text takes more of the record than a short one.
const LOOKED_AT_A_VALUE: usize = 128;
/// Size in bytes from which the limit of a result in events follows: one with more values than fit into it, at two
/// bytes each, is replaced by its size.
const TOLD_BYTES: usize = 256 << 10;
/// Maximum number of bytes of JSON of a recorded member of structured content other than a text.
const KEPT_MEMBER: u64 = 4 << 10;

/// Maximum number of bytes of all texts of arguments or results that are checked for being plain.
const PLAIN_BYTES: usize = KEPT_BYTES / 2;

/// Number of bytes of JSON that are collected before they are hashed. Most pieces have a few bytes, and hashing each
/// one costs more.
const HASHED_AT_ONCE: usize = 512;

/// Placeholder for a text that may contain arguments, if those are not recorded.
const NOT_KEPT: &str = "[not kept]";

/// Redaction of calls without secrets, shared by all of them.
static NO_SECRETS: LazyLock<Arc<CallRedactor>> = LazyLock::new(Arc::default);

/// Audit record of a running call. It contains the parts of the call that `[audit] arguments` allows.
#[derive(Debug)]
pub(super) struct CallRecord {
    id: CallId,
    parent: Option<CallId>,
    kind: AuditedRequestKind,
    /// `None` until the tool is resolved.
    tool: Option<ToolName>,
    called_as: String,
    source: Cow<'static, str>,
    principal: Principal,
    session: Arc<str>,
    client: Arc<ClientProfile>,
    arguments: ParsedOrRawJson,
    arguments_digest: HexDigest,
    decided: Option<Arc<RenderedDecision>>,
    approved_by: Option<String>,
    started: Timestamp,
    ended: Option<Timestamp>,
    outcome: ExecutionOutcome,
    result_bytes: u64,
    result_digest: Option<HexDigest>,
    metadata: ParsedOrRawJson,
    labels: CallLabels,
    keep: RecordedArguments,
    redaction: Arc<CallRedactor>,
}

/// JSON of a record. Values without secrets are recorded as the text from which the digest is computed.
#[derive(Debug)]
enum ParsedOrRawJson {
    Value(Value),
    Text(String),
}

impl ParsedOrRawJson {
    fn borrowed(&self) -> ParsedOrRawJsonRef<'_> {
        match self {
            Self::Value(value) => ParsedOrRawJsonRef::Value(value),
            Self::Text(text) => ParsedOrRawJsonRef::Text(text),
        }
    }
}

impl CallRecord {
    pub(super) fn begin(id: CallId, command: &ExecuteToolCommand, keep: RecordedArguments, clock: &dyn Clock) -> Self {
        let plain = match keep {
            RecordedArguments::Redacted => plain_json(&command.arguments).filter(|text| text.len() <= KEPT_BYTES),
            RecordedArguments::Full | RecordedArguments::None => None,
        };
        let redaction = match keep {
            RecordedArguments::Redacted if plain.is_none() => CallRedactor::of(&command.arguments).into(),
            _ => NO_SECRETS.clone(),
        };
        let arguments_digest = match &plain {
            Some(text) => HexDigest::new(&Sha256::digest(text)),
            None => digest(&command.arguments).0,
        };
        let mut record = Self {
            id,
            parent: command.parent.as_ref().map(NestedCallPosition::parent).or(command.began_by),
            kind: command.answered_by.as_ref().map(|answerer| answerer.kind).unwrap_or_default(),
            tool: None,
            called_as: first_chars(&CallRedactor::default().text(&command.tool), 128).to_owned(),
            source: Cow::Borrowed(""),
            principal: command.scope.principal.clone(),
            session: command.scope.session.clone(),
            client: command.client.clone(),
            arguments: ParsedOrRawJson::Value(Value::Null),
            arguments_digest,
            decided: None,
            approved_by: None,
            started: clock.now(),
            ended: None,
            outcome: ExecutionOutcome::Running,
            result_bytes: 0,
            result_digest: None,
            metadata: ParsedOrRawJson::Value(Value::Null),
            labels: CallLabels::default(),
            keep,
            redaction,
        };
        record.arguments = match plain {
            Some(text) => ParsedOrRawJson::Text(text),
            None => ParsedOrRawJson::Value(record.recorded_value(&command.arguments, "arguments")),
        };
        if !command.labels.is_empty() {
            record.labelled(&command.labels);
        }
        record
    }

    pub(super) fn id(&self) -> CallId {
        self.id
    }

    /// Returns the current state of the record.
    pub(super) fn execution(&self) -> BorrowedToolExecution<'_> {
        let decided = self.decided.as_deref();
        BorrowedToolExecution {
            id: self.id,
            parent: self.parent,
            kind: self.kind,
            tool: self.tool.as_ref().map_or(self.called_as.as_str(), ToolName::as_str),
            called_as: &self.called_as,
            source: &self.source,
            principal: self.principal.id(),
            session: &self.session,
            client: &self.client.client,
            arguments: self.arguments.borrowed(),
            arguments_digest: self.arguments_digest.as_str(),
            accesses: decided.map_or(&[][..], |decided| &decided.accesses[..]),
            decision: decided.map(|decided| RecordedDecisionRef {
                verdict: decided.verdict,
                reason: &decided.reason,
                approved_by: self.approved_by.as_deref(),
                trace: ParsedOrRawJsonRef::Text(&decided.trace),
            }),
            started: self.started,
            ended: self.ended,
            outcome: &self.outcome,
            result_bytes: self.result_bytes,
            result_digest: self.result_digest.as_ref().map(HexDigest::as_str),
            metadata: self.metadata.borrowed(),
            labels: &self.labels,
        }
    }

    pub(super) fn labels(&self) -> &CallLabels {
        &self.labels
    }

    /// Returns the redaction of this call's secrets; `None` if no text of the call may be published.
    pub(super) fn redaction(&self) -> Option<Arc<CallRedactor>> {
        (self.keep != RecordedArguments::None).then(|| self.redaction.clone())
    }

    pub(super) fn resolved(&mut self, tool: &Tool) {
        self.tool = Some(tool.name().clone());
        self.source = match tool.source() {
            ToolSource::BuiltIn => Cow::Borrowed(BUILT_IN),
            source => source.label().into(),
        };
    }

    /// Updates the digest after references were replaced by stored outputs. The record retains the references, and its
    /// digest is that of the actual arguments.
    pub(super) fn substituted(&mut self, arguments: &Map<String, Value>) {
        self.arguments_digest = digest(arguments).0;
        self.learn(&Value::Object(arguments.clone()));
    }

    /// Adds the values that a view fixes to the recorded arguments. The digest covers the complete `arguments`.
    pub(super) fn fixed(&mut self, fixed: &Map<String, Value>, arguments: &Map<String, Value>) {
        self.arguments_digest = digest(arguments).0;
        let fixed = Value::Object(fixed.clone());
        self.learn(&fixed);
        let mut recorded = match &self.arguments {
            ParsedOrRawJson::Text(text) => serde_json::from_str(text).unwrap_or_default(),
            ParsedOrRawJson::Value(value) => value.clone(),
        };
        match (&mut recorded, self.recorded_value(&fixed, "arguments")) {
            (Value::Object(recorded), Value::Object(fixed)) => recorded.extend(fixed),
            (recorded @ Value::Null, fixed) => *recorded = fixed,
            _ => {}
        }
        self.arguments = ParsedOrRawJson::Value(recorded);
    }

    /// Replaces the recorded arguments by those of a hook. The hook received values, so the record has no references
    /// any more.
    pub(super) fn rewritten(&mut self, arguments: &Map<String, Value>) {
        let arguments = Value::Object(arguments.clone());
        self.arguments_digest = digest(&arguments).0;
        self.learn(&arguments);
        self.arguments = ParsedOrRawJson::Value(self.recorded_value(&arguments, "arguments"));
    }

    pub(super) fn decided(&mut self, accesses: &[Access], decision: &Decision, known: &DecisionTextCache) {
        // The text of a rule may contain a secret of the arguments. Cached texts are used for calls without secrets
        // only.
        let texts = match self.keep == RecordedArguments::Redacted && self.redaction.is_empty() {
            true => known.of(accesses, decision, || self.decision_texts(accesses, decision)),
            false => self.decision_texts(accesses, decision).into(),
        };
        self.decided = Some(texts);
        self.approved_by = None;
    }

    fn decision_texts(&self, accesses: &[Access], decision: &Decision) -> RenderedDecision {
        let bare;
        let recorded = match self.keep {
            RecordedArguments::None => {
                bare = without_arguments(decision);
                &bare
            }
            RecordedArguments::Full | RecordedArguments::Redacted => decision,
        };
        RenderedDecision {
            accesses: accesses.iter().map(|access| self.access(access)).collect(),
            verdict: decision.verdict.as_str(),
            reason: self.text(&recorded.reason(), LOOKED_AT),
            trace: self.trace(decision, recorded).to_string(),
        }
    }

    /// Sets the approver. Has no effect before a decision.
    pub(super) fn approved_by(&mut self, by: String) {
        self.approved_by = self.decided.is_some().then_some(by);
    }

    /// Adds labels without replacing existing ones. Returns the number of labels that exceed the limit and are omitted.
    pub(super) fn labelled(&mut self, labels: &CallLabels) -> usize {
        let left_out = self.labels.add(labels);
        self.labels = self.clean(&self.labels);
        left_out
    }

    /// Returns the labels redacted and shortened as the record's texts are.
    fn clean(&self, labels: &CallLabels) -> CallLabels {
        labels.map(|name, value| match self.keep == RecordedArguments::Redacted && is_secret_name(name) {
            true => REDACTED.into(),
            false => self.text(value, LONGEST_VALUE),
        })
    }

    pub(super) fn conclude(&mut self, outcome: &Result<CallOutcome, ExecuteToolError>, clock: &dyn Clock) {
        self.outcome = self.concluded(outcome);
        self.ended = Some(clock.now());
    }

    fn concluded(&mut self, outcome: &Result<CallOutcome, ExecuteToolError>) -> ExecutionOutcome {
        match outcome {
            Ok(CallOutcome::Done(result)) => {
                let (digest, bytes) = digest(result);
                (self.result_digest, self.result_bytes) = (Some(digest), bytes);
                if result.is_task() {
                    let task = |name: &str| result.as_object().get(name).cloned().unwrap_or_default();
                    let metadata = json!({"task": task("taskId"), "status": task("status")});
                    self.metadata = ParsedOrRawJson::Value(metadata);
                    return ExecutionOutcome::Succeeded;
                }
                if let Some(content) = result.structured_content() {
                    self.metadata = self.metadata(content);
                }
                match result.is_error() {
                    true => ExecutionOutcome::Failed(
                        result.error_kind().unwrap_or(ErrorKind::ExecutionFailed),
                        self.detail(&result.joined_text()),
                    ),
                    false => ExecutionOutcome::Succeeded,
                }
            }
            Ok(CallOutcome::InputRequired(_)) => ExecutionOutcome::InputRequired,
            // The name of a tool is not an argument, so the message is recorded.
            Err(ExecuteToolError::NotCallable(failure)) if failure.kind != ErrorKind::InvalidInput => {
                ExecutionOutcome::Refused(failure.kind, shortened(&redacted(&failure.message), KEPT_TEXT))
            }
            Err(ExecuteToolError::NotCallable(failure) | ExecuteToolError::Refused(failure)) => {
                ExecutionOutcome::Refused(failure.kind, self.refusal(failure))
            }
            Err(ExecuteToolError::Failed(failure)) => {
                ExecutionOutcome::Failed(failure.kind, self.detail(&failure.message))
            }
            Err(ExecuteToolError::Cancelled(reason)) => ExecutionOutcome::Cancelled(*reason),
            Err(error @ ExecuteToolError::Closed) => ExecutionOutcome::Refused(ErrorKind::Cancelled, error.to_string()),
            Err(error @ ExecuteToolError::AuditFailure { .. }) => {
                ExecutionOutcome::Failed(ErrorKind::Internal, error.to_string())
            }
        }
    }

    fn learn(&mut self, arguments: &Value) {
        if self.keep == RecordedArguments::Redacted {
            Arc::make_mut(&mut self.redaction).learn(arguments);
            self.labels = self.clean(&self.labels);
        }
    }

    /// Returns a text as recorded: redacted if required, and at most `at_most` characters.
    fn text(&self, text: &str, at_most: usize) -> String {
        match self.keep {
            RecordedArguments::Full | RecordedArguments::None => shortened(text, at_most),
            RecordedArguments::Redacted => {
                let clean = self.redaction.text(text);
                // A text of at most this number of bytes has no more characters.
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

    /// Returns the recorded part of a failed call's message.
    fn detail(&self, text: &str) -> String {
        match self.keep {
            RecordedArguments::None => NOT_KEPT.into(),
            RecordedArguments::Full | RecordedArguments::Redacted => self.text(text, KEPT_TEXT),
        }
    }

    /// Returns the recorded part of a message that may be empty.
    pub(super) fn detail_of(&self, text: &str) -> String {
        if text.is_empty() { String::new() } else { self.detail(text) }
    }

    fn access(&self, access: &Access) -> String {
        match self.keep {
            RecordedArguments::None => kind_of(access),
            RecordedArguments::Full | RecordedArguments::Redacted => self.text(&access.to_string(), LOOKED_AT),
        }
    }

    /// Returns the recorded part of arguments or of another value. `what` names it in placeholders.
    pub(super) fn recorded_value(&self, value: &Value, what: &str) -> Value {
        let too_many = |bytes: u64| format!("[{bytes} bytes of {what}, too many to store]").into();
        match self.keep {
            RecordedArguments::None => Value::Null,
            RecordedArguments::Full => value.clone(),
            // Each value takes at least two bytes of JSON, so more values exceed the limit.
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

    /// Returns the part of a result that events contain: redacted and shortened texts, and the sizes of binary content;
    /// `Null` if no text of the call may be published.
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
            return format!("[{} bytes, too many to record]", each_piece(&result, |_| ())).into();
        }
        // `[audit] arguments = "full"` applies to arguments only, so results are redacted in any case.
        let redact = |text: &str| match self.redaction.text(text) {
            clean if text.len() <= LOOKED_AT => clean.into_owned(),
            clean => cut(&clean, text),
        };
        self.redaction.value(&result, &redact)
    }

    /// Returns the recorded part of structured content: each member that is not too long.
    fn metadata(&self, content: &Value) -> ParsedOrRawJson {
        let Some(members) = content.as_object().filter(|_| self.keep != RecordedArguments::None) else {
            return ParsedOrRawJson::Value(Value::Null);
        };
        let may_be_plain = self.keep == RecordedArguments::Redacted && self.redaction.is_empty();
        if may_be_plain
            && members.len() <= KEPT_FINDINGS
            && let Some(text) = plain_json(content).filter(|text| text.len() as u64 <= KEPT_MEMBER)
        {
            return ParsedOrRawJson::Text(text);
        }
        let mut left = KEPT_BYTES as u64;
        let mut kept = Map::new();
        for (name, value) in members.iter().take(KEPT_FINDINGS) {
            let is_long = |value: &Value| !value.is_string() && each_piece(value, |_| ()) > KEPT_MEMBER;
            let value = match (is_secret_name(name) && self.keep == RecordedArguments::Redacted, is_long(value)) {
                (true, _) => REDACTED.into(),
                (false, true) => format!("[{} bytes, too many to store]", each_piece(value, |_| ())).into(),
                (false, false) => match value {
                    Value::String(text) => self.text(text, KEPT_TEXT).into(),
                    value => self.recorded_value(value, "metadata"),
                },
            };
            let bytes = each_piece(&value, |_| ()) + name.len() as u64;
            let Some(rest) = left.checked_sub(bytes) else { break };
            left = rest;
            kept.insert(self.text(name, KEPT_TEXT), value);
        }
        ParsedOrRawJson::Value(kept.into())
    }

    /// Returns the reason of a refusal, without values of arguments unless those are recorded in full.
    fn refusal(&self, failure: &ToolFailure) -> String {
        let reason = || self.decided.as_ref().map(|decided| decided.reason.clone());
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

    /// Returns the recorded findings, at most [`KEPT_FINDINGS`]. If there are more, the strictest come first.
    fn trace(&self, decision: &Decision, redacted: &Decision) -> Value {
        let mut findings: Vec<(&Finding, &Finding)> = decision.trace.iter().zip(&redacted.trace).collect();
        let more = findings.len().saturating_sub(KEPT_FINDINGS);
        if more > 0 {
            findings.sort_by_key(|(finding, _)| std::cmp::Reverse(finding.verdict));
            findings.truncate(KEPT_FINDINGS);
        }
        let mut kept: Vec<Value> = Vec::with_capacity(findings.len());
        for (finding, redacted) in findings {
            let mut redacted = redacted.to_json();
            for text in redacted.as_object_mut().into_iter().flat_map(Map::values_mut) {
                if let Value::String(long) = text {
                    *text = self.text(long, KEPT_TEXT).into();
                }
            }
            if let (RecordedArguments::None, Some(access)) = (self.keep, &finding.part) {
                redacted["part"] = kind_of(access).into();
            }
            kept.push(redacted);
        }
        if more > 0 {
            kept.push(json!({"verdict": null, "part": null, "cause": format!("{more} more parts")}));
        }
        kept.into()
    }
}

/// Returns the kind of an access without its target, which is an argument. The tool of a server is not an argument.
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

/// Returns the decision without its accesses and what was derived from them: rules that were approved in the session,
/// and reasons of hooks.
fn without_arguments(decision: &Decision) -> Decision {
    let bare = |finding: &Finding| {
        let cause = match &finding.cause {
            Cause::Rule(rule) if rule.origin == RuleOrigin::Session => {
                Cause::Default("a rule of the approvals of this session")
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

/// SHA-256 digest in lower-case hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HexDigest([u8; 64]);

impl HexDigest {
    fn new(digest: &[u8]) -> Self {
        let mut digits = [b'0'; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(digest) {
            let hex = b"0123456789abcdef";
            pair.copy_from_slice(&[hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]]);
        }
        Self(digits)
    }

    pub(super) fn as_str(&self) -> &str {
        // Hexadecimal digits are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl From<HexDigest> for String {
    fn from(digest: HexDigest) -> Self {
        digest.as_str().to_owned()
    }
}

/// Returns SHA-256 and length of the value as compact JSON, without storing all of it.
pub(super) fn digest(value: &impl serde::Serialize) -> (HexDigest, u64) {
    let mut hasher = Sha256::new();
    let (mut gathered, mut length) = ([0; HASHED_AT_ONCE], 0);
    let bytes = each_piece(value, |piece| {
        if length + piece.len() > HASHED_AT_ONCE {
            hasher.update(&gathered[..length]);
            length = 0;
        }
        match gathered.get_mut(length..length + piece.len()) {
            Some(free) => {
                free.copy_from_slice(piece);
                length += piece.len();
            }
            None => hasher.update(piece),
        }
    });
    hasher.update(&gathered[..length]);
    (HexDigest::new(&hasher.finalize()), bytes)
}

/// Returns the compact JSON of a value that is recorded unchanged; `None` if that is not certain.
fn plain_json(value: &Value) -> Option<String> {
    let is_plain = is_plain_value(value, KEPT_TEXT, &mut { PLAIN_BYTES });
    is_plain.then(|| serde_json::to_string(value).ok()).flatten()
}

/// Passes the value as compact JSON to `take`, piece by piece. Returns the number of bytes.
pub(super) fn each_piece(value: &impl serde::Serialize, take: impl FnMut(&[u8])) -> u64 {
    struct CallbackWriter<F>(F, u64);
    impl<F: FnMut(&[u8])> io::Write for CallbackWriter<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            (self.0)(bytes);
            self.1 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = CallbackWriter(take, 0);
    // Serializing JSON values never fails, and the writer accepts every byte.
    let _ = serde_json::to_writer(&mut sink, value);
    sink.1
}

/// Returns `true` if the value consists of at most `left` values. A long text counts as several, by the bytes that
/// redaction reads of it.
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
    match first_chars(text, at_most) {
        whole if whole.len() == text.len() => text.to_owned(),
        beginning => cut(beginning, text),
    }
}

/// Returns at most this number of characters of a text.
fn first_chars(text: &str, at_most: usize) -> &str {
    // A text of at most this number of bytes has no more characters.
    if text.len() <= at_most {
        return text;
    }
    text.char_indices().nth(at_most).map_or(text, |(end, _)| &text[..end])
}

/// Returns the beginning with a note of the text's length.
fn cut(beginning: &str, whole: &str) -> String {
    format!("{beginning}… ({} bytes in all)", whole.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use toolstead_domain::testing::{fixed_clock::FixedClock, samples};

    fn record(arguments: Value, keep: RecordedArguments) -> CallRecord {
        let command = ExecuteToolCommand::new("t", arguments);
        CallRecord::begin(samples::call_id(1), &command, keep, &FixedClock::at(Timestamp(1)))
    }

    #[test]
    fn long_arguments_are_shortened_in_the_record_with_a_notice_of_their_size() {
        let kept = |arguments| record(arguments, RecordedArguments::Redacted).execution().arguments.to_value();
        for length in [5000, LOOKED_AT + 1] {
            let content = kept(json!({"content": "x".repeat(length)}))["content"].as_str().unwrap().to_owned();
            assert!(content.ends_with(&format!("… ({length} bytes in all)")) && content.len() < 2100, "{content}");
        }
        let many: Vec<Value> = (0..20).map(|_| json!("y".repeat(1900))).collect();
        assert!(kept(json!(many)).as_str().unwrap().contains("bytes of arguments, too many to store"));
        assert!(kept(json!(vec![0; 100_000])).as_str().unwrap().contains("too many to store"));
        // This many texts are not searched for secrets.
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
        let metadata =
            |keep| record(json!({"env": {"MY_TOKEN": "tok-1"}}), keep).metadata(&content).borrowed().to_value();
        let kept = metadata(RecordedArguments::Redacted);
        assert_eq!(
            (&kept["path"], &kept["token"], &kept["url"], &kept["echoed"], &kept["n"]),
            (&json!("a"), &json!(REDACTED), &json!("https://u:[redacted]@h/"), &json!("it is [redacted]"), &json!(3))
        );
        assert_eq!(kept["lines"], "[16001 bytes, too many to store]");
        assert!(kept["content"].as_str().unwrap().ends_with("… (9000 bytes in all)"));
        assert_eq!(metadata(RecordedArguments::Full)["token"], "abcdef");
        assert_eq!(metadata(RecordedArguments::None), Value::Null);
    }

    #[test]
    fn plain_arguments_and_results_are_recorded_as_the_text_that_is_hashed() {
        let arguments = json!({"message": "hello", "lines": [1, 2.50, null], "more": {"is_new": true}});
        let plain = record(arguments.clone(), RecordedArguments::Redacted);
        let json = arguments.to_string();
        assert!(matches!(&plain.arguments, ParsedOrRawJson::Text(text) if *text == json));
        assert_eq!(plain.arguments_digest, digest(&arguments).0);
        assert!(matches!(plain.metadata(&arguments), ParsedOrRawJson::Text(text) if text == json));
        assert!(matches!(plain.metadata(&json!(["a"])), ParsedOrRawJson::Value(Value::Null)));
        for other in [json!({"token": "abcdef"}), json!({"text": "a-b"}), json!({"text": "x".repeat(KEPT_TEXT + 1)})] {
            assert!(matches!(record(other, RecordedArguments::Redacted).arguments, ParsedOrRawJson::Value(_)));
        }
    }

    #[test]
    fn a_digest_is_that_of_the_compact_json() {
        let (hex, bytes) = digest(&json!({}));
        assert_eq!((hex.as_str(), bytes), ("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", 2));
    }

    proptest! {
        #[test]
        fn hashing_in_pieces_yields_the_digest_of_the_whole_json(lengths in vec(0..3 * HASHED_AT_ONCE, 0..8)) {
            let texts: Vec<String> = lengths.iter().enumerate().map(|(at, length)| at.to_string().repeat(*length)).collect();
            let whole: String = Sha256::digest(json!(texts).to_string()).iter().map(|byte| format!("{byte:02x}")).collect();
            let (hex, bytes) = digest(&texts);
            prop_assert_eq!((hex.as_str(), bytes), (whole.as_str(), json!(texts).to_string().len() as u64));
        }
    }
}
