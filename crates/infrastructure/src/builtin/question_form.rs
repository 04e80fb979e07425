//! Questions as a form of MCP's, and its answer.

use serde_json::{Map, Value, json};
use toolstead_domain::{
    client_profile::{ClientProfile, ProtocolVersion},
    ports::caller::InputRequest,
    question::{Choice, Question},
    unseen::moves,
};

/// Characters of one answer that are taken.
const MAX_ANSWER: usize = 10_000;
/// Stands before the questions, so that none passes for that of a server, or for one of ours.
pub const ASKS: &str = "The agent asks:";
/// The end of the name of a field for the answer in one's own words.
const OWN: &str = "_other";

/// The answers of the person, or their refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Answered: a text for each question in its order, as far as there is one.
    Answers(Vec<Option<String>>),
    /// They do not want to answer.
    Declined,
    /// They closed the form.
    Cancelled,
    /// No answer that MCP knows.
    Malformed,
}

/// The form. A field for what is chosen and one for an answer of one's own stand together, and either may be left out.
pub fn request(questions: &[Question], client: &ClientProfile) -> InputRequest {
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

/// The text that a person reads first: the questions, and more on their options.
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
    behind_our_words(&text)
}

/// A model's text behind words of ours. Of several lines each stands behind a mark, and none begins anywhere else.
fn behind_our_words(text: &str) -> String {
    let clean = |line: &str| line.chars().map(|c| if moves(c) { '\u{fffd}' } else { c }).collect::<String>();
    match text.lines().collect::<Vec<_>>().as_slice() {
        [line] => format!("{ASKS} {}", clean(line)),
        lines => lines.iter().fold(ASKS.to_owned(), |text, line| format!("{text}\n| {}", clean(line))),
    }
}

/// The field's question where there are several, and the meaning of its options where these cannot tell it themselves.
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

/// As clients from 2025-11-25 on show it, each choice with its meaning.
fn titled(question: &Question) -> Map<String, Value> {
    let choices: Value =
        question.options.iter().map(|option| json!({"const": option.label, "title": shown(option)})).collect();
    let field = match question.multi_select {
        true => json!({"type": "array", "items": {"anyOf": choices}}),
        false => json!({"type": "string", "oneOf": choices}),
    };
    members(field)
}

/// As clients up to 2025-06-18 know it: texts and lists of words.
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

/// The answer of the client. Nothing is added to it.
pub fn reply(questions: &[Question], result: &Value) -> Reply {
    match (result["action"].as_str(), result.get("content")) {
        (Some("decline"), _) => Reply::Declined,
        (Some("cancel"), _) => Reply::Cancelled,
        (Some("accept"), Some(Value::Object(content))) => {
            Reply::Answers((0..questions.len()).map(|index| said(content, index)).collect())
        }
        _ => Reply::Malformed,
    }
}

/// The choices, then the person's own words.
fn said(content: &Map<String, Value>, index: usize) -> Option<String> {
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
