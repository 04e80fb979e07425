//! Questions as an elicitation form of MCP, and the reply to it.

use serde_json::{Map, Value, json};
use toolstead_domain::{
    Choice, ClientProfile, InputRequest, ProtocolVersion, Question, invisible_characters::displaces_text,
};

/// Maximum number of characters of one answer.
const MAX_ANSWER: usize = 10_000;
/// Text before the questions, so that they cannot pass for questions of a server or of Toolstead.
pub const INTRODUCTION: &str = "The agent asks:";
/// Suffix of the name of the field for a free answer.
const OWN: &str = "_other";

/// Answers of the user, or their refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionFormReply {
    /// Answered: a text for each question in its order, as far as there is one.
    Answers(Vec<Option<String>>),
    /// The user declined to answer.
    Declined,
    /// The user closed the form.
    Cancelled,
    /// A reply that MCP does not define.
    Malformed,
}

/// Returns the form. Each question has a field for the choice and one for a free answer, and both are optional.
pub fn elicitation_request(questions: &[Question], client: &ClientProfile) -> InputRequest {
    let knows_titles = client.protocol.is_none_or(|version| version >= ProtocolVersion::V20251125);
    let mut properties = Map::new();
    for (index, question) in questions.iter().enumerate() {
        let name = name(index);
        let mut choice = match knows_titles {
            true => titled(question),
            false => plain(question),
        };
        choice.insert("title".into(), question.header.as_str().into());
        let described = description(question, questions.len() > 1, knows_titles);
        if !described.is_empty() {
            choice.insert("description".into(), described.into());
        }
        properties.insert(name.clone(), choice.into());
        let own = json!({
            "type": "string",
            "title": format!("{}: other", question.header),
            "description": "Or an answer in your own words.",
            "maxLength": MAX_ANSWER,
        });
        properties.insert(format!("{name}{OWN}"), own);
    }
    let schema = json!({"type": "object", "properties": properties});
    InputRequest {
        method: "elicitation/create".into(),
        params: json!({"message": message(questions), "requestedSchema": schema}),
    }
}

fn name(index: usize) -> String {
    format!("answer{}", index + 1)
}

/// Returns the text that the user reads first: the questions, and descriptions of their options.
fn message(questions: &[Question]) -> String {
    let mut text = match questions {
        [one] => one.question.clone(),
        several => {
            let lines = several.iter().enumerate();
            lines.map(|(index, one)| format!("{}. {}", index + 1, one.question)).collect::<Vec<_>>().join("\n")
        }
    };
    for option in questions.iter().flat_map(|question| &question.options) {
        if let Some(preview) = &option.preview {
            text.push_str(&format!("\n\n{}:\n{preview}", option.label));
        }
    }
    with_introduction(&text)
}

/// Returns a model's text after Toolstead's introduction. Of several lines each follows a mark, so that no line can
/// imitate another source.
fn with_introduction(text: &str) -> String {
    let clean = |line: &str| line.chars().map(|c| if displaces_text(c) { '\u{fffd}' } else { c }).collect::<String>();
    match text.lines().collect::<Vec<_>>().as_slice() {
        [line] => format!("{INTRODUCTION} {}", clean(line)),
        lines => lines.iter().fold(INTRODUCTION.to_owned(), |text, line| format!("{text}\n| {}", clean(line))),
    }
}

/// Returns the question of the field, if there are several, and the descriptions of the options, if the client cannot
/// show them.
fn description(question: &Question, is_one_of_many: bool, knows_titles: bool) -> String {
    let mut lines = Vec::new();
    if is_one_of_many {
        lines.push(question.question.clone());
    }
    if !knows_titles {
        lines.extend(question.options.iter().map(shown));
        if question.multi_select {
            lines.push("Several may be given, with commas between.".into());
        }
    }
    lines.join("\n")
}

fn shown(option: &Choice) -> String {
    match option.description.trim() {
        "" => option.label.clone(),
        description => format!("{}: {description}", option.label),
    }
}

/// Returns the field for clients from 2025-11-25 on: each choice with its description.
fn titled(question: &Question) -> Map<String, Value> {
    let choices: Value =
        question.options.iter().map(|option| json!({"const": option.label, "title": shown(option)})).collect();
    let field = match question.multi_select {
        true => json!({"type": "array", "items": {"anyOf": choices}}),
        false => json!({"type": "string", "oneOf": choices}),
    };
    members(field)
}

/// Returns the field for clients up to 2025-06-18: texts and lists of words.
fn plain(question: &Question) -> Map<String, Value> {
    let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
    members(match question.multi_select {
        true => json!({"type": "string"}),
        false => json!({"type": "string", "enum": labels}),
    })
}

fn members(field: Value) -> Map<String, Value> {
    match field {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Parses the reply of the client, and adds nothing to it.
pub fn reply(questions: &[Question], result: &Value) -> QuestionFormReply {
    match (result["action"].as_str(), result.get("content")) {
        (Some("decline"), _) => QuestionFormReply::Declined,
        (Some("cancel"), _) => QuestionFormReply::Cancelled,
        (Some("accept"), Some(Value::Object(content))) => {
            QuestionFormReply::Answers((0..questions.len()).map(|index| parse_answer(content, index)).collect())
        }
        _ => QuestionFormReply::Malformed,
    }
}

/// Returns the choices of a question, followed by the free answer, separated by commas; `None` if there are none.
fn parse_answer(content: &Map<String, Value>, index: usize) -> Option<String> {
    let chosen = match content.get(&name(index)) {
        Some(Value::Array(chosen)) => chosen.iter().filter_map(Value::as_str).take(64).collect(),
        Some(Value::String(one)) => vec![one.as_str()],
        _ => Vec::new(),
    };
    let own = content.get(&format!("{}{OWN}", name(index))).and_then(Value::as_str);
    let parts: Vec<&str> = chosen.into_iter().chain(own).map(str::trim).filter(|part| !part.is_empty()).collect();
    let whole: String = parts.join(", ").chars().take(MAX_ANSWER).collect();
    Some(whole).filter(|whole| !whole.is_empty())
}
