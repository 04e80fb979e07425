//! The canonical form of an audit record: one line with a JSON object of this version, its members in a fixed order and
//! absent ones omitted. The backlog file and the `record` column contain the same bytes.

use super::{
    fault::Fault,
    legacy_audit_record::LegacyAuditRecord,
    stored_values::{kind, labels, outcome, unreadable, value},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;
use toolstead_domain::{
    AuditedRequestKind, BorrowedToolExecution, CallId, CallLabels, ExecutionOutcome, ParsedOrRawJsonRef,
    RecordedDecision, Timestamp, ToolExecution,
};
use uuid::Uuid;

/// Version of the canonical form that this program writes. [`BEGINNING`] is the start of such a record.
const VERSION: u32 = 1;
const BEGINNING: &str = r#"{"v":1,"id":""#;
/// Length of a UUID as text, in bytes.
const UUID_BYTES: usize = 36;

/// Estimated length of the names, digests and numbers of a record, in bytes.
const FIXED_BYTES: usize = 640;

/// Returns the estimated length of the record of a call with short arguments, in bytes.
pub(super) fn estimated_bytes(execution: &BorrowedToolExecution<'_>) -> usize {
    let texts = [execution.tool, execution.called_as, execution.session, execution.client];
    let decision = execution.decision.map_or(0, |decision| 2 * decision.reason.len());
    FIXED_BYTES + texts.map(str::len).iter().sum::<usize>() + decision
}

/// Appends the record of a call. `instance` is the process in which an unfinished call runs.
pub(super) fn encode(execution: &BorrowedToolExecution<'_>, instance: Uuid, buffer: &mut Vec<u8>) {
    let mut record = JsonMemberEncoder(buffer);
    record.uuid(r#"{"v":1,"id":"#, execution.id.0);
    if let Some(parent) = execution.parent {
        record.uuid(r#","parent":"#, parent.0);
    }
    if execution.kind != AuditedRequestKind::Tool {
        record.text(r#","kind":"#, execution.kind.as_str());
    }
    record.text(r#","tool":"#, execution.tool);
    record.text(r#","called_as":"#, execution.called_as);
    record.text(r#","source":"#, execution.source);
    record.text(r#","principal":"#, execution.principal);
    record.text(r#","session":"#, execution.session);
    record.text(r#","client":"#, execution.client);
    record.value(r#","arguments":"#, execution.arguments);
    record.text(r#","arguments_digest":"#, execution.arguments_digest);
    if !execution.accesses.is_empty() {
        record.json(r#","accesses":"#, &execution.accesses);
    }
    if let Some(decision) = execution.decision {
        record.text(r#","verdict":"#, decision.verdict);
        record.text(r#","reason":"#, decision.reason);
        record.optional(r#","approved_by":"#, decision.approved_by);
        record.value(r#","trace":"#, decision.trace);
    }
    record.json(r#","started":"#, &execution.started.0);
    if let Some(ended) = execution.ended {
        record.json(r#","ended":"#, &ended.0);
    }
    record.text(r#","outcome":"#, execution.outcome.kind().as_str());
    record.optional(r#","error_kind":"#, error_kind(execution.outcome));
    record.optional(r#","detail":"#, detail(execution.outcome));
    record.json(r#","result_bytes":"#, &execution.result_bytes);
    record.optional(r#","result_digest":"#, execution.result_digest);
    record.value(r#","metadata":"#, execution.metadata);
    if !execution.labels.is_empty() {
        record.name(r#","labels":"#);
        encode_labels(execution.labels, record.0);
    }
    if !execution.outcome.is_final() {
        record.uuid(r#","instance":"#, instance);
    }
    record.name("}");
}

/// Encoder that appends members, each with the punctuation before it.
struct JsonMemberEncoder<'a>(&'a mut Vec<u8>);

impl JsonMemberEncoder<'_> {
    fn name(&mut self, name: &str) {
        self.0.extend_from_slice(name.as_bytes());
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        append_text(text, self.0);
    }

    fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    fn uuid(&mut self, name: &str, id: Uuid) {
        self.name(name);
        self.0.push(b'"');
        self.name(id.hyphenated().encode_lower(&mut [0; UUID_BYTES]));
        self.0.push(b'"');
    }

    /// Appends a value. Omits `Null`.
    fn value(&mut self, name: &str, value: ParsedOrRawJsonRef<'_>) {
        match value {
            ParsedOrRawJsonRef::Value(Value::Null) => {}
            ParsedOrRawJsonRef::Value(value) => self.json(name, value),
            ParsedOrRawJsonRef::Text(text) => {
                self.name(name);
                self.name(text);
            }
        }
    }

    fn json(&mut self, name: &str, value: &impl Serialize) {
        self.name(name);
        append_json(value, self.0);
    }
}

/// Appends compact JSON. Serializing texts, numbers and JSON values never fails, and a `Vec` accepts every byte.
fn append_json(value: &impl Serialize, buffer: &mut Vec<u8>) {
    let _ = serde_json::to_writer(buffer, value);
}

/// Appends a JSON string. Most texts need no escapes, which a loop without branches detects.
fn append_text(text: &str, buffer: &mut Vec<u8>) {
    let needs_escapes = |byte: u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\');
    if text.bytes().fold(false, |found, byte| found | needs_escapes(byte)) {
        return append_json(&text, buffer);
    }
    buffer.push(b'"');
    buffer.extend_from_slice(text.as_bytes());
    buffer.push(b'"');
}

/// Appends labels as a JSON object, each as [`encoded_label`] returns it.
pub(super) fn encode_labels(labels: &CallLabels, buffer: &mut Vec<u8>) {
    let all: BTreeMap<&str, &str> = labels.iter().collect();
    append_json(&all, buffer);
}

/// Returns a text that encoded labels contain if and only if they include this label: a quote within a value is
/// escaped.
pub(super) fn encoded_label(name: &str, value: &str) -> String {
    let mut label = Vec::new();
    append_json(&name, &mut label);
    label.push(b':');
    append_json(&value, &mut label);
    String::from_utf8(label).unwrap_or_default()
}

fn error_kind(outcome: &ExecutionOutcome) -> Option<&'static str> {
    outcome.error_kind().map(|kind| kind.as_str())
}

fn detail(outcome: &ExecutionOutcome) -> Option<&str> {
    match outcome {
        ExecutionOutcome::Failed(_, message) | ExecutionOutcome::Refused(_, message) => Some(message),
        ExecutionOutcome::Cancelled(reason) => Some(reason.as_str()),
        ExecutionOutcome::Running
        | ExecutionOutcome::Succeeded
        | ExecutionOutcome::Interrupted
        | ExecutionOutcome::InputRequired => None,
    }
}

/// Decoded record.
#[derive(Debug)]
pub(super) struct DecodedRecord {
    pub(super) execution: ToolExecution,
    /// Process in which an unfinished call runs.
    pub(super) instance: Option<Uuid>,
    /// `true` for a line in the canonical form of this version.
    pub(super) is_canonical: bool,
}

impl DecodedRecord {
    /// Decodes a line in the canonical form, which begins with its version, or in the form of earlier versions.
    pub(super) fn decode(line: &[u8]) -> Result<Self, Fault> {
        if !line.starts_with(br#"{"v":"#) {
            let row: LegacyAuditRecord = serde_json::from_slice(line).map_err(unreadable)?;
            let instance = row.instance;
            return Ok(Self { execution: row.into_execution()?, instance, is_canonical: false });
        }
        let members: RecordMembers<'_> = serde_json::from_slice(line).map_err(unreadable)?;
        let instance = members.instance;
        Ok(Self { execution: members.into_execution()?, instance, is_canonical: true })
    }
}

/// Returns the id in a line of this version without decoding the rest, or `None` if the line has another form.
pub(super) fn id_of(line: &[u8]) -> Option<CallId> {
    let id = line.strip_prefix(BEGINNING.as_bytes())?.get(..UUID_BYTES)?;
    Uuid::try_parse_ascii(id).ok().map(CallId)
}

/// Members of a record. Values are parsed separately: the record adds a level of nesting, and the parser permits 127.
#[derive(Deserialize)]
struct RecordMembers<'a> {
    v: u32,
    id: Uuid,
    parent: Option<Uuid>,
    kind: Option<String>,
    tool: String,
    called_as: String,
    source: String,
    principal: String,
    session: String,
    client: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    arguments_digest: String,
    #[serde(default)]
    accesses: Vec<String>,
    verdict: Option<String>,
    reason: Option<String>,
    approved_by: Option<String>,
    #[serde(borrow)]
    trace: Option<&'a RawValue>,
    started: i64,
    ended: Option<i64>,
    outcome: String,
    error_kind: Option<String>,
    detail: Option<String>,
    result_bytes: u64,
    result_digest: Option<String>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    labels: Option<BTreeMap<String, String>>,
    instance: Option<Uuid>,
}

impl RecordMembers<'_> {
    fn into_execution(self) -> Result<ToolExecution, Fault> {
        if self.v != VERSION {
            return Err(unreadable(format!("records of version {} require a newer program", self.v)));
        }
        let value = |raw: Option<&RawValue>| value(raw.map(RawValue::get));
        let (reason, approved_by, trace) = (self.reason.unwrap_or_default(), self.approved_by, value(self.trace));
        Ok(ToolExecution {
            id: CallId(self.id),
            parent: self.parent.map(CallId),
            kind: kind(self.kind.as_deref())?,
            tool: self.tool,
            called_as: self.called_as,
            source: self.source,
            principal: self.principal,
            session: self.session,
            client: self.client,
            arguments: value(self.arguments),
            arguments_digest: self.arguments_digest,
            accesses: self.accesses,
            decision: self.verdict.map(|verdict| RecordedDecision { verdict, reason, approved_by, trace }),
            started: Timestamp(self.started),
            ended: self.ended.map(Timestamp),
            outcome: outcome(&self.outcome, self.error_kind.as_deref(), self.detail.unwrap_or_default())?,
            result_bytes: self.result_bytes,
            result_digest: self.result_digest,
            metadata: value(self.metadata),
            labels: labels(self.labels.unwrap_or_default())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolstead_domain::{error_kind::ErrorKind, testing::samples};

    const INSTANCE: Uuid = Uuid::from_u128(1);

    fn encoded(execution: &ToolExecution) -> String {
        let mut buffer = Vec::new();
        encode(&execution.into(), INSTANCE, &mut buffer);
        String::from_utf8(buffer).unwrap()
    }

    /// Every later version must be able to read these lines.
    #[test]
    fn the_encoding_of_records_of_this_version_is_stable() {
        let execution = ToolExecution {
            parent: Some(samples::call_id(9)),
            kind: AuditedRequestKind::Prompt,
            called_as: "a\n\"b\\".into(),
            labels: CallLabels::default().with("label", "a \"value\"").unwrap(),
            decision: Some(RecordedDecision {
                verdict: "ask".into(),
                reason: String::new(),
                approved_by: Some("user".into()),
                trace: json!(["trace"]),
            }),
            outcome: ExecutionOutcome::Failed(ErrorKind::Timeout, "ä".into()),
            ..samples::execution(1)
        };
        let line = r#"{"v":1,"id":"01990292-d001-7000-8000-000000000001","parent":"01990292-d009-7000-8000-000000000009","kind":"prompt","tool":"echo","called_as":"a\n\"b\\","source":"built-in","principal":"local","session":"session-1","client":"test 1.0","arguments":{"text":"hello","number":1},"arguments_digest":"0000000000000000000000000000000000000000000000000000000000000001","accesses":["read /srv/1.txt"],"verdict":"ask","reason":"","approved_by":"user","trace":["trace"],"started":1756684800001000,"ended":1756684800001250,"outcome":"failed","error_kind":"timeout","detail":"ä","result_bytes":120,"result_digest":"0000000000000000000000000000000000000000000000000000000000000002","metadata":{"lines":1},"labels":{"label":"a \"value\""}}"#;
        assert_eq!(encoded(&execution), line);
        let (arguments, mut buffer) = (execution.arguments.to_string(), Vec::new());
        let as_text = BorrowedToolExecution { arguments: ParsedOrRawJsonRef::Text(&arguments), ..(&execution).into() };
        encode(&as_text, INSTANCE, &mut buffer);
        assert_eq!(buffer, line.as_bytes());
        assert_eq!(DecodedRecord::decode(line.as_bytes()).unwrap().execution, execution);
        let running = ToolExecution {
            arguments: Value::Null,
            accesses: Vec::new(),
            decision: None,
            ..samples::running_execution(2)
        };
        let line = r#"{"v":1,"id":"01990292-d002-7000-8000-000000000002","tool":"echo","called_as":"echo","source":"built-in","principal":"local","session":"session-1","client":"test 1.0","arguments_digest":"0000000000000000000000000000000000000000000000000000000000000002","started":1756684800002000,"outcome":"running","result_bytes":0,"instance":"00000000-0000-0000-0000-000000000001"}"#;
        assert_eq!(encoded(&running), line);
        let decoded = DecodedRecord::decode(line.as_bytes()).unwrap();
        assert_eq!((decoded.execution, decoded.instance), (running, Some(INSTANCE)));
    }

    #[test]
    fn the_id_is_read_from_the_start_of_a_record() {
        let line = encoded(&samples::execution(3));
        assert_eq!(id_of(line.as_bytes()), Some(samples::call_id(3)));
        assert_eq!(id_of(&line.as_bytes()[..30]), None);
        assert_eq!(id_of(br#"{"id":"#), None);
    }

    #[test]
    fn deeply_nested_arguments_do_not_hide_a_record() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        // The maximum that the parser permits.
        let arguments: Value = nested(127).parse().unwrap();
        let execution = ToolExecution { arguments, ..samples::execution(1) };
        assert_eq!(DecodedRecord::decode(encoded(&execution).as_bytes()).unwrap().execution, execution);
        let (deeper, mut line) = (nested(128), Vec::new());
        encode(
            &BorrowedToolExecution { arguments: ParsedOrRawJsonRef::Text(&deeper), ..(&execution).into() },
            INSTANCE,
            &mut line,
        );
        assert_eq!(DecodedRecord::decode(&line).unwrap().execution.arguments, deeper);
    }

    #[test]
    fn records_of_later_versions_are_not_read() {
        let line = encoded(&samples::execution(1)).replace(r#"{"v":1"#, r#"{"v":2"#);
        assert!(DecodedRecord::decode(line.as_bytes()).is_err());
    }

    #[test]
    fn an_error_kind_of_a_later_version_is_reported_in_the_message() {
        let read = outcome("failed", Some("too_hot"), "it melted".into()).unwrap();
        assert_eq!(read, ExecutionOutcome::Failed(ErrorKind::Internal, "too_hot: it melted".into()));
    }

    #[test]
    fn an_unknown_outcome_is_a_fault() {
        assert!(outcome("dreamt", None, String::new()).is_err());
        assert!(outcome("cancelled", None, "tired".into()).is_err());
    }
}
