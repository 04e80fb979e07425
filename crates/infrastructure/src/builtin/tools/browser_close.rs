//! The tool `browser_close`.

use crate::builtin::{browsing, built_in_tool::BuiltInTool, run::Run, world::World};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use toolstead_domain::{
    category::Category,
    tool::{Availability, ToolAnnotations},
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// Close the browser.
pub(crate) struct BrowserClose;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

#[async_trait]
impl BuiltInTool for BrowserClose {
    const NAME: &str = "browser_close";
    const TITLE: &str = "Close the browser";
    const DESCRIPTION: &str = "Ends the browser of this session, with all of its tabs and what it has kept.";
    const BRIEF: &str = "Ends the browser of this session.";
    const CATEGORY: Category = Category::Web;
    const TAGS: &[&str] = &["browser"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &str = r#"{}"#;
    type Input = Input;

    fn availability(&self, world: &World) -> Availability {
        browsing::availability(world)
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let Input {} = input;
        let done = match browsing::end(run) {
            true => "The browser is closed.",
            false => "No browser was open.",
        };
        Ok(ToolResult::text(done))
    }
}
