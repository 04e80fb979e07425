//! The tool `browser_type`.

use crate::{
    browser::session::SessionError,
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
use tokio::time::timeout_at;
use toolstead_domain::{
    access::Access,
    category::Category,
    error_kind::ErrorKind,
    tool::{Availability, ToolAnnotations},
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// Type.
pub(crate) struct BrowserType;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The element, by its reference in the page: `e12`.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The same by its number in the last snapshot, from 1.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = false))]
    element_id: Option<u64>,
    /// The text.
    #[schemars(length(max = 100_000))]
    text: Option<String>,
    /// False: behind what the field holds.
    #[serde(default = "yes")]
    #[schemars(extend("x-advertised" = false))]
    clear: bool,
    /// Press Enter afterwards.
    #[serde(default)]
    submit: bool,
    /// Files of the workspace for a field that takes files.
    #[serde(default)]
    #[schemars(length(max = 10))]
    #[schemars(extend("x-advertised" = false))]
    files: Vec<String>,
    /// How long it may take.
    #[serde(default = "usual_time")]
    #[schemars(range(min = 1, max = 300_000))]
    #[schemars(extend("x-advertised" = false))]
    timeout_ms: u64,
}

fn usual_time() -> u64 {
    10_000
}

fn yes() -> bool {
    true
}

#[async_trait]
impl BuiltInTool for BrowserType {
    const NAME: &str = "browser_type";
    const TITLE: &str = "Type";
    const DESCRIPTION: &str = "Types a text into a field of the open page, in place of what it holds, and tells what changed. `files` gives files of the workspace to a field for files instead.";
    const BRIEF: &str = "Types into a field of the open page, or gives it files.";
    const CATEGORY: Category = Category::Web;
    const TAGS: &[&str] = &["browser"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &str = r#"{"ref": "e3", "text": "Ann", "submit": true}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<browsing::PageFacts>())
    }

    fn availability(&self, world: &World) -> Availability {
        browsing::availability(world)
    }

    async fn accesses_of(&self, input: &Input, call: &ToolCall, world: &World) -> Result<Vec<Access>, ToolFailure> {
        let mut accesses = browsing::access_to_element(input.reference.as_deref(), input.element_id, call, world);
        for path in &input.files {
            accesses.push(Access::ReadPath(world.access(path).await?));
        }
        Ok(accesses)
    }

    fn time_wanted(&self, input: &Input) -> Option<Duration> {
        Some(Duration::from_millis(input.timeout_ms + 5_000))
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let element = browsing::element(session, input.reference.as_deref(), input.element_id)?;
        browsing::may_use(session, element, run)?;
        let end = browsing::end_after(run, input.timeout_ms);
        let done = match (&input.text, input.files.as_slice()) {
            (Some(text), []) => {
                let typing = session.type_text(element, text, input.clear, input.submit);
                let typed = timeout_at(end.into(), typing).await.unwrap_or(Err(SessionError::TimedOut));
                typed.map_err(browsing::failed)?;
                format!("Typed into {element}.")
            }
            (None, [_, ..]) => {
                let mut files = Vec::new();
                for path in &input.files {
                    files.push(browsing::hand_over(&lease, path, run).await?);
                }
                let giving = session.give_files(element, &files);
                let given = timeout_at(end.into(), giving).await.unwrap_or(Err(SessionError::TimedOut));
                given.map_err(browsing::failed)?;
                format!("Gave {} to {element}.", input.files.join(", "))
            }
            _ => {
                let message = "either `text` or `files` says what the field gets";
                return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
            }
        };
        browsing::settle(session, run).await?;
        browsing::told(session, Telling::Changes, &done, None).await
    }
}
