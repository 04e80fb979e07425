//! The tools that the conformance suite calls, as a provider that only tests have.

use serde_json::{Value, json};
use std::sync::{Arc, Weak};
use toolstead_domain::{
    category::Category,
    client_profile::LogLevel,
    error_kind::ErrorKind,
    ports::caller::{LogMessage, Progress},
    testing::scripted_provider::{
        ScriptedProvider,
        scripted_tool::{Ending, Moment, ScriptedTool},
    },
    tool::{Tool, ToolSource},
    tool_failure::ToolFailure,
    tool_name::ToolName,
    tool_result::ToolResult,
};

/// A PNG of one pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A WAV without any sample.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// All fixture tools.
pub(super) fn provider() -> Arc<ScriptedProvider> {
    Arc::new_cyclic(|provider| {
        tools(provider, false).into_iter().fold(ScriptedProvider::new("fixture"), ScriptedProvider::with)
    })
}

fn tools(provider: &Weak<ScriptedProvider>, with_dynamic: bool) -> Vec<ScriptedTool> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let resource = |uri: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}});
    let log = |text: &str| LogMessage { level: LogLevel::Info, logger: None, data: text.into() };
    let step = |done: f64| Progress { progress: done, total: Some(100.0), message: None };
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
        tool("test_streaming_elicitation").answers(ToolResult::text("Nothing to ask")),
        with_schema("json_schema_2020_12_tool", rich_schema()).answers(ToolResult::text("Taken")),
        change_tool(provider.clone(), with_dynamic),
    ];
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

fn needs_sampling(moment: &Moment<'_>) -> Ending {
    if moment.context.client.capabilities.contains_key("sampling") {
        return Ending::Done(ToolResult::text("The client can sample"));
    }
    let failure = ToolFailure::new(ErrorKind::MissingCapability, "this tool needs the client capability `sampling`");
    Ending::Failure(failure.with_data(json!({"requiredCapabilities": {"sampling": {}}})))
}

/// Adds a tool to the list, or takes it away again.
fn change_tool(provider: Weak<ScriptedProvider>, with_dynamic: bool) -> ScriptedTool {
    tool("test_trigger_tool_change").ends_by(move |_| {
        if let Some(provider) = provider.upgrade() {
            provider.replace_tools(tools(&Arc::downgrade(&provider), !with_dynamic));
        }
        Ending::Done(ToolResult::text("The list of tools has changed"))
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
