//! Prepares an image for a model.

use super::{Kind, Output};
use crate::builtin::{
    files::{
        content::OpenContent,
        file_limits::FileLimits,
        image_view::{Crop, ImageView, MAX_FILE_BYTES, view as viewed},
    },
    text::line_index::ContentId,
    tool_kit::tool_context::ToolContext,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use image::ImageFormat;
use serde_json::json;
use toolstead_domain::{ToolFailure, ToolResult, error_kind::ErrorKind};

/// An image that is ready to be shown.
pub(super) struct Picture {
    name: String,
    format: ImageFormat,
    view: ImageView,
    original: Vec<u8>,
    is_stored: bool,
}

/// Reads and decodes an image, crops it if requested, and makes it fit the limits.
pub(super) fn view(
    mut content: OpenContent,
    format: ImageFormat,
    limits: &FileLimits,
    crop: Option<Crop>,
) -> Result<Picture, ToolFailure> {
    let original = content.read_whole(MAX_FILE_BYTES, "an image")?;
    let view = viewed(&original, format, limits, crop, &content.name)?;
    let is_stored = matches!(content.id, ContentId::Output(_));
    Ok(Picture { name: content.name, format, view, original, is_stored })
}

impl Picture {
    /// Returns the image and its description as a result. Stores the original if the image was changed to be shown and
    /// is not a stored output already.
    pub(super) async fn answer(self, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let Self { name, format, view, original, is_stored } = self;
        let mime = format.to_mime_type();
        let is_kept = view.is_changed && !is_stored;
        let kept = match is_kept {
            true => {
                let context = run.context();
                context.outputs.store(context.principal, context.id, mime, &original).await.ok()
            }
            false => None,
        };
        let handle = kept.map(|stored| stored.handle.to_string());
        let mut text = format!("`{name}`: {mime}, {} bytes, {}×{} pixels", original.len(), view.width, view.height);
        if let Some(Crop { x, y, width, height }) = view.crop {
            text.push_str(&format!("; the part of {width}×{height} pixels at ({x}, {y})"));
        }
        if view.is_scaled {
            text.push_str(&format!(
                ", shown in {}×{}; `crop` shows a part in full",
                view.shown_width, view.shown_height
            ));
        }
        text.push('.');
        match &handle {
            Some(handle) => text.push_str(&format!(" The original is stored as `{handle}`.")),
            None if view.is_changed => text.push_str(&format!(" `{name}` is the original.")),
            None => {}
        }
        let output = Output {
            path: name,
            kind: Kind::Image,
            size_bytes: Some(original.len() as u64),
            truncated: view.is_scaled,
            mime: Some(mime.to_owned()),
            width: Some(view.width),
            height: Some(view.height),
            shown_width: Some(view.shown_width),
            shown_height: Some(view.shown_height),
            original: handle,
            ..Output::default()
        };
        let structured = serde_json::to_value(&output).map_err(|error| {
            ToolFailure::new(ErrorKind::Internal, "the result could not be written as JSON").caused_by(error)
        })?;
        let data = STANDARD.encode(&view.bytes);
        Ok(ToolResult::of_blocks(vec![
            json!({"type": "image", "data": data, "mimeType": view.format.to_mime_type()}),
            json!({"type": "text", "text": text}),
        ])
        .with_structured_content(structured))
    }
}
