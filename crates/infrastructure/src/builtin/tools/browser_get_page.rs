//! The tool `browser_get_page`.

use crate::builtin::{
    browsing::{self, Telling},
    built_in_tool::BuiltInTool,
    run::Run,
    schema::output_schema,
    world::World,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolstead_domain::{
    access::Access,
    category::Category,
    tool::{Availability, ToolAnnotations},
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// Look at the page.
pub(crate) struct BrowserGetPage;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Tell all of a long page.
    #[serde(default)]
    full: bool,
}

#[async_trait]
impl BuiltInTool for BrowserGetPage {
    const NAME: &str = "browser_get_page";
    const TITLE: &str = "Look at the page";
    const DESCRIPTION: &str = "Tells the page that the browser of this session shows: a line for each thing, with a reference for what can be used, what can be used first. `full` tells all of a long page.";
    const BRIEF: &str = "Tells the open page as lines with references such as `e12`, for the other browser tools.";
    const CATEGORY: Category = Category::Web;
    const TAGS: &[&str] = &["browser"];
    const ANNOTATIONS: ToolAnnotations =
        ToolAnnotations { idempotent_hint: Some(false), open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str = r#"{}"#;
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

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let telling = if input.full { Telling::All } else { Telling::Page };
        browsing::told(lease.session()?, telling, "", None).await
    }
}
