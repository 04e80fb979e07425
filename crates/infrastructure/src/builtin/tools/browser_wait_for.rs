//! The tool `browser_wait_for`.

use crate::{
    browser::{actions::Sight, session::Until},
    builtin::{
        browsing::{self, Telling},
        built_in_tool::BuiltInTool,
        run::Run,
        schema::output_schema,
        world::World,
    },
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use toolstead_domain::{
    access::Access,
    category::Category,
    error_kind::ErrorKind,
    tool::{Availability, ToolAnnotations},
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// Wait for the page.
pub(crate) struct BrowserWaitFor;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What is waited for.
    #[serde(default)]
    condition: Condition,
    /// The selector, or the text.
    #[schemars(length(min = 1, max = 1_000))]
    value: Option<String>,
    /// How long it may take.
    #[serde(default = "usual_time")]
    #[schemars(range(min = 1, max = 300_000))]
    #[schemars(extend("x-advertised" = false))]
    timeout_ms: u64,
}

fn usual_time() -> u64 {
    30_000
}

/// A page is idle that asked for nothing for so long.
const STILL: Duration = Duration::from_millis(500);

/// What is waited for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Condition {
    #[default]
    Load,
    Idle,
    Selector,
    Text,
    TextGone,
}

fn invalid(message: &str) -> ToolFailure {
    ToolFailure::new(ErrorKind::InvalidInput, message)
}

#[async_trait]
impl BuiltInTool for BrowserWaitFor {
    const NAME: &str = "browser_wait_for";
    const TITLE: &str = "Wait for the page";
    const DESCRIPTION: &str = "Waits until the open page is loaded (`load`), asks for nothing any more (`idle`), shows what a CSS selector fits (`selector`), or has a text or has it no more (`text`, `text_gone`), and tells what changed.";
    const BRIEF: &str = "Waits for something on the open page.";
    const CATEGORY: Category = Category::Web;
    const TAGS: &[&str] = &["browser"];
    const ANNOTATIONS: ToolAnnotations =
        ToolAnnotations { idempotent_hint: Some(false), open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str = r#"{"condition": "text", "value": "Thank you"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<browsing::PageFacts>())
    }

    fn availability(&self, world: &World) -> Availability {
        browsing::availability(world)
    }

    async fn accesses_of(&self, _: &Input, call: &ToolCall, world: &World) -> Result<Vec<Access>, ToolFailure> {
        Ok(browsing::access_to_page(call, world))
    }

    fn time_wanted(&self, input: &Input) -> Option<Duration> {
        Some(Duration::from_millis(input.timeout_ms + 5_000))
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let end = browsing::end_after(run, input.timeout_ms);
        let sight = match (input.condition, input.value) {
            (Condition::Load | Condition::Idle, None) => None,
            (Condition::Selector, Some(value)) => Some(Sight::Selector(value)),
            (Condition::Text, Some(value)) => Some(Sight::Text(value)),
            (Condition::TextGone, Some(value)) => Some(Sight::TextGone(value)),
            (Condition::Load | Condition::Idle, Some(_)) => return Err(invalid("`load` and `idle` take no `value`")),
            (_, None) => return Err(invalid("`value` says which selector or text")),
        };
        let waited = match &sight {
            Some(sight) => session.wait_for(sight, end).await,
            None if input.condition == Condition::Idle => session.wait(Until::Quiet(STILL), end).await,
            None => session.wait(Until::Loaded, end).await,
        };
        waited.map_err(browsing::failed)?;
        browsing::told(session, Telling::Changes, "", None).await
    }
}
