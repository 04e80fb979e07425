//! The tool `browser_tabs`.

use crate::builtin::{
    browsing::{self, ReportScope, browser_tool::BrowserTool},
    tool_kit::tool_context::ToolContext,
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolstead_domain::{ToolFailure, ToolResult};

/// Tool that lists, selects and closes tabs.
pub(crate) struct BrowserTabs;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Make this tab the current one.
    select: Option<u32>,
    /// Close this tab.
    close: Option<u32>,
}

impl BrowserTool for BrowserTabs {
    const NAME: &str = "browser_tabs";
    const TITLE: &str = "Tabs";
    const DESCRIPTION: &str = "Lists the tabs of the browser of this session; `select` makes one the current one and \
         returns its page, `close` closes one.";
    const BRIEF: &str = "Lists, chooses or closes tabs of the browser.";
    const KEYWORDS: &str = "popup switch window";
    const EXAMPLE: &str = r#"{"select": 2}"#;
    type Input = Input;

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let end = browsing::action_deadline(run, 10_000);
        if let Some(number) = input.close {
            session.close(number, end).await.map_err(browsing::browser_failure)?;
        }
        let host = |number| session.state().tabs.get(&number).and_then(|tab| tab.host());
        if let Some(number) = input.select {
            // The page of this tab may be on another host than the current page.
            if let Some(host) = host(number) {
                run.check_host(&host)?;
            }
            session.choose(number).await.map_err(browsing::browser_failure)?;
        }
        session.name_tabs().await.map_err(browsing::browser_failure)?;
        let tabs = browsing::tabs(session);
        match input.select {
            Some(_) => browsing::report_page(session, run, ReportScope::Page, &tabs, None).await,
            None => browsing::report_tabs(session, &tabs),
        }
    }
}
