//! The tool `browser_click`.

use crate::{
    browser::state::DialogAnswer,
    builtin::{
        browsing::{
            self,
            browser_tool::{BrowserCallAccesses, BrowserCallTarget, BrowserTool},
        },
        tool_kit::tool_context::ToolContext,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolstead_domain::{ToolFailure, ToolResult};

/// Tool that clicks an element of the open page.
pub(crate) struct BrowserClick;

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
    /// Double-click.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    double: bool,
    /// Only point at it, as to open a menu.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    hover: bool,
    /// Answer a dialog with OK (`accept`) or cancel (`dismiss`).
    #[schemars(extend("x-advertised" = false))]
    dialog: Option<DialogChoice>,
    /// The text for a dialog that asks for one.
    #[schemars(length(max = 1_000))]
    #[schemars(extend("x-advertised" = false))]
    dialog_text: Option<String>,
    /// The workspace file to save the download as.
    #[schemars(extend("x-advertised" = false))]
    save_as: Option<String>,
    /// The timeout.
    #[serde(default = "usual_time")]
    #[schemars(range(min = 1, max = 300_000))]
    #[schemars(extend("x-advertised" = false))]
    timeout_ms: u64,
}

fn usual_time() -> u64 {
    10_000
}

/// The answer to a dialog.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DialogChoice {
    Accept,
    Dismiss,
}

impl BrowserTool for BrowserClick {
    const NAME: &str = "browser_click";
    const TITLE: &str = "Click";
    const DESCRIPTION: &str = "Clicks an element of the open page, waits until the page is quiet, and reports what \
         changed. `hover` only points at it. `save_as` saves the file that the click downloads. `dialog` answers a \
         dialog that the click opens; by default it is dismissed.";
    const BRIEF: &str = "Clicks an element of the open page and reports what changed.";
    const KEYWORDS: &str = "button download link mouse press push tap website";
    const EXAMPLE: &str = r#"{"ref": "e12"}"#;
    type Input = Input;

    fn touches<'a>(&self, input: &'a Input) -> BrowserCallAccesses<'a> {
        BrowserCallAccesses {
            target: BrowserCallTarget::Element(input.reference.as_deref(), input.element_id),
            writes: input.save_as.as_deref(),
            ..BrowserCallAccesses::default()
        }
    }

    fn milliseconds(&self, input: &Input) -> Option<u64> {
        Some(input.timeout_ms)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let element = browsing::element(session, input.reference.as_deref(), input.element_id)?;
        browsing::may_use(session, element, run)?;
        let end = browsing::action_deadline(run, input.timeout_ms);
        let dialog = input.dialog.map(|word| match word {
            DialogChoice::Accept => DialogAnswer::Accept(input.dialog_text),
            DialogChoice::Dismiss => DialogAnswer::Dismiss,
        });
        let said = browsing::DialogDownloadGuard::new(session, dialog, input.save_as.is_some());
        let doing = async {
            match input.hover {
                true => session.point_at(element).await.map(|_| "Pointed at"),
                false => session.click(element, input.double).await.map(|()| "Clicked"),
            }
        };
        let done = browsing::perform_action(session, end, doing).await?;
        let mut done = format!("{done} {element}.");
        if let Some(path) = &input.save_as {
            let saved = browsing::save_download(&lease, &said, path, end, run).await;
            saved.map_err(|failure| browsing::failed_after(&done, failure))?;
            done = format!("{done} The download is saved as `{path}`.");
        }
        browsing::report_after_settling(session, run, &done, input.save_as).await
    }
}
