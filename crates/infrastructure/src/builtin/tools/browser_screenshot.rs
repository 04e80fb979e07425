//! The tool `browser_screenshot`.

use crate::{
    browser::actions::{PictureFormat, Screenshot},
    builtin::{
        browsing::{
            self,
            browser_tool::{BrowserCallAccesses, BrowserTool},
        },
        files::image_view::{ImageView, view},
        tool_kit::{blocking::on_blocking_thread, schema::output_schema, tool_context::ToolContext},
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};
use image::ImageFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolstead_domain::{ToolFailure, ToolResult, error_kind::ErrorKind};

/// Tool that shows the page as a picture, or saves it as a file.
pub(crate) struct BrowserScreenshot;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Capture the whole page.
    #[serde(default)]
    full_page: bool,
    /// A picture, or a document for printing (needs `save_as`).
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    format: Format,
    /// The workspace file to save it as.
    #[schemars(extend("x-advertised" = false))]
    save_as: Option<String>,
    /// Store the original under a handle, even if the picture shows all of it.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    keep: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Png,
    #[serde(alias = "jpg")]
    Jpeg,
    Pdf,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    url: String,
    /// Width in pixels; none of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    /// Bytes of the original.
    size_bytes: usize,
    /// The saved file, or the handle of the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

impl BrowserTool for BrowserScreenshot {
    const NAME: &str = "browser_screenshot";
    const TITLE: &str = "Take a picture of the page";
    const DESCRIPTION: &str = "Shows the open page as a picture. `save_as` saves it as a file of the workspace, as PNG, \
                               JPEG, or PDF for printing. To read a page, `browser_get_page` takes less.";
    const BRIEF: &str = "Shows the open page as a picture, or saves it as PNG, JPEG or PDF.";
    const KEYWORDS: &str = "capture image photo print snapshot visual website";
    const EXAMPLE: &str = r#"{"full_page": true, "save_as": "shop.png"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn touches<'a>(&self, input: &'a Input) -> BrowserCallAccesses<'a> {
        BrowserCallAccesses { writes: input.save_as.as_deref(), ..BrowserCallAccesses::default() }
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let lease = browsing::open_browser(run).await?;
        let session = lease.session()?;
        let url = session.state().current().map(|tab| tab.shown_address().to_owned()).unwrap_or_default();
        let encoded = match (input.format, &input.save_as) {
            (Format::Pdf, None) => {
                let failure = ToolFailure::new(ErrorKind::InvalidInput, "a document can only be saved, not shown");
                return Err(failure.next("Give the file to save it as in `save_as`."));
            }
            (Format::Pdf, Some(_)) => session.pdf().await.map(|data| Screenshot { data, is_cut: false }),
            (Format::Png, _) => session.picture(input.full_page, PictureFormat::Png).await,
            (Format::Jpeg, _) => session.picture(input.full_page, PictureFormat::Jpeg).await,
        };
        let unusable = || ToolFailure::new(ErrorKind::UpstreamProtocol, "the browser returned no picture");
        let Screenshot { data, is_cut } = encoded.map_err(browsing::browser_failure)?;
        let bytes = STANDARD.decode(data).map_err(|_| unusable())?;
        if bytes.is_empty() {
            return Err(unusable());
        }
        drop(lease);
        if let Some(path) = &input.save_as {
            run.write(path, bytes.clone()).await?;
        }
        let size_bytes = bytes.len();
        let image_format = match input.format {
            Format::Png => ImageFormat::Png,
            Format::Jpeg => ImageFormat::Jpeg,
            Format::Pdf => {
                let output = Output { url, width: None, height: None, size_bytes, path: input.save_as };
                return crate::builtin::tool_kit::answer::answer("The page is saved as a PDF document.", &output);
            }
        };
        let limits = run.environment().files().limits().clone();
        let original = bytes.clone();
        let shown = on_blocking_thread(move || view(&bytes, image_format, &limits, None, "screenshot")).await?;
        let path = match input.save_as {
            Some(path) => Some(path),
            None if shown.is_changed || input.keep => store_original(run, image_format, &original).await,
            None => None,
        };
        let ImageView { width, height, .. } = shown;
        let mut text = format!("A picture of {url}, {width}×{height} pixels");
        match &path {
            Some(path) => text.push_str(&format!("; the original is `{path}`.")),
            None => text.push('.'),
        }
        if is_cut {
            text.push_str(" The page continues beyond it.");
        }
        let output = Output { url, width: Some(width), height: Some(height), size_bytes, path };
        let structured = serde_json::to_value(&output).map_err(|error| {
            ToolFailure::new(ErrorKind::Internal, "the result could not be written as JSON").caused_by(error)
        })?;
        let data = STANDARD.encode(&shown.bytes);
        Ok(ToolResult::of_blocks(vec![
            json!({"type": "image", "data": data, "mimeType": shown.format.to_mime_type()}),
            json!({"type": "text", "text": text}),
        ])
        .with_structured_content(structured))
    }
}

/// Stores the original and returns its handle; `None` if it cannot be stored.
async fn store_original(run: &ToolContext<'_>, format: ImageFormat, original: &[u8]) -> Option<String> {
    let context = run.context();
    let stored = context.outputs.store(context.principal, context.id, format.to_mime_type(), original).await.ok()?;
    Some(stored.handle.to_string())
}
