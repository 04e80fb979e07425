//! The tools that the conformance suite calls, as a provider that only tests have.

use super::context_fixture::ContextFixture;
use serde_json::{Value, json};
use std::sync::{Arc, Weak};
use toolstead_domain::{
    Category, InputRequest, InputRequired, LogLevel, LogMessage, Progress, Tool, ToolFailure, ToolName, ToolResult,
    ToolSource,
    error_kind::ErrorKind,
    testing::scripted_provider::{
        ScriptedProvider,
        scripted_tool::{Ending, EndingContext, ScriptedTool},
    },
};

/// A PNG of one pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A WAV without any sample.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// All fixture tools. One of them changes the prompts of `context`.
pub(super) fn provider(context: &Arc<ContextFixture>) -> Arc<ScriptedProvider> {
    Arc::new_cyclic(|provider| {
        tools(provider, context, false).into_iter().fold(ScriptedProvider::new("fixture"), ScriptedProvider::with)
    })
}

fn tools(provider: &Weak<ScriptedProvider>, context: &Arc<ContextFixture>, with_dynamic: bool) -> Vec<ScriptedTool> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let resource = |uri: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}});
    let log = |text: &str| LogMessage::new(LogLevel::Info, text);
    let step = |done: f64| Progress { total: Some(100.0), ..Progress::at(done) };
    let mut tools = vec![
        tool("test_simple_text").answers(ToolResult::text("This is a simple text response for testing.")),
        tool("test_image_content").answers(ToolResult::of_blocks(vec![image.clone()])),
        tool("test_audio_content").answers(ToolResult::audio(WAV, "audio/wav")),
        tool("test_embedded_resource").answers(ToolResult::of_blocks(vec![resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )])),
        tool("test_multiple_content_types").answers(ToolResult::of_blocks(vec![
            json!({"type": "text", "text": "Multiple content types test:"}),
            image,
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ])),
        tool("test_error_handling").answers(ToolResult::error(
            ErrorKind::ExecutionFailed,
            "This tool intentionally returns an error for testing",
        )),
        tool("test_tool_with_logging")
            .logs(log("Tool execution started"))
            .logs(log("Tool processing data"))
            .logs(log("Tool execution completed"))
            .answers(ToolResult::text("Logged three times")),
        tool("test_logging_tool")
            .logs(log("A message for those who asked for one"))
            .answers(ToolResult::text("Logged")),
        tool("test_tool_with_progress")
            .reports(step(0.0))
            .reports(step(50.0))
            .reports(step(100.0))
            .answers(ToolResult::text("Done")),
        tool("test_missing_capability").ends_by(needs_sampling),
        tool("test_input_required_result_capabilities").ends_by(asks_what_the_client_can),
        tool("test_streaming_elicitation").ends_by(asks_once_if_it_can),
        with_schema("json_schema_2020_12_tool", rich_schema()).answers(ToolResult::text("Taken")),
        change_tool(provider.clone(), context.clone(), with_dynamic),
        change_prompt(context.clone()),
    ];
    tools.extend(asking());
    if with_dynamic {
        tools.push(tool("test_dynamic_tool").answers(ToolResult::text("Here for now")));
    }
    tools
}

fn tool(name: &str) -> ScriptedTool {
    with_schema(name, json!({"type": "object", "properties": {}}))
}

fn with_schema(name: &str, schema: Value) -> ScriptedTool {
    let definition = json!({"name": name, "description": format!("The fixture {name}."), "inputSchema": schema});
    let definition = definition.as_object().unwrap().clone();
    ScriptedTool::of(Tool::new(ToolName::parse(name).unwrap(), definition, Category::Utility, ToolSource::BuiltIn))
}

/// The tools that ask in mid-call, up to 2025-11-25.
fn asking() -> Vec<ScriptedTool> {
    let said = |moment: &EndingContext<'_>| {
        Ending::Done(ToolResult::text(format!("The client said {}", moment.responses[0].0)))
    };
    let name = || form("What is your name?", json!({"name": {"type": "string"}}));
    let contact = json!({"username": {"type": "string"}, "email": {"type": "string"}});
    let defaults = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    let titled = json!([{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}]);
    let enums = json!({
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    });
    let roots = || InputRequest { method: "roots/list".into(), params: json!({}) };
    let ok = || form("Please confirm", json!({"ok": {"type": "boolean"}}));
    vec![
        with_schema("test_sampling", json!({"type": "object", "properties": {"prompt": {"type": "string"}}}))
            .asks(sampling("What do you think?"))
            .ends_by(said),
        with_schema("test_elicitation", json!({"type": "object", "properties": {"message": {"type": "string"}}}))
            .asks(form("Who are you?", contact))
            .ends_by(said),
        tool("test_elicitation_sep1034_defaults").asks(form("Is this right?", defaults)).ends_by(said),
        tool("test_elicitation_sep1330_enums").asks(form("Which ones?", enums)).ends_by(said),
        in_rounds("test_input_required_result_elicitation", vec![vec![("user_name", name())]]),
        in_rounds(
            "test_input_required_result_sampling",
            vec![vec![("capital_question", sampling("What is the capital of France?"))]],
        ),
        in_rounds("test_input_required_result_list_roots", vec![vec![("client_roots", roots())]]),
        in_rounds("test_input_required_result_request_state", vec![vec![("confirm", ok())]]),
        in_rounds("test_input_required_result_tampered_state", vec![vec![("confirm", ok())]]),
        in_rounds(
            "test_input_required_result_multiple_inputs",
            vec![vec![("user_name", name()), ("greeting", sampling("Generate a greeting")), ("client_roots", roots())]],
        ),
        in_rounds(
            "test_input_required_result_multi_round",
            vec![
                vec![("step1", name())],
                vec![("step2", form("What is your favorite color?", json!({"color": {"type": "string"}})))],
            ],
        ),
    ]
}

fn form(message: &str, properties: Value) -> InputRequest {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    let schema = json!({"type": "object", "required": required, "properties": properties});
    let params = json!({"message": message, "requestedSchema": schema});
    InputRequest { method: "elicitation/create".into(), params }
}

fn sampling(prompt: &str) -> InputRequest {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    InputRequest { method: "sampling/createMessage".into(), params: json!({"messages": [message], "maxTokens": 100}) }
}

/// A tool that ends with questions as often as there are rounds, and knows by its own state which one is answered.
fn in_rounds(name: &str, rounds: Vec<Vec<(&'static str, InputRequest)>>) -> ScriptedTool {
    tool(name).ends_by(move |moment| {
        let answers = moment.context.answers;
        let state = answers.and_then(|answers| answers.state.as_deref());
        let round: usize = state.map_or(0, |state| state.parse().unwrap());
        let is_answered = answers.is_some_and(|answers| {
            let said = |key: &str| answers.responses.get(key).is_some_and(|answer| answer.0.is_object());
            rounds[round].iter().all(|(key, _)| said(key))
        });
        let next = if is_answered { round + 1 } else { round };
        match rounds.get(next) {
            Some(questions) => ask(questions.clone(), next.to_string()),
            None => {
                Ending::Done(ToolResult::text(format!("state-ok, {:?}", answers.map(|answers| &answers.responses))))
            }
        }
    })
}

fn ask(questions: Vec<(&'static str, InputRequest)>, state: String) -> Ending {
    let requests = questions.into_iter().map(|(key, question)| (key.to_owned(), question)).collect();
    Ending::InputRequired(InputRequired { requests, state: Some(state) })
}

fn asks_what_the_client_can(moment: &EndingContext<'_>) -> Ending {
    let declared = |name: &str| moment.context.client.capabilities.contains_key(name);
    let all = [
        ("elicitation", "form", form("What is your name?", json!({"name": {"type": "string"}}))),
        ("sampling", "model", sampling("Who are you?")),
    ];
    let questions = all.into_iter().filter(|(capability, ..)| declared(capability)).map(|(_, key, one)| (key, one));
    ask(questions.collect(), "0".into())
}

fn needs_sampling(moment: &EndingContext<'_>) -> Ending {
    if moment.context.client.capabilities.contains_key("sampling") {
        return Ending::Done(ToolResult::text("The client can sample"));
    }
    let failure = ToolFailure::new(ErrorKind::MissingCapability, "this tool needs the client capability `sampling`");
    Ending::Failure(failure.with_data(json!({"requiredCapabilities": {"sampling": {}}})))
}

/// Asks with its outcome, and never in mid-call, so that its stream holds no request.
fn asks_once_if_it_can(moment: &EndingContext<'_>) -> Ending {
    if moment.context.answers.is_some() || !moment.context.client.capabilities.contains_key("elicitation") {
        return Ending::Done(ToolResult::text("Nothing to ask"));
    }
    let question = form("What is your name?", json!({"name": {"type": "string"}}));
    ask(vec![("user_name", question)], "asked".into())
}

/// Adds a tool to the list, or takes it away again.
fn change_tool(provider: Weak<ScriptedProvider>, context: Arc<ContextFixture>, with_dynamic: bool) -> ScriptedTool {
    tool("test_trigger_tool_change").ends_by(move |_| {
        if let Some(provider) = provider.upgrade() {
            provider.replace_tools(tools(&Arc::downgrade(&provider), &context, !with_dynamic));
        }
        Ending::Done(ToolResult::text("The list of tools has changed"))
    })
}

/// Adds a prompt to the list, or takes it away again.
fn change_prompt(context: Arc<ContextFixture>) -> ScriptedTool {
    tool("test_trigger_prompt_change").ends_by(move |_| {
        context.change_prompts();
        Ending::Done(ToolResult::text("The list of prompts has changed"))
    })
}

/// A schema with everything that a gateway might lose.
fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
