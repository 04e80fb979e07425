//! Asks the user of the calling client for approval by a form (MCP `elicitation/create`).

mod reason_field;

use crate::approval_question::{ApprovalPartRow, ApprovalQuestion, common_scopes};
use async_trait::async_trait;
use reason_field::REASON;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::timeout;
use toolstead_domain::{
    ApprovalOutcome, ApprovalRequest, ApprovalScope, Approver, ClientCapability, InputRequest, InputResponse,
    NotAnswered, ports::approver::APPROVAL_KEY,
};

/// Choice that denies.
const DENY: &str = "deny";
/// Field that answers for every part.
const ALL_PARTS: &str = "all_parts";
/// Choice that leads to a second form, with one answer a part.
const EACH: &str = "each";
/// Maximum length of a part in the title of its field. The message contains the whole part.
const TITLE_CHARACTERS: usize = 160;

/// Sends each approval request to the client of the call, if the client declared that it supports forms.
#[derive(Debug, Clone, Copy)]
pub struct ElicitationApprover {
    patience: Duration,
}

impl ElicitationApprover {
    /// Creates an approver with this timeout.
    pub fn new(patience: Duration) -> Self {
        Self { patience }
    }
}

#[async_trait]
impl Approver for ElicitationApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalOutcome {
        if request.client.protocol.is_none() || !ClientCapability::Elicitation.is_declared(&request.client.capabilities)
        {
            return ApprovalOutcome::Unattended;
        }
        let Some(question) = ApprovalQuestion::of(&request) else {
            tracing::warn!(call = %request.call.id, parts = request.parts.len(), "too many parts for one question");
            return ApprovalOutcome::Unattended;
        };
        let by = match request.client.client.as_str() {
            "" => "the person at the client".to_owned(),
            client => format!("the person at {client}"),
        };
        let ask = |fields| request.caller.ask_as(APPROVAL_KEY, form(&question, fields));
        let answered = async {
            let scopes = common_scopes(&question.rows);
            // Without a scope there is nothing to choose for each part.
            if question.rows.len() > 1 && !scopes.is_empty() {
                let answer = ask(vec![(ALL_PARTS.to_owned(), all_parts(&question.rows, &scopes))]).await?;
                if choice(&answer) != Some(EACH) {
                    let scope = choice(&answer).and_then(ApprovalScope::parse).filter(|scope| scopes.contains(scope));
                    return Ok(approval(&answer, scope.map(|scope| vec![scope; question.rows.len()]), by));
                }
            }
            let fields = question.rows.iter().enumerate().map(|(index, row)| (field(index), part(index, row)));
            let answer = ask(fields.collect()).await?;
            Ok::<_, NotAnswered>(read(&answer, &question.rows, by))
        };
        match timeout(self.patience, answered).await {
            Ok(Ok(approval)) => approval,
            Ok(Err(NotAnswered::TimedOut)) | Err(_) => ApprovalOutcome::TimedOut,
            Ok(Err(why)) => {
                tracing::debug!(call = %request.call.id, %why, "the client does not receive the question");
                ApprovalOutcome::Unattended
            }
        }
    }
}

fn field(index: usize) -> String {
    format!("part_{}", index + 1)
}

/// Returns the question as a form with these fields, each of which is required, and one for a reason.
fn form(question: &ApprovalQuestion, fields: Vec<(String, Value)>) -> InputRequest {
    let mut lines = vec![question.heading.clone()];
    for (index, row) in question.rows.iter().enumerate() {
        lines.push(format!("{}. {}", index + 1, row.what));
        lines.push(format!("   Why: {}", row.why));
        lines.extend(row.covers.as_ref().map(|covers| format!("   If allowed for longer: {covers}")));
    }
    lines.extend(question.facts.iter().chain(&question.change).cloned());
    let required: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
    let mut properties: Map<String, Value> = fields.into_iter().collect();
    properties.insert(REASON.to_owned(), reason_field::schema());
    let params = json!({
        "message": lines.join("\n"),
        "requestedSchema": {"type": "object", "properties": properties, "required": required},
    });
    InputRequest { method: "elicitation/create".into(), params }
}

fn part(index: usize, row: &ApprovalPartRow) -> Value {
    let title: String = row.what.chars().take(TITLE_CHARACTERS).collect();
    let choices = row.scopes.iter().map(|scope| (scope.as_str(), meaning(*scope)));
    schema(format!("{}. {title}", index + 1), choices)
}

fn all_parts(rows: &[ApprovalPartRow], scopes: &[ApprovalScope]) -> Value {
    let choices = scopes.iter().map(|scope| (scope.as_str(), meaning(*scope)));
    let each = (EACH, "answer each part separately in another form");
    schema(format!("All {} parts", rows.len()), choices.chain([each]))
}

fn schema(title: String, choices: impl Iterator<Item = (&'static str, &'static str)> + Clone) -> Value {
    let names: Vec<&str> = std::iter::once(DENY).chain(choices.clone().map(|(name, _)| name)).collect();
    let meanings: Vec<String> = choices.map(|(name, meaning)| format!("{name}: {meaning}")).collect();
    json!({
        "type": "string",
        "title": title,
        "description": format!("{DENY}: nothing runs; {}", meanings.join("; ")),
        "enum": names,
        "default": DENY,
    })
}

fn meaning(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::Once => "this call",
        ApprovalScope::Run => "until this run ends",
        ApprovalScope::Session => "until this session ends",
        ApprovalScope::ReadOnlyCommands => "until this session ends, with the commands that only read",
        ApprovalScope::Project => "from now on in this project",
        ApprovalScope::Always => "from now on everywhere",
    }
}

/// Returns the fields of an answer that accepts, fills in this number of fields, and gives no reason for a denial.
fn accepted(answer: &InputResponse, fields: usize) -> Option<&Map<String, Value>> {
    let answer = answer.0.as_object().filter(|answer| answer.get("action").is_some_and(|action| action == "accept"))?;
    let content = answer.get("content")?.as_object()?;
    let is_filled = content.keys().filter(|name| *name != REASON).count() == fields;
    (is_filled && reason_field::is_empty(content)).then_some(content)
}

/// Returns the choice of an answer for all parts; `None` if it does not accept or gives a reason for a denial.
fn choice(answer: &InputResponse) -> Option<&str> {
    accepted(answer, 1)?.get(ALL_PARTS)?.as_str()
}

/// Reads an answer for each part. Only an `accept` that fills in each field, and nothing else, with one of its choices,
/// and gives no reason for a denial, approves anything; every other answer denies.
fn read(answer: &InputResponse, rows: &[ApprovalPartRow], by: String) -> ApprovalOutcome {
    let scopes = accepted(answer, rows.len()).and_then(|content| {
        let chosen = rows.iter().enumerate().map(|(index, row)| {
            let scope = ApprovalScope::parse(content.get(&field(index))?.as_str()?)?;
            row.scopes.contains(&scope).then_some(scope)
        });
        chosen.collect::<Option<Vec<_>>>()
    });
    approval(answer, scopes, by)
}

fn approval(answer: &InputResponse, scopes: Option<Vec<ApprovalScope>>, by: String) -> ApprovalOutcome {
    let content = answer.0.get("content").and_then(Value::as_object);
    match scopes {
        Some(scopes) => ApprovalOutcome::Granted { by, scopes },
        None => ApprovalOutcome::Denied { by, message: content.and_then(reason_field::reason) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval_question::tests::{Asked, asked_about_definition, asked_about_reading, write};
    use std::sync::Arc;
    use toolstead_domain::{ClientProfile, ProtocolVersion, testing::recording_caller::RecordingCaller};

    fn asked(version: ProtocolVersion, capabilities: Value) -> Asked {
        let mut asked = Asked::about(json!({"path": "a"}), vec![write("/w/a"), write("/w/b")]);
        asked.parts[1].scopes.truncate(2);
        let capabilities = capabilities.as_object().unwrap().clone();
        asked.client =
            ClientProfile { protocol: Some(version), capabilities, client: "agent 1".into(), log_level: None };
        asked
    }

    fn accept(content: Value) -> Value {
        json!({"action": "accept", "content": content})
    }

    async fn answered_by(answers: Vec<Value>) -> ApprovalOutcome {
        let mut asked = asked(ProtocolVersion::V20260728, json!({"elicitation": {}}));
        let answers = answers.into_iter().map(|answer| Ok(InputResponse(answer)));
        asked.caller = Arc::new(RecordingCaller::answering(answers));
        ElicitationApprover::new(Duration::from_secs(1)).ask(asked.request()).await
    }

    /// Answers the form with one field a part.
    async fn answered(answer: Value) -> ApprovalOutcome {
        answered_by(vec![accept(json!({"all_parts": "each"})), answer]).await
    }

    #[tokio::test]
    async fn the_first_form_has_one_field_for_all_parts_and_the_second_one_per_part() {
        let mut asked = asked(ProtocolVersion::V20260728, json!({"elicitation": {}}));
        let each = InputResponse(accept(json!({"all_parts": "each"})));
        let caller = Arc::new(RecordingCaller::answering([Ok(each)]));
        asked.caller = caller.clone();
        ElicitationApprover::new(Duration::from_secs(1)).ask(asked.request()).await;
        let [first, form]: [InputRequest; 2] = caller.questions().try_into().unwrap();
        assert_eq!(first.params["message"], form.params["message"]);
        let schema = &first.params["requestedSchema"];
        assert_eq!(schema["required"], json!(["all_parts"]));
        let meanings = "deny: nothing runs; once: this call; run: until this run ends; each: answer each part \
                        separately in another form";
        assert_eq!(
            schema["properties"]["all_parts"],
            json!({
                "type": "string", "title": "All 2 parts", "description": meanings, "default": "deny",
                "enum": ["deny", "once", "run", "each"],
            })
        );
        assert_eq!(form.method, "elicitation/create");
        insta::assert_snapshot!(form.params["message"].as_str().unwrap(), @r#"
        May the tool `write_file` run?
        1. write `/w/a`
           Why: changes to files need approval by default
           If allowed for longer: the rule `Write(//w/a)`, and everything below it
        2. write `/w/b`
           Why: changes to files need approval by default
           If allowed for longer: the rule `Write(//w/b)`, and everything below it
        With `path`: `"a"`
        "#);
        let schema = &form.params["requestedSchema"];
        assert_eq!(schema["required"], json!(["part_1", "part_2"]));
        assert_eq!(schema["properties"]["reason"]["type"], "string");
        let fields = &schema["properties"];
        assert_eq!(fields["part_1"]["enum"], json!(["deny", "once", "run", "session", "project", "always"]));
        assert_eq!(fields["part_2"]["enum"], json!(["deny", "once", "run"]));
        let meanings = fields["part_2"]["description"].as_str().unwrap();
        assert_eq!(meanings, "deny: nothing runs; once: this call; run: until this run ends");
        assert_eq!(
            (&fields["part_1"]["title"], &fields["part_1"]["default"]),
            (&json!("1. write `/w/a`"), &json!("deny"))
        );
    }

    #[tokio::test]
    async fn approval_requires_an_accept_with_a_valid_choice_for_each_part() {
        let granted = answered(json!({"action": "accept", "content": {"part_1": "always", "part_2": "run"}})).await;
        let scopes = vec![ApprovalScope::Always, ApprovalScope::Run];
        assert_eq!(granted, ApprovalOutcome::Granted { by: "the person at agent 1".into(), scopes });
        for answer in [
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
            json!({"action": "decline", "content": {"part_1": "once", "part_2": "once"}}),
            json!({"action": "Accept", "content": {"part_1": "once", "part_2": "once"}}),
            json!({"action": ["accept"], "content": {"part_1": "once", "part_2": "once"}}),
            json!({"content": {"part_1": "once", "part_2": "once"}}),
            json!({"action": "accept"}),
            json!({"action": "accept", "content": null}),
            json!({"action": "accept", "content": []}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept", "content": {"part_1": "once"}}),
            json!({"action": "accept", "content": {"part_1": "once", "part_2": "deny"}}),
            json!({"action": "accept", "content": {"part_1": "once", "part_2": "always"}}),
            json!({"action": "accept", "content": {"part_1": "once", "part_2": true}}),
            json!({"action": "accept", "content": {"part_1": "once", "part_2": ["once"]}}),
            json!({"action": "accept", "content": {"part_1": "once", "part_2": "ONCE"}}),
            json!({"action": "accept", "content": {"part_1": "once", "part_2": "once", "part_3": "once"}}),
            json!("accept"),
            json!(null),
            json!([{"action": "accept"}]),
        ] {
            let reply = answered(answer.clone()).await;
            assert_eq!(reply, ApprovalOutcome::denied("the person at agent 1"), "{answer}");
        }
    }

    #[tokio::test]
    async fn approving_all_parts_requires_an_accept_with_a_choice_that_every_part_offers() {
        let once = answered_by(vec![accept(json!({"all_parts": "once"}))]).await;
        let by = "the person at agent 1".to_owned();
        assert_eq!(once, ApprovalOutcome::Granted { by, scopes: vec![ApprovalScope::Once; 2] });
        for answer in [
            json!({"action": "decline", "content": {"all_parts": "once"}}),
            json!({"content": {"all_parts": "once"}}),
            accept(json!({"all_parts": "deny"})),
            // The second part is not offered for ever.
            accept(json!({"all_parts": "always"})),
            accept(json!({"all_parts": "once", "more": true})),
            accept(json!({"all_parts": ["once"]})),
            accept(json!({"part_1": "once"})),
            accept(json!({"part_1": "once", "part_2": "once"})),
            accept(json!({})),
        ] {
            assert_eq!(
                answered_by(vec![answer.clone()]).await,
                ApprovalOutcome::denied("the person at agent 1"),
                "{answer}"
            );
        }
        let answer = accept(json!({"all_parts": "once", "reason": "use b"}));
        let message = Some("use b".to_owned());
        assert_eq!(
            answered_by(vec![answer]).await,
            ApprovalOutcome::Denied { by: "the person at agent 1".into(), message }
        );
    }

    #[tokio::test]
    async fn a_form_with_a_truncated_definition_offers_only_denial() {
        let mut long = asked_about_definition(300);
        long.parts.push(long.parts[0].clone());
        long.client = asked(ProtocolVersion::V20251125, json!({"elicitation": {}})).client;
        let answer = accept(json!({"part_1": "once", "part_2": "once"}));
        let caller = Arc::new(RecordingCaller::answering([Ok(InputResponse(answer))]));
        long.caller = caller.clone();
        let approval = ElicitationApprover::new(Duration::from_secs(1)).ask(long.request()).await;
        assert_eq!(approval, ApprovalOutcome::denied("the person at agent 1"));
        let form = caller.questions().remove(0);
        assert_eq!(form.params["requestedSchema"]["properties"]["part_1"]["enum"], json!(["deny"]));
        let message = form.params["message"].as_str().unwrap();
        assert!(message.contains("`toolstead servers approve notes` approves it"), "{message}");
    }

    #[tokio::test]
    async fn a_form_lists_read_only_commands_and_offers_to_approve_them() {
        let asked_by_form = |version, answers: Vec<Value>| {
            let mut reading = asked_about_reading();
            reading.client = asked(version, json!({"elicitation": {}})).client;
            let answers = answers.into_iter().map(|answer| Ok(InputResponse(accept(answer))));
            let caller = Arc::new(RecordingCaller::answering(answers));
            reading.caller = caller.clone();
            (caller, reading)
        };
        for version in [ProtocolVersion::V20251125, ProtocolVersion::V20260728] {
            for (answers, scopes) in [
                (vec![json!({"all_parts": "read_only_commands"})], [ApprovalScope::ReadOnlyCommands; 2]),
                (
                    vec![json!({"all_parts": "each"}), json!({"part_1": "once", "part_2": "read_only_commands"})],
                    [ApprovalScope::Once, ApprovalScope::ReadOnlyCommands],
                ),
            ] {
                let (caller, asked) = asked_by_form(version, answers);
                let approval = ElicitationApprover::new(Duration::from_secs(1)).ask(asked.request()).await;
                let by = "the person at agent 1".to_owned();
                assert_eq!(approval, ApprovalOutcome::Granted { by, scopes: scopes.to_vec() });
                let form = caller.questions().remove(0);
                let field = &form.params["requestedSchema"]["properties"]["all_parts"];
                assert_eq!(field["enum"], json!(["deny", "once", "session", "read_only_commands", "each"]));
                let meanings = field["description"].as_str().unwrap();
                let meaning = "read_only_commands: until this session ends, with the commands that only read;";
                assert!(meanings.contains(meaning), "{meanings}");
                let message = form.params["message"].as_str().unwrap();
                assert!(message.contains("\nCommands that only read, for this session: the rules above"), "{message}");
            }
        }
    }

    #[tokio::test]
    async fn a_form_answer_with_a_reason_denies_the_call_with_that_message() {
        let denied = |reason: &str| ApprovalOutcome::Denied {
            by: "the person at agent 1".into(),
            message: Some(reason.to_owned()),
        };
        for content in [
            json!({"part_1": "deny", "part_2": "deny", "reason": "use b"}),
            json!({"part_1": "once", "part_2": "once", "reason": "use b"}),
            json!({"reason": "use b"}),
        ] {
            for action in ["accept", "decline", "cancel"] {
                assert_eq!(answered(json!({"action": action, "content": content})).await, denied("use b"), "{content}");
            }
        }
        // Clients send an empty text for a field that was left empty.
        for reason in [json!(""), json!("  "), Value::Null] {
            let content = json!({"part_1": "once", "part_2": "once", "reason": reason});
            let granted = answered(json!({"action": "accept", "content": content})).await;
            assert!(matches!(granted, ApprovalOutcome::Granted { .. }), "{content}");
        }
        let content = json!({"part_1": "once", "part_2": "once", "reason": {"text": "x"}});
        let answer = answered(json!({"action": "accept", "content": content})).await;
        assert_eq!(answer, ApprovalOutcome::denied("the person at agent 1"));
    }

    #[tokio::test]
    async fn a_form_with_a_truncated_diff_offers_no_lasting_approval_and_counts_hidden_lines() {
        let mut asked = asked(ProtocolVersion::V20251125, json!({"elicitation": {}}));
        let caller = Arc::new(RecordingCaller::new());
        (asked.caller, asked.preview) = (caller.clone(), Some(format!("@@ -0,0 +1,300 @@\n{}", "+x\n".repeat(300))));
        ElicitationApprover::new(Duration::from_secs(1)).ask(asked.request()).await;
        let form = caller.questions().remove(0);
        let message = form.params["message"].as_str().unwrap();
        assert!(message.contains("\n(cut: 241 of 301 lines are not shown)\n"), "{message}");
        let fields = &form.params["requestedSchema"]["properties"];
        assert_eq!(fields["all_parts"]["enum"], json!(["deny", "once", "each"]));
    }

    #[tokio::test]
    async fn approval_is_unattended_if_the_client_cannot_answer_forms() {
        for (version, capabilities) in [
            (ProtocolVersion::V20260728, json!({})),
            (ProtocolVersion::V20251125, json!({"sampling": {}})),
            (ProtocolVersion::V20251125, json!({"elicitation": {"url": {}}})),
            (ProtocolVersion::V20251125, json!({"elicitation": true})),
            // The caller of the test answers nothing.
            (ProtocolVersion::V20251125, json!({"elicitation": {"form": {}}})),
        ] {
            let asked = asked(version, capabilities);
            let answer = ElicitationApprover::new(Duration::from_secs(1)).ask(asked.request()).await;
            assert_eq!(answer, ApprovalOutcome::Unattended);
        }
        let mut nobody = asked(ProtocolVersion::V20251125, json!({"elicitation": {}}));
        nobody.client.protocol = None;
        let answer = ElicitationApprover::new(Duration::from_secs(1)).ask(nobody.request()).await;
        assert_eq!(answer, ApprovalOutcome::Unattended);
    }
}
