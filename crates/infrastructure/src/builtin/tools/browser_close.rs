//! The tool `browser_close`.

use crate::builtin::{
    browsing::{
        self,
        browser_tool::{BrowserCallAccesses, BrowserCallTarget, BrowserTool},
    },
    tool_kit::tool_context::ToolContext,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolstead_domain::{ToolFailure, ToolResult};

/// Tool that closes the browser of the session.
pub(crate) struct BrowserClose;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

impl BrowserTool for BrowserClose {
    const NAME: &str = "browser_close";
    const TITLE: &str = "Close the browser";
    const DESCRIPTION: &str = "Closes the browser of this session, with all of its tabs and data.";
    const BRIEF: &str = "Closes the browser of this session.";
    const KEYWORDS: &str = "end exit quit";
    const EXAMPLE: &str = r#"{}"#;
    type Input = Input;

    fn touches<'a>(&self, _: &'a Input) -> BrowserCallAccesses<'a> {
        BrowserCallAccesses { target: BrowserCallTarget::NoHost, ..BrowserCallAccesses::default() }
    }

    fn output_schema(&self) -> Option<Value> {
        None
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let Input {} = input;
        let done = match browsing::end_browser(run) {
            true => "The browser is closed.",
            false => "No browser was open.",
        };
        Ok(ToolResult::text(done))
    }
}
