//! The tool `browser_get_page`.

use crate::builtin::{
    browsing::{self, ReportScope, browser_tool::BrowserTool},
    tool_kit::{foreign_answer::foreign_output_schema, tool_context::ToolContext},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolstead_domain::{ToolFailure, ToolResult};

/// Tool that returns the open page.
pub(crate) struct BrowserGetPage;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Return only lines with these words, as in `button pay`, with their surroundings and contents.
    #[schemars(length(min = 1, max = 200))]
    #[schemars(extend("x-advertised" = "Words of a line, as in `button pay`"))]
    find: Option<String>,
    /// Return as much of a long page as fits.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    full: bool,
    /// List usable elements as data with numbers and attributes.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    elements: bool,
}

impl BrowserTool for BrowserGetPage {
    const NAME: &str = "browser_get_page";
    const TITLE: &str = "Look at the page";
    const DESCRIPTION: &str = "Returns the page in the browser of this session: one line per element, with a \
         reference for usable ones. Of a long page it returns the usable elements first, and stores all of it under \
         a handle. `find` returns only lines with some words, with their surroundings and contents; `full` returns \
         as much as fits in a result.";
    const BRIEF: &str = "Returns the open page as lines with references such as `e12`, for the other browser tools.";
    const KEYWORDS: &str = "accessibility content dom html inspect read snapshot text view website";
    const EXAMPLE: &str = r#"{"find": "button pay"}"#;
    const IS_READ_ONLY: bool = true;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(foreign_output_schema::<browsing::PageWithElements>())
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        match &input.find {
            Some(words) => browsing::report_page(session, run, ReportScope::Lines(words), "", None).await,
            None if input.elements => browsing::report_with_elements(session, run).await,
            None if input.full => browsing::report_page(session, run, ReportScope::All, "", None).await,
            None => browsing::report_page(session, run, ReportScope::Page, "", None).await,
        }
    }
}
