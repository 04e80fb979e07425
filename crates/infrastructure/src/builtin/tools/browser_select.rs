//! The tool `browser_select`.

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

/// Choose in a list.
pub(crate) struct BrowserSelect;

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
    /// The texts or values to choose; all others are given up.
    #[schemars(length(min = 1, max = 100))]
    values: Vec<String>,
}

#[async_trait]
impl BuiltInTool for BrowserSelect {
    const NAME: &str = "browser_select";
    const TITLE: &str = "Choose in a list";
    const DESCRIPTION: &str = "Chooses in a list of the open page (a `select`), by the texts that people see or by their values, and tells what changed.";
    const BRIEF: &str = "Chooses in a list of the open page.";
    const CATEGORY: Category = Category::Web;
    const TAGS: &[&str] = &["browser"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &str = r#"{"ref": "e5", "values": ["Medium"]}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<browsing::PageFacts>())
    }

    fn availability(&self, world: &World) -> Availability {
        browsing::availability(world)
    }

    async fn accesses_of(&self, input: &Input, call: &ToolCall, world: &World) -> Result<Vec<Access>, ToolFailure> {
        Ok(browsing::access_to_element(input.reference.as_deref(), input.element_id, call, world))
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let element = browsing::element(session, input.reference.as_deref(), input.element_id)?;
        browsing::may_use(session, element, run)?;
        session.select(element, &input.values).await.map_err(browsing::failed)?;
        browsing::settle(session, run).await?;
        browsing::told(session, Telling::Changes, &format!("Chose in {element}."), None).await
    }
}
