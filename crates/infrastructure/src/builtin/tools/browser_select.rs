//! The tool `browser_select`.

use crate::builtin::{
    browsing::{
        self,
        browser_tool::{BrowserCallAccesses, BrowserCallTarget, BrowserTool},
    },
    tool_kit::tool_context::ToolContext,
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolstead_domain::{ToolFailure, ToolResult};

/// Tool that chooses options of a list.
pub(crate) struct BrowserSelect;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The element, by its reference in the page: `e12`.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// Instead, its number in the page as last returned, from 1.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = false))]
    element_id: Option<u64>,
    /// The texts or values to select; others are deselected.
    #[schemars(length(min = 1, max = 100))]
    values: Vec<String>,
}

impl BrowserTool for BrowserSelect {
    const NAME: &str = "browser_select";
    const TITLE: &str = "Choose in a list";
    const DESCRIPTION: &str = "Selects options in a list of the open page (a `select`), by visible text or value, \
         and reports what changed.";
    const BRIEF: &str = "Selects in a list of the open page.";
    const KEYWORDS: &str = "choose combobox dropdown form menu pick";
    const EXAMPLE: &str = r#"{"ref": "e5", "values": ["Medium"]}"#;
    type Input = Input;

    fn touches<'a>(&self, input: &'a Input) -> BrowserCallAccesses<'a> {
        BrowserCallAccesses {
            target: BrowserCallTarget::Element(input.reference.as_deref(), input.element_id),
            ..BrowserCallAccesses::default()
        }
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let element = browsing::element(session, input.reference.as_deref(), input.element_id)?;
        browsing::may_use(session, element, run)?;
        let end = browsing::action_deadline(run, 10_000);
        browsing::perform_action(session, end, session.select(element, &input.values)).await?;
        browsing::report_after_settling(session, run, &format!("Chose in {element}."), None).await
    }
}
