//! The tool `browser_navigate`.

use crate::{
    browser::session::BrowserSessionError,
    builtin::{
        browsing::{
            self, ReportScope,
            browser_tool::{BrowserCallAccesses, BrowserCallTarget, BrowserTool},
        },
        tool_kit::tool_context::ToolContext,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolstead_domain::{ToolFailure, ToolResult, error_kind::ErrorKind};

/// Tool that opens a page.
pub(crate) struct BrowserNavigate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The address.
    #[schemars(length(min = 1, max = 8_000))]
    url: Option<String>,
    /// Go back or forward instead.
    #[schemars(extend("x-advertised" = false))]
    history: Option<HistoryDirection>,
    /// Open it in a new tab.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    new_tab: bool,
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
    30_000
}

/// A way in the history of the tab.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HistoryDirection {
    Back,
    Forward,
}

impl BrowserTool for BrowserNavigate {
    const NAME: &str = "browser_navigate";
    const TITLE: &str = "Open a page";
    const DESCRIPTION: &str = "Opens an http or https address in the browser of this session, or goes back or \
         forward in its history, and returns the page: one line per element, with references for the other browser \
         tools. A page of another host than requested is refused and named. `save_as` saves what the address \
         downloads. Plain pages are read faster by `web_fetch`.";
    const BRIEF: &str =
        "Opens a page in a real browser, for pages that need input or scripts; `web_fetch` reads others faster.";
    const KEYWORDS: &str = "address internet load open reload url visit website";
    const EXAMPLE: &str = r#"{"url": "https://shop.example.com/"}"#;
    type Input = Input;

    fn touches<'a>(&self, input: &'a Input) -> BrowserCallAccesses<'a> {
        let place = input.url.as_deref().map_or(BrowserCallTarget::Page, BrowserCallTarget::Address);
        BrowserCallAccesses { target: place, writes: input.save_as.as_deref(), ..BrowserCallAccesses::default() }
    }

    fn milliseconds(&self, input: &Input) -> Option<u64> {
        Some(input.timeout_ms)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let end = browsing::action_deadline(run, input.timeout_ms);
        let (lease, done) = match (&input.url, input.history) {
            (Some(url), None) => {
                let lease = browsing::browser(run).await?;
                let said = browsing::DialogDownloadGuard::new(lease.session()?, None, input.save_as.is_some());
                let opened = lease.session()?.open(url, input.new_tab, end).await;
                let done = match (&input.save_as, opened) {
                    // A download opens no page.
                    (Some(path), Ok(()) | Err(BrowserSessionError::Aborted)) => {
                        browsing::save_download(&lease, &said, path, end, run).await?;
                        format!("The download is saved as `{path}`.")
                    }
                    (None, Ok(())) => String::new(),
                    (_, Err(error)) => return Err(browsing::browser_failure(error)),
                };
                drop(said);
                (lease, done)
            }
            (None, Some(history)) => {
                let lease = browsing::open_browser(run).await?;
                let by = if history == HistoryDirection::Back { -1 } else { 1 };
                if !lease.session()?.step(by).await.map_err(browsing::browser_failure)? {
                    return Err(ToolFailure::new(ErrorKind::NotFound, "there is no such page in the history"));
                }
                browsing::settle(lease.session()?, run).await?;
                let refused = lease.session()?.state().take_not_shown();
                if let Some(refused) = refused {
                    return Err(browsing::browser_failure(refused.into()));
                }
                (lease, String::new())
            }
            _ => {
                let message = "give either `url` or `history`";
                return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
            }
        };
        browsing::report_page(lease.session()?, run, ReportScope::Page, &done, input.save_as).await
    }
}
