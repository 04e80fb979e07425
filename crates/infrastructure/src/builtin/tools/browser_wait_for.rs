//! The tool `browser_wait_for`.

use crate::{
    browser::{actions::PageCondition, session::PageLoadCondition},
    builtin::{
        browsing::{self, ReportScope, browser_tool::BrowserTool},
        tool_kit::tool_context::ToolContext,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use toolstead_domain::{ToolFailure, ToolResult, error_kind::ErrorKind};

/// Tool that waits for a condition of the page.
pub(crate) struct BrowserWaitFor;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The condition.
    #[serde(default)]
    condition: Condition,
    /// The selector, or the text.
    #[schemars(length(min = 1, max = 1_000))]
    value: Option<String>,
    /// The timeout.
    #[serde(default = "usual_time")]
    #[schemars(range(min = 1, max = 300_000))]
    #[schemars(extend("x-advertised" = false))]
    timeout_ms: u64,
}

fn usual_time() -> u64 {
    30_000
}

/// Time without requests after which a page is idle.
const STILL: Duration = Duration::from_millis(500);

/// The condition.
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

impl BrowserTool for BrowserWaitFor {
    const NAME: &str = "browser_wait_for";
    const TITLE: &str = "Wait for the page";
    const DESCRIPTION: &str = "Waits until the open page is loaded (`load`), makes no more requests (`idle`), \
         matches a CSS selector (`selector`), or has a text or has it no more (`text`, `text_gone`), and reports \
         what changed.";
    const BRIEF: &str = "Waits for a state of the open page.";
    const IS_READ_ONLY: bool = true;
    const KEYWORDS: &str = "appear delay disappear load pause ready";
    const EXAMPLE: &str = r#"{"condition": "text", "value": "Thank you"}"#;
    type Input = Input;

    fn milliseconds(&self, input: &Input) -> Option<u64> {
        Some(input.timeout_ms)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let end = browsing::action_deadline(run, input.timeout_ms);
        let sight = match (input.condition, input.value) {
            (Condition::Load | Condition::Idle, None) => None,
            (Condition::Selector, Some(value)) => Some(PageCondition::Selector(value)),
            (Condition::Text, Some(value)) => Some(PageCondition::Text(value)),
            (Condition::TextGone, Some(value)) => Some(PageCondition::TextGone(value)),
            (Condition::Load | Condition::Idle, Some(_)) => return Err(invalid("`load` and `idle` take no `value`")),
            (_, None) => return Err(invalid("give the selector or the text in `value`")),
        };
        let waited = match &sight {
            Some(sight) => session.wait_for(sight, end).await,
            None if input.condition == Condition::Idle => session.wait(PageLoadCondition::Quiet(STILL), end).await,
            None => session.wait(PageLoadCondition::Loaded, end).await,
        };
        waited.map_err(browsing::browser_failure)?;
        browsing::report_page(session, run, ReportScope::ChangesAlone, "", None).await
    }
}
