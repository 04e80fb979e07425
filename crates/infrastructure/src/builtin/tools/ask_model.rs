//! The tool `ask_model`.

use crate::builtin::{
    agents::model_answer,
    tool_kit::{
        answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use toolstead_domain::{
    Access, Availability, Category, Message, ModelProvider, ModelRequest, StopReason, ToolAnnotations, ToolFailure,
    ToolResult, error_kind::ErrorKind,
};

/// Tool that asks a configured model once, without tools.
pub(crate) struct AskModel;

const MAX_MS: u64 = 600_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The question. The model sees nothing else: no files, no tools, and nothing of this conversation.
    #[schemars(length(min = 1, max = 1_000_000))]
    #[schemars(extend("x-advertised" = "All that it sees."))]
    message: String,
    /// The system prompt.
    #[schemars(length(max = 100_000))]
    #[schemars(extend("x-advertised" = ""))]
    system_prompt: Option<String>,
    /// The model: its name in the configuration or at its provider, or "weak" or "strong". Default: the usual one.
    #[schemars(length(min = 1, max = 200))]
    #[schemars(extend("x-advertised" = "A name, \"weak\" or \"strong\"."))]
    model: Option<String>,
    /// Maximum tokens of the answer.
    #[serde(default = "usual_tokens")]
    #[schemars(range(min = 1, max = 64_000))]
    #[schemars(extend("x-advertised" = false))]
    max_tokens: u64,
    /// The required provider: "anthropic", "openai" and so on.
    #[schemars(length(min = 1, max = 50))]
    #[schemars(extend("x-advertised" = false))]
    provider: Option<String>,
    /// Time to wait for the answer.
    #[serde(default = "usual_time")]
    #[schemars(range(min = 1_000, max = MAX_MS))]
    #[schemars(extend("x-advertised" = false))]
    timeout_ms: u64,
}

fn usual_tokens() -> u64 {
    4096
}

fn usual_time() -> u64 {
    120_000
}

#[derive(Serialize, JsonSchema)]
struct Output {
    text: String,
    /// The model, by its name in the configuration.
    model: String,
    /// `end_turn`, `max_tokens` or `refused`.
    stop_reason: &'static str,
    usage: UsageOutput,
}

#[derive(Serialize, JsonSchema)]
struct UsageOutput {
    input_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    output_tokens: u64,
}

impl BuiltInTool for AskModel {
    const NAME: &str = "ask_model";
    const TITLE: &str = "Ask a model";
    const DESCRIPTION: &str = "Asks another configured language model one question and returns its answer. It has no \
         tools and sees only the message, so include everything it needs. Use it for a second opinion, or for text \
         work that needs no tools.";
    const BRIEF: &str = "Asks another language model, which has no tools, for a second opinion or text work.";
    const CATEGORY: Category = Category::Ai;
    const TAGS: &[&str] = &["model"];
    const KEYWORDS: &str = "chatgpt claude gemini gpt llm opinion prompt summarize translate";
    const ANNOTATIONS: ToolAnnotations =
        ToolAnnotations { idempotent_hint: Some(false), open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str = r#"{"message": "Name three risks of this plan: ...", "model": "strong"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        match world.agents().models().model(None) {
            Ok(_) => Availability::Available,
            Err(reason) => Availability::Unavailable(reason),
        }
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        Ok(model_answer::access(&*chosen(input, world)?))
    }

    fn requested_time(&self, input: &Input) -> Option<Duration> {
        Some(Duration::from_millis(input.timeout_ms.min(MAX_MS)))
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let model = chosen(&input, run.environment())?;
        let mut request = ModelRequest::of(vec![Message::user(input.message)]);
        request.system = input.system_prompt.unwrap_or_default();
        request.max_output_tokens = Some(input.max_tokens);
        let said = model_answer::ask(&model, request, Duration::from_millis(input.timeout_ms), run).await?;
        let mut text = said.text.clone();
        match said.stop {
            StopReason::MaxTokens => text.push_str("\n[The answer was cut off at `max_tokens`.]"),
            StopReason::Refused => text.push_str("\n[The model or its provider's filter refused to answer.]"),
            _ => {}
        }
        let usage = said.usage;
        let output = Output {
            text: said.text,
            model: model.name().to_owned(),
            stop_reason: said.stop.as_str(),
            usage: UsageOutput {
                input_tokens: usage.input_tokens,
                cache_read_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_write_tokens,
                output_tokens: usage.output_tokens,
            },
        };
        answer(text.trim_start().to_owned(), &output)
    }
}

fn chosen(input: &Input, world: &ToolEnvironment) -> Result<Arc<dyn ModelProvider>, ToolFailure> {
    let found = world.agents().models().model(input.model.as_deref());
    let model = found.map_err(|reason| ToolFailure::new(ErrorKind::NotFound, reason))?;
    let provider = &model.facts().provider;
    match &input.provider {
        Some(wanted) if wanted != provider => {
            let message = format!("the model `{}` belongs to {provider}, not to {wanted}", model.name());
            Err(ToolFailure::new(ErrorKind::Unavailable, message).next(format!("Name a model of {wanted} in `model`.")))
        }
        _ => Ok(model),
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::{
        tool_kit::{
            provider::InProcessTools,
            testing::{ToolTestHarness, test_environment},
        },
        tools::all,
    };
    use crate::sandbox::workspace::Workspace;
    use serde_json::{Value, json};
    use std::sync::Arc;
    use toolstead_domain::{
        Access, Availability, EventKind, ModelError, ModelProvider, Models, StopReason, TokenUsage,
        error_kind::ErrorKind,
        testing::{
            recording_events::RecordingEvents,
            scripted_model::{ScriptedAnswer, ScriptedModel},
        },
    };

    /// A single model, which is the weak one as well.
    struct One(Arc<ScriptedModel>);

    impl Models for One {
        fn model(&self, name: Option<&str>) -> Result<Arc<dyn ModelProvider>, String> {
            match name {
                None | Some("weak" | "main") => Ok(self.0.clone()),
                Some(other) => Err(format!("no model is called `{other}`; there are main")),
            }
        }
    }

    fn run_with(model: &Arc<ScriptedModel>, events: &Arc<RecordingEvents>) -> (tempfile::TempDir, ToolTestHarness) {
        let folder = tempfile::tempdir().unwrap();
        let mut run = ToolTestHarness::of_tools(all(), &folder);
        run.world = run.world.clone().with_models(Arc::new(One(model.clone()))).with_events(events.clone());
        run.tools = InProcessTools::new(all(), run.world.clone()).unwrap();
        (folder, run)
    }

    #[tokio::test]
    async fn a_model_answer_is_returned_with_its_stop_reason_and_token_usage() {
        let usage = TokenUsage { input_tokens: 7, output_tokens: 3, ..TokenUsage::default() };
        let answer = ScriptedAnswer::text("Forty-two.").uses(usage);
        let model =
            Arc::new(ScriptedModel::answering([answer, ScriptedAnswer::text("cut").stops(StopReason::MaxTokens)]));
        let events = Arc::new(RecordingEvents::new());
        let (_folder, run) = run_with(&model, &events);
        let asked = json!({"message": "What is it?", "system_prompt": "Be brief.", "model": "weak", "max_tokens": 9});
        let result = run.call("ask_model", asked).await.unwrap();
        assert_eq!(result.joined_text(), "Forty-two.");
        let structured = result.structured_content().unwrap();
        assert_eq!(
            (&structured["stop_reason"], &structured["usage"]["output_tokens"]),
            (&json!("end_turn"), &json!(3))
        );
        let request = &model.requests()[0];
        assert_eq!(
            (request.system.as_str(), request.max_output_tokens, request.tools.len()),
            ("Be brief.", Some(9), 0)
        );
        assert_eq!(request.messages[0].text(), "What is it?");
        let output: Vec<EventKind> = events.events().into_iter().map(|(_, kind)| kind).collect();
        assert!(
            output.iter().any(|kind| matches!(kind, EventKind::Usage { usage: output, .. } if *output == usage)),
            "{output:?}"
        );
        let cut = run.call("ask_model", json!({"message": "More."})).await.unwrap();
        assert_eq!(cut.joined_text(), "cut\n[The answer was cut off at `max_tokens`.]");
    }

    #[track_caller]
    fn fails(arguments: Value, answer: ScriptedAnswer, kind: ErrorKind, outcome: &str) {
        let model = Arc::new(ScriptedModel::answering([answer]));
        let (_folder, run) = run_with(&model, &Arc::new(RecordingEvents::new()));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let failure = runtime.block_on(run.call("ask_model", arguments)).unwrap_err();
        assert_eq!(failure.kind, kind, "{}", failure.text());
        assert!(failure.text().contains(outcome), "{}", failure.text());
    }

    #[test]
    fn failures_to_get_a_model_answer_are_reported_with_their_kind() {
        let text = || ScriptedAnswer::text("x");
        fails(json!({"message": "a", "model": "other"}), text(), ErrorKind::NotFound, "there are main");
        fails(json!({"message": "a", "provider": "none"}), text(), ErrorKind::Unavailable, "Name a model of none");
        fails(json!({"message": ""}), text(), ErrorKind::InvalidInput, "message");
        let refused = ScriptedAnswer::refused(ModelError::Unauthorized("no key".into()));
        fails(json!({"message": "a"}), refused, ErrorKind::AuthRequired, "no key");
    }

    #[tokio::test]
    async fn model_tools_are_unavailable_without_a_model_and_ask_model_accesses_no_host() {
        let tools = InProcessTools::new(all(), test_environment(Workspace::closed())).unwrap();
        for name in ["ask_model", "image_recognition"] {
            let tool = tools.definitions().iter().find(|tool| tool.name().as_str() == name).unwrap();
            assert_eq!(tool.availability, Availability::Unavailable("no model is configured".into()), "{name}");
        }
        let model = Arc::new(ScriptedModel::answering([]));
        let (_folder, run) = run_with(&model, &Arc::new(RecordingEvents::new()));
        let accesses: Vec<Access> = run.accesses("ask_model", json!({"message": "a"})).await.unwrap_or_default();
        assert_eq!(accesses, []);
    }
}
