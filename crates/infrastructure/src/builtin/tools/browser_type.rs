//! The tool `browser_type`.

use crate::{
    browser::keyboard::{KeyPress, UnknownKey},
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
use toolstead_domain::{ToolFailure, ToolResult, error_kind::ErrorKind};

/// Tool that types text, presses keys and attaches files.
pub(crate) struct BrowserType;

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
    /// The text.
    #[schemars(length(max = 100_000))]
    #[schemars(extend("x-advertised" = ""))]
    text: Option<String>,
    /// A secret text such as a password: records of the call have `[redacted]` in its place.
    #[schemars(length(max = 10_000))]
    #[schemars(extend("x-advertised" = "A password; records omit it"))]
    secret: Option<String>,
    /// `false`: append to the content.
    #[serde(default = "default_true")]
    #[schemars(extend("x-advertised" = false))]
    clear: bool,
    /// Press Enter afterwards.
    #[serde(default)]
    submit: bool,
    /// Keys to press, after the text if there is one, as in `["Tab", "Enter"]`; without an element they go to the
    /// focus.
    #[serde(default)]
    #[schemars(length(max = 50))]
    #[schemars(extend("x-advertised" = "As `Escape`, `PageDown`, `Shift+Tab`; need no `ref`"))]
    keys: Vec<String>,
    /// Workspace files for a file field.
    #[serde(default)]
    #[schemars(length(max = 10))]
    #[schemars(extend("x-advertised" = false))]
    files: Vec<String>,
    /// The timeout.
    #[serde(default = "usual_time")]
    #[schemars(range(min = 1, max = 300_000))]
    #[schemars(extend("x-advertised" = false))]
    timeout_ms: u64,
}

/// Hint for a password that was passed as ordinary text.
const ON_RECORD: &str = " This is a password field, and `text` is recorded in the audit log. Use `secret` instead.";

fn usual_time() -> u64 {
    10_000
}

fn default_true() -> bool {
    true
}

impl BrowserTool for BrowserType {
    const NAME: &str = "browser_type";
    const TITLE: &str = "Type";
    const DESCRIPTION: &str = "Types a text into a field of the open page, replacing its content, and reports what \
         changed. `secret` takes a password in place of `text`. `keys` presses keys, after the text or alone: \
         `Escape` closes, `PageDown` and `End` scroll, arrows choose. `files` attaches workspace files to a file \
         field instead.";
    const BRIEF: &str = "Types into a field of the open page, presses keys, or attaches files.";
    const KEYWORDS: &str = "attach enter fill form input keyboard keystroke login scroll upload website";
    const EXAMPLE: &str = r#"{"ref": "e3", "text": "Ann", "submit": true}"#;
    type Input = Input;

    fn touches<'a>(&self, input: &'a Input) -> BrowserCallAccesses<'a> {
        BrowserCallAccesses {
            target: BrowserCallTarget::Element(input.reference.as_deref(), input.element_id),
            reads: &input.files,
            ..BrowserCallAccesses::default()
        }
    }

    fn milliseconds(&self, input: &Input) -> Option<u64> {
        Some(input.timeout_ms)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let keys = keys(&input)?;
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let end = browsing::action_deadline(run, input.timeout_ms);
        let is_named = input.reference.is_some() || input.element_id.is_some();
        let text = input.text.as_deref().or(input.secret.as_deref());
        let done = if is_named || text.is_some() || !input.files.is_empty() {
            let element = browsing::element(session, input.reference.as_deref(), input.element_id)?;
            browsing::may_use(session, element, run)?;
            match text {
                Some(text) => {
                    let typing = async {
                        let is_on_record = input.text.is_some() && session.attributes(element).await.is_password();
                        match input.secret {
                            Some(_) => session.type_secret(element, text, input.clear, input.submit).await?,
                            None => session.type_text(element, text, input.clear, input.submit).await?,
                        }
                        Ok(if is_on_record { ON_RECORD } else { "" })
                    };
                    let hint = browsing::perform_action(session, end, typing).await?;
                    format!("Typed into {element}.{hint}")
                }
                None if input.files.is_empty() => {
                    browsing::perform_action(session, end, session.focus(element)).await?;
                    format!("Pressed {} on {element}.", input.keys.join(", "))
                }
                None => {
                    let mut files = Vec::new();
                    for path in &input.files {
                        files.push(browsing::hand_over(&lease, path, run).await?);
                    }
                    browsing::perform_action(session, end, session.give_files(element, &files)).await?;
                    format!("Attached {} to {element}.", input.files.join(", "))
                }
            }
        } else {
            format!("Pressed {}.", input.keys.join(", "))
        };
        if let Err(failure) = browsing::press(session, &keys, end, run).await {
            return Err(if text.is_some() { browsing::failed_after(&done, failure) } else { failure });
        }
        browsing::report_after_settling(session, run, &done, None).await
    }
}

/// Parses the keys. Fails unless the call has text, keys or both, or else files.
fn keys(input: &Input) -> Result<Vec<KeyPress>, ToolFailure> {
    let invalid = |message: String| ToolFailure::new(ErrorKind::InvalidInput, message);
    if input.text.is_some() && input.secret.is_some() {
        return Err(invalid("give either `text` or `secret`".into()));
    }
    let has_text = input.text.is_some() || input.secret.is_some();
    let does = (has_text || !input.keys.is_empty(), !input.files.is_empty());
    if does.0 == does.1 {
        return Err(invalid("give `text`, `keys` or both, or else `files`".into()));
    }
    input.keys.iter().map(|key| key.parse().map_err(|error: UnknownKey| invalid(format!("`keys`: {error}")))).collect()
}
