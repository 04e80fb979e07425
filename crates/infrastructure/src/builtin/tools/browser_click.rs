//! The tool `browser_click`.

use crate::{
    browser::{session::SessionError, state::DialogAnswer},
    builtin::{
        browsing::{self, Telling},
        built_in_tool::BuiltInTool,
        run::Run,
        schema::output_schema,
        world::World,
    },
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout_at;
use toolstead_domain::{
    access::Access,
    category::Category,
    tool::{Availability, ToolAnnotations},
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// Click.
pub(crate) struct BrowserClick;

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
    /// Click twice.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    double: bool,
    /// Answer a dialog with OK (`accept`) or cancel (`dismiss`).
    #[schemars(extend("x-advertised" = false))]
    dialog: Option<DialogWord>,
    /// The text for a dialog that asks for one.
    #[schemars(length(max = 1_000))]
    #[schemars(extend("x-advertised" = false))]
    dialog_text: Option<String>,
    /// The file of the workspace that takes what the click downloads.
    #[schemars(extend("x-advertised" = false))]
    save_as: Option<String>,
    /// How long it may take.
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
enum DialogWord {
    Accept,
    Dismiss,
}

#[async_trait]
impl BuiltInTool for BrowserClick {
    const NAME: &str = "browser_click";
    const TITLE: &str = "Click";
    const DESCRIPTION: &str = "Clicks an element of the open page, waits until the page is quiet, and tells what changed. `save_as` saves the file that the click downloads. `dialog` answers a dialog that the click brings up; without it the dialog is dismissed.";
    const BRIEF: &str = "Clicks an element of the open page and tells what changed.";
    const CATEGORY: Category = Category::Web;
    const TAGS: &[&str] = &["browser"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &str = r#"{"ref": "e12"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<browsing::PageFacts>())
    }

    fn availability(&self, world: &World) -> Availability {
        browsing::availability(world)
    }

    async fn accesses_of(&self, input: &Input, call: &ToolCall, world: &World) -> Result<Vec<Access>, ToolFailure> {
        let mut accesses = browsing::access_to_element(input.reference.as_deref(), input.element_id, call, world);
        if let Some(path) = &input.save_as {
            accesses.push(Access::WritePath(world.access(path).await?));
        }
        Ok(accesses)
    }

    fn time_wanted(&self, input: &Input) -> Option<Duration> {
        Some(Duration::from_millis(input.timeout_ms + 5_000))
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let element = browsing::element(session, input.reference.as_deref(), input.element_id)?;
        browsing::may_use(session, element, run)?;
        let end = browsing::end_after(run, input.timeout_ms);
        let dialog = input.dialog.map(|word| match word {
            DialogWord::Accept => DialogAnswer::Accept(input.dialog_text),
            DialogWord::Dismiss => DialogAnswer::Dismiss,
        });
        let said = browsing::Said::new(session, dialog, input.save_as.is_some());
        let clicked = timeout_at(end.into(), session.click(element, input.double)).await;
        let clicked = clicked.unwrap_or(Err(SessionError::TimedOut));
        if clicked.is_ok() {
            browsing::settle(session, run).await?;
        }
        clicked.map_err(browsing::failed)?;
        if let Some(path) = &input.save_as {
            browsing::save_download(&lease, &said, path, end, run).await?;
        }
        let done = match &input.save_as {
            Some(path) => format!("Clicked {element}; the download is saved as `{path}`."),
            None => format!("Clicked {element}."),
        };
        browsing::told(session, Telling::Changes, &done, input.save_as).await
    }
}
